package tablesync

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/transfer/verify"
)

type run struct {
	cfg      *Config
	drain    context.Context
	sdk      *tablestore.TableStoreClient
	traffic  client.Traffic
	admin    *client.Admin
	table    *client.Table
	from, to []table.Value
	started  time.Time

	dir     string         // the run folder
	claims  []*rundir.Lock // claims on the sync and on the synced rows
	lock    *rundir.Lock
	state   *state
	resumed bool // the changes are from an earlier attempt
	summary *Summary
}

// Look compares the inputs with the table and predicts Run's changes and costs. It writes to no table or run folder.
func Look(ctx context.Context, cfg Config) (*Summary, error) {
	r, err := begin(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	r.state = &state{}
	r.newSummary()
	r.summary.Plan = true
	if err := r.compare(&changes{key: r.table.Key}); err != nil {
		return nil, err
	}
	r.summary.enter(&cfg, r.state)
	r.summary.conclude()
	r.done()
	return r.summary, nil
}

// Run makes the table equal to the inputs. It stops at once when ctx ends, or after requests in flight when Drain ends.
//
// The summary is nil if the run could not begin or compare. Then nothing was written. Otherwise the summary is also
// stored in the run folder. Rejects, withheld deletes, the error limit and interruptions are not errors.
func Run(ctx context.Context, cfg Config) (*Summary, error) {
	r, err := begin(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	defer r.release()
	if err := r.open(); err != nil {
		return nil, err
	}
	if !r.resumed {
		if err := r.find(); err != nil {
			return nil, err
		}
	}
	r.summary.enter(&cfg, r.state)
	if cfg.OnCompared != nil {
		cfg.OnCompared(r.summary)
	}
	err = r.write(ctx)
	if err == nil && r.summary.State == "" {
		r.summary.conclude()
	}
	return r.end(err)
}

// begin refuses invalid requests and describes the table.
func begin(ctx context.Context, cfg *Config) (*run, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	r := &run{cfg: cfg, drain: cfg.drain(ctx), started: time.Now()}
	l := &cfg.Load
	l.Target.Client.Connections = max(l.Target.Client.Connections, l.Lanes.Concurrency)
	var err error
	if r.sdk, err = client.New(r.drain, l.Target.Client, &r.traffic); err != nil {
		return nil, plan.Usagef("%v", err)
	}
	r.admin = &client.Admin{Client: r.sdk, Context: r.drain, RetryFor: l.Lanes.RetryFor}
	if r.table, err = r.admin.Describe(l.Target.Table); err != nil {
		if errors.Is(err, client.ErrNoTable) {
			err = &plan.UsageError{Message: fmt.Sprintf("%s has no table %s; create it with tsimport load --create",
				l.Target.Name, l.Target.Table), NoTable: true}
		}
		return nil, err
	}
	r.admin.AskTime(&r.traffic.Clock)
	if slices.ContainsFunc(r.table.Key, func(k table.KeyColumn) bool { return k.Auto }) {
		// The service accepts an auto-increment value only for an existing row. Inputs without the column are refused.
		l.Write.Condition = table.ExpectExist
		if l.Write.When != nil || cfg.IfUnchanged {
			return nil, plan.Usagef("--when, --if-unchanged: table %s has an auto-increment column, and the service "+
				"accepts no condition for its rows except that they exist; leave them out", l.Target.Table)
		}
	}
	if r.from, r.to, err = scan.ParseRange(cfg.Range, r.table.Key); err != nil {
		return nil, plan.Usagef("--range %s: %v", cfg.Range, err)
	}
	return r, r.holdsAll()
}

// holdsAll returns an error if the sync could delete rows outside the range that the source holds.
func (r *run) holdsAll() error {
	h := r.cfg.Held
	if h == nil || !r.cfg.Delete {
		return nil
	}
	columns := &r.cfg.Load.Columns
	if len(columns.Keys) > 0 || !slices.EqualFunc(h.Key, r.table.Key, func(a, b table.KeyColumn) bool {
		return a.Name == b.Name && a.Type == b.Type && columns.To(a.Name) == a.Name
	}) {
		return plan.Usagef("--delete: %s holds only a range of keys, and the table has another key, so its rows "+
			"cannot be matched to that range; leave --delete out", h.Name)
	}
	for _, b := range []struct {
		text    string
		outside func(held []table.Value) bool
	}{
		{h.From, func(held []table.Value) bool { return r.from == nil || scan.CompareBounds(r.from, held) < 0 }},
		{h.To, func(held []table.Value) bool { return r.to == nil || scan.CompareBounds(r.to, held) > 0 }},
	} {
		if b.text == "" {
			continue
		}
		held, err := scan.ParseKey(b.text, h.Key)
		if err != nil {
			return plan.Usagef("%s: the range of keys that it holds cannot be read: %v", h.Name, err)
		}
		if b.outside(held) {
			return plan.Usagef("--delete: %s holds only a range of keys, %s..%s; the rows outside it would be deleted; give a "+
				"--range within it", h.Name, h.From, h.To)
		}
	}
	return nil
}

// numbered returns the name of the auto-increment column, or "" if there is none.
func (r *run) numbered() string {
	for _, k := range r.table.Key {
		if k.Auto {
			return k.Name
		}
	}
	return ""
}

func (r *run) identity() string {
	l := &r.cfg.Load
	return progress.Identify(append([]string{"sync", cmp.Or(l.Target.Place, l.Target.Name), l.Target.Table, r.cfg.Range},
		l.Inputs...)...)
}

// open finds the run to resume, or creates and locks the folder of a new one.
func (r *run) open() (err error) {
	identity := r.identity()
	if r.cfg.Load.RunDir == "" {
		if err := r.alone(filepath.Join(rundir.Root, ".locks"), identity); err != nil {
			return err
		}
	}
	if folder := r.cfg.Load.Resume.LocksDir; folder != "" {
		// A home directory that cannot be written to does not prevent a sync.
		if err := r.alone(folder, identity); err != nil && !errors.As(err, new(*rundir.FolderError)) {
			return err
		}
	}
	found, err := r.unfinished(identity)
	if err != nil {
		return err
	}
	if r.dir = cmp.Or(r.cfg.Load.RunDir, found); r.dir == "" {
		r.dir = atomicfile.Beside(rundir.DefaultPath(r.started, r.cfg.Load.Target.Table), "-sync")
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return &rundir.FolderError{What: "create run folder", Err: err}
	}
	if r.lock, err = rundir.TakeLock(r.dir); err != nil {
		return err
	}
	if found != "" {
		if r.state, err = readState(r.dir); err != nil {
			return plan.Usagef("%v", err)
		}
		if r.state != nil {
			if err := r.resume(); err != nil {
				return err
			}
		}
	}
	if !r.resumed {
		r.state = &state{Identity: identity, Phase: comparing, Started: r.started.UTC()}
	}
	r.newSummary()
	return nil
}

// alone takes the run's claims in a folder and returns an error if another run's claims there have the same keys. It
// takes its own claims before it looks for others, so that of two runs that begin at once at least one sees the other.
func (r *run) alone(folder, identity string) error {
	claim, err := rundir.TakeClaim(folder, identity)
	if err != nil {
		return err
	}
	r.claims = append(r.claims, claim)
	t := &r.cfg.Load.Target
	prefix := "sync-" + progress.Identify(cmp.Or(t.Place, t.Name), t.Table) + "-"
	refuse := func(by rundir.Holder) error {
		return fmt.Errorf("process %d on %s is syncing the same rows of table %s; wait for it or stop it", by.PID, by.Host,
			t.Table)
	}
	own := prefix + url.PathEscape(r.cfg.Range)
	if len(own) > mostClaimName {
		own = prefix + url.PathEscape("..") // the range is too long for a name: claim the whole table
	}
	if claim, err = rundir.TakeClaim(folder, own); err != nil {
		if held := new(rundir.HeldError); errors.As(err, &held) {
			return refuse(held.By)
		}
		return err
	}
	r.claims = append(r.claims, claim)
	others, err := rundir.HeldClaims(folder, prefix)
	if err != nil {
		return err
	}
	for name, by := range others {
		if name == own {
			continue
		}
		text, err := url.PathUnescape(strings.TrimPrefix(name, prefix))
		from, to, rangeErr := scan.ParseRange(text, r.table.Key)
		if err != nil || rangeErr != nil || (r.to == nil || scan.CompareBounds(from, r.to) < 0) &&
			(to == nil || scan.CompareBounds(r.from, to) < 0) {
			return refuse(by)
		}
	}
	return nil
}

// mostClaimName limits the length of claim names, because file systems allow only 255 bytes.
const mostClaimName = 200

// unfinished returns the folder of the run to resume, if that is possible, or "" if there is none.
func (r *run) unfinished(identity string) (string, error) {
	if dir := r.cfg.Load.RunDir; dir != "" {
		s, err := readState(dir)
		switch {
		case r.cfg.Fresh:
			return "", nil
		case err != nil:
			return "", plan.Usagef("%v", err)
		case s == nil || s.Phase == finished:
			return "", nil
		case s.Identity != identity:
			return "", plan.Usagef("--run-dir %s holds an unfinished sync of other inputs, of another range or of another "+
				"table; give another --run-dir, or "+source.StartOver, dir)
		}
		return dir, nil
	}
	found, err := unfinishedRuns(identity)
	switch {
	case err != nil:
		return "", fmt.Errorf("find an unfinished run of this sync: %w", err)
	case r.cfg.Fresh:
		for _, dir := range found {
			if err := errors.Join(r.replace(dir), r.waitForLate(dir)); err != nil {
				return "", err
			}
		}
		return "", nil
	case len(found) > 1:
		return "", plan.Usagef("%d unfinished runs of this sync: %s; "+source.StartOver, len(found),
			strings.Join(found, ", "))
	case len(found) == 1:
		return found[0], nil
	}
	return "", nil
}

// replace records in an unfinished run that another run replaces it.
func (r *run) replace(dir string) error {
	lock, err := rundir.TakeLock(dir)
	if err != nil {
		return err
	}
	s, err := readState(dir)
	if err == nil && s != nil {
		s.ReplacedBy = "a run that was started over"
		err = s.write(dir)
	}
	return errors.Join(err, lock.Release())
}

// resume uses the changes of an earlier attempt if they are from a complete comparison of the same table and inputs.
func (r *run) resume() error {
	s := r.state
	again := func(format string, a ...any) {
		r.cfg.Say.Line("run %s: %s; the comparison is repeated", r.dir, fmt.Sprintf(format, a...))
	}
	if s.Phase == comparing {
		again("its comparison did not finish")
		return nil
	}
	if r.table.Created != 0 && s.Made != 0 && r.table.Created != s.Made {
		again("table %s has since been dropped and created again", r.table.Name)
		return nil
	}
	age := r.started.Sub(s.Compared).Round(time.Second)
	if s.Live && age > longAgo {
		again("the source may have changed since, %v ago", age)
		return nil
	}
	details, err := r.details()
	if err != nil {
		return err
	}
	if changes, _ := progress.Changes(s.Details, details); len(changes) > 0 {
		again("%s", changes[0])
		return nil
	}
	for _, p := range slices.Concat(s.Put, s.Delete) {
		if err := p.check(filepath.Join(r.dir, changesDir)); err != nil {
			return plan.Usagef("%v", err)
		}
	}
	r.resumed = true
	text := "rows that others have written since are overwritten"
	if r.cfg.IfUnchanged {
		text = "rows that others have changed since are skipped"
	}
	if age > longAgo {
		text = "warning: the comparison is old, and " + text + "; --fresh compares again"
	}
	r.cfg.Say.Line("resuming run %s: writing the differences found %v ago; %s", r.dir, age, text)
	return nil
}

// details returns the facts that a comparison depends on.
func (r *run) details() ([]progress.Fact, error) {
	if isStream(r.cfg.Load.Inputs) && r.cfg.Load.Read.Sources == nil {
		return nil, plan.Usagef("run %s cannot be resumed: its input, a stream, cannot be reread; "+source.StartOver, r.dir)
	}
	facts, err := verify.Facts(r.drain, r.cfg.Load.Request(), r.admin)
	if err != nil {
		return nil, err
	}
	return detailsOf(r.cfg, facts, r.state.Live), nil
}

// detailsOf turns facts into details. It leaves out the parts of a live source, which vary by reading.
func detailsOf(cfg *Config, facts []progress.Fact, live bool) []progress.Fact {
	details := []progress.Fact{
		{Name: "--delete", Value: fmt.Sprint(cfg.Delete)}, {Name: "--if-unchanged", Value: fmt.Sprint(cfg.IfUnchanged)},
	}
	if s, ok := cfg.Load.Read.Sources.(interface{ Made() time.Time }); ok { // the source is a table
		details = append(details, progress.Fact{Name: "the time at which the source was made",
			Value: s.Made().Format(time.RFC3339Nano), Input: true})
	}
	for _, f := range facts {
		if live && (strings.HasPrefix(f.Name, "input ") || strings.HasPrefix(f.Name, "schema of ")) {
			continue
		}
		details = append(details, f)
	}
	return details
}

func isStream(inputs []string) bool { return slices.ContainsFunc(inputs, keep.IsStream) }

func (r *run) newSummary() {
	l := &r.cfg.Load
	r.summary = &Summary{
		Target: l.Target.Name, Table: l.Target.Table, Mode: [...]string{"put", "update"}[l.Write.Mode], RunDir: r.dir,
		Range: r.cfg.Range, Command: l.Invocation.Command, Arguments: l.Invocation.Arguments,
		Directory: l.Invocation.Directory, Inputs: l.Request().ShownInputs(), IfUnchanged: r.cfg.IfUnchanged,
		Started: r.started.UTC(), First: r.started.UTC(), Resumed: r.resumed, Examples: []json.RawMessage{},
	}
	if r.resumed {
		r.summary.First = r.state.Started
	}
}

func (r *run) find() error {
	if err := r.waitForLate(r.dir); err != nil {
		return err
	}
	for _, name := range []string{changesDir, putDir, deleteDir, checkpoint.JobFile, rundir.SummaryFile} {
		if err := os.RemoveAll(filepath.Join(r.dir, name)); err != nil {
			return fmt.Errorf("clear run folder: %w", err)
		}
	}
	c := &changes{dir: filepath.Join(r.dir, changesDir), key: r.table.Key}
	if w := r.cfg.Load.Write.When; w != nil {
		c.kept = w.New()
	}
	c.unchanged = r.cfg.IfUnchanged
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return fmt.Errorf("create folder of changes: %w", err)
	}
	c.rejects = func(headers []rundir.Header) (*rundir.Folder, error) {
		f, err := rundir.Create(r.dir, headers)
		if err == nil {
			err = r.begun()
		}
		return f, err
	}
	if err := r.begun(); err != nil {
		return err
	}
	err := r.compare(c)
	if c.folder != nil {
		err = errors.Join(err, c.folder.Close())
		r.state.Rejects = c.folder.RejectsFiles()
		if reasons, readErr := rundir.CountReasons(r.dir); readErr == nil {
			r.state.Reasons = reasons // after an error only the counts are missing: the files list all rejects
		}
	}
	if err == nil {
		r.state.Phase, r.state.Put, r.state.Delete = putting, c.put, c.delete
		err = r.state.write(r.dir)
	}
	if err != nil {
		// Nothing was written, so the files are useless.
		err = errors.Join(err, os.RemoveAll(c.dir))
		r.summary.State, r.summary.ExitCode, r.summary.Error = pipeline.StateFailed, exitcode.Of(err),
			client.OneLine(err.Error())
		if interrupted := new(pipeline.Interrupted); errors.As(err, &interrupted) {
			r.summary.State, r.summary.ExitCode = pipeline.StateInterrupted, interrupted.ExitCode
		}
		_ = rundir.WriteSummary(r.dir, r.summary) // err has more details
	}
	return err
}

func (r *run) begun() error {
	l := &r.cfg.Load
	job := checkpoint.Job{
		Identity: r.state.Identity, Args: l.Resume.Args, Request: l.Resume.Request, Command: l.Invocation.Command,
		Dir: l.Invocation.Directory, Target: l.Target.Name, Table: l.Target.Table, Started: r.state.Started,
	}
	running := *r.summary
	running.State = "running"
	for _, write := range []func() error{func() error { return r.state.write(r.dir) },
		func() error { return job.Write(r.dir) }, func() error { return rundir.WriteSummary(r.dir, &running) }} {
		if err := write(); err != nil {
			return err // on a full disk, the other writes would also fail
		}
	}
	return nil
}

// compare compares the inputs with the table and adds the result to the state.
func (r *run) compare(c *changes) error {
	l, s := &r.cfg.Load, r.state
	v := verify.Config{
		Request: l.Request(), Client: r.sdk, Examples: r.cfg.Examples, Workers: l.Lanes.Concurrency,
		Memory: cmp.Or(l.Limits.Memory, pipeline.DefaultMemory), TempDir: l.Limits.TempDir, RetryFor: l.Lanes.RetryFor,
		Progress: r.cfg.Progress, Condition: l.Write.Condition, Clock: &r.traffic.Clock, Manner: r.cfg.Manner, From: r.from,
		To: r.to, Changes: c, SettleFor: r.cfg.SettleFor, ExtraFails: r.cfg.Delete,
	}
	if w := l.Write.When; w != nil && !w.Rising() {
		v.Request.When = nil // the files of changes do not change and have each key once
	}
	s.Compared = time.Now().UTC()
	c.window = windowOf(&r.table.Definition, r.traffic.Clock.Now())
	found, err := verify.Run(r.drain, v)
	c.finish()
	if err != nil {
		if r.drain.Err() != nil {
			return context.Cause(r.drain)
		}
		if usage := new(plan.UsageError); r.numbered() != "" && errors.As(err, &usage) && !usage.Input {
			return plan.Usagef("table %s has the auto-increment column %s, whose values the service assigns: sync compares "+
				"rows by their keys, so the inputs must have the column (%v)", r.table.Name, r.numbered(), err)
		}
		return err
	}
	if name := r.numbered(); name != "" && found.Missing > 0 {
		return plan.Usagef("%d rows of the inputs are not in table %s, and the service does not accept a chosen number in "+
			"the auto-increment column %s for a new row: sync can only change and delete existing rows; nothing was "+
			"written",
			found.Missing, r.table.Name, name)
	}
	if err := errors.Join(r.checkWindow(c), r.checkConditions(c)); err != nil {
		return err
	}
	if r.cfg.SourceUnits != nil {
		s.SourceUnits = r.cfg.SourceUnits()
	}
	s.Found, s.Live, s.Units, s.ColumnUnits, s.Unread, s.Total = found, found.Live, found.Units, found.ColumnUnits,
		found.Unread, c.total
	s.Details, s.Made = detailsOf(r.cfg, found.Facts, found.Live), found.Of.Created
	for i := range found.Examples {
		text, err := json.Marshal(&found.Examples[i])
		if err != nil {
			return fmt.Errorf("store an example: %w", err)
		}
		s.Examples = append(s.Examples, text)
	}
	found.Examples = nil
	r.note()
	return nil
}

func (r *run) note() {
	found := r.state.Found
	add := func(format string, a ...any) { found.Notes = append(found.Notes, fmt.Sprintf(format, a...)) }
	if n := r.table.MaxVersions; n > 1 && !found.Stamped {
		add("table %s keeps %d versions of a cell: the newest were compared, older ones of equal rows stay", r.table.Name, n)
	}
	if ttl := r.table.TimeToLive; ttl > 0 {
		add("table %s has a time to live of %d seconds: equal rows are not written and keep their age", r.table.Name, ttl)
	}
	if found.Expired > 0 {
		add("%d rows are older than the table's time to live and are not put", found.Expired)
	}
	if n := len(r.table.Indexes); n > 0 {
		add("table %s has %d secondary indexes, which cost units for every row written or deleted", r.table.Name, n)
	}
	if _, of := r.cfg.Load.Read.Sources.(source.Snapshots); found.Live && !of {
		add("the source changes while it is read: a row that was written there meanwhile may be missing from what was " +
			"compared. Cells are compared with their timestamps")
	}
	if found.OutOfRange > 0 {
		add("%d records are outside --range and were neither compared nor written", found.OutOfRange)
	}
}

func (r *run) release() {
	for _, l := range append(slices.Clone(r.claims), r.lock) {
		_ = l.Release() // if this fails, the lock ends with the process
	}
}

// end completes the summary and closes the run folder. err, if not nil, ended the run early.
func (r *run) end(err error) (*Summary, error) {
	s := r.summary
	err = errors.Join(err, s.balance())
	if err == nil && s.State == pipeline.StateFinished {
		err = r.finish()
	}
	if err != nil {
		s.State, s.ExitCode, s.Error = pipeline.StateFailed, exitcode.Of(err), client.OneLine(err.Error())
		err = fmt.Errorf("sync table %s: %w", s.Table, err)
	}
	r.done()
	return s, errors.Join(err, rundir.WriteSummary(r.dir, s))
}

// finish records the end of the run. The summary is written first, so that every finished run has one.
func (r *run) finish() error {
	r.done()
	if err := rundir.WriteSummary(r.dir, r.summary); err != nil {
		return err
	}
	r.state.Phase = finished
	if err := r.state.write(r.dir); err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(filepath.Join(r.dir, changesDir)), r.forget(putDir), r.forget(deleteDir))
}

func (r *run) done() { r.summary.Seconds = time.Since(r.started).Seconds() }
