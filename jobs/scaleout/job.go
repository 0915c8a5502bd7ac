package scaleout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/lanes"
)

// Options configures a worker process of a job.
type Options struct {
	// Load is the load according to the plan's arguments. Its target must be reachable from this process.
	Load    pipeline.Config
	Program string // version of tsimport
	Owner   string // shown to users, in leases and results; "" means this process and machine
	// Clock is the clock for leases; nil means time since boot.
	Clock func() time.Duration
	// Say reports progress to the user. It may be nil.
	Say words.Say
	// Whole is the directory of the job that this load is part of, or nil. A stop of that job stops this load, too.
	Whole jobdir.Store
	// Drain requests a graceful stop when it ends. It may be nil.
	Drain context.Context
}

// Job is a job directory that a process works on.
type Job struct {
	Plan  *Plan
	store jobdir.Store
	o     Options

	mu       sync.Mutex
	prepared *pipeline.Prepared
	reader   *jobdir.Lease // the right to have the sources open
	shards   *shardMap
	known    *known // shared by all parts of the process
	scratch  string
	drain    context.Context // drain of the current task
	slot     *slot           // share of the process
	cpu      *meter
	part     int                 // number of this part; 0 is the initial one
	together *lanes.SharedLimits // shared by all shards that the process writes
	seen     map[string]*jobdir.Seen
	looks    map[string]*look
	worked   chan struct{} // signals that a part has done a task, so that waiting parts look for tasks
}

func Open(ctx context.Context, store jobdir.Store, o Options) (*Job, error) {
	p, err := ReadPlan(ctx, store)
	if err != nil {
		return nil, err
	}
	return newJob(store, p, o)
}

func newJob(store jobdir.Store, p *Plan, o Options) (*Job, error) {
	if err := sameProgram(store, p.Program, o.Program); err != nil {
		return nil, err
	}
	o.Owner = cmp.Or(o.Owner, jobdir.ThisProcess())
	o.Drain = cmp.Or(o.Drain, context.Background())
	j := &Job{Plan: p, store: store, o: o, known: newKnown(), slot: &slot{taking: make(chan struct{}, 1)},
		cpu: newMeter(), seen: map[string]*jobdir.Seen{}, looks: map[string]*look{},
		worked: make(chan struct{}, 1), together: p.together(o.Load.Lanes.Concurrency)}
	var err error
	j.shards, err = p.shardMap()
	return j, err
}

func (j *Job) Close() error {
	var err error
	if j.part == 0 {
		err = j.slot.release()
	}
	defer j.endReading()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.prepared != nil {
		j.prepared.Close()
		j.prepared = nil
	}
	if j.scratch == "" {
		return err
	}
	dir := j.scratch
	j.scratch = ""
	return errors.Join(err, os.RemoveAll(dir))
}

// prepare plans the load according to the job's plan. Its error names what has changed since.
func (j *Job) prepare(ctx context.Context) (*pipeline.Prepared, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.prepared != nil {
		return j.prepared, nil
	}
	p, err := pipeline.Prepare(context.WithoutCancel(ctx), j.o.Load, j.Plan.former())
	if errors.As(err, new(*pipeline.ChangedError)) {
		return nil, progress.Unfitf("%s cannot be worked on: since it was planned, %w; undo the change, or plan a new "+
			"job in another directory", j.store, err)
	}
	if err != nil {
		return nil, err
	}
	if err := j.sameTable(p); err != nil {
		p.Close()
		return nil, err
	}
	j.prepared = p
	return p, nil
}

// letGo closes live sources, so that their servers need not keep snapshots for hours of writing.
func (j *Job) letGo() {
	defer j.endReading()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.Plan.Live && j.prepared != nil {
		j.prepared.Close()
		j.prepared = nil
	}
}

// sameTable refuses a table other than the planned one.
func (j *Job) sameTable(p *pipeline.Prepared) error {
	t := p.Plan.Table()
	switch {
	case t == nil:
		return progress.Unfitf("table %s was dropped, with the rows already written, since the job in %s was planned; "+
			"plan a new job in another directory", j.Plan.Job.Table, j.store)
	case t.Created != 0 && j.Plan.TableCreated != 0 && t.Created != j.Plan.TableCreated:
		return &keep.ReplacedError{Table: t.Name, Was: j.Plan.TableCreated, Now: t.Created}
	}
	return nil
}

// folder returns a folder exclusive to this process.
func (j *Job) folder() (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.scratch == "" {
		dir, err := os.MkdirTemp(j.o.Load.Limits.TempDir, "tsimport-work-")
		if err != nil {
			return "", fmt.Errorf("create folder for temporary files: %w", err)
		}
		j.scratch = dir
	}
	return j.scratch, nil
}

// seenLease looks at a task's lease and remembers when it last changed, so that the task can be taken over in time.
func (j *Job) seenLease(ctx context.Context, folder string) (*jobdir.Seen, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s, err := jobdir.Watch(ctx, jobdir.Below(j.store, folder), j.seen[folder], j.o.Clock)
	if err == nil {
		j.seen[folder] = s
	}
	return s, err
}

// lease takes the lease of a task, or returns a *jobdir.HeldError.
func (j *Job) lease(ctx context.Context, folder string) (*jobdir.Lease, error) {
	seen, err := j.seenLease(ctx, folder)
	if err != nil {
		return nil, err
	}
	drain := j.draining()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(drain, func() { cancel(context.Cause(drain)) })()
	l, err := jobdir.Acquire(ctx, jobdir.Below(j.store, folder), jobdir.LeaseOptions{Owner: j.o.Owner, Clock: j.o.Clock,
		Seen: seen})
	if err != nil && drain.Err() != nil {
		err = context.Cause(drain)
	}
	return l, err
}

func nonce() string { return jobdir.Nonce()[:8] }
