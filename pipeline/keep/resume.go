package keep

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/shuffle/readorder"
)

// Resume configures how a load resumes an earlier attempt. The zero Resume starts over.
type Resume struct {
	// Look finds an unfinished run of the same load, in RunDir or below rundir.Root, and resumes it.
	Look bool
	// MayChange starts over if the run cannot be resumed as now requested.
	MayChange bool
	// AcceptChanged resumes despite changed inputs.
	AcceptChanged bool
	// LocksDir is the folder, one per user, for locks that hold across working folders; "" means no such locks.
	LocksDir string
	Args     []string // the command's arguments without secrets, kept in the run folder
	// Request is the command as JSON without secrets. It is kept in the run folder, so that the command can be repeated.
	Request json.RawMessage
	// Settings, if not nil, is a job whose inferred types and separator the load takes over.
	Settings *checkpoint.Job
	// Known selects which inputs of a repeated load are loaded; nil means all.
	Known Known
	// Notes are shown with the notes of the plan.
	Notes []string
	Hold  time.Time // nothing is sent before this time
	// OnResume, if not nil, is called before the first write of an attempt that resumes.
	OnResume func(Resumed)
}

// Resumed describes the state that a run resumes from.
type Resumed struct {
	RunDir      string
	Attempt     int
	Final, Read int64 // numbers of records
	Written     int64 // rows written
	BytesRead   int64
	Since       time.Time
	// Rereads names the sources that must be read from the beginning although they resume at a later record.
	Rereads []string
}

// Point is the state from which a run starts. In the first attempt, it has no Snapshot.
type Point struct {
	Load     *Load
	Job      *checkpoint.Job
	Snapshot *checkpoint.Snapshot // last snapshot of the previous attempt; nil in the first one
	lock     *rundir.Lock         // lock of the run folder
	begun    string               // folder used until there is a run folder
	claims   []*rundir.Lock
	runs     func() ([]foundRun, error) // returns the load's runs; call it with the lock held
	IDs      *TableIDs
	Order    []*readorder.Schedule // schedules that earlier attempts have followed
	// Nothing may be sent before Hold; requests of the previous attempt may be applied until SuspectUntil.
	Hold, SuspectUntil time.Time
	Late               time.Time // a request of an earlier attempt may repeat a row until then (Checkpoint.Repeats)
}

// Find finds the run to resume and takes its lock. If there is none, it returns only the job. It first takes locks,
// which Release gives back: if two processes begin the same load at the same time, one of them fails here.
func Find(ctx context.Context, l *Load, now time.Time) (o *Point, err error) {
	o = &Point{Load: l, IDs: NewTableIDs(), Job: &checkpoint.Job{
		Identity: progress.Identify(append([]string{l.Target, l.Table}, l.Inputs...)...),
		Run:      table.NewRun(now),
		Args:     l.Resume.Args, Request: l.Resume.Request, Command: l.Invocation.Command, Target: l.Target, Table: l.Table,
		Started: now.UTC(), PolicyNow: l.PolicyNow,
	}}
	o.Job.Dir, _ = os.Getwd() // for a message, and for commands that are run again
	o.runs = sync.OnceValues(func() ([]foundRun, error) { return runsOf(o.Job.Identity) })
	if l.Nothing {
		return o, nil
	}
	defer func() {
		if err != nil {
			o.Release()
			o = nil
		}
	}()
	if err := o.claim(); err != nil || !l.Resume.Look {
		return o, err
	}
	path := l.RunDir
	if l.Checkpoint.State != nil {
		if path, err = l.restore(ctx); err != nil || path == "" {
			return o, err // data that is on this machine but not in the state is invalid
		}
		if o.lock == nil {
			if o.lock, err = rundir.TakeLock(path); err != nil {
				return o, err
			}
		}
	}
	if path != "" && !checkpoint.Exists(path) {
		return o, nil // no run, or a run that has sent nothing
	}
	if path == "" {
		if path, err = unfinished(o.runs()); err != nil || path == "" {
			return o, err
		}
		if o.lock, err = rundir.TakeLock(path); err != nil {
			return o, err
		}
	}
	if err := rundir.CheckOwner(path); err != nil {
		return o, &plan.UsageError{Message: err.Error()}
	}
	job, err := checkpoint.ReadJob(path)
	if err != nil {
		return o, fmt.Errorf("the run in %s cannot be resumed: %w", path, err)
	}
	if job.Identity != o.Job.Identity {
		return o, &plan.UsageError{Message: fmt.Sprintf("--run-dir %s holds an unfinished load of other inputs or into "+
			"another table; finish it with tsimport resume %s, give another --run-dir, or "+source.StartOver,
			path, path)}
	}
	s, err := checkpoint.Read(path)
	if err != nil {
		return o, fmt.Errorf("%w; "+source.StartOver, err)
	}
	l.RunDir, l.PolicyNow = path, job.PolicyNow
	job.Args, job.Request, job.Command = o.Job.Args, o.Job.Request, o.Job.Command
	o.Job, o.Snapshot = job, s
	maps.Copy(o.IDs.created, s.Tables) // tables of the previous attempt
	o.settle(now, checkpoint.Now().Since(s.Uptime), l.Settle, l.Request)
	return o, nil
}

// settle sets until when requests of the previous attempt may be applied. It sent nothing after it ended, or later than
// keptFor after its last checkpoint, which is at least ago old. Unanswered requests may be applied for settle.
func (o *Point) settle(now time.Time, ago, settle, request time.Duration) {
	s := o.Snapshot
	settle = max(settle, s.Settle)
	if !s.Settled {
		wait := settle
		if !s.Older {
			wait = min(wait, max(0, keptFor+client.LongestRequest(request)+settle-ago))
		}
		o.SuspectUntil = now.Add(wait)
	}
	if hold := min(client.LongestRequest(request)+settle, s.HoldFor-ago); hold > 0 {
		o.Hold = now.Add(hold)
	}
}

// Settings adds to the request what the first attempt, or the load of the given job, inferred from a sample.
func (o *Point) Settings(r *plan.Request, given *checkpoint.Job) {
	r.Inferred = map[string]plan.Inferred{}
	for _, job := range []*checkpoint.Job{given, o.Job} {
		if job == nil {
			continue
		}
		for _, t := range job.Types {
			if parsed, err := table.ParseType(t.Type); err == nil {
				own, err := table.ParseType(t.Own)
				if err != nil {
					own = parsed
				}
				r.Inferred[t.Column] = plan.Inferred{Type: parsed, Zeros: slices.Contains(job.Zeros, t.Column), Own: own,
					Asked: t.Asked}
			}
		}
		if separator, n := utf8.DecodeRuneInString(job.Separator); n > 0 {
			r.Separator = separator
		}
	}
}

// Compare adds the load's details to the job. It returns an error if they have changed since the first attempt.
func (o *Point) Compare(ctx context.Context, planned *plan.Plan) error {
	l := o.Load
	facts, err := planned.Facts()
	if err != nil {
		return err
	}
	details := append([]progress.Fact{{Name: "the target", Value: l.Target}, {Name: "--table", Value: l.Table}}, l.Rows...)
	if planned.Schema.Numbered > 0 {
		// The previous attempt's rows are recognised only by their mark, and only this file has their keys.
		details = append(details, progress.Fact{Name: "--returned-keys", Value: l.ReturnedKeys})
	}
	details = append(details, facts...)
	if o.Snapshot != nil {
		if o.Snapshot.Job != o.Job.Identity {
			return &plan.UsageError{Message: fmt.Sprintf("run %s: %s does not belong to the load of its checkpoint; "+
				source.StartOver, l.RunDir, checkpoint.JobFile)}
		}
		if planned.Create {
			return tableGone(l.RunDir, l.Table)
		}
		details = o.Job.WithOrder(details)
		if err := o.takeSame(ctx, details); err != nil {
			return err
		}
		changes, inputsOnly := progress.Changes(o.Job.Details, details)
		grown := l.Resume.Once() && slices.ContainsFunc(changes,
			func(text string) bool { return strings.HasPrefix(text, "size of ") })
		if len(changes) > 0 && (!inputsOnly || !l.Resume.AcceptChanged || grown) {
			// records of a grown input would be treated as loaded
			return o.changedError(changes, inputsOnly, details)
		}
		if len(changes) > 0 {
			o.Snapshot.Chains = nil // the streams are no longer the same
		}
	}
	o.Job.Details = details
	o.Job.Chosen = planned.Chosen
	o.Job.Separator = planned.Separator()
	if o.Job.Types == nil {
		for _, c := range planned.Fields {
			if c.Exact || c.Time == nil && !c.Hex { // types with more details are given by the command
				typed := checkpoint.Typed{Column: c.Source, Type: c.Type.String(), Asked: !c.Exact}
				if c.Own != c.Type && c.Own != table.Null {
					typed.Own = c.Own.String()
				}
				o.Job.Types = append(o.Job.Types, typed)
				if c.Zeros {
					o.Job.Zeros = append(o.Job.Zeros, c.Source)
				}
			}
		}
	}
	return nil
}

// takeSame takes over the new versions of inputs whose content has not changed.
func (o *Point) takeSame(ctx context.Context, details []progress.Fact) error {
	if !o.Load.Resume.Once() {
		return nil
	}
	is := map[string]string{}
	for _, d := range details {
		is[d.Name] = d.Value
	}
	for i, d := range o.Job.Details {
		name, of := strings.CutPrefix(d.Name, "version of ")
		if now, ok := is[d.Name]; !of || !ok || now == d.Value {
			continue
		}
		same, err := o.Load.Resume.Known.Same(ctx, name)
		if err != nil {
			return err
		}
		if same {
			o.Job.Details[i].Value = is[d.Name]
		}
	}
	return nil
}

func (o *Point) changedError(changes []string, inputsOnly bool, now []progress.Fact) error {
	text := changes[0]
	if n := len(changes) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more changes)", n)
	}
	changed := inputsOnly || slices.ContainsFunc(now, func(d progress.Fact) bool {
		return d.Input && !slices.ContainsFunc(o.Job.Details,
			func(was progress.Fact) bool { return was.Name == d.Name && was.Value == d.Value })
	})
	advice := "give the same command, or " + source.StartOver
	if inputsOnly {
		advice = source.StartOver + ", or resume with --accept-changed-input if the part already read is unchanged"
	}
	return &plan.UsageError{Message: fmt.Sprintf("run %s cannot be resumed: %s; %s", o.Load.RunDir, text, advice),
		Changed: changed}
}

// OpenFolder creates the run folder, or opens the one to resume, and hands over its lock.
func (o *Point) OpenFolder(path string, planned *plan.Plan) (folder *rundir.Folder, err error) {
	l := o.Load
	l.RunDir = path
	if o.Snapshot != nil {
		folder, err = rundir.Reopen(path, planned.Headers, rundir.Kept{Lengths: o.Snapshot.Files, Sums: o.Snapshot.Sums})
	} else {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, &rundir.FolderError{What: "create run folder", Err: err}
		}
		if o.lock == nil {
			if o.lock, err = rundir.TakeLock(path); err != nil {
				return nil, err
			}
		}
		folder, err = rundir.Create(path, planned.Headers)
	}
	if err != nil || l.Nothing {
		return folder, err
	}
	o.lock.Keep()
	if o.Snapshot == nil {
		err = o.Job.KeepDivision(path, planned.Division)
	}
	if err == nil {
		err = o.Job.Write(path)
	}
	if err == nil {
		o.forgetBegun()
		err = o.replaceOthers()
	}
	return folder, err
}

// openRecords returns the number of records that were read and are not final, from a checkpoint's counters.
func openRecords(c map[string]int64) int64 {
	return c["read"] - c["written"] - c["rejected"] - c["superseded"] - c["condition_failed"] - c["archived"]
}

// Rereads returns the names of the sources that must be read from the beginning although they resume at a later record.
func (o *Point) Rereads(planned *plan.Plan) (names []string) {
	for _, from := range o.Snapshot.Starts {
		if s := planned.Sources[from.Source]; from.Record > 0 && s.About().Seeking == source.SeeksByReading {
			names = append(names, s.Name)
		}
	}
	return names
}

// Counter returns a counter of the previous attempt, or 0 if there was none.
func (o *Point) Counter(name string) int64 {
	if o.Snapshot == nil {
		return 0
	}
	return o.Snapshot.Counters[name]
}

// ReadAgain makes the checkpoint the base of the attempt, if the sources are live. Nothing is sent while requests of
// the previous attempt may be applied, as they could replace newer rows.
func (o *Point) ReadAgain(planned *plan.Plan) error {
	s := o.Snapshot
	if s == nil || !planned.Live {
		return nil
	}
	records, err := s.ReadAgain(len(planned.Sources))
	c := s.Counters
	open := openRecords(c)
	if err == nil && (open < 0 || records < open) {
		err = fmt.Errorf("%d records are not final, but only %d would be read again", open, records)
	}
	if err != nil {
		return fmt.Errorf("the run cannot be resumed: %w; "+source.StartOver, err)
	}
	c["read"] -= open
	c["read_again"] += records - open
	o.Hold = Later(o.Hold, o.SuspectUntil)
	return nil
}

// rowsAgain is what a resumed load knows of a live source's records: each may have been sent with older content.
type rowsAgain struct{}

func (rowsAgain) Row(int, int64, []byte) (final, suspect bool) { return false, true }

func (rowsAgain) Counted(int, int64) bool { return false }

func (rowsAgain) Known(int, int64, int64) bool { return true }

func (rowsAgain) Unknown(int, int64) bool { return false }

// ReadOrder reads the schedules that earlier attempts followed.
func (o *Point) ReadOrder(planned *plan.Plan) error {
	if o.Snapshot == nil {
		return nil
	}
	file, err := o.Job.ReadOrder(o.Load.RunDir)
	if err == nil && file != nil {
		if o.Order, err = readorder.Decode(file); err != nil {
			err = fmt.Errorf("read the reading order: %w", err)
		}
	}
	if err != nil {
		return fmt.Errorf("%w; "+source.StartOver, err)
	}
	for _, s := range o.Order {
		if s.Source+s.Sources > len(planned.Sources) {
			return fmt.Errorf("read the reading order: it is for %d inputs, but there are %d; "+source.StartOver,
				s.Source+s.Sources, len(planned.Sources))
		}
	}
	return nil
}
