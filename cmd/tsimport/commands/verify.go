package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/tablestore/address"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/rundir"
	archive "example.com/tsimport/reader/archivefile"
	"example.com/tsimport/transfer/restore"
	"example.com/tsimport/transfer/verify"
)

func verifyCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:      "verify",
		Usage:     "compare a table with the files that were loaded into it, or with another table",
		ArgsUsage: "FILE... | ots://INSTANCE/TABLE",
		Description: inputsHelp + "\n" + databaseHelp + "\n" + tableSourceHelp + "\n" +
			"Takes the flags of tsimport load that describe the rows: write verify for load, or name a run with --run.\n" +
			"Reads the table and never writes to it. Exit code 0: all rows are there and equal; 6: rows are missing,\n" +
			"different or, with --extra fail, surplus; 3: none are, but records that the run did not reject could not be\n" +
			"compared; 1: the comparison failed; 2: bad usage.",
		Flags:  flagsOf(options.Verify | options.Ending),
		Action: in.with(options.Verify|options.Ending, verifyTable),
	}
}

// comparison holds the options of a comparison that a load does not have.
type comparison struct {
	examples  int
	extraFail bool
	sample    float64
	run       string
	settleFor time.Duration
	scan.Manner
}

func parseComparison(c *call) (o comparison, err error) {
	o = comparison{examples: c.of.Examples, extraFail: c.of.Extra == "fail", run: c.of.Run, settleFor: c.of.SettleFor,
		Manner: scan.Manner{Gate: gateOf(c)}}
	switch {
	case c.given.IsSet("max-rcu") && c.of.Sample != "":
		return o, usagef("--max-rcu does not limit --sample, which reads single rows; leave one of them out")
	case o.run != "" && c.Args().Present():
		return o, usagef("--run %s names the files too; leave %q out", o.run, c.Args().First())
	}
	if text := c.of.Sample; text != "" {
		if o.sample, err = parseShare(text); err != nil {
			return o, usagef("--sample %q: want a share above 0 and at most 100%%, such as 1%% or 0.01", text)
		}
		if o.extraFail && o.sample > 0 {
			return o, usagef("--extra fail: a sample finds no surplus rows; leave --sample out")
		}
	}
	return o, nil
}

// parseShare parses a share such as 1% or 0.01. It returns 0 for all.
func parseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share > 0 && share <= 1) {
		return 0, errors.New("not a share")
	}
	if share == 1 {
		return 0, nil
	}
	return share, nil
}

func verifyTable(c *call) (err error) {
	o, err := parseComparison(c)
	if err != nil {
		return err
	}
	load := c // the command whose flags describe the load
	var run *rundir.Run
	if o.run != "" {
		if run, load, err = openRun(c, o.run); err != nil {
			return err
		}
		endingOf(c).table = tableGiven(load)
	}
	o.Waits = waitsOf(c)
	if load.Command.Name == "copy" {
		return verifyCopy(c, load, o, run)
	}
	cfg, err := loadConfig(load)
	if err != nil {
		return err
	}
	if run != nil {
		if err := takeOwn(c, &cfg); err != nil {
			return err
		}
	}
	if cfg.Write.When != nil {
		return usagef("--when: rows that the load left out would count as missing; leave --when out")
	}
	cfg.Target.Aging.DropExpired = load.of.DropExpired
	if c.of.Archive != "" {
		if run != nil || cfg.Target.Table != "" {
			return usagef("--archive replaces the table; leave out --table and --run")
		}
		return verifyArchive(c, &cfg, o)
	}
	return verifyLoaded(c, load, cfg, o, run)
}

// verifyLoaded compares the table with the rows that a load has written, or would write.
func verifyLoaded(c, load *call, cfg pipeline.Config, o comparison, run *rundir.Run) (err error) {
	if err := checkTable(cfg.Target.Table); err != nil {
		return err
	}
	t, err := openTarget(load, access{readOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.compared(&cfg); err != nil {
		return err
	}
	stopSource, _, err := tableSource(load, &cfg, t, o.Manner, false)
	defer func() { err = errors.Join(err, stopSource()) }()
	if err != nil {
		return err
	}
	if err := wholeForExtra(c.interrupts, &cfg, o); err != nil {
		return err
	}
	return t.compare(c, &cfg, o, run)
}

// compare compares the target with a load's inputs and shows the result.
func (t *target) compare(c *call, cfg *pipeline.Config, o comparison, run *rundir.Run) error {
	r, err := compare(c, cfg, o, run)
	if err != nil {
		return noTable(err, t)
	}
	return showComparison(c, r)
}

// verifyCopy compares the two tables of a finished copy in their current state.
func verifyCopy(c, copied *call, o comparison, run *rundir.Run) (err error) {
	k := new(copying)
	cfg, err := k.config(copied, copied.command())
	if err != nil {
		return err
	}
	if err := takeOwn(c, &cfg); err != nil {
		return err
	}
	if cfg.Write.When != nil {
		return usagef("--run %s: the run copied with --when, and rows that it left out would count as missing", o.run)
	}
	cfg.DryRun = true
	t, err := k.open(copied, access{readOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.compared(&cfg); err != nil {
		return err
	}
	if err := k.begin(copied, &cfg, t); err != nil {
		return err
	}
	if o.Gate != nil {
		k.Read.Gate = o.Gate
	}
	k.Compared(&cfg)
	return t.compare(c, &cfg, o, run)
}

func (t *target) compared(cfg *pipeline.Config) error {
	if err := t.mustExist(); err != nil {
		return err
	}
	limitMemory(cfg.Limits.Memory, t.embedded)
	cfg.Target.Client, cfg.Target.Name = t.Target, t.name
	return nil
}

// wholeForExtra refuses --extra fail for an archive that deliberately lacks rows, which would count as surplus.
func wholeForExtra(interrupts *interrupts, cfg *pipeline.Config, o comparison) error {
	if !o.extraFail {
		return nil
	}
	m, err := restore.Find(interrupts.drain, cfg.Inputs, cfg.Read.Find)
	if m == nil || err != nil {
		return err
	}
	if text := holdsSome(m); text != "" {
		return usagef("--extra fail: %s: the others would count as surplus; leave --extra out", text)
	}
	return nil
}

// holdsSome returns a text if an archive has only a part of its table's rows, or "".
func holdsSome(m *archive.Manifest) string {
	if h := m.Holds; h.From == "" && h.To == "" && h.Filter == "" && h.Where == "" {
		return ""
	}
	return fmt.Sprintf("the archive %s holds only some of its table's rows (--from-key, --to-key, --filter or --where)",
		m.Dir())
}

// verifyArchive compares an archive with files, a table or another archive.
func verifyArchive(c *call, cfg *pipeline.Config, o comparison) (err error) {
	m, err := restore.At(c.interrupts.drain, c.of.Archive, cfg.Read.Find)
	if err == nil && m == nil {
		m, err = archive.Read(c.of.Archive) // the error says why it is not an archive
	}
	if err != nil {
		return usagef("--archive: %v", err)
	}
	if slices.ContainsFunc(cfg.Inputs, address.Is) {
		return usagef("--archive: to compare it with a table, give tsimport verify %s --table TABLE", suggest.Arg(m.Dir()))
	}
	of := &client.Table{Name: m.Table, Key: m.Key, Defined: m.DefinedTypes(), Created: m.Created, Definition: m.Options}
	of.TimeToLive = -1 // cells of an archive do not expire
	from, err := restore.Find(c.interrupts.drain, cfg.Inputs, cfg.Read.Find)
	if err != nil {
		return err
	}
	if cfg.Read.Sources, err = originOf(c.interrupts.drain, c, cfg.Inputs, cfg.Read.Find); err != nil {
		return err
	}
	if from != nil && (from.Dir() == m.Dir() || options.Same(from.Dir(), m.Dir())) {
		return usagef("source and target are the same archive: %s", m.Dir())
	}
	if from != nil {
		if err := restore.Fits(from, cfg, "the archive "+m.Dir(), of.Key); err != nil {
			return err
		}
	}
	if err := wholeForExtra(c.interrupts, cfg, o); err != nil {
		return err
	}
	limitMemory(cfg.Limits.Memory, false)
	v := verify.Config{
		Request: cfg.Request(), Examples: o.examples, ExtraFails: o.extraFail, Sample: o.sample,
		Workers: cfg.Lanes.Concurrency, Memory: cfg.Limits.Memory, TempDir: cfg.Limits.TempDir, RetryFor: cfg.Lanes.RetryFor,
		Progress: new(verify.Progress), SettleFor: o.settleFor, Stored: &verify.Stored{Table: of, Rows: archive.New(m)},
	}
	stop := watchComparison(c, comparing, v.Progress)
	r, err := verify.Run(c.interrupts.drain, v)
	stop()
	if err != nil {
		return restore.InputError(err)
	}
	r.InArchive = true
	if text := holdsSome(m); r.Missing > 0 && text != "" {
		r.Notes = append(r.Notes, text+": the others are missing")
	}
	return showComparison(c, r)
}

func showComparison(c *call, r *verify.Result) (err error) {
	e := endingOf(c)
	e.table = r.Table
	e.count("read", r.Read)
	e.count("rejected", r.Rejected)
	e.count("superseded", r.Superseded)
	e.count("equal", r.Equal)
	e.count("missing", r.Missing)
	e.count("different", r.Different)
	e.count("surplus", r.Extra)
	err = printed(c, r, func(w io.Writer) error { return writeComparison(w, r) })
	code := exitcode.Rejects
	if r.Differ {
		code = exitcode.Differences
	}
	if err == nil && !r.OK {
		return endsWith(c, code, nil, firstDifference(r))
	}
	return err
}

// takeOwn sets the limits of the machine from the comparison's own flags, not from the run's.
func takeOwn(c *call, cfg *pipeline.Config) error {
	own := pipeline.Config{}
	if err := options.Speed(&c.of.Request, &own); err != nil {
		return usagef("%v", err)
	}
	cfg.Limits.Memory, cfg.Limits.TempDir = own.Limits.Memory, own.Limits.TempDir
	cfg.Lanes.Concurrency, cfg.Lanes.RetryFor = c.of.Concurrency, c.of.RetryFor
	return nil
}

func compare(c *call, cfg *pipeline.Config, o comparison, run *rundir.Run) (*verify.Result, error) {
	cfg.Target.Client.Connections = cfg.Lanes.Concurrency
	traffic := new(client.Traffic)
	sdk, err := client.New(c.interrupts.drain, cfg.Target.Client, traffic)
	if err != nil {
		return nil, usagef("%v", err)
	}
	v := verify.Config{
		Request: cfg.Request(), Client: sdk, Sample: o.sample, Examples: o.examples, ExtraFails: o.extraFail,
		Workers: cfg.Lanes.Concurrency, Memory: cfg.Limits.Memory, TempDir: cfg.Limits.TempDir,
		Returned: cfg.Write.Marks.ReturnedKeys, RetryFor: cfg.Lanes.RetryFor, Progress: new(verify.Progress),
		Condition: cfg.Write.Condition, Manner: o.Manner, Clock: &traffic.Clock, SettleFor: o.settleFor,
	}
	(&client.Admin{Client: sdk, Context: c.interrupts.drain}).AskTime(&traffic.Clock)
	if v.Request.Target.PolicyNow.IsZero() {
		v.Request.Target.PolicyNow = traffic.Clock.Now().UTC()
	}
	v.Request.RunDir = ""
	var without []string
	if run != nil {
		v.Rejected, v.Loaded = run.Rejected, run.Started
		if !run.PolicyNow.IsZero() {
			v.Request.Target.PolicyNow = run.PolicyNow
		}
		if v.Snapshots, err = sqlAgain(cfg, run); err != nil {
			return nil, err
		}
		without = addRetried(&v, run)
	}
	stop := watchComparison(c, comparing, v.Progress)
	r, err := verify.Run(c.interrupts.drain, v)
	stop()
	if err == nil {
		for _, by := range without {
			r.Notes = append(r.Notes, fmt.Sprintf("rejects of the run were loaded by run %s, whose files cannot be read "+
				"together with the inputs (an archive or a database, or flags such as --delimiter, --dialect or --encoding); its "+
				"rows count as surplus or different", by))
		}
	}
	return r, err
}

// openRun reads a run's request and rejects. It changes to the folder where the run was started, for relative names.
func openRun(c *call, path string) (*rundir.Run, *call, error) {
	run, err := rundir.ReadRun(path)
	if err != nil {
		if r, _ := job.ReadRecord(path); r != nil && len(r.Loads) > 0 {
			return nil, nil, usagef("--run %s: that is the folder of a job; give one of its loads, such as %s", path,
				r.Loads[0].Folder(path))
		}
		return nil, nil, usagef("--run: %v", err)
	}
	if len(run.Arguments) > 0 && run.Arguments[0] == "sync" {
		return nil, nil, usagef("--run %s: that is a run of tsimport sync; to compare its inputs with the table, give "+
			"tsimport verify the sync's arguments, without flags of sync only such as --delete and --range", path)
	}
	of, err := commandOf(run.Request)
	if err != nil {
		return nil, nil, usagef("--run %s: %v", path, err)
	}
	of.Quiet = of.Quiet || of.Name == job.Copy // hides notes that a copy prints before its first row
	load := c.again(&invocation{args: c.in.args}, of)
	if load.Command.Name == "copy" {
		if run.Directory != "" {
			err = os.Chdir(run.Directory) // for relative names of a store and of the file of returned keys
		}
		return run, load, err
	}
	if of := load.of.RetryRejects; of != "" {
		return nil, nil, usagef("--run %s: it loaded the rejects of run %s, which may have changed since; compare with the "+
			"files: tsimport verify FILE... with the flags of that run", path, of)
	}
	for _, name := range options.Names(func(o *options.Option) bool { return o.In == options.Load }) {
		if load.given.IsSet(name) && name != "state" { // --state is a place, not a selection
			return nil, nil, usagef("--run %s: its flags do not say which files it chose, and in which order (--%s); compare "+
				"with the files: tsimport verify FILE...", path, name)
		}
	}
	if run.Directory != "" {
		if err := os.Chdir(run.Directory); err != nil {
			return nil, nil, usagef("--run %s: it was started in %s: %v; give its files and flags yourself", path, run.Directory,
				rootCause(err))
		}
	}
	return run, load, nil
}

const comparing = "verify: %s records read, %s rows of the table compared"

func watchComparison(c *call, format string, p *verify.Progress) (stop func()) {
	if c.of.Quiet || !c.show.terminal {
		return func() {}
	}
	return c.show.repaint(func() []string {
		return []string{fmt.Sprintf(format, words.Grouped(p.Read.Load()), words.Grouped(p.Compared.Load()))}
	})
}

func writeComparison(w io.Writer, r *verify.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", comparisonLine(r))
	if r.Settled != nil {
		fmt.Fprintf(&b, "%s\n", settledLine(r.Settled))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	if text := r.Follow(); text != "" {
		fmt.Fprintf(&b, "%s\n", text)
	}
	for _, e := range r.Examples {
		fmt.Fprintf(&b, "%s\n", exampleLine(&e))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func settledLine(s *verify.Settled) string {
	return fmt.Sprintf("at first %s rows differed; %s of them became equal when reread, %s still differ (%v)",
		words.Grouped(s.Differed), words.Grouped(s.Settled), words.Grouped(s.Remain),
		round(time.Duration(s.Seconds*float64(time.Second))))
}

func comparisonLine(r *verify.Result) string {
	share, surplus := "", fmt.Sprintf(", %s surplus", words.Grouped(r.Extra))
	if r.Sample > 0 {
		share, surplus = fmt.Sprintf("of %g%% of the keys: ", 100*r.Sample), ""
	}
	text := fmt.Sprintf("%s: %s%s rows expected, %s equal, %s missing, %s different%s", comparisonVerdict(r), share,
		words.Grouped(r.RowsExpected), words.Grouped(r.Equal), words.Grouped(r.Missing), words.Grouped(r.Different), surplus)
	text = plus(plus(plus(text, r.Archived, "archived"), r.WithoutKey, "without a returned key"), r.Expired, "expired")
	text += fmt.Sprintf(" (%s records read, %s rejected, %s superseded", words.Grouped(r.Read), words.Grouped(r.Rejected),
		words.Grouped(r.Superseded))
	return text + fmt.Sprintf("; %v, %s rows/s)", round(time.Duration(r.Seconds*float64(time.Second))),
		words.Grouped(int64(r.RowsPerSecond)))
}

// comparisonVerdict formats a verdict that claims no more than was compared.
func comparisonVerdict(r *verify.Result) string {
	of := "table"
	if r.InArchive {
		of = "archive"
	}
	text := "the " + of + " matches the input"
	switch {
	case r.Differ:
		text = "the " + of + " does not match the input"
	case r.NotCompared > 0:
		text = fmt.Sprintf("the rows that could be compared match, but %s could not",
			counted(r.NotCompared, "rejected record"))
	case r.Rejected > 0:
		text += " without the records that the load rejected"
	}
	if r.Extra > 0 && !r.Differ {
		text += fmt.Sprintf(", and the %s has %s more", of, counted(r.Extra, "row"))
	}
	if n := len(r.Tables); n > 0 {
		text = fmt.Sprintf("%d tables: %s", n, text)
	}
	return text
}

// firstDifference returns one line with the result and the first difference, or the first record not compared.
func firstDifference(r *verify.Result) string {
	text := comparisonLine(r)
	switch {
	case r.Differ && len(r.Examples) > 0:
		text += "; the first: " + exampleLine(&r.Examples[0])
	case !r.Differ && r.FirstNotCompared != nil:
		text += "; the first: " + reasonText(r.FirstNotCompared)
	}
	return text
}

func exampleLine(e *verify.Example) string {
	kind := e.Kind
	if kind == verify.Extra {
		kind = "surplus"
	}
	of := e.Table
	if of != "" {
		of += ": "
	}
	text := fmt.Sprintf("%-9s %s%s", kind, of, printable(e.Key.String()))
	if len(e.Columns) > 0 {
		text += "  columns " + printable(strings.Join(e.Columns, ", "))
	}
	for _, v := range e.Values[:min(len(e.Values), shownDifferences)] {
		text += fmt.Sprintf("  %s: %s", printable(v.Column), differenceText(v.Input, v.Table))
	}
	if e.Input != nil {
		text += fmt.Sprintf("  (%s, record %s)", printable(e.Input.File), words.Grouped(e.Input.Record))
	}
	return text
}

// shownDifferences limits the columns whose values the line of an example shows. --json has more.
const shownDifferences = 3

// differenceText shows both sides or, with several versions, those that one side lacks.
func differenceText(input, table []string) string {
	less, more := without(input, table), without(table, input)
	switch {
	case len(less)+len(more) == 0:
		return sideText(input) + ", in the table equal as far as it is shown"
	case len(input) < 2 && len(table) < 2 || len(less) > 0 && len(more) > 0:
		return sideText(less) + ", in the table " + sideText(more)
	case len(more) == 0:
		return "the table lacks " + sideText(less)
	}
	return "only the table has " + sideText(more)
}

func without(versions, others []string) (rest []string) {
	for _, v := range versions {
		if !slices.Contains(others, v) {
			rest = append(rest, v)
		}
	}
	return rest
}

func sideText(versions []string) string {
	if len(versions) == 0 {
		return "none"
	}
	return printable(strings.Join(versions, ", "))
}

// verifyLoad compares the table with the rows that a load has just written, and adds the result to the load's report.
func verifyLoad(c *call, cfg pipeline.Config, report *pipeline.Report) error {
	cfg.Target.Absent = false
	rejected, err := rundir.ReadRejected(report.RunDir)
	if err != nil {
		return err
	}
	run := &rundir.Run{Started: report.FirstStarted, Rejected: rejected, Division: report.Division}
	if run.Snapshots, err = json.Marshal(report.Snapshots); err != nil {
		return err
	}
	if report.PolicyNow != nil {
		run.PolicyNow = *report.PolicyNow
	}
	r, err := compare(c, &cfg, comparison{examples: 10}, run)
	switch {
	case err != nil:
		report.ExitCode, report.Error = exitcode.Of(err), client.OneLine(err.Error())
	case !r.OK:
		report.ExitCode, report.Error = exitcode.Differences, "the table does not match the input"
	}
	if r != nil {
		report.Verify = r
		c.say.Line("verify: %s", comparisonLine(r))
		for _, e := range r.Examples {
			c.say.Line("%s", exampleLine(&e))
		}
	}
	return errors.Join(err, rundir.WriteSummary(report.RunDir, report))
}

// workingDirectory returns the working directory of this process, or "" if it is unknown.
func workingDirectory() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return filepath.Clean(dir)
}

// rootCause returns an error without its path, which the surrounding text names.
func rootCause(err error) error {
	if e, ok := err.(*os.PathError); ok {
		return e.Err
	}
	return err
}
