package scaleout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/pipeline"
)

// A process without a task looks for one every lookEvery. It waits longer if looking is slow, so that it looks for at
// most a fifth of the time: hundreds of processes reading hundreds of leases overload a store. mostPause limits a wait.
const (
	lookEvery = 2 * time.Second
	mostPause = 15 * time.Second
)

// Work takes tasks until the job is done, as do any number of other processes. It takes over the tasks of lost
// processes. The summary covers the whole job. A permanent refusal by the service, or a stop, ends all processes.
func (j *Job) Work(ctx context.Context) (s *Summary, err error) {
	defer func() { j.stopRefused(ctx, err) }()
	stop := func() error { return nil }
	defer func() {
		switch failed := stop(); {
		case failed == nil:
		case errors.Is(err, failed), errors.Is(failed, err): // one error caused the other, or both have the same cause
			err = failed
		case s != nil:
			j.o.Say.Warn("the load is done, although a part of this process failed: %v", failed)
		default:
			err = fmt.Errorf("%w; %w", err, failed)
		}
	}()
	if err := j.forgetRefusal(ctx); err != nil {
		return nil, err
	}
	reading := true
	err = j.persist(ctx, func() (worked, over bool, err error) {
		if reading {
			first := j.stages()[0]
			open, err := j.open(ctx, first)
			if err != nil {
				return false, false, err
			}
			if reading = len(open) > 0; reading {
				worked, err = j.takeOne(ctx, first, open)
				return worked, false, err
			}
			if !j.Plan.Direct {
				stop = j.startParts(ctx) // before the first shard, which may take a long time
			}
		}
		s, worked, err = j.workOnce(ctx)
		return worked, s != nil, err
	})
	return s, err
}

// idleSteps is the number of idle steps after which a process reports that it is idle.
const idleSteps = 5

// persist repeats a step until over is set. It pauses if nothing could be done and, within --retry-for, after failures.
func (j *Job) persist(ctx context.Context, step func() (worked, over bool, err error)) error {
	most := cmp.Or(j.o.Load.Lanes.RetryFor, pipeline.DefaultRetryFor)
	var failing time.Time // start of the failures; zero if there are none
	for idle := 1; ; idle++ {
		worked, over, began := false, false, time.Now()
		err := j.rest(ctx)
		if err == nil {
			worked, over, err = step()
		}
		switch {
		case err == nil && over:
			return nil
		case err == nil:
			failing = time.Time{}
		case !errors.As(err, new(*jobdir.FaultError)) || !failing.IsZero() && time.Since(failing) >= most:
			return err
		case failing.IsZero():
			failing = time.Now()
			j.o.Say.Warn("the job directory cannot be used; retrying for %v: %v", most, err)
		}
		if worked && err == nil {
			idle = 0
			if j.part > 0 {
				select {
				case j.worked <- struct{}{}:
				default: // already reported
				}
			}
			continue
		}
		if idle == idleSteps && j.part == 0 {
			j.o.Say.Line("waiting for tasks of other workers; one that is silent for %v is taken over", jobdir.Term)
		}
		if err := j.pause(ctx, max(lookEvery, min(4*time.Since(began), mostPause))); err != nil {
			return err
		}
	}
}

// rest returns an error if no further task may begin.
func (j *Job) rest(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if j.o.Drain.Err() != nil {
		return context.Cause(j.o.Drain)
	}
	return j.stopped(ctx)
}

// stage is a kind of task. All tasks of a stage must be done before those of the next.
type stage struct {
	tasks  int
	result func(i int) string // name of the result
	folder func(i int) string // of the lease
	do     func(ctx context.Context, i int) error
	sends  bool // the task sends rows: it first takes its share of the ceilings, then its lease itself
}

func (j *Job) stages() []stage {
	all := []stage{
		{len(j.Plan.Splits), splitName, splitFolder, func(ctx context.Context, i int) error {
			return j.told(ctx, stageRead, i, j.watched(ctx, j.isRead(i),
				func(ctx context.Context) error { return j.readSplit(ctx, i) }))
		}, j.Plan.Direct},
	}
	if j.Plan.Direct {
		return all
	}
	all = append(all, stage{len(j.Plan.Shards), shardName, shardFolder, func(ctx context.Context, i int) error {
		return j.told(ctx, stageWrite, i, j.watched(ctx, nil,
			func(ctx context.Context) error { return j.writeShard(ctx, i) }))
	}, true})
	if j.Plan.Verify {
		all = append(all, stage{len(j.Plan.Shards), compareName, compareFolder, func(ctx context.Context, i int) error {
			return j.told(ctx, stageVerify, i, j.watched(ctx, nil, func(ctx context.Context) error { return j.compare(ctx, i) }))
		}, false})
	}
	return all
}

// workOnce does one open task of the stages after reading, if there is one. If the summary is not nil, the job is done.
func (j *Job) workOnce(ctx context.Context) (s *Summary, worked bool, err error) {
	for _, st := range j.stages()[1:] {
		open, err := j.open(ctx, st)
		if err != nil {
			return nil, false, err
		}
		if len(open) == 0 {
			continue
		}
		worked, err = j.takeOne(ctx, st, open)
		return nil, worked, err
	}
	if s, err = ReadSummary(ctx, j.store, j.Plan); s != nil || err != nil {
		return s, false, err
	}
	worked, err = j.leased(ctx, "finish", func() error {
		s, err = j.finish(ctx)
		return j.told(ctx, stageFinish, 0, err)
	})
	return s, worked, err
}

// look is the last listing of the open tasks of a stage.
type look struct {
	open []int
	at   time.Time
	took time.Duration
}

const (
	looksApart  = 20 // a listing of all results is used for this many times the time that it took
	askedBefore = 8  // after so many of its tasks, checked singly, have turned out to be done, results are listed again
)

// remembered returns the tasks that were open at the last listing, if that is recent and the first is still open.
func (j *Job) remembered(ctx context.Context, st stage) []int {
	l := j.looks[st.result(0)]
	if l == nil || time.Since(l.at) >= looksApart*l.took {
		return nil
	}
	for n := 0; n < askedBefore && len(l.open) > 0; n++ {
		first := l.open[0]
		if _, err := j.store.Get(ctx, st.result(first)); errors.Is(err, fs.ErrNotExist) {
			open := slices.Clone(l.open)
			l.open = append(l.open[1:], first) // last, because another process may hold it
			return open
		}
		l.open = l.open[1:]
	}
	return nil
}

// open returns the tasks of a stage that have no result, or had none recently. They are shuffled, so that processes
// that begin at the same time try different ones. If there are none, all tasks are done.
func (j *Job) open(ctx context.Context, st stage) (open []int, err error) {
	if open := j.remembered(ctx, st); len(open) > 0 {
		return open, nil
	}
	first, began := st.result(0), time.Now()
	names, err := j.store.List(ctx, first[:strings.IndexByte(first, '/')+1])
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
	}
	for i := range st.tasks {
		if !there[st.result(i)] {
			open = append(open, i)
		}
	}
	rand.Shuffle(len(open), func(a, b int) { open[a], open[b] = open[b], open[a] })
	j.looks[first] = &look{open: slices.Clone(open), at: time.Now(), took: time.Since(began)}
	return open, nil
}

// takeOne does one of the open tasks that no other process holds.
func (j *Job) takeOne(ctx context.Context, st stage, open []int) (worked bool, err error) {
	for _, i := range open {
		if !st.sends {
			worked, err = j.leased(ctx, st.folder(i), func() error { return st.do(ctx, i) })
		} else {
			err = st.do(ctx, i)
			worked = err == nil
			if errors.As(err, new(*jobdir.HeldError)) {
				err = nil
			}
			if errors.Is(err, jobdir.ErrLost) || errors.Is(err, jobdir.ErrLate) { // this process was paused
				j.o.Say.Warn("%v; this process continues with other tasks", err)
				return true, nil
			}
		}
		if errors.Is(err, errNoSlot) { // watch all leases now: a lost process may hold the share and leases
			for _, i := range open {
				if _, err := j.seenLease(ctx, st.folder(i)); err != nil {
					return false, err
				}
			}
			return false, nil
		}
		if err != nil {
			return worked, err
		}
		if worked {
			return true, nil
		}
	}
	return false, nil
}

// leased does a task under a lease, if no other process holds it.
func (j *Job) leased(ctx context.Context, folder string, do func() error) (worked bool, err error) {
	l, err := j.lease(ctx, folder)
	if errors.As(err, new(*jobdir.HeldError)) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer j.giveBack(l)
	return true, do()
}

// giveBack releases a lease. If that fails, the next holder must wait until it expires.
func (j *Job) giveBack(l *jobdir.Lease) {
	if err := l.Release(); err != nil {
		j.o.Say.Warn("%v; it expires in %v", err, jobdir.Term)
	}
}
