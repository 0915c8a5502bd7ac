package job

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/pipeline/rundir"
)

type Outcome struct {
	ExitCode int
	Error    string // "" if there is none
	Counts
}

// Runner runs a load and returns when it has ended. It is called from several goroutines.
type Runner func(ctx context.Context, s *State) Outcome

// Run runs the unfinished loads of a job, each after its predecessors, up to Parallel at the same time. When ctx ends,
// it starts no more. Each change of a state is recorded in the folder and passed to told, if that is not nil.
func (r *Record) Run(ctx context.Context, folder string, run Runner, told func(*State)) error {
	j := &running{record: r, folder: folder, run: run, told: told, ended: make(chan ended)}
	return j.all(ctx)
}

type running struct {
	record *Record
	folder string
	run    Runner
	told   func(*State)
	ended  chan ended
	group  sync.WaitGroup
	now    int // number of running loads
	// changes is open once the whole record has been written.
	changes *rundir.Journal
}

type ended struct {
	state   *State
	outcome Outcome
}

func (j *running) all(ctx context.Context) (err error) {
	r := j.record
	for _, s := range r.Loads {
		if s.State != Done {
			s.State, s.ExitCode, s.Error = Waiting, 0, ""
		}
	}
	r.State, r.Ended = Running, time.Time{}
	for over := (*State)(nil); ; {
		var next []*State
		if err == nil && ctx.Err() == nil {
			next = j.ready()
		}
		if e := j.keep(append(next, over)); e != nil { // the end of a load is recorded with the starts that it allows
			err = cmp.Or(err, e)
			for _, s := range next {
				s.State = Waiting
			}
			next = nil
		}
		j.tell(over)
		for _, s := range next {
			if j.tell(s); s.State == Running {
				j.begin(ctx, s)
			}
		}
		if j.now == 0 {
			break
		}
		over = j.end(<-j.ended)
	}
	j.group.Wait()
	r.conclude()
	return cmp.Or(err, j.keepAll())
}

// ready sets the states of waiting loads that can begin now or can never begin, and returns these loads.
func (j *running) ready() (next []*State) {
	now, byName := j.now, map[string]*State{}
	for _, s := range j.record.Loads {
		byName[s.Name] = s
	}
	for again := true; again; { // a held load holds its successors
		again = false
		for _, s := range j.record.Loads {
			if s.State != Waiting {
				continue
			}
			ready := true
			for _, name := range s.After {
				switch before := byName[name]; before.State {
				case Done:
				case Failed, Stopped, Held:
					s.State, s.Error = Held, fmt.Sprintf("load %s is %s", name, before.State)
					next, again = append(next, s), true
				default:
					ready = false
				}
				if s.State == Held {
					break
				}
			}
			begins := []*State{s}
			if s.ReadsStdin() { // all readers begin together
				begins = slices.DeleteFunc(j.record.StdinReaders(), func(s *State) bool { return s.State != Waiting })
			}
			if s.State == Waiting && ready && now+len(begins) <= max(1, j.record.Parallel) {
				for _, s := range begins {
					s.State = Running
					if at := time.Now().UTC(); s.Started.IsZero() {
						s.Started = at
					} else {
						s.Resumed = at
					}
					now++
					next = append(next, s)
				}
			}
		}
	}
	return next
}

// StdinReaders returns the loads that read standard input, which begin together.
func (r *Record) StdinReaders() (all []*State) {
	for _, s := range r.Loads {
		if s.ReadsStdin() {
			all = append(all, s)
		}
	}
	return all
}

// begin starts a load that the record already shows as running.
func (j *running) begin(ctx context.Context, s *State) {
	j.now++
	copied := *s
	j.group.Go(func() { j.ended <- ended{s, j.run(ctx, &copied)} })
}

func (j *running) end(e ended) *State {
	s, o := e.state, e.outcome
	j.now--
	s.ExitCode, s.Error, s.Counts, s.Ended = o.ExitCode, o.Error, o.Counts, time.Now().UTC()
	switch {
	case o.ExitCode == exitcode.OK, o.ExitCode == exitcode.Rejects: // done; its successors run
		s.State = Done
	case o.ExitCode >= 128:
		s.State = Stopped
	default:
		s.State = Failed
	}
	return s
}

func (j *running) tell(s *State) {
	if j.told != nil && s != nil {
		j.told(s)
	}
}

func (r *Record) conclude() {
	var all []int
	r.Counts, r.Ended, r.State = Counts{}, time.Now().UTC(), Done
	for _, s := range r.Loads {
		r.Add(s.Counts)
		if s.State == Done || s.State == Failed || s.State == Stopped {
			all = append(all, s.ExitCode)
		}
		switch {
		case s.State == Stopped || s.State == Waiting:
			r.State = Stopped
		case s.State != Done && r.State == Done:
			r.State = Failed
		}
	}
	if r.ExitCode = exitcode.First(all...); r.State != Done &&
		(r.ExitCode == exitcode.OK || r.ExitCode == exitcode.Rejects) {
		r.ExitCode = exitcode.Failed // 3 means that everything loadable was loaded
	}
}

// DoneOf returns the number of finished loads and the number of all loads.
func (r *Record) DoneOf() (done, all int) {
	for _, s := range r.Loads {
		if s.State == Done {
			done++
		}
	}
	return done, len(r.Loads)
}

// Arguments returns the arguments of the load's command: its name, its flags and, after --, its inputs and, for a copy,
// its table.
func (s *Single) Arguments() []string {
	args := []string{s.Command}
	plain := slices.Clone(s.From)
	for _, t := range s.Settings {
		if t.Key == keyTable && s.Command == Copy {
			continue
		}
		for _, v := range t.Values {
			args = append(args, "--"+t.Key+"="+v)
		}
	}
	if s.Command == Copy {
		plain = append(plain, s.Table())
	} else if s.Value(keyTable) == "" {
		args = append(args, "--"+keyTable+"="+s.Name)
	}
	if len(plain) == 0 {
		return args
	}
	return append(append(args, "--"), plain...)
}
