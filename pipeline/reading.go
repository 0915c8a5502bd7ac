package pipeline

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"tsimport/plan"
	"tsimport/table"
)

// reading is the part of a load from the files to the dispatcher.
type reading struct {
	cfg     *Config
	plan    *plan.Plan
	survey  *surveyor
	blocks  chan handed
	hunger  atomic.Pointer[hunger]
	fed     chan struct{} // one: a lane may be hungry
	keyType table.Type
}

func newReading(cfg *Config, planned *plan.Plan, survey *surveyor) *reading {
	r := &reading{cfg: cfg, plan: planned, survey: survey, blocks: make(chan handed), fed: make(chan struct{}, 1), keyType: planned.Schema.Key[0].Type}
	r.hunger.Store(newHunger(survey.current.Load()))
	return r
}

// run reads everything and closes blocks when all was passed on. Without an order, what can be read anywhere is read where
// lanes are hungry, and the rest, streams and compressed files, behind it as it comes.
func (r *reading) run(ctx context.Context) error {
	ordered := r.plan.Sources
	if r.cfg.Write.Order == plan.OrderNone && r.cfg.Limits.Records == 0 {
		var anywhere []*plan.Source
		ordered = nil
		for _, s := range r.plan.Sources {
			if s.Anywhere() {
				anywhere = append(anywhere, s)
			} else {
				ordered = append(ordered, s)
			}
		}
		if len(anywhere) > 0 {
			complete, err := r.readAnywhere(ctx, anywhere)
			if complete && errors.Is(err, errUnreadable) {
				close(r.blocks)
				return nil
			}
			if !complete || err != nil {
				return err
			}
		}
	}
	complete, err := r.readInOrder(ctx, ordered)
	if err == nil && complete {
		close(r.blocks)
	}
	return err
}

// readInOrder reads the sources one after the other.
func (r *reading) readInOrder(ctx context.Context, sources []*plan.Source) (complete bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	order := r.stages(ctx, group, sources)
	for range r.cfg.Read.Workers() {
		group.Go(func() error { return newParser(r.plan, r.cfg, r.survey).run(ctx, order.work) })
	}
	group.Go(func() error {
		defer cancel() // after an error the other stages have more to do, which nobody wants
		complete = handOver(ctx, order.splits, r.blocks)
		return nil
	})
	err = group.Wait()
	return complete, err
}

// stream is what comes out of the stages that cut sources into splits.
type stream struct {
	work   chan *job // pieces to prepare and splits to parse, for the parsers
	splits chan *job // splits in source order
}

// stages starts the stages that cut the sources into splits.
func (r *reading) stages(ctx context.Context, group *errgroup.Group, sources []*plan.Source) stream {
	ahead := plan.QueueAhead * r.cfg.Read.Workers()
	s := stream{work: make(chan *job), splits: make(chan *job, ahead)}
	pieces := make(chan *job, ahead)
	group.Go(func() error { return feed(ctx, sources, s.work, pieces) })
	group.Go(func() error { return stitch(ctx, pieces, s.work, s.splits) })
	return s
}
