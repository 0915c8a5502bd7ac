package scaleout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/reader/input"
)

// A job directory may hold many loads, each in a folder that is a job directory, too. Workers take whole loads, so that
// a small table needs only one process. A worker that finds no free load helps with another one.

// LoadsName is the object that lists the loads.
const LoadsName = "loads.json"

// Loads is the object loads.json.
type Loads struct {
	Version  int       `json:"version"`
	Program  string    `json:"program"`  // version of tsimport; workers must have the same
	ID       string    `json:"id"`       // ID of this plan
	Identity string    `json:"identity"` // of the job: file, loads and variables
	File     string    `json:"file"`
	Workers  int       `json:"workers"` // expected number of workers
	Loads    []OneLoad `json:"loads"`
}

type OneLoad struct {
	Name  string   `json:"name"`
	After []string `json:"after,omitempty"` // loads that must be done first
	// Source identifies the database that the load reads, which limits concurrent workers. It is "" for other inputs.
	Source string `json:"source,omitempty"`
	Most   int    `json:"most,omitempty"`
}

// FolderOf returns the place of a load's job directory within the job's directory.
func FolderOf(load string) string { return "loads/" + load }

// KeepLoads stores the planned loads of a job. A directory with another job is refused.
func KeepLoads(ctx context.Context, store jobdir.Store, l *Loads) (*Loads, error) {
	l.Version, l.ID = planVersion, nonce()+nonce()
	err := putJSON(ctx, store.PutAbsent, LoadsName, l)
	if errors.Is(err, jobdir.ErrExists) {
		return CheckLoads(ctx, store, l)
	}
	if err != nil {
		return nil, fmt.Errorf("store %s in %s: %w", LoadsName, store, err)
	}
	return l, nil
}

// CheckLoads returns the job in a directory, or nil if there is none. A different job, or anything else, is refused.
func CheckLoads(ctx context.Context, store jobdir.Store, l *Loads) (*Loads, error) {
	kept, err := ReadLoads(ctx, store)
	switch {
	case err != nil:
		return nil, err
	case kept == nil:
		_, err := checkEmpty(ctx, store, LoadsName, "loads/")
		return nil, err
	case kept.Program != l.Program:
		return nil, sameProgram(store, kept.Program, l.Program)
	case kept.Identity != l.Identity:
		return nil, progress.Unfitf("--job-dir %s holds another job, of %s; name an empty directory", store, kept.File)
	case !slices.EqualFunc(kept.Loads, l.Loads,
		func(a, b OneLoad) bool { return a.Name == b.Name && slices.Equal(a.After, b.After) }):
		return nil, progress.Unfitf("--job-dir %s has this job with other loads, or in another order: %s has changed since "+
			"it was planned; name an empty directory", store, kept.File)
	}
	return kept, nil
}

// ReadLoads reads the loads of a job directory. It returns nil if the directory has a single load or none yet.
func ReadLoads(ctx context.Context, store jobdir.Store) (*Loads, error) {
	l := new(Loads)
	if there, err := read(ctx, store, LoadsName, l); !there || err != nil {
		return nil, err
	}
	return l, nil
}

// LoadsSummary is the object summary.json of a job with many loads.
type LoadsSummary struct {
	Version int       `json:"version"`
	Plan    string    `json:"plan"` // ID of the Loads
	By      string    `json:"by"`
	Ended   time.Time `json:"ended"`
	// Here marks the process that ended the job.
	Here     bool       `json:"-"`
	ExitCode int        `json:"exit_code"` // the most important exit code of the loads (docs/jobs.md)
	Loads    []LoadDone `json:"loads"`
}

// LoadDone tells how a load ended, or that it is still open.
type LoadDone struct {
	Name     string `json:"name"`
	State    string `json:"state"` // finished, stopped, not run, or open
	ExitCode int    `json:"exit_code"`
	Why      string `json:"why,omitempty"`
	Rejected int64  `json:"rejected"`
	SummaryCounts
}

// States of a LoadDone.
const (
	LoadOpen     = "open"
	LoadFinished = "finished"
	LoadStopped  = "stopped"
	LoadNotRun   = "not run"
)

// over reports whether the load has ended, and well whether its successors may begin.
func (d *LoadDone) over() bool { return d.State != LoadOpen }
func (d *LoadDone) well() bool {
	return d.State == LoadFinished && (d.ExitCode == exitcode.OK || d.ExitCode == exitcode.Rejects)
}

// Several are the loads of a job that a process works on.
type Several struct {
	Loads *Loads
	job   *Job // the directory's job, for its leases
	ended map[string]*LoadDone
	// failed holds the errors of loads on which this process gave up. Other processes may succeed with them.
	failed map[string]error
}

// OpenSeveral opens a job directory with many loads.
func OpenSeveral(store jobdir.Store, l *Loads, o Options) (*Several, error) {
	if err := sameProgram(store, l.Program, o.Program); err != nil {
		return nil, err
	}
	o.Owner, o.Drain = cmp.Or(o.Owner, jobdir.ThisProcess()), cmp.Or(o.Drain, context.Background())
	j := &Job{store: store, o: o, seen: map[string]*jobdir.Seen{}}
	return &Several{Loads: l, job: j, ended: map[string]*LoadDone{}, failed: map[string]error{}}, nil
}

// Work takes loads, like other processes, until all have ended. do works on a load until it is done or the job stops.
func (s *Several) Work(ctx context.Context, do func(ctx context.Context, load string) error) (done *LoadsSummary,
	err error) {
	begun := false
	err = s.job.persist(ctx, func() (worked, over bool, err error) {
		if !begun {
			if err := s.Reopen(ctx); err != nil {
				return false, false, err
			}
			begun = true
		}
		if done, err = s.summary(ctx); done != nil || err != nil {
			return false, done != nil, err
		}
		all, err := s.Status(ctx)
		if err != nil {
			return false, false, err
		}
		ready := s.ready(all)
		if len(ready) == 0 { // no load can begin any more: an open one would wait for one that is ready
			if err := stoppedOf(all); err != nil {
				return false, false, err
			}
			done, err = s.finish(ctx, all)
			return false, done != nil, err
		}
		ready = slices.DeleteFunc(ready, func(l *OneLoad) bool { return s.failed[l.Name] != nil })
		if len(ready) == 0 {
			return false, false, s.failure()
		}
		rand.Shuffle(len(ready), func(a, b int) { ready[a], ready[b] = ready[b], ready[a] })
		for _, helps := range []bool{false, true} {
			for _, load := range ready {
				if worked, err := s.take(ctx, load, helps, do); worked || err != nil {
					return worked, false, err
				}
			}
		}
		return false, false, nil
	})
	return done, err
}

func (s *Several) ready(all []*LoadDone) (ready []*OneLoad) {
	for i := range s.Loads.Loads {
		l := &s.Loads.Loads[i]
		waits := slices.ContainsFunc(l.After, func(name string) bool { return !s.at(all, name).well() })
		if !waits && !all[i].over() {
			ready = append(ready, l)
		}
	}
	return ready
}

func (s *Several) at(all []*LoadDone, name string) *LoadDone {
	return all[slices.IndexFunc(all, func(d *LoadDone) bool { return d.Name == name })]
}

// take works on a load if no other process does, or if helps is set and the load's source permits another worker.
func (s *Several) take(ctx context.Context, l *OneLoad, helps bool,
	do func(context.Context, string) error) (worked bool, err error) {
	var held []*jobdir.Lease
	defer func() {
		for _, lease := range held {
			s.job.giveBack(lease)
		}
	}()
	hold := func(folder string) (is bool, err error) {
		lease, err := s.job.lease(ctx, folder)
		if errors.As(err, new(*jobdir.HeldError)) {
			return false, nil
		}
		if err == nil {
			held = append(held, lease)
		}
		return err == nil, err
	}
	if !helps {
		if is, err := hold("claims/" + l.Name); !is {
			return false, err
		}
	}
	for i := range l.Most {
		is, err := hold(fmt.Sprintf("sources/%s/%04d", l.Source, i))
		if err != nil {
			return false, err
		}
		if is {
			break
		}
		if i+1 == l.Most {
			return false, nil
		}
	}
	err = do(ctx, l.Name)
	if ctx.Err() != nil || s.job.o.Drain.Err() != nil || errors.As(err, new(*jobdir.FaultError)) {
		return true, err
	}
	ended := s.noteEnd(ctx, l.Name)
	if ctx.Err() != nil || errors.As(ended, new(*jobdir.FaultError)) {
		return true, ended
	}
	if err == nil {
		err = ended // a damaged object of this load, which is no reason to stop the others
	}
	if err != nil {
		s.job.o.Say.Warn("%v", err)
		s.failed[l.Name] = err
	}
	return true, nil
}

// failure returns the error that sets the exit code of a process for which only failed loads remain.
func (s *Several) failure() (first error) {
	for _, err := range s.failed {
		if first == nil || exitcode.First(exitcode.Of(first), exitcode.Of(err)) != exitcode.Of(first) {
			first = err
		}
	}
	return first
}

// stoppedOf returns a *StoppedError if a load was stopped. Then the job is not done, and can be continued.
func stoppedOf(all []*LoadDone) error {
	var codes []int
	why := new(StoppedError)
	for _, d := range all {
		if d.State == LoadStopped {
			codes = append(codes, d.ExitCode)
			why.Why, why.By = cmp.Or(why.Why, fmt.Sprintf("load %s: %s", d.Name, d.Why)), "its workers"
		}
	}
	if why.Code = exitcode.First(codes...); why.Code == exitcode.OK {
		return nil
	}
	return why
}

// Continue undoes the stops of loads. Loads that exceeded their error limit remain stopped, with their exit code.
func (s *Several) Continue(ctx context.Context) error {
	all, err := s.Status(ctx)
	if err != nil {
		return err
	}
	for _, d := range all {
		if d.State != LoadStopped {
			continue
		}
		store := s.storeOf(d.Name)
		p, err := ReadPlan(ctx, store)
		if err != nil {
			return err
		}
		j, err := newJob(store, p, s.job.o)
		if err != nil {
			return err
		}
		err = j.Continue(ctx)
		if why := new(StoppedError); errors.As(err, &why) && why.Code == exitcode.ErrorLimit {
			err = nil
		}
		if err := errors.Join(err, j.Close()); err != nil {
			return fmt.Errorf("load %s: %w", d.Name, err)
		}
	}
	if err := s.job.stopped(ctx); err != nil {
		if !errors.As(err, new(*StoppedError)) {
			return err
		}
		if err := s.job.store.Delete(ctx, stopName); err != nil {
			return err
		}
	}
	return s.Reopen(ctx)
}

// Reopen discards the recorded ends of stopped loads that may go on because of a raised limit or the user's Continue.
func (s *Several) Reopen(ctx context.Context) error {
	all, err := s.Status(ctx)
	if err != nil {
		return err
	}
	for _, d := range all {
		if d.State != LoadStopped {
			continue
		}
		err := (&Job{store: s.storeOf(d.Name)}).stopped(ctx)
		if errors.As(err, new(*StoppedError)) {
			continue
		}
		if err == nil {
			err = s.job.store.Delete(ctx, endedName(d.Name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Several) storeOf(load string) jobdir.Store { return jobdir.Below(s.job.store, FolderOf(load)) }

// endedFolder has an object per ended load, so that workers that look for work need only list it.
const endedFolder = "ended/"

func endedName(load string) string { return endedFolder + load + ".json" }

// Status returns the state of each load, in order.
func (s *Several) Status(ctx context.Context) (all []*LoadDone, err error) {
	names, err := s.job.store.List(ctx, endedFolder)
	if err != nil {
		return nil, err
	}
	for i := range s.Loads.Loads {
		l := &s.Loads.Loads[i]
		d := s.ended[l.Name]
		if _, there := slices.BinarySearch(names, endedName(l.Name)); there && d == nil {
			if d, err = s.readEnd(ctx, l.Name); err != nil {
				return nil, err
			}
			if d.State == LoadFinished { // stopped loads may be continued
				s.ended[l.Name] = d
			}
		}
		if d == nil {
			d = &LoadDone{Name: l.Name, State: LoadOpen}
		}
		all = append(all, d)
	}
	for i := 0; i < len(all); i++ { // finds successors of unsuccessful loads, which may precede them in the list
		d, l := all[i], &s.Loads.Loads[i]
		if d.over() {
			continue
		}
		for _, name := range l.After {
			if of := s.at(all, name); of.over() && !of.well() {
				d.State, d.ExitCode, d.Why = LoadNotRun, of.ExitCode, "load "+name+" did not succeed"
				i = -1
				break
			}
		}
	}
	return all, nil
}

func (s *Several) readEnd(ctx context.Context, load string) (*LoadDone, error) {
	text, err := s.job.store.Get(ctx, endedName(load))
	d := new(LoadDone)
	if err == nil {
		err = json.Unmarshal(text, d)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s of %s: %w", endedName(load), s.job.store, err)
	}
	return d, nil
}

// noteEnd records the end of a load that this process worked on, if it has ended.
func (s *Several) noteEnd(ctx context.Context, load string) error {
	store := s.storeOf(load)
	p, err := ReadPlan(ctx, store)
	if err != nil {
		return err
	}
	d := &LoadDone{Name: load}
	sum, err := ReadSummary(ctx, store, p)
	if err != nil {
		return err
	}
	if sum != nil {
		d.State, d.ExitCode, d.SummaryCounts, d.Rejected = LoadFinished, sum.ExitCode, sum.SummaryCounts, sum.Rejected
		return putJSON(ctx, s.job.store.Put, endedName(load), d)
	}
	var why *StoppedError
	if err := (&Job{store: store}).stopped(ctx); !errors.As(err, &why) {
		return err
	}
	d.State, d.ExitCode, d.Why = LoadStopped, why.Exit(), input.RedactText(client.OneLine(why.Why))
	return putJSON(ctx, s.job.store.Put, endedName(load), d)
}

// summary returns how the job ended, or nil if it has not.
func (s *Several) summary(ctx context.Context) (*LoadsSummary, error) {
	done := new(LoadsSummary)
	if there, err := read(ctx, s.job.store, summaryName, done); !there || err != nil {
		return nil, err
	}
	if done.Plan != s.Loads.ID {
		return nil, progress.Unfitf("%s of %s belongs to another job", summaryName, s.job.store)
	}
	return done, nil
}

// finish stores how the job ended, unless another process was faster.
func (s *Several) finish(ctx context.Context, all []*LoadDone) (*LoadsSummary, error) {
	done := &LoadsSummary{Version: planVersion, Plan: s.Loads.ID, By: s.job.o.Owner, Ended: time.Now().UTC(), Here: true}
	var codes []int
	for _, d := range all {
		codes = append(codes, d.ExitCode)
		done.Loads = append(done.Loads, *d)
	}
	done.ExitCode = exitcode.First(codes...)
	err := putJSON(ctx, s.job.store.PutAbsent, summaryName, done)
	if errors.Is(err, jobdir.ErrExists) {
		return s.summary(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("store %s in %s: %w", summaryName, s.job.store, err)
	}
	return done, nil
}
