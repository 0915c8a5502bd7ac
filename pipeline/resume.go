package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/shuffle/readorder"
)

// Resume says how a load resumes where an earlier attempt ended. The zero Resume starts over.
type Resume struct {
	// Look looks for an unfinished run of the same load, in RunDir or below rundir.Root, and resumes it.
	Look bool
	// MayChange starts over where the run cannot be resumed as it is asked for now.
	MayChange bool
	// AcceptChanged resumes although inputs were changed.
	AcceptChanged bool
	// LocksDir is a folder, the same for all loads of the user on this machine, in which a load is locked that is given in
	// several working folders at once; "" is none.
	LocksDir string
	Args     []string // the command's arguments, kept in the run folder; without secrets
	// Request is the command as JSON, kept in the run folder to do it again; without secrets.
	Request json.RawMessage
	// Settings, if not nil, is a job whose inferred types and separator the load takes over.
	Settings *checkpoint.Job
	// Known says which inputs are loaded, of a load that comes again; nil is all of them.
	Known Known
	// Notes are shown with those of the plan.
	Notes []string
	hold  time.Time // until then nothing is sent
	// OnResume is called before the first write of an attempt that resumes. May be nil.
	OnResume func(Resumed)
}

// Resumed says what a run resumes from.
type Resumed struct {
	RunDir      string
	Attempt     int
	Final, Read int64 // records
	Written     int64 // rows
	BytesRead   int64
	Since       time.Time
	// Rereads are sources that are not at their first record, and of which all that comes before is read again to get there.
	Rereads []string
}

// resumePoint is what a run begins with, empty in the first attempt.
type resumePoint struct {
	load     *keptLoad
	job      *checkpoint.Job
	snapshot *checkpoint.Snapshot // of the attempt before; nil in the first one
	lock     *rundir.Lock         // of the run folder
	begun    string               // folder of what is kept until there is a run folder
	claims   []*rundir.Lock
	ids      *tableIDs
	order    []*readorder.Schedule // that the attempts before have followed
	// hold is until when nothing may be sent, suspectUntil until when what the attempt before has sent may be applied.
	hold, suspectUntil time.Time
	late               time.Time // until when a request of an earlier attempt may repeat a row (Checkpoint.Repeats)
}

// findResumePoint finds the run to resume, and takes its lock. Without one it says only what the job is. What release gives back is
// held from before looking: of two processes that begin the same load together, one ends here.
func findResumePoint(ctx context.Context, l *keptLoad, now time.Time) (o *resumePoint, err error) {
	o = &resumePoint{load: l, ids: newTableIDs(), job: &checkpoint.Job{
		Identity: checkpoint.Identify(append([]string{l.Target, l.Table}, l.Inputs...)...),
		Run:      table.NewRun(now),
		Args:     l.Resume.Args, Request: l.Resume.Request, Command: l.Invocation.Command, Target: l.Target, Table: l.Table, Started: now.UTC(), PolicyNow: l.PolicyNow,
	}}
	o.job.Dir, _ = os.Getwd() // for a message, and for commands that are run again
	if l.Nothing {
		return o, nil
	}
	defer func() {
		if err != nil {
			o.release()
			o = nil
		}
	}()
	if err := o.claim(); err != nil || !l.Resume.Look {
		return o, err
	}
	path := l.RunDir
	if l.Checkpoint.State != nil {
		if path, err = l.restore(ctx); err != nil || path == "" {
			return o, err // what this machine has was not kept in the state, and counts for nothing
		}
		if o.lock == nil {
			if o.lock, err = rundir.TakeLock(path); err != nil {
				return o, err
			}
		}
	}
	if path != "" && !checkpoint.Exists(path) {
		return o, nil // no run, or one that has sent nothing
	}
	if path == "" {
		if path, err = unfinished(o.job.Identity); err != nil || path == "" {
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
		return o, fmt.Errorf("%w; the run in %s cannot be resumed: start over with --fresh", err, path)
	}
	if job.Identity != o.job.Identity {
		return o, &plan.UsageError{Message: fmt.Sprintf("--run-dir %s holds an unfinished load of other inputs or into another table; finish it with tsimport resume %s, give another --run-dir, or start over with --fresh",
			path, path)}
	}
	s, err := checkpoint.Read(path)
	if err != nil {
		return o, fmt.Errorf("%w; start over with --fresh", err)
	}
	l.RunDir, l.PolicyNow = path, job.PolicyNow
	job.Args, job.Request, job.Command = o.job.Args, o.job.Request, o.job.Command
	o.job, o.snapshot = job, s
	o.ids.remember(s)
	o.settle(now, checkpoint.Now().Since(s.Uptime), l.Settle, l.Request)
	return o, nil
}

// settle works out until when what the attempt before has sent may be applied: it sent nothing later than keptFor after its
// last checkpoint, which is so long ago at least, nor after it ended, which it has; an attempt without an answer may be
// applied for settle.
func (o *resumePoint) settle(now time.Time, ago, settle, request time.Duration) {
	s := o.snapshot
	settle = max(settle, s.Settle)
	if !s.Settled {
		wait := settle
		if !s.Older {
			wait = min(wait, max(0, keptFor+client.LongestRequest(request)+settle-ago))
		}
		o.suspectUntil = now.Add(wait)
	}
	if hold := min(client.LongestRequest(request)+settle, s.HoldFor-ago); hold > 0 {
		o.hold = now.Add(hold)
	}
}

// settings enters into the request what the first attempt found out by a sample.
func (o *resumePoint) settings(r *plan.Request, given *checkpoint.Job) {
	r.Inferred = map[string]plan.Inferred{}
	for _, job := range []*checkpoint.Job{given, o.job} {
		if job == nil {
			continue
		}
		for _, t := range job.Types {
			if parsed, err := table.ParseType(t.Type); err == nil {
				own, err := table.ParseType(t.Own)
				if err != nil {
					own = parsed
				}
				r.Inferred[t.Column] = plan.Inferred{Type: parsed, Zeros: slices.Contains(job.Zeros, t.Column), Own: own, Asked: t.Asked}
			}
		}
		if separator, n := utf8.DecodeRuneInString(job.Separator); n > 0 {
			r.Separator = separator
		}
	}
}

// compare enters the details of the load into the job, or says what has changed since the first attempt.
func (o *resumePoint) compare(ctx context.Context, planned *plan.Plan) error {
	l := o.load
	facts, err := planned.Facts()
	if err != nil {
		return err
	}
	details := append([]checkpoint.Detail{{Name: "the target", Value: l.Target}, {Name: "--table", Value: l.Table}}, l.Rows...)
	if planned.Schema.Numbered > 0 {
		// A row that the attempt before has sent is known by no other mark, and its key stands in no other file.
		details = append(details, checkpoint.Detail{Name: "--returned-keys", Value: l.ReturnedKeys})
	}
	if planned.Mark != "" && o.snapshot != nil && o.job.Run == "" {
		return &plan.UsageError{Message: fmt.Sprintf("run %s cannot be resumed: it was begun by an earlier version of tsimport, whose marks are the same for every run; finish it with that version, or give --fresh --look-first, which finds the rows that it wrote", l.RunDir)}
	}
	for _, f := range facts {
		details = append(details, checkpoint.Detail{Name: f.Name, Value: f.Value, Input: f.Input})
	}
	if planned.Mark != "" {
		// A version that does not know the run's name would write other marks, and not find these.
		details = append(details, checkpoint.Detail{Name: "what marks say", Value: "job, run, record"})
	}
	if o.snapshot != nil {
		if o.snapshot.Job != o.job.Identity {
			return &plan.UsageError{Message: fmt.Sprintf("run %s: %s does not belong to the load of its checkpoint; start over with --fresh", l.RunDir, checkpoint.JobFile)}
		}
		if planned.Create {
			return tableGone(l.RunDir, l.Table)
		}
		details = o.job.WithOrder(details)
		if err := o.takeSame(ctx, details); err != nil {
			return err
		}
		changes, inputsOnly := o.job.Changed(details)
		grown := l.Resume.once() && slices.ContainsFunc(changes, func(text string) bool { return strings.HasPrefix(text, "size of ") })
		if len(changes) > 0 && (!inputsOnly || !l.Resume.AcceptChanged || grown) { // records of a grown input would be taken for loaded
			return o.changedError(changes, inputsOnly, details)
		}
		if len(changes) > 0 {
			o.snapshot.Chains = nil // of streams that are no longer the same
		}
	}
	o.job.Details = details
	o.job.Chosen = planned.Chosen
	o.job.Separator = planned.Separator()
	if o.job.Types == nil {
		for _, c := range planned.Fields {
			if c.Exact || c.Time == nil && !c.Hex { // types with more to them are in the command
				typed := checkpoint.Typed{Column: c.Source, Type: c.Type.String(), Asked: !c.Exact}
				if c.Own != c.Type && c.Own != table.Null {
					typed.Own = c.Own.String()
				}
				o.job.Types = append(o.job.Types, typed)
				if c.Zeros {
					o.job.Zeros = append(o.job.Zeros, c.Source)
				}
			}
		}
	}
	return nil
}

// takeSame takes the versions of inputs whose content is known to be what it was.
func (o *resumePoint) takeSame(ctx context.Context, details []checkpoint.Detail) error {
	if !o.load.Resume.once() {
		return nil
	}
	is := map[string]string{}
	for _, d := range details {
		is[d.Name] = d.Value
	}
	for i, d := range o.job.Details {
		name, of := strings.CutPrefix(d.Name, "version of ")
		if now, ok := is[d.Name]; !of || !ok || now == d.Value {
			continue
		}
		same, err := o.load.Resume.Known.Same(ctx, name)
		if err != nil {
			return err
		}
		if same {
			o.job.Details[i].Value = is[d.Name]
		}
	}
	return nil
}

func (o *resumePoint) changedError(changes []string, inputsOnly bool, now []checkpoint.Detail) error {
	text := changes[0]
	if n := len(changes) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more changes)", n)
	}
	changed := inputsOnly || slices.ContainsFunc(now, func(d checkpoint.Detail) bool {
		return d.Input && !slices.ContainsFunc(o.job.Details, func(was checkpoint.Detail) bool { return was.Name == d.Name && was.Value == d.Value })
	})
	advice := "give the same command, or start over with --fresh"
	if inputsOnly {
		advice = "start over with --fresh, or resume with --accept-changed-input if the part already read is unchanged"
	}
	return &plan.UsageError{Message: fmt.Sprintf("run %s cannot be resumed: %s; %s", o.load.RunDir, text, advice), Changed: changed}
}

// openFolder makes the run folder, or opens the one that is resumed, with the lock on it.
func (o *resumePoint) openFolder(path string, planned *plan.Plan) (folder *rundir.Folder, err error) {
	l := o.load
	l.RunDir = path
	if o.snapshot != nil {
		folder, err = rundir.Reopen(path, planned.Headers, rundir.Kept{Lengths: o.snapshot.Files, Sums: o.snapshot.Sums})
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
	if o.snapshot == nil {
		err = o.job.KeepDivision(path, planned.Division)
	}
	if err == nil {
		err = o.job.Write(path)
	}
	if err == nil {
		o.forgetBegun()
		err = o.replaceOthers()
	}
	return folder, err
}

// counters are the parts of a report that count over all attempts.
func (r *Report) counters() map[string]int64 {
	c := map[string]int64{}
	for name, n := range r.lasting() {
		c[name] = *n
	}
	return c
}

// lasting names the counters that count over all attempts.
func (r *Report) lasting() map[string]*int64 {
	return map[string]*int64{
		"read": &r.Read, "written": &r.Written, "rejected": &r.Rejected, "superseded": &r.Superseded, "archived": &r.Archived, "condition_failed": &r.ConditionFailed, "maybe_applied": &r.MaybeApplied,
		"retried": &r.Retried, "replayed": &r.Replayed, "rows_sent": &r.RowsSent, "throttled": &r.Throttled, "unavailable": &r.Unavailable,
		"bytes_read": &r.BytesRead, "write_cu": &r.WriteCU, "requests": &r.Requests,
		"recuts": &r.Recuts, "seams": &r.Seams, "expired_cells": &r.ExpiredCells, "read_again": &r.ReadAgain, "read_waits": &r.ReadWaits, "send_waits": &r.SendWaits,
	}
}

// openRecords is how many records were read and are not final, by the counters of a checkpoint.
func openRecords(c map[string]int64) int64 {
	return c["read"] - c["written"] - c["rejected"] - c["superseded"] - c["condition_failed"] - c["archived"]
}

// resume takes over what the attempts before have counted.
func (r *Report) resume(s *checkpoint.Snapshot) {
	for name, n := range r.lasting() {
		*n = s.Counters[name]
	}
	r.Attempts, r.Resumed = s.Attempt+1, true
	r.FirstStarted = s.Begun
	r.Unfinished = r.Read - r.final() // until the ledger says it
	r.writtenBefore = r.Written
	if s.Ordered && len(s.Starts) > 0 {
		r.BytesRead = s.Starts[0].Bytes // what follows is read again
	}
}

// rereads returns the names of the sources that are read from their beginning to get to where the attempt resumes.
func (o *resumePoint) rereads(planned *plan.Plan) (names []string) {
	for _, from := range o.snapshot.Starts {
		if s := planned.Sources[from.Source]; from.Record > 0 && s.About().Seeking == source.SeeksByReading {
			names = append(names, s.Name)
		}
	}
	return names
}

// counter returns a counter of the attempt before, 0 if there was none.
func (o *resumePoint) counter(name string) int64 {
	if o.snapshot == nil {
		return 0
	}
	return o.snapshot.Counters[name]
}
