package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/urfave/cli/v2"

	"tsimport"
	"tsimport/internal/exitcode"
	"tsimport/internal/jobdir"
	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
	"tsimport/job"
	"tsimport/pipeline"
	"tsimport/pipeline/checkpoint"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/rundir"
	"tsimport/reader/input"
	exporting "tsimport/transfer/export"
)

// jobPlan is what tsimport run --plan says of a job. Its fields are those of the JSON, and stay.
type jobPlan struct {
	Version  int            `json:"version"`
	Job      string         `json:"job"`              // its file
	Folder   string         `json:"folder,omitempty"` // of the unfinished job that would be resumed
	RunBy    *rundir.Holder `json:"run_by,omitempty"` // the process that runs the job now
	Parallel int            `json:"parallel"`         // loads at a time
	Loads    []*loadPlan    `json:"loads"`            // in the order of the file
	Totals   planTotals     `json:"totals"`           // of the loads that would be run
	ExitCode int            `json:"exit_code"`        // of the command
	Notes    []string       `json:"notes,omitempty"`  // of the job
}

// planTotals are the sums over loads that are planned, without exports. -1 is unknown, because it is unknown of one of them.
type planTotals struct {
	Rows       int64   `json:"rows"`
	Bytes      int64   `json:"bytes"`
	WriteUnits int64   `json:"write_units"`
	Seconds    float64 `json:"seconds"`
}

// loadPlan is what a load of a job would do. It has many fields: those of the JSON.
type loadPlan struct {
	Name     string       `json:"name"`
	Command  string       `json:"command"`
	Table    string       `json:"table"`  // that it writes, or of an export reads
	Target   string       `json:"target"` // where the table is
	After    []string     `json:"after,omitempty"`
	State    string       `json:"state"`     // one of the plan… below
	ExitCode int          `json:"exit_code"` // with which it would end before its first row
	Error    string       `json:"error,omitempty"`
	Resumes  *planBegun   `json:"resumes,omitempty"` // what an unfinished run has done
	Files    *planFiles   `json:"files,omitempty"`   // nil where the rows do not come from files
	Output   string       `json:"output,omitempty"`  // of an export
	Bytes    int64        `json:"bytes"`             // of the files; -1 unknown
	Rows     int64        `json:"rows"`              // -1 unknown
	RowsAre  string       `json:"rows_are"`          // exact, about or unknown
	RowBytes float64      `json:"row_bytes"`         // of a row on average, as the service counts; 0 unknown
	Columns  []planColumn `json:"columns"`
	More     bool         `json:"more_columns,omitempty"` // rows may have columns beside these
	Existing *planTable   `json:"existing_table,omitempty"`
	New      *planNew     `json:"new_table,omitempty"`

	WriteUnits     int64                   `json:"write_units"`                // -1 unknown; of a sync, if all rows differ
	IndexReadUnits int64                   `json:"index_read_units,omitempty"` // that secondary indexes cost
	Seconds        float64                 `json:"seconds"`                    // -1 unknown
	Rate           string                  `json:"rate,omitempty"`             // what Seconds rests on
	Sampled        int64                   `json:"sampled"`                    // records that were made rows to see what they are like
	Rejected       int64                   `json:"sampled_rejected"`           // of them, those that the load would reject
	FirstReject    string                  `json:"first_reject,omitempty"`
	HotKeys        []pipeline.ReportHotKey `json:"hot_keys,omitempty"` // values of the partition key that crowd
	Warnings       []string                `json:"warnings,omitempty"`
	Notes          []string                `json:"notes,omitempty"`

	plans    *jobPlanner
	endpoint string // of its table's service; "" is a store in this process
	key      []table.KeyColumn
	units    float64 // write units of a row, without indexes
}

// States of loads in a plan.
const (
	planPlanned = "planned"
	planDone    = "done"          // in the job that would be resumed: it is not run again
	planNothing = "nothing new"   // --only-new leaves out all inputs
	planRefused = "refused"       // it would end before its first row
	planFailed  = "failed"        // it could not be planned now
	planLater   = "not known yet" // it reads what another load of the job is to write
)

type planBegun struct {
	Folder string `json:"folder"`
	Read   int64  `json:"read"`
	Final  int64  `json:"final"`
}

type planFiles struct {
	Found  int      `json:"found"`
	Chosen int      `json:"chosen"` // would be loaded; the others are known, or not whole yet
	Opened int      `json:"opened"` // the others are taken to be like these
	Names  []string `json:"names"`  // of the chosen ones, the first
}

type planColumn struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Key        bool   `json:"key,omitempty"`
	Source     string `json:"source,omitempty"` // column of the input, if it has another name
	Expression string `json:"expression,omitempty"`
}

type planTable struct {
	Key        []string `json:"key"`
	Partitions int      `json:"partitions"`                   // 0 unknown
	Guessed    bool     `json:"partitions_guessed,omitempty"` // from sizes
	Indexes    []string `json:"indexes,omitempty"`
}

type planNew struct {
	Key    []string `json:"key"`
	Ranges int      `json:"ranges"`
	By     string   `json:"by,omitempty"` // the load before it that makes the table
}

// Bounds of a plan: files that are opened for a load, and for how long a service that does not answer is tried.
const (
	planFilesOpened = 128
	planPatience    = 5 * time.Second
)

type planKey struct{}

// planOf is the plan that a command is to make of itself, nil if it is to be run.
func planOf(c *cli.Context) *loadPlan {
	l, _ := c.Context.Value(planKey{}).(*loadPlan)
	return l
}

// jobPlanner plans the loads of a job.
type jobPlanner struct {
	jobRunner
	plan     *jobPlan
	made     map[string]*loadPlan // loads that make tables, by place
	measured *measuredRates
	down     map[string]error // services that did not answer, by endpoint: the other loads do not wait for them
}

// planJob says what a job would do, and does nothing: it makes no folder and takes no lock.
func planJob(c *cli.Context, interrupts *interrupts, show *display, r *job.Record) (err error) {
	common, err := job.ResolveSettings(r.File, r.Common, os.LookupEnv)
	if err != nil {
		return jobError(err)
	}
	p := &jobPlanner{made: map[string]*loadPlan{}, down: map[string]error{}, plan: &jobPlan{Version: 1, Job: r.File, Parallel: min(r.Parallel, len(r.Loads)), Loads: []*loadPlan{}}}
	folder, err := p.findFolder(c, r)
	if err != nil {
		return jobError(err)
	}
	s, err := newSession(common, p.plan.Parallel)
	if err != nil {
		return err
	}
	s.readOnly = true
	defer func() { err = errors.Join(err, s.close()) }()
	limitMemory(s.memory, false)
	p.jobRunner = jobRunner{c: c, interrupts: interrupts, show: show, session: s, folder: folder, record: r, loads: jobVocabulary()}
	p.measured = measureRuns(rundir.Root)
	for _, s := range inOrder(r.Loads) {
		if interrupts.drain.Err() != nil {
			return context.Cause(interrupts.drain)
		}
		p.load(s)
	}
	slices.SortStableFunc(p.plan.Loads, func(a, b *loadPlan) int { return placeOfLoad(r, a.Name) - placeOfLoad(r, b.Name) })
	p.total()
	if c.Bool("json") {
		err = printIndented(c, p.plan)
	} else {
		err = writeLines(results(c), p.plan.lines())
	}
	if err == nil && p.plan.ExitCode != exitcode.OK {
		err = &exitError{code: p.plan.ExitCode}
	}
	return err
}

// findFolder finds the folder that the job would have, and what is known of how it was begun.
func (p *jobPlanner) findFolder(c *cli.Context, r *job.Record) (folder string, err error) {
	var before *job.Record
	if folder = c.String("run-dir"); folder == "" {
		folder, before, err = job.Find(rundir.Root, r.Identity)
	} else if before, err = job.ReadRecord(folder); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return "", err
	}
	fresh := cmp.Or(c.String("run-dir"), rundir.DefaultPath(time.Now(), jobName(r.File)))
	if before == nil {
		return fresh, nil
	}
	if by, held := rundir.HolderOf(folder); held {
		p.plan.RunBy = &by
		p.plan.Notes = append(p.plan.Notes, fmt.Sprintf("the job is running now, as process %d on %s: what it loads meanwhile is not in this plan", by.PID, by.Host))
	}
	switch {
	case c.Bool("fresh") && c.String("run-dir") != "":
		return "", usagef("--fresh: %s is the folder of the job that is started over; name another with --run-dir", folder)
	case c.Bool("fresh"):
		p.plan.Notes = append(p.plan.Notes, fmt.Sprintf("--fresh: the unfinished job %s would be left, and every load begin with its first record", folder))
		return fresh, nil
	case before.Identity != r.Identity:
		return "", usagef("--run-dir %s is the folder of another job: %s; name another", folder, before.Command)
	case !before.Unfinished():
		return "", usagef("--run-dir %s: the job in it has finished; name another", folder)
	}
	p.plan.Folder = folder
	return folder, r.Continue(before)
}

// inOrder puts loads after those that they come after.
func inOrder(loads []*job.State) (ordered []*job.State) {
	placed := map[string]bool{}
	for len(ordered) < len(loads) {
		for _, s := range loads {
			if !placed[s.Name] && !slices.ContainsFunc(s.After, func(name string) bool { return !placed[name] }) {
				placed[s.Name] = true
				ordered = append(ordered, s)
			}
		}
	}
	return ordered
}

func placeOfLoad(r *job.Record, name string) int {
	return slices.IndexFunc(r.Loads, func(s *job.State) bool { return s.Name == name })
}

// comesAfter reports whether a load of the job is run after another has ended.
func (p *jobPlanner) comesAfter(name, before string) bool {
	if p.plan.Parallel == 1 && placeOfLoad(p.record, before) < placeOfLoad(p.record, name) {
		return true
	}
	seen := map[string]bool{}
	var reaches func(string) bool
	reaches = func(n string) bool {
		if n == before || seen[n] {
			return n == before
		}
		seen[n] = true
		return slices.ContainsFunc(p.record.Loads[placeOfLoad(p.record, n)].After, reaches)
	}
	return reaches(name)
}

// load plans one load: the command that it is makes the plan of itself.
func (p *jobPlanner) load(s *job.State) {
	l := &loadPlan{Name: s.Name, Command: s.Command, Table: s.Table(), After: s.After, State: planPlanned, Bytes: -1, Rows: -1, RowsAre: "unknown", WriteUnits: -1, Seconds: -1, Columns: []planColumn{}, plans: p}
	p.plan.Loads = append(p.plan.Loads, l)
	dir := filepath.Join(p.folder, s.Name)
	if s.State == job.Done {
		l.State, l.ExitCode, l.Rows, l.RowsAre = planDone, s.ExitCode, s.Read, "exact"
		return
	}
	in := &invocation{goOn: true, folder: dir}
	if p.plan.Folder != "" {
		l.findBegun(dir, in)
	}
	said := new(bytes.Buffer)
	show := newDisplay(said)
	ctx := context.WithValue(p.interrupts.hard, planKey{}, l)
	err := p.command(ctx, s, in, show, p.interrupts)
	l.hear(said.String())
	switch nothing, exit := new(plan.NothingNew), new(exitError); {
	case err == nil || l.State == planLater:
		return
	case errors.As(err, &nothing):
		l.State, l.Notes = planNothing, append(l.Notes, nothing.Notes...)
		l.Files = &planFiles{Found: nothing.Found, Names: []string{}}
		l.Rows, l.RowsAre, l.Bytes, l.WriteUnits, l.Seconds = 0, "exact", 0, 0, 0
		if s.Value("fail-if-nothing-new") == "true" {
			l.ExitCode = exitcode.NoInput
		}
		return
	case errors.As(err, &exit) && exit.err != nil:
		l.ExitCode, err = exit.code, exit.err
	default:
		l.ExitCode = exitcode.Of(err)
	}
	l.State, l.Error = planRefused, input.RedactText(client.OneLine(err.Error()))
	if l.ExitCode == exitcode.Failed {
		l.State = planFailed
		if l.endpoint != "" {
			if p.down[l.endpoint] == nil {
				p.down[l.endpoint] = err
			}
		}
	}
}

// findBegun notes what an unfinished run of the load has done, and has the plan take over its types.
func (l *loadPlan) findBegun(dir string, in *invocation) {
	if !checkpoint.Exists(dir) {
		return
	}
	if s, err := checkpoint.Read(dir); err == nil {
		final := s.Counters["written"] + s.Counters["rejected"] + s.Counters["superseded"] + s.Counters["condition_failed"] + s.Counters["archived"]
		l.Resumes = &planBegun{Folder: dir, Read: s.Counters["read"], Final: final}
	}
	if j, err := checkpoint.ReadJob(dir); err == nil {
		in.settings = j
	}
}

// hear keeps what the command has said for people.
func (l *loadPlan) hear(said string) {
	for _, line := range strings.Split(said, "\n") {
		line = strings.TrimPrefix(line, "tsimport: ")
		if text, ok := strings.CutPrefix(line, "warning: "); ok {
			l.Warnings = append(l.Warnings, text)
		} else if text, ok := strings.CutPrefix(line, "note: "); ok {
			l.Notes = append(l.Notes, text)
		}
	}
}

// later says that the load reads what another one is to write, if that is so.
func (l *loadPlan) later(place string, err error) error {
	usage, by := new(plan.UsageError), l.plans.made[place]
	if by == nil || by == l || !errors.As(err, &usage) || !usage.NoTable {
		return err
	}
	if !l.plans.comesAfter(l.Name, by.Name) {
		return usagef("the table that it reads is made by load %s, and nothing has %s wait for that; give after: [%s]", by.Name, l.Name, by.Name)
	}
	l.State = planLater
	l.Notes = append(l.Notes, fmt.Sprintf("load %s makes the table that it reads: what that will have is not known before", by.Name))
	return nil
}

// load plans a load of files, of an archive or of a table.
func (l *loadPlan) load(c *cli.Context, interrupts *interrupts, show *display, of kind, cfg pipeline.Config) (err error) {
	cfg.DryRun = true // what is opened is opened for reading, and no lease is taken
	cfg.Write.RetryFor = min(cfg.Write.RetryFor, planPatience)
	r := new(readyLoad)
	defer func() { err = r.close(err) }()
	copies, _ := of.(*copying)
	if err := r.prepare(c, interrupts, show, plannedKind{of, l}, &cfg); err != nil {
		if copies != nil {
			err = l.later(copies.reads, err)
		}
		return err
	}
	l.askState(interrupts.drain, c, &cfg)
	if copies != nil || c.Command.Name == job.Load && cfg.Read.Sources != nil {
		of.compared(&cfg) // which reads the source without the checks that read all of it
	}
	if err := l.look(interrupts.drain, cfg, r.target); err != nil {
		return err
	}
	if archived, ok := of.(*archiveLoad); ok {
		l.Rows, l.RowsAre = archived.archive.Rows, "exact"
	}
	l.cost(&cfg)
	return nil
}

// plannedKind begins no load into a service that did not answer.
type plannedKind struct {
	kind
	plan *loadPlan
}

func (k plannedKind) begin(interrupts *interrupts, cfg *pipeline.Config, t *target, o *tsimport.LoadOptions) error {
	if err := k.plan.reach(t); err != nil {
		return err
	}
	return k.kind.begin(interrupts, cfg, t, o)
}

// reach notes where the table is. It returns why the service there did not answer before.
func (l *loadPlan) reach(t *target) error {
	l.Target = t.name
	if t.embedded {
		return nil
	}
	l.endpoint = t.Endpoint
	if err := l.plans.down[t.Endpoint]; err != nil {
		return fmt.Errorf("the service did not answer for another load: %w", err)
	}
	return nil
}

// askState says that another process may work on the load, by the lease of its --state.
func (l *loadPlan) askState(ctx context.Context, c *cli.Context, cfg *pipeline.Config) {
	if !inState(c) {
		return
	}
	store, err := openStore(ctx, c, cfg.Read.Find)
	if err == nil {
		var owner string
		identity := checkpoint.Identify(append([]string{cfg.Target.Name, cfg.Target.Table}, cfg.Inputs...)...)
		if owner, err = jobdir.Holder(ctx, jobdir.Below(store, "loads/"+identity)); owner != "" {
			l.Notes = append(l.Notes, fmt.Sprintf("by its lease in %s, %s is loading this now, or was killed while it did", input.Redact(c.String("state")), owner))
		}
	}
	if err != nil {
		l.Warnings = append(l.Warnings, fmt.Sprintf("--state cannot be read: %v", err))
	}
}

// look fills in what the inputs and the table are.
func (l *loadPlan) look(ctx context.Context, cfg pipeline.Config, t *target) error {
	place := t.place(cfg.Target.Table)
	by := l.plans.made[place]
	v, err := pipeline.Look(ctx, cfg, planFilesOpened)
	usage := new(plan.UsageError)
	if by != nil && errors.As(err, &usage) && usage.NoTable && l.plans.comesAfter(l.Name, by.Name) {
		cfg.Target.Create = true
		if len(cfg.Target.Key) == 0 {
			cfg.Target.Key = by.key
		}
		v, err = pipeline.Look(ctx, cfg, planFilesOpened)
	}
	if err != nil {
		return err
	}
	l.key = v.Key
	l.Bytes, l.Rows, l.RowsAre, l.RowBytes, l.units = v.Bytes, v.Rows, "about", v.RowBytes, v.RowUnits
	switch {
	case v.Rows < 0:
		l.RowsAre = "unknown"
	case v.Exact:
		l.RowsAre = "exact"
	}
	if cfg.Read.Sources == nil {
		l.Files = &planFiles{Found: v.Found, Chosen: v.Chosen, Opened: v.Opened}
		for _, name := range v.Names {
			l.Files.Names = append(l.Files.Names, input.Redact(name))
		}
		if v.Opened < v.Chosen {
			l.Notes = append(l.Notes, fmt.Sprintf("columns, types and rows are those of %s of %s files, from all over them", grouped(int64(v.Opened)), grouped(int64(v.Chosen))))
		}
	}
	for _, col := range v.Columns {
		one := planColumn{Name: col.Name, Type: col.Type, Key: col.Key, Expression: col.Expression}
		if col.Source != col.Name {
			one.Source = col.Source
		}
		l.Columns = append(l.Columns, one)
	}
	l.More = v.Wide
	switch {
	case v.Create:
		l.New = &planNew{Key: keyTexts(v.Key), Ranges: v.Ranges}
		if by != nil {
			l.New.By = by.Name
		} else {
			l.plans.made[place] = l
		}
	case v.Table != nil:
		l.Existing = &planTable{Key: keyTexts(v.Key), Partitions: v.Partitions, Guessed: v.Guessed, Indexes: v.Table.Indexes}
	case v.Several:
		l.Notes = append(l.Notes, "rows go to several tables by their values; those that are missing would be made, if --create says so")
	}
	l.Sampled, l.Rejected, l.FirstReject, l.HotKeys = v.Looked, v.Rejected, v.FirstReject, v.HotKeys
	l.Warnings, l.Notes = append(l.Warnings, v.Warnings...), append(l.Notes, v.Notes...)
	for _, h := range l.HotKeys {
		if l.Rows > 0 && h.Share*float64(l.Rows)*l.RowBytes > largestValue {
			l.Warnings = append(l.Warnings, fmt.Sprintf("the rows with %s %s would take more than 10 GB, and one value of the partition key should stay below that", h.Column, h.Value))
		}
	}
	return nil
}

// largestValue is how many bytes the rows of one value of the partition key should take at most, by the vendor's advice.
const largestValue = 10 << 30

func keyTexts(key []table.KeyColumn) (texts []string) {
	for _, k := range key {
		kind := k.Type.String()
		if k.Auto {
			kind = "auto"
		}
		texts = append(texts, k.Name+":"+kind)
	}
	return texts
}

// cost fills in what the rows cost and how long they take.
func (l *loadPlan) cost(cfg *pipeline.Config) {
	if l.Rows < 0 || l.Rows > 0 && l.units == 0 && l.Rejected < l.Sampled {
		return
	}
	indexes := int64(0)
	if l.Existing != nil {
		indexes = int64(len(l.Existing.Indexes))
	}
	written := l.Rows
	if l.Sampled > 0 {
		written = int64(math.Ceil(float64(l.Rows) * float64(l.Sampled-l.Rejected) / float64(l.Sampled)))
	}
	l.WriteUnits = int64(math.Ceil(float64(written)*l.units)) + indexes*written
	l.IndexReadUnits = indexes * written
	partitions := 1
	if l.Existing != nil {
		partitions = max(1, l.Existing.Partitions)
	} else if l.New != nil {
		partitions = l.New.Ranges
	}
	own, common := cfg.Write.Rates, l.plans.session.rates
	units, rows, bytes := float64(l.WriteUnits), float64(written), float64(written)*l.RowBytes
	for _, at := range []struct {
		flag      string
		rate, all float64
	}{
		{"--max-wcu", own.MaxWCU, units}, {"--max-wcu of the job", common.MaxWCU, units},
		{"--max-rows-per-second", own.MaxRows, rows}, {"--max-rows-per-second of the job", common.MaxRows, rows},
		{"--max-bytes-per-second", own.MaxBytes, bytes}, {"--max-bytes-per-second of the job", common.MaxBytes, bytes},
		{"--partition-wcu", own.PartitionWCU * float64(partitions), units},
	} {
		if at.rate > 0 && at.all/at.rate > l.Seconds {
			l.Seconds, l.Rate = at.all/at.rate, at.flag
		}
	}
	if m, ok := l.plans.measured.of(cfg.Target.Name, cfg.Target.Table); ok {
		if took := rows / m.rowsPerSecond; took > l.Seconds {
			l.Seconds, l.Rate = took, fmt.Sprintf("measured by the run %s", m.folder)
		}
	}
}

// sync plans a sync.
func (l *loadPlan) sync(interrupts *interrupts, cfg pipeline.Config, t *target) error {
	if err := l.reach(t); err != nil {
		return err
	}
	cfg.DryRun = true
	cfg.Write.RetryFor = min(cfg.Write.RetryFor, planPatience)
	l.Notes = append(l.Notes, "a sync reads the whole table and writes only what differs; the write units are those of a table that has nothing in common with the input. tsimport sync --plan compares and counts")
	if err := l.look(interrupts.drain, cfg, t); err != nil {
		return err
	}
	l.cost(&cfg)
	return nil
}

// export plans an export of a table.
func (l *loadPlan) export(c *cli.Context, sdk *tablestore.TableStoreClient, described *client.Table, t *target) error {
	l.Output, l.WriteUnits, l.Seconds = redacted(c.String("output")), 0, -1
	scan, _, err := exportOf(c, described)
	if err != nil {
		return err
	}
	scan.Client = sdk
	looked, err := exporting.Look(c.Context, scan)
	if err != nil {
		return err
	}
	l.Existing = &planTable{Key: keyTexts(described.Key), Partitions: looked.Partitions, Guessed: looked.Guessed, Indexes: described.Indexes}
	l.Rows, l.Sampled, l.More = looked.Rows, looked.Sampled, true
	if l.Rows >= 0 {
		l.RowsAre = "about" // it may change until the export
	}
	if most := c.Int64("limit"); most > 0 && (l.Rows < 0 || l.Rows > most) {
		l.Rows, l.RowsAre = most, "about"
	}
	if looked.Sampled > 0 {
		l.RowBytes = float64(looked.Bytes) / float64(looked.Sampled)
	}
	for _, k := range described.Key {
		l.Columns = append(l.Columns, planColumn{Name: k.Name, Type: k.Type.String(), Key: true})
	}
	for _, col := range looked.Columns {
		l.Columns = append(l.Columns, planColumn{Name: col.Name, Type: strings.Join(col.Types, " or ")})
	}
	if by := l.plans.writers(t.place(described.Name), l.Name); len(by) > 0 {
		l.Notes = append(l.Notes, fmt.Sprintf("the table is as it is now; %s of this job write to it before", strings.Join(by, ", ")))
	}
	return nil
}

// writers names the loads that write to a table before a load reads it.
func (p *jobPlanner) writers(place, reader string) (names []string) {
	for _, l := range p.plan.Loads {
		if l.Command != job.Export && l.State == planPlanned && l.Target+"\x00"+l.Table == place && l.Name != reader && p.comesAfter(reader, l.Name) {
			names = append(names, l.Name)
		}
	}
	return names
}

// total sums up, and says when all loads would have ended if each takes as long as planned.
func (p *jobPlanner) total() {
	t := &p.plan.Totals
	var codes []int
	for _, l := range p.plan.Loads {
		if l.State == planDone {
			continue
		}
		codes = append(codes, l.ExitCode)
		if l.State == planRefused || l.State == planFailed || l.Command == job.Export { // which writes nothing to a table
			continue
		}
		t.Rows, t.WriteUnits = sumKnown(t.Rows, l.Rows), sumKnown(t.WriteUnits, l.WriteUnits)
		if l.Files != nil {
			t.Bytes = sumKnown(t.Bytes, l.Bytes)
		}
	}
	p.plan.ExitCode = exitcode.First(codes...)
	t.Seconds = p.schedule()
	if most := p.session.rates.MaxWCU; most > 0 && t.WriteUnits >= 0 && t.Seconds >= 0 {
		t.Seconds = max(t.Seconds, float64(t.WriteUnits)/most)
	}
}

func sumKnown(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

// schedule runs the loads by their planned times, as many at a time as the job does, and returns when the last has ended; -1 if the time
// of one is unknown.
func (p *jobPlanner) schedule() float64 {
	free := make([]float64, max(1, p.plan.Parallel)) // from when on
	ends := map[string]float64{}
	last := 0.0
	for _, s := range inOrder(p.record.Loads) {
		l := p.plan.Loads[placeOfLoad(p.record, s.Name)]
		switch {
		case l.State == planDone || l.State == planRefused || l.State == planFailed || l.Command == job.Export:
			continue
		case l.Seconds < 0:
			return -1 // also of one that reads what another is to write
		}
		slices.Sort(free)
		begin := free[0]
		for _, name := range s.After {
			begin = max(begin, ends[name])
		}
		free[0] = begin + l.Seconds
		ends[s.Name] = free[0]
		last = max(last, free[0])
	}
	return last
}

// measuredRates are the rates of runs that have finished.
type measuredRates struct{ byTable map[string]measuredRate }

type measuredRate struct {
	folder        string
	rowsPerSecond float64
}

// A run says how fast the next will be if it has taken a while, and wrote a number of rows that it did not spend most of its time on
// beginning with.
const (
	measuredSeconds = 1
	measuredRows    = 1000
	measuredRuns    = 1000 // that are looked at
)

// measureRuns reads how fast runs were, of loads and of jobs, the newest of each table.
func measureRuns(root string) *measuredRates {
	m := &measuredRates{map[string]measuredRate{}}
	entries, err := os.ReadDir(root) // by name, which begins with the time
	if err != nil {
		return m
	}
	slices.Reverse(entries)
	for _, e := range entries[:min(len(entries), measuredRuns)] {
		folder := filepath.Join(root, e.Name())
		r, err := job.ReadRecord(folder)
		if err != nil {
			m.add(folder)
			continue
		}
		for _, s := range r.Loads {
			m.add(filepath.Join(folder, s.Name))
		}
	}
	return m
}

func (m *measuredRates) add(folder string) {
	sum, err := readSummary(folder)
	if err != nil || sum.DryRun || sum.Attempts > 1 || sum.Written < measuredRows || sum.Seconds < measuredSeconds || sum.State != pipeline.StateFinished {
		return
	}
	if at := sum.Target + "\x00" + sum.Table; m.byTable[at].folder == "" {
		m.byTable[at] = measuredRate{folder, float64(sum.Written) / sum.Seconds}
	}
}

func (m *measuredRates) of(target, name string) (measuredRate, bool) {
	r, ok := m.byTable[target+"\x00"+name]
	return r, ok
}
