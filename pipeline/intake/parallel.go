package intake

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/pipeline/plan"
)

// maxStreams limits how many sources are read concurrently.
const maxStreams = 16

// readInParallel reads several sources concurrently, each in order. Their records have no keys in common.
func (f *Flow) readInParallel(ctx context.Context, sources []*plan.Source) (complete bool, err error) {
	sources = f.seek(sources)
	streams := f.streams(sources)
	if streams == 0 {
		return true, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	work := make(chan *job)
	var taken, completed, left atomic.Int64
	left.Store(int64(streams))
	var failed atomic.Bool
	each := func(yield func(*plan.Source) bool) {
		for i := taken.Add(1) - 1; i < int64(len(sources)); i = taken.Add(1) - 1 {
			if !yield(sources[i]) {
				return
			}
		}
	}
	done := func() {
		if left.Add(-1) == 0 {
			close(work)
		}
	}
	for range streams {
		order := f.stagesOf(ctx, group, each, work, done, f.plan.Shares().ReadAhead/int64(streams))
		group.Go(func() error {
			all, fails := f.handOver(ctx, order.splits, order.budget, nil)
			if all {
				completed.Add(1)
			}
			if fails {
				failed.Store(all)
				cancel() // stop the other streams
			}
			return nil
		})
	}
	f.parsers(group, func(p *parser) error { return p.run(ctx, work, p.parseInParts) })
	err = group.Wait()
	return failed.Load() || completed.Load() == int64(streams), err
}

// streams returns the number of sources to read concurrently. Each needs memory for at least two pieces and their rows.
func (f *Flow) streams(sources []*plan.Source) int {
	shares := f.plan.Shares()
	piece := int64(shares.SplitLimit(f.plan.Request.Read.Workers()))
	most := int64(0)
	for _, s := range sources {
		most = max(most, s.About().Pieces)
	}
	return min(len(sources), max(1, int(min(maxStreams, shares.ReadAhead/2/(piece+most)))))
}
