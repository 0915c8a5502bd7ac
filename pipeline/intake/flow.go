package intake

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/encode"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/shuffle/readorder"
)

// Flow reads the inputs of a load for its lanes. One goroutine runs it; another receives from Splits and calls Recut.
type Flow struct {
	plan       *plan.Plan
	splits     chan Handed
	resumed    *Resumed
	partitions atomic.Pointer[partitioner.Map] // map that divides the rows
	alone      chan struct{}                   // capacity 1: held by a parser that reads more pages than may be read ahead

	scheduling Scheduling
	sections   atomic.Int64          // number of sections in the schedules that are followed
	followed   []*readorder.Schedule // schedules to be kept
	stays      bool                  // the rest is read in order, as scheduling it is useless

	// Lends hands over a part's rows for one lane in the memory where they were made, valid until Arrived is called.
	Lends bool
	lent  sync.Pool // holds *table.Block in which rows are made

	// Sums makes sums instead of rows where sums suffice.
	Sums Sums

	aside asides

	// Reuses hands over rows for one lane in the memory where they were made. The receiver returns it by calling Free.
	Reuses bool
	free   freeBlocks
}

// Sums makes rows' bodies encode.SummedBody, or KeptBody with Keeps; SumOf returns the sum. Zero Sums make PlainBuffer.
type Sums struct {
	By    *plainbuffer.Hasher
	Keeps bool
}

// SumBytes is the length of a sum in bytes.
const SumBytes = encode.SumBytes

// SumOf returns the sum that a row's body is or begins with. ok is false if the body is PlainBuffer.
func SumOf(body []byte) (sum []byte, ok bool) { return encode.SumOf(body) }

// Whole returns a function that converts bodies made with Keeps to PlainBuffer. It is not safe for concurrent use.
func Whole(p *plan.Plan) func(key []table.Value, body []byte) ([]byte, error) {
	return encode.New(p.Schema, p.Request.Mode, p.Request.DeleteNull).Unkept
}

// New returns the flow of a planned load into the partitions of m.
func New(p *plan.Plan, m *partitioner.Map) *Flow {
	f := &Flow{plan: p, splits: make(chan Handed), alone: make(chan struct{}, 1)}
	f.Recut(m)
	return f
}

// Splits delivers the parsed splits, and is closed at the end. The receiver calls Arrived on each split. An error says
// why the rest of the input is missing; in a source read in order, everything before it is delivered.
func (f *Flow) Splits() <-chan Handed { return f.splits }

// ErrEnough ends Each without an error, if the function passed to Each returns it.
var ErrEnough = errors.New("enough was read")

// Each calls each with every split in source order, up to a number of records (below 0: all). It returns the shortfall.
func (f *Flow) Each(ctx context.Context, records int64, each func(*Parsed) error) (left int64, err error) {
	if records == 0 {
		return 0, nil
	}
	left = records
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.Run(groupCtx) })
	group.Go(func() error {
		for {
			h, ok := receive(groupCtx, f.splits)
			switch {
			case !ok:
				return nil // the owner of ctx knows why
			case h.Err != nil:
				return h.Err
			case h.Ended != nil, h.Aside != nil:
				continue
			}
			if left > 0 {
				h.Truncate(int(min(left, math.MaxInt32)))
				left -= int64(h.Records)
			}
			if err := each(h.Parsed); err != nil {
				return err
			}
			h.Arrived()
			if left == 0 {
				return ErrEnough
			}
		}
	})
	if err := group.Wait(); err != nil && !errors.Is(err, ErrEnough) {
		return left, err
	}
	return left, context.Cause(ctx)
}

// Recut sets the partition map for rows divided from now on. Rows in progress may arrive under the previous one.
func (f *Flow) Recut(m *partitioner.Map) { f.partitions.Store(m) }

// Run reads everything and then closes Splits. If ctx ends first, it returns nil and leaves Splits open.
func (f *Flow) Run(ctx context.Context) error {
	read := f.readByTurns
	if f.plan.Parallel && len(f.plan.Sources) > 1 {
		read = f.readInParallel
	}
	complete, err := read(ctx, f.plan.Sources)
	if err == nil && complete {
		close(f.splits)
	}
	return err
}

// readInOrder reads the sources in turn until the watch stops them.
func (f *Flow) readInOrder(ctx context.Context, sources []*plan.Source, w *watch) (complete, failed bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	order := f.stages(ctx, group, slices.Values(f.seek(sources)))
	f.parsers(group, func(p *parser) error { return p.run(ctx, order.work, p.parseInParts) })
	group.Go(func() error {
		defer cancel() // after an error, the other stages must stop
		complete, failed = f.handOver(ctx, order.splits, order.budget, w)
		return nil
	})
	err = group.Wait()
	return complete, failed, err
}

func (f *Flow) parsers(group *errgroup.Group, run func(*parser) error) {
	for range f.plan.Request.Read.Workers() {
		group.Go(func() error {
			p := newParser(f)
			defer p.close()
			return run(p)
		})
	}
}

// stream is the output of the stages that cut sources into splits.
type stream struct {
	work   chan *job   // pieces to prepare and splits to parse, for the parsers
	splits chan *job   // splits in source order
	budget *byteBudget // limits the bytes of pieces and splits
}

func (f *Flow) stages(ctx context.Context, group *errgroup.Group, sources iter.Seq[*plan.Source]) stream {
	work := make(chan *job)
	return f.stagesOf(ctx, group, sources, work, func() { close(work) }, f.plan.Shares().ReadAhead)
}

// stagesOf starts the stages of one of several streams, which has room bytes of memory. done is called at its end.
func (f *Flow) stagesOf(ctx context.Context, group *errgroup.Group, sources iter.Seq[*plan.Source], work chan *job,
	done func(), room int64) stream {
	ahead := plan.QueueAhead * f.plan.Request.Read.Workers()
	s := stream{work: work, splits: make(chan *job, ahead), budget: newByteBudget(room)}
	pieces := make(chan *job, ahead)
	group.Go(func() error {
		return feed(ctx, sources, s.work, pieces, s.budget, int64(f.plan.Shares().SplitLimit(f.plan.Request.Read.Workers())))
	})
	group.Go(func() error { return stitch(ctx, pieces, s.work, s.splits, s.budget, done) })
	return s
}

// freeBlocks holds blocks of final rows for reuse, as their memory is in the processor's caches and need not be zeroed.
type freeBlocks struct {
	mu   sync.Mutex
	free []*table.Block
}

// mostFree limits freeBlocks. A load that writes rows as fast as they arrive needs few blocks.
const mostFree = 4

// Free takes back a block once no one holds a row of it.
func (f *Flow) Free(b *table.Block) {
	f.free.mu.Lock()
	defer f.free.mu.Unlock()
	if len(f.free.free) < mostFree {
		f.free.free = append(f.free.free, b)
	}
}

// take returns an empty block: a used one, or a new one with room for the given bytes and rows.
func (f *freeBlocks) take(bytes, rows int) *table.Block {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.free); n > 0 {
		b := f.free[n-1]
		f.free = f.free[:n-1]
		*b = table.Block{Data: b.Data[:0], Rows: b.Rows[:0]}
		return b
	}
	return &table.Block{Data: make([]byte, 0, bytes), Rows: make([]table.Row, 0, rows)}
}
