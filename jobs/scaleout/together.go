package scaleout

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/lanes"
)

// Shards are ranges of keys, so that a process which writes one after the other leaves most of its partitions idle meanwhile. It writes as many
// at a time as there are for each process.

// atATime is how many shards a process writes at a time.
func (p *Plan) atATime() int {
	workers := max(p.Workers, 1)
	return max(1, min(shardsEach, (len(p.Shards)+workers-1)/workers))
}

// atATimeAfter is how many more a process writes of processes that are gone: what it takes over does not wait for the end of its own.
func (p *Plan) atATimeAfter() int { return (p.atATime() + 1) / 2 }

// mostWatched is up to how many open shards a process watches for those of processes that are gone. Where there are more, shards end all the time,
// and who ended one finds them.
const mostWatched = 64

// DiskBytes is about how much disk a worker needs at most for what does not fit in its memory: the shards that it writes at a time, once as it
// sorts them and once as they wait for their partitions, and what inputs and a run folder take.
func (p *Plan) DiskBytes() int64 {
	heaviest := 0.0 // share of the rows
	for _, s := range p.Shards {
		heaviest = max(heaviest, s.Weight)
	}
	return 1<<30 + 2*int64(float64(p.atATime()+p.atATimeAfter())*heaviest*float64(p.Bytes))
}

// meter divides the CPU seconds of a process over the tasks that it does at the same time: each gets what was taken since another one ended.
type meter struct {
	mu   sync.Mutex
	last float64
}

func newMeter() *meter {
	m := new(meter)
	m.take()
	return m
}

func (m *meter) take() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, _ := pipeline.Resources()
	since := now - m.last
	m.last = now
	return since
}

// beside is the job as another part of the process sees it that writes shards at the same time, with an equal share of memory.
func (j *Job) beside(drain context.Context, part, parts int) (*Job, error) {
	o := j.o
	o.Drain = drain
	o.Load.Watch.Monitor = nil // which shows one load
	b, err := newJob(j.store, j.Plan, o)
	if err != nil {
		return nil, err
	}
	b.slot, b.cpu, b.part, b.parts, b.together, b.known = j.slot, j.cpu, part, parts, j.together, j.known
	b.worked = j.worked
	b.o.divide(parts)
	return b, nil
}

// besides starts what writes shards beside this job, which itself works on. When one of them fails, what the process does otherwise ends too,
// as after an error of its own. Stop ends all and waits for them: what they have not done is open again. It returns why the first has failed.
func (j *Job) besides(ctx context.Context) (stop func() error, err error) {
	parts := j.Plan.atATime()
	all := parts + j.Plan.atATimeAfter()
	whole := j.o.Drain
	drain, end := context.WithCancelCause(whole)
	var group errgroup.Group
	stop = func() error {
		end(nil)
		err := group.Wait()
		j.mu.Lock()
		defer j.mu.Unlock()
		j.o.Drain = whole
		return err
	}
	for part := 1; part < all; part++ {
		b, err := j.beside(drain, part, all)
		if err != nil {
			return stop, err
		}
		write := b.writeOpen
		if part >= parts {
			write = b.takeOver
		}
		group.Go(func() error {
			err := write(ctx)
			if drain.Err() != nil && errors.Is(err, context.Cause(drain)) {
				err = nil // it was ended
			}
			if err = errors.Join(err, b.Close()); err != nil {
				end(err)
			}
			return err
		})
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.o.Drain = drain
	j.parts = all
	j.o.divide(all)
	return stop, nil
}

// divide leaves a part of what the process may take.
func (o *Options) divide(parts int) {
	o.Load.Limits.Memory /= int64(parts)
}

// together are the ceilings of a process and its requests in flight, which the shards that it writes share: what one does not use the others do.
func (p *Plan) together(requests int) *lanes.SharedLimits {
	var r lanes.Rates
	if b := p.Budget; b != nil {
		r = lanes.Rates{MaxWCU: b.MaxWCU, MaxRows: b.MaxRows, MaxBytes: b.MaxBytes}
	}
	return lanes.NewSharedLimits(r, cmp.Or(requests, pipeline.DefaultConcurrency))
}

// atWork is how many parts of the process write at a time.
func (j *Job) atWork() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.parts
}

// writeOpen writes shards until all are written.
func (j *Job) writeOpen(ctx context.Context) error {
	return j.untilWritten(ctx, func(write stage, open []int) (worked bool, err error) { return j.takeOne(ctx, write, open) })
}

// takeOver writes shards whose processes are gone, until all are written.
func (j *Job) takeOver(ctx context.Context) error {
	return j.untilWritten(ctx, func(write stage, open []int) (worked bool, err error) {
		if len(open) > mostWatched {
			return false, nil
		}
		for _, i := range open {
			seen, err := j.seenLease(ctx, write.folder(i))
			if err != nil {
				return false, err
			}
			if seen == nil || !seen.Over(j.o.Clock) {
				continue
			}
			if worked, err = j.takeOne(ctx, write, []int{i}); worked || err != nil {
				return worked, err
			}
		}
		return false, nil
	})
}

func (j *Job) untilWritten(ctx context.Context, take func(write stage, open []int) (worked bool, err error)) error {
	write := j.stages()[1]
	return j.persist(ctx, func() (worked, over bool, err error) {
		open, err := j.open(ctx, write)
		if err != nil || len(open) == 0 {
			return false, true, err
		}
		worked, err = take(write, open)
		return worked, false, err
	})
}
