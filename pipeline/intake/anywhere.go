package intake

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"tsimport/internal/table"
	"tsimport/pipeline/plan"
	"tsimport/reader/source"
)

// Without an order the input is read for the lanes that need rows most. A first pass finds where the splits are, which for text with
// quotes takes the whole text, counts their records, so that a rejected record can be named, and notes the key that each
// begins with. Then the neediest lane is fed: with any split that begins in it, at random, so that keys are used evenly
// and a partition that is split later has halves of the same size. A sorted file so spreads over all lanes at once; of sorted text the
// first pass finds sections instead of splits, which are read in the order of a schedule that waits for nothing.

// errUnreadable ends reading after it was handed out why.
var errUnreadable = errors.New("the input cannot be read further")

// random returns a source that can be read anywhere, as Plan says of it.
func random(s *plan.Source) source.Random { return s.Source.(source.Random) }

// readAnywhere reads sources whose splits can be read in any order. It reports whether all was passed on that is to be.
func (f *Flow) readAnywhere(ctx context.Context, sources []*plan.Source) (complete bool, err error) {
	regions, sorted := f.findSorted(ctx, sources)
	var failed error
	if !sorted {
		regions, failed = f.find(ctx, sources)
	}
	if ctx.Err() != nil {
		return false, nil
	}
	regions = f.resumed.open(regions)
	group, groupCtx := errgroup.WithContext(ctx)
	work := make(chan *region)
	sched := &scheduler{flow: f, inTurn: sorted, left: map[*plan.Source]*atomic.Int64{}}
	for _, g := range regions {
		if sched.left[g.source] == nil {
			sched.left[g.source] = new(atomic.Int64)
		}
		sched.left[g.source].Add(1)
	}
	group.Go(func() error { return sched.run(groupCtx, regions, work) })
	f.parsers(group, func(p *parser) error { return sched.read(groupCtx, p, work) })
	err = group.Wait()
	if ctx.Err() != nil {
		return false, nil
	}
	if err == nil && failed != nil {
		// What comes before a place that cannot be read is loaded.
		return send(ctx, f.splits, Handed{Err: failed}), errUnreadable
	}
	return true, err
}

// scheduler feeds the neediest lane.
type scheduler struct {
	flow   *Flow
	todo   [][]*region // by the lane they begin in
	inTurn bool        // the regions of a lane are read in their order, else at random
	demand *demand     // that todo was made for
	left   map[*plan.Source]*atomic.Int64

	rows, strays atomic.Int64 // rows that were read, and those of them in another lane than their region began in
}

// run hands out regions until there are no more.
func (f *scheduler) run(ctx context.Context, regions []*region, work chan<- *region) error {
	opened := map[*plan.Source]bool{}
	for left := len(regions); left > 0; {
		if d := f.flow.demand.Load(); d != f.demand {
			regions = f.untaken(regions)
			f.sort(d, regions)
		}
		lane, ok := f.neediest()
		if !ok {
			select {
			case <-f.flow.fed:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		g := f.take(lane)
		left--
		if !opened[g.source] {
			opened[g.source] = true
			if err := random(g.source).Reopen(); err != nil {
				return f.fail(ctx, err)
			}
		}
		g.lane, g.coming = lane, f.demand
		f.demand.coming[lane].Add(g.rows())
		if !send(ctx, work, g) {
			return nil
		}
	}
	close(work)
	return nil
}

// sort puts the regions to their lanes.
func (f *scheduler) sort(d *demand, regions []*region) {
	f.demand = d
	f.todo = make([][]*region, d.partitions.Len())
	for _, g := range regions {
		lane := 0
		if g.key != nil {
			lane = d.partitions.Find(g.key)
		}
		f.todo[lane] = append(f.todo[lane], g)
	}
}

// untaken returns the regions that are still to be handed out.
func (f *scheduler) untaken(all []*region) []*region {
	if f.demand == nil {
		return all
	}
	var rest []*region
	for _, g := range f.todo {
		rest = append(rest, g...)
	}
	return rest
}

// mixedShare is the share of rows in other lanes than their regions began in from which on a lane without regions of its
// own is fed with those of others.
const mixedShare = 0.25

// neediest returns the lane to feed next.
func (f *scheduler) neediest() (lane int, ok bool) {
	lane, longest := -1, -1
	anyNeedy := false
	for i := range f.todo {
		// A gap is fed with what begins in it, or its tables would never be known, and with nothing else.
		anyNeedy = anyNeedy || !f.demand.partitions.Gap(i) && f.demand.rows(i) < f.demand.enough
		if len(f.todo[i]) == 0 {
			continue
		}
		if longest < 0 || len(f.todo[i]) > len(f.todo[longest]) {
			longest = i
		}
		if f.demand.rows(i) < f.demand.enough && (lane < 0 || f.demand.rows(i) < f.demand.rows(lane)) {
			lane = i
		}
	}
	if lane >= 0 {
		return lane, true
	}
	if anyNeedy && float64(f.strays.Load()) > mixedShare*float64(f.rows.Load()) {
		return longest, true
	}
	return 0, false
}

// take takes a region of the lane.
func (f *scheduler) take(lane int) *region {
	todo := f.todo[lane]
	if f.inTurn {
		g := todo[0]
		todo[0] = nil
		f.todo[lane] = todo[1:]
		return g
	}
	i, last := rand.IntN(len(todo)), len(todo)-1
	g := todo[i]
	todo[i] = todo[last]
	todo[last] = nil
	f.todo[lane] = todo[:last]
	return g
}

// read is a parser that reads regions.
func (f *scheduler) read(ctx context.Context, p *parser, work <-chan *region) error {
	for {
		g, ok := receive(ctx, work)
		if !ok {
			return nil
		}
		if err := f.readRegion(ctx, p, g); err != nil {
			return f.fail(ctx, err)
		}
		if f.left[g.source].Add(-1) == 0 {
			if err := random(g.source).Finished(); err != nil {
				return f.fail(ctx, err)
			}
		}
	}
}

func (f *scheduler) readRegion(ctx context.Context, p *parser, g *region) error {
	record := g.first
	if g.section != nil {
		return f.readSection(ctx, p, g)
	}
	for i, place := range g.splits {
		if n := g.records[i]; f.flow.resumed.final(g.source, record, n) {
			record += n
			g.coming.coming[g.lane].Add(-n)
			continue
		}
		split, err := random(g.source).Load(place)
		if err != nil {
			return err
		}
		if record, err = f.readSplit(ctx, p, g, split, record); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// readSection reads a region that is a section.
func (f *scheduler) readSection(ctx context.Context, p *parser, g *region) error {
	if f.flow.resumed.final(g.source, g.first, g.section.Records) {
		g.coming.coming[g.lane].Add(-g.section.Records)
		return nil
	}
	j := &job{source: g.source, section: g.section}
	splits, err := p.loadSection(ctx, j)
	record := g.first
	for i := 0; i < len(splits) && err == nil && ctx.Err() == nil; i++ {
		record, err = f.readSplit(ctx, p, g, splits[i], record)
	}
	if err != nil {
		return changed(j, err)
	}
	return nil
}

// readSplit hands over the records of a split of a region. The split's first record is given, and the one after its last returned.
func (f *scheduler) readSplit(ctx context.Context, p *parser, g *region, split source.Split, record int64) (int64, error) {
	line := g.line
	err := p.parts(ctx, g.source, split, nil, func(made *Parsed, _ bool) bool {
		made.Split.FirstRecord, made.Split.FirstLine = record, line
		made.Split.Position = table.Position{Source: g.source.Ordinal, Record: record}
		record, line = record+int64(made.Records), line+int64(made.lines)
		made.coming, made.lane = g.coming, g.lane
		f.count(made)
		f.flow.resumed.dropFinal(made)
		return send(ctx, f.flow.splits, Handed{Parsed: made})
	})
	return record, err
}

// count counts how well the regions' first keys tell their lanes.
func (f *scheduler) count(made *Parsed) {
	for _, b := range made.Blocks {
		f.rows.Add(int64(len(b.Block.Rows)))
		if b.Lane != made.lane {
			f.strays.Add(int64(len(b.Block.Rows)))
		}
	}
}

// fail hands out why the input cannot be read further, and ends reading.
func (f *scheduler) fail(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		send(ctx, f.flow.splits, Handed{Err: err})
	}
	return errUnreadable
}
