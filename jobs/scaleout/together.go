package scaleout

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/lanes"
)

// A process writes several shards at the same time, because the key ranges of one would leave partitions idle.

// atATime returns the number of shards that a process writes concurrently.
func (p *Plan) atATime() int {
	workers := max(p.Workers, 1)
	return max(1, min(shardsEach, (len(p.Shards)+workers-1)/workers))
}

// atATimeAfter returns the number of shards that it writes for lost processes in addition to its own.
func (p *Plan) atATimeAfter() int { return (p.atATime() + 1) / 2 }

// mostWatched limits the open shards that a process watches for lost writers. With more, some shard ends often.
const mostWatched = 64

// DiskBytes estimates a worker's disk space for data beyond its memory: sorted and waiting shards, inputs, run folder.
func (p *Plan) DiskBytes() int64 {
	heaviest := 0.0 // largest share of the rows
	for _, s := range p.Shards {
		heaviest = max(heaviest, s.Weight)
	}
	return 1<<30 + 2*int64(float64(p.atATime()+p.atATimeAfter())*heaviest*float64(p.Bytes))
}

// meter divides the CPU seconds of a process among concurrent tasks. Each gets those since the previous one ended.
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

// newPart returns the job for a concurrent part of the process that writes shards with an equal share of memory.
func (j *Job) newPart(drain context.Context, part, parts int) *Job {
	o := j.o
	o.Drain = drain
	o.Load.Watch.Monitor = nil // a monitor shows a single load
	o.Load.Limits.Memory /= int64(parts)
	return &Job{Plan: j.Plan, store: j.store, o: o, shards: j.shards, known: j.known, slot: j.slot, cpu: j.cpu, part: part,
		together: j.together, seen: map[string]*jobdir.Seen{}, looks: map[string]*look{}, worked: j.worked}
}

// startParts starts parts that write shards concurrently. If one fails, the process stops. stop ends all parts, waits
// for them and returns the first failure; unfinished shards are open again.
func (j *Job) startParts(ctx context.Context) (stop func() error) {
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
		b := j.newPart(drain, part, all)
		take := b.takeOne
		if part >= parts {
			take = b.takeLost
		}
		group.Go(func() error {
			err := b.untilWritten(ctx, take)
			if drain.Err() != nil && errors.Is(err, context.Cause(drain)) {
				err = nil // the part was stopped on purpose
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
	j.o.Load.Limits.Memory /= int64(all)
	return stop
}

// together returns the ceilings and requests that a process's concurrent shards share.
func (p *Plan) together(requests int) *lanes.SharedLimits {
	var r lanes.Rates
	if b := p.Budget; b != nil {
		r = lanes.Rates{MaxWCU: b.MaxWCU, MaxRows: b.MaxRows, MaxBytes: b.MaxBytes}
	}
	return lanes.NewSharedLimits(r, cmp.Or(requests, pipeline.DefaultConcurrency))
}

// takeLost writes one of the open shards if its process is lost.
func (j *Job) takeLost(ctx context.Context, write stage, open []int) (worked bool, err error) {
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
}

// untilWritten calls take until all shards are written.
func (j *Job) untilWritten(ctx context.Context,
	take func(ctx context.Context, write stage, open []int) (worked bool, err error)) error {
	write := j.stages()[1]
	return j.persist(ctx, func() (worked, over bool, err error) {
		open, err := j.open(ctx, write)
		if err != nil || len(open) == 0 {
			return false, true, err
		}
		worked, err = take(ctx, write, open)
		return worked, false, err
	})
}
