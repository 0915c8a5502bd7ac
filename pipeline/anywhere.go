package pipeline

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"tsimport/partitioner"
	"tsimport/plan"
	"tsimport/reader"
	"tsimport/reader/record"
)

// Without an order the input is read where lanes are hungry. A first pass finds where the splits are, which for text with
// quotes takes the whole text, counts their records, so that a rejected record can be named, and notes the key that each
// begins with. Then the hungriest lane is fed: with any split that begins in it, at random, so that keys are used evenly
// and a partition that is split later has halves of the same size. A sorted file so spreads over all lanes at once.

// region is a part of a source that is read in one go: a split of text, a row group of Parquet.
type region struct {
	source  *plan.Source
	splits  []reader.Split // without data
	records []int64        // of each
	first   int64          // records of the source before it
	line    int64          // lines of the source before it
	key     []byte         // ordering key that it begins with; nil is unknown

	coming *hunger // which expects its rows for the lane
	lane   int
}

func (g *region) rows() (n int64) {
	for _, r := range g.records {
		n += r
	}
	return n
}

// hunger is what lanes have and what is on its way to them. It belongs to one partition map.
type hunger struct {
	partitions *partitioner.Map
	queued     []atomic.Int64 // rows, as the dispatcher last counted them
	coming     []atomic.Int64 // rows of regions that are read for the lane
	enough     int64          // rows that keep a lane busy
}

// Rows that keep the lanes busy while more are read: a lane's share of all, and at least some seconds' worth.
const (
	enoughRows    = 64 << 10
	enoughForLane = 4000
)

func newHunger(m *partitioner.Map) *hunger {
	return &hunger{
		partitions: m, queued: make([]atomic.Int64, m.Len()), coming: make([]atomic.Int64, m.Len()),
		enough: int64(max(enoughForLane, enoughRows/m.Len())),
	}
}

// of returns the rows that a lane has or will have.
func (h *hunger) of(lane int) int64 { return h.queued[lane].Load() + h.coming[lane].Load() }

// arrived notes that the rows of a split have come.
func (p *parsed) arrived() {
	if p.coming != nil {
		p.coming.coming[p.lane].Add(-int64(p.records))
	}
}

// tellHunger tells the readers what the lanes have.
func (d *dispatcher) tellHunger() {
	if d.cfg.Write.Order != plan.OrderNone || d.blocks == nil {
		return
	}
	h := d.hunger.Load()
	share := d.shares.Lanes / 2 / int64(len(d.lanes))
	hungry := false
	for i, l := range d.lanes {
		n := int64(l.queue.Ready())
		if l.queue.More() || n > 0 && l.queue.Bytes() >= share {
			n = max(n, h.enough)
		}
		h.queued[i].Store(n)
		hungry = hungry || n < h.enough
	}
	if hungry {
		select {
		case d.fed <- struct{}{}:
		default:
		}
	}
}

// errUnreadable ends reading after the dispatcher was told why.
var errUnreadable = errors.New("the input cannot be read further")

// readAnywhere reads sources whose splits can be read in any order. It reports whether all was passed on that is to be.
func (r *reading) readAnywhere(ctx context.Context, sources []*plan.Source) (complete bool, err error) {
	regions, failed := r.find(ctx, sources)
	if ctx.Err() != nil {
		return false, nil
	}
	group, groupCtx := errgroup.WithContext(ctx)
	work := make(chan *region)
	f := &feeder{reading: r, left: map[*plan.Source]*atomic.Int64{}}
	for _, g := range regions {
		if f.left[g.source] == nil {
			f.left[g.source] = new(atomic.Int64)
		}
		f.left[g.source].Add(1)
	}
	group.Go(func() error { return f.run(groupCtx, regions, work) })
	for range r.cfg.Read.Workers() {
		group.Go(func() error {
			p := newParser(r.plan, r.cfg, r.survey)
			defer p.close()
			return f.read(groupCtx, p, work)
		})
	}
	err = group.Wait()
	if ctx.Err() != nil {
		return false, nil
	}
	if err == nil && failed != nil {
		// What comes before a place that cannot be read is loaded.
		return send(ctx, r.blocks, handed{err: failed}), errUnreadable
	}
	return true, err
}

// find returns the regions of the sources, and why there are no more.
func (r *reading) find(ctx context.Context, sources []*plan.Source) (regions []*region, failed error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, groupCtx := errgroup.WithContext(ctx)
	order := r.stages(groupCtx, group, sources)
	keys := len(r.plan.Schema.Key)
	for range r.cfg.Read.Workers() {
		group.Go(func() error { return newParser(r.plan, r.cfg, r.survey).look(groupCtx, order.work, keys) })
	}
	group.Go(func() error {
		defer cancel() // as readInOrder
		regions, failed = collect(groupCtx, order.splits)
		return nil
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return regions, failed
}

// look is a parser of the first pass.
func (p *parser) look(ctx context.Context, work <-chan *job, keys int) error {
	defer p.close()
	for {
		j, ok := receive(ctx, work)
		if !ok {
			return nil
		}
		if j.piece != nil {
			j.prepared <- p.worker.Prepare(j.piece) // has room for the one answer
			continue
		}
		made, err := p.count(j.source, j.split, keys)
		j.block <- outcome{made, err} // has room for the one block
	}
}

// count counts the records and lines of a split and finds the key it begins with. Splits of Parquet, which states its
// counts, are read for their first row only, and only where a row group begins.
func (p *parser) count(s *plan.Source, split reader.Split, keys int) (*parsed, error) {
	sp, err := p.of(s)
	if err != nil {
		return nil, err
	}
	made := &parsed{}
	first := func(rec *record.Record) {
		if made.key == nil {
			made.key = p.keyOf(sp, rec, keys)
		}
	}
	if rows, _, ok := split.Rows(); ok {
		made.records = int(rows)
		if head, ok := split.Head(); ok {
			_, _, err = sp.parser.Parse(head, first)
		}
		return made, err
	}
	made.records, made.lines, err = sp.parser.Parse(split, first)
	return made, err
}

// collect makes regions of splits that come in source order.
func collect(ctx context.Context, splits <-chan *job) (regions []*region, failed error) {
	var records, lines int64
	for {
		j, ok := receive(ctx, splits)
		switch {
		case !ok:
			return regions, nil
		case j.last:
			if err := j.source.Close(); err != nil {
				return regions, err
			}
			continue
		case j.err != nil:
			return regions, j.err
		}
		made, ok := receive(ctx, j.block)
		switch {
		case !ok:
			return regions, nil
		case made.err != nil:
			return regions, made.err
		}
		if j.first {
			records, lines = 0, int64(j.source.HeaderLines())
		}
		n := int64(made.records)
		if last := len(regions) - 1; !j.first && last >= 0 && j.split.Group() >= 0 && regions[last].splits[0].Group() == j.split.Group() {
			regions[last].splits = append(regions[last].splits, j.split.Place())
			regions[last].records = append(regions[last].records, n)
		} else {
			regions = append(regions, &region{
				source: j.source, splits: []reader.Split{j.split.Place()}, records: []int64{n}, first: records, line: lines, key: made.key,
			})
		}
		records += n
		lines += int64(made.lines)
	}
}

// feeder feeds the hungriest lane.
type feeder struct {
	*reading
	todo   [][]*region // by the lane they begin in
	hunger *hunger     // that todo was made for
	left   map[*plan.Source]*atomic.Int64

	rows, strays atomic.Int64 // rows that were read, and those of them in another lane than their region began in
}

// run hands out regions until there are no more.
func (f *feeder) run(ctx context.Context, regions []*region, work chan<- *region) error {
	opened := map[*plan.Source]bool{}
	for left := len(regions); left > 0; {
		if h := f.reading.hunger.Load(); h != f.hunger {
			regions = f.untaken(regions)
			f.sort(h, regions)
		}
		lane, ok := f.hungriest()
		if !ok {
			select {
			case <-f.fed:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		g := f.take(lane)
		left--
		if !opened[g.source] {
			opened[g.source] = true
			if err := g.source.Reopen(); err != nil {
				return f.fail(ctx, err)
			}
		}
		g.lane, g.coming = lane, f.hunger
		f.hunger.coming[lane].Add(g.rows())
		if !send(ctx, work, g) {
			return nil
		}
	}
	close(work)
	return nil
}

// sort puts the regions to their lanes.
func (f *feeder) sort(h *hunger, regions []*region) {
	f.hunger = h
	f.todo = make([][]*region, h.partitions.Len())
	for _, g := range regions {
		lane := 0
		if g.key != nil {
			lane = h.partitions.Find(g.key)
		}
		f.todo[lane] = append(f.todo[lane], g)
	}
}

// untaken returns the regions that are still to be handed out.
func (f *feeder) untaken(all []*region) []*region {
	if f.hunger == nil {
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

// hungriest returns the lane to feed next.
func (f *feeder) hungriest() (lane int, ok bool) {
	lane, longest := -1, -1
	anyHungry := false
	for i := range f.todo {
		anyHungry = anyHungry || f.hunger.of(i) < f.hunger.enough
		if len(f.todo[i]) == 0 {
			continue
		}
		if longest < 0 || len(f.todo[i]) > len(f.todo[longest]) {
			longest = i
		}
		if f.hunger.of(i) < f.hunger.enough && (lane < 0 || f.hunger.of(i) < f.hunger.of(lane)) {
			lane = i
		}
	}
	if lane >= 0 {
		return lane, true
	}
	if anyHungry && float64(f.strays.Load()) > mixedShare*float64(f.rows.Load()) {
		return longest, true
	}
	return 0, false
}

// take takes a region of the lane at random.
func (f *feeder) take(lane int) *region {
	todo := f.todo[lane]
	i, last := rand.IntN(len(todo)), len(todo)-1
	g := todo[i]
	todo[i] = todo[last]
	todo[last] = nil
	f.todo[lane] = todo[:last]
	return g
}

// read is a parser that reads regions.
func (f *feeder) read(ctx context.Context, p *parser, work <-chan *region) error {
	for {
		g, ok := receive(ctx, work)
		if !ok {
			return nil
		}
		if err := f.readRegion(ctx, p, g); err != nil {
			return f.fail(ctx, err)
		}
		if f.left[g.source].Add(-1) == 0 {
			if err := g.source.Finished(); err != nil {
				return f.fail(ctx, err)
			}
		}
	}
}

func (f *feeder) readRegion(ctx context.Context, p *parser, g *region) error {
	record := g.first
	for i, place := range g.splits {
		split, err := g.source.Load(place)
		if err != nil {
			return err
		}
		made, err := p.parse(g.source, split)
		if err != nil {
			return err
		}
		made.split.FirstRecord, made.split.FirstLine = record, g.line
		record += g.records[i]
		made.coming, made.lane = g.coming, g.lane
		f.count(made)
		if !send(ctx, f.blocks, handed{parsed: made}) {
			return nil
		}
	}
	return nil
}

// count counts how well the regions' first keys tell their lanes.
func (f *feeder) count(made *parsed) {
	for _, b := range made.blocks {
		f.rows.Add(int64(len(b.block.Rows)))
		if b.lane != made.lane {
			f.strays.Add(int64(len(b.block.Rows)))
		}
	}
}

// fail tells the dispatcher why the input cannot be read further, and ends reading.
func (f *feeder) fail(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		send(ctx, f.blocks, handed{err: err})
	}
	return errUnreadable
}
