package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/transfer/tablesync"
	"example.com/tsimport/transfer/verify"
)

func syncCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:      "sync",
		Usage:     "make a table equal to files or another table, writing only the differences",
		ArgsUsage: "FILE... | ots://INSTANCE/TABLE",
		Description: inputsHelp + "\n" + databaseHelp + "\n" + tableSourceHelp + "\n" +
			"Compares all rows first, like tsimport verify, then puts missing and different rows and, with --delete, deletes " +
			"those that no record has. --plan shows what would be done and what it would cost. Takes the flags of tsimport " +
			"load that describe the rows. The same command again, or tsimport resume, resumes an interrupted sync " +
			"(docs/sync.md).\n" +
			"Nothing is deleted if a record is rejected or an input is empty, missing, damaged or changed: exit code 3.",
		Flags:  flagsOf(options.Sync | options.Ending),
		Action: in.with(options.Sync|options.Ending, syncTable),
	}
}

func syncConfig(c *call) (cfg tablesync.Config, err error) {
	for _, o := range options.Of(options.Sync) {
		if o.Unused&options.Sync != 0 && c.given.IsSet(o.Name) {
			return cfg, usagef("--%s is for tsimport load; sync writes differences to an existing table; leave it out", o.Name)
		}
	}
	if cfg.Load, err = loadConfig(c); err != nil {
		return cfg, err
	}
	cfg.Delete, cfg.Range, cfg.Examples, cfg.Fresh = c.of.Delete, c.of.Range, c.of.Examples, c.of.Fresh && !c.in.goOn
	cfg.IfUnchanged, cfg.SettleFor = c.of.IfUnchanged, c.of.SettleFor
	text := c.of.MaxDelete
	cfg.MaxDelete, err = ledger.ParseMaxErrors(text)
	switch {
	case err != nil || cfg.MaxDelete.Rows < 0:
		return cfg, usagef("--max-delete %q: want a number of rows, or a percentage such as 1%%", text)
	case c.given.IsSet("range") && cfg.Range == "":
		return cfg, usagef("--range is empty: want FROM..TO, or a key; leave it out to compare the whole table")
	case c.given.IsSet("max-delete") && !cfg.Delete:
		return cfg, usagef("--max-delete needs --delete")
	}
	return cfg, nil
}

func syncTable(c *call) (err error) {
	cfg, err := syncConfig(c)
	if err != nil {
		return err
	}
	if err := checkTable(cfg.Load.Target.Table); err != nil {
		return err
	}
	noSync := c.of.Sync == "none"
	planOnly, l := c.of.Plan || c.in.plan != nil, &cfg.Load
	stopWatching, err := watchLoad(c, &l.Watch)
	if err != nil {
		return err
	}
	defer stopWatching()
	t, err := openTarget(c, access{readOnly: planOnly, noSync: noSync})
	if err != nil {
		return err
	}
	defer func() { err = closed(err, t.close()) }()
	if err := t.mustExist(); err != nil {
		return err
	}
	if err := t.of(l, noSync); err != nil {
		return err
	}
	l.Drain = c.interrupts.drain
	if c.in.session == nil {
		limitMemory(l.Limits.Memory, t.embedded)
	}
	cfg.Gate, cfg.Waits = gateOf(c), waitsOf(c)
	stopSource, units, err := tableSource(c, l, t, cfg.Manner, true)
	defer func() { err = errors.Join(err, stopSource()) }()
	if err == nil {
		err = wholeFor(c.interrupts, &cfg, t)
	}
	if err != nil {
		return withheldBy(err, cfg.Delete)
	}
	cfg.SourceUnits = units
	if c.in.plan != nil {
		return c.in.plan.sync(c.interrupts, *l, t, cfg.Delete)
	}
	s, err := runSync(c, cfg, planOnly)
	if s == nil {
		return noTable(withheldBy(err, cfg.Delete), t)
	}
	return endSync(c, s, err, planOnly)
}

// runSync compares the table with the source, writes the differences and shows progress.
func runSync(c *call, cfg tablesync.Config, planOnly bool) (*tablesync.Summary, error) {
	cfg.Progress = new(verify.Progress)
	cfg.Say = c.say
	stop := sync.OnceFunc(watchComparison(c, "sync: %s records read, %s rows of the table compared", cfg.Progress))
	defer stop()
	if planOnly {
		return tablesync.Look(c.interrupts.hard, cfg)
	}
	cfg.OnCompared = func(s *tablesync.Summary) {
		stop()
		sayFound(c.say, s, false)
	}
	drains := sync.OnceFunc(c.interrupts.drains)
	cfg.OnLoad = func(load *pipeline.Config) func(*pipeline.Report) {
		drains()
		screen := newScreen(c)
		load.Watch.Progress, load.Watch.OnPlan, load.Resume.OnResume = &screen.progress, func(*plan.Plan) { screen.begin() },
			screen.resume
		load.Watch.OnWait = screen.waiting
		return func(*pipeline.Report) { screen.stop() }
	}
	s, err := tablesync.Run(c.interrupts.hard, cfg)
	stop()
	if s == nil && errors.As(err, new(*pipeline.Interrupted)) {
		endingOf(c).said = "nothing was written; give the same command again"
	}
	return s, err
}

// endSync reports the result of a sync, and returns the error that sets the exit code.
func endSync(c *call, s *tablesync.Summary, err error, planOnly bool) error {
	endingOf(c).ofSync(s)
	switch {
	case !planOnly:
		sayDone(c.say, s)
	case err == nil && !c.of.JSON:
		var text strings.Builder
		sayFound(func(kind words.Kind, line string) { fmt.Fprintf(&text, "%s%s\n", kind, line) }, s, true)
		_, err = io.WriteString(results(c), text.String())
	}
	if c.of.JSON {
		err = errors.Join(err, printJSON(c, s))
	}
	if err == nil && !planOnly && s.Withheld != "" {
		err = errors.New("nothing was deleted: " + s.Withheld) // --quiet does not hide errors
	}
	code := s.ExitCode
	if err != nil && code == exitcode.OK {
		code = exitcode.Of(err)
	}
	if err != nil || code != exitcode.OK {
		return endsWith(c, code, err, briefOfSync(s))
	}
	return nil
}

// withheldBy gives an error that the inputs caused the exit code of withheld deletes.
func withheldBy(err error, deletes bool) error {
	var input *verify.InputError
	var usage *plan.UsageError
	var interrupted *pipeline.Interrupted
	switch {
	case err == nil || !deletes || errors.As(err, &interrupted), errors.As(err, &usage) && usage.Nothing:
		return err
	case errors.As(err, &input), errors.As(err, &usage) && usage.Input:
		return &exitError{code: exitcode.Rejects, err: fmt.Errorf("%w; nothing was deleted or written", err)}
	}
	return err
}

func sayFound(say words.Say, s *tablesync.Summary, planned bool) {
	say.Line("compared: %s rows expected, %s equal, %s missing, %s different; %s rows in the table, %s of them surplus "+
		"(%s records read, %s rejected, %s superseded; %s read units)",
		words.Grouped(s.RowsExpected), words.Grouped(s.Equal), words.Grouped(s.Missing), words.Grouped(s.Different),
		words.Grouped(s.RowsInTable), words.Grouped(s.Surplus),
		words.Grouped(s.Read), words.Grouped(s.Rejected), words.Grouped(s.Superseded), words.Grouped(s.Costs.ReadCU))
	if s.Settled != nil {
		say.Line("%s", settledLine(s.Settled))
	}
	for _, n := range s.Notes {
		say.Note("%s", n)
	}
	if text := s.Follow(); text != "" {
		say.Line("%s", text)
	}
	verb := "to"
	if planned {
		verb = "would"
	}
	say.Line("%s write %s rows for %s write units, and delete %s rows for %s; a load of all rows costs %s write units",
		verb, words.Grouped(s.Puts), words.Grouped(s.Costs.PutCU), words.Grouped(s.Deletes), words.Grouped(s.Costs.DeleteCU),
		words.Grouped(s.Costs.FullLoadCU))
	if s.Withheld != "" {
		say.Line("nothing will be deleted: %s", s.Withheld)
	}
	if planned {
		sayExamples(say, s.Examples)
	}
}

func doneText(s *tablesync.Summary) string {
	return fmt.Sprintf("%s: %s rows written, %s deleted, %s surplus rows left, %s rejected, in %v (%s write units)",
		s.State, words.Grouped(s.Written), words.Grouped(s.Deleted), words.Grouped(s.Kept),
		words.Grouped(s.Rejected+s.PutsRejected+s.DeletesRejected), round(time.Duration(s.Seconds*float64(time.Second))),
		words.Grouped(s.Costs.WriteCU))
}

func sayDone(say words.Say, s *tablesync.Summary) {
	say.Line("%s", doneText(s))
	sayRejects(say, s.RejectReasons)
	if n := s.ConditionFailed; n > 0 {
		why := "the row in the table does not pass --when"
		if s.IfUnchanged {
			why = "the row in the table was changed after it was compared; sync again"
		}
		say.Line("%s rows were not written, because %s", words.Grouped(n), why)
	}
	rejects := slices.Clone(s.RejectsFiles)
	for _, load := range []*pipeline.Report{s.PutLoad, s.DeleteLoad} {
		if load != nil {
			sayRejects(say, load.RejectReasons)
			rejects = append(rejects, load.RejectsFiles...)
		}
	}
	if len(rejects) > 0 {
		say.Line("rejected records and reasons: %s", strings.Join(rejects, ", "))
	}
	if s.PutsUnfinished+s.DeletesUnfinished > 0 {
		say.Line("%s rows are still to be written, %s to be deleted; to resume: %s resume %s, or give the same command again",
			words.Grouped(s.PutsUnfinished), words.Grouped(s.DeletesUnfinished), commandName(), suggest.Arg(s.RunDir))
	}
	say.Line("summary: %s", s.RunDir+string(os.PathSeparator)+"summary.json")
}

func briefOfSync(s *tablesync.Summary) string {
	reasons := slices.Clone(s.RejectReasons)
	for _, load := range []*pipeline.Report{s.PutLoad, s.DeleteLoad} {
		if load != nil {
			reasons = append(reasons, load.RejectReasons...)
		}
	}
	return brief(doneText(s), reasons)
}

func sayExamples(say words.Say, examples []json.RawMessage) {
	for _, text := range examples {
		var e struct {
			Kind    string          `json:"kind"`
			Key     json.RawMessage `json:"key"`
			Columns []string        `json:"columns"`
			Input   *verify.Place   `json:"input"`
		}
		if json.Unmarshal(text, &e) != nil {
			continue
		}
		if e.Kind == verify.Extra {
			e.Kind = "surplus"
		}
		line := fmt.Sprintf("%-9s %s", e.Kind, e.Key)
		if len(e.Columns) > 0 {
			line += "  columns " + strings.Join(e.Columns, ", ")
		}
		if e.Input != nil {
			line += fmt.Sprintf("  (%s, record %s)", e.Input.File, words.Grouped(e.Input.Record))
		}
		say.Line("%s", printable(line))
	}
}

func writeLines(w io.Writer, lines []string) error {
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}
