package export

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
)

// ahead is how many pages of all ranges that are read at a time are read ahead, but one of each at least. A page has up to 4 MB on its way
// and about twice that in memory.
const ahead = 8

// errEnough ends a scan of which enough was seen.
var errEnough = errors.New("enough was read")

// ordered reads ranges of a table in parallel and delivers their rows in key order.
type ordered struct {
	service scan.Service
	table   *client.Table
	o       scan.Options
	ranges  []keyRange
	batches []chan batch                // by range
	slots   chan struct{}               // taken by a range until its rows have been delivered
	memory  sync.Pool                   // of *client.PageMemory whose rows have been delivered, or of *scan.PackedPage
	packed  func(key, row []byte) error // takes the rows as they came, with their ordering keys; nil has them made
}

// batch is rows that follow each other, or why there are no more. Being in its place, an error does not keep rows before it
// from being delivered.
type batch struct {
	rows   []*scan.Row
	memory *client.PageMemory
	packed *scan.PackedPage
	err    error
}

type keyRange struct{ from, to []table.Value }

// cut makes ranges of what is between two keys (nil is the start or the end) by the partitions' bounds, which increase.
func cut(from, to []table.Value, bounds []table.Value) []keyRange {
	var ranges []keyRange
	first, end := table.OrderingKey(from), table.OrderingKey(to)
	for _, b := range bounds {
		at := table.AppendKey(nil, b)
		if from != nil && bytes.Compare(at, first) <= 0 || to != nil && bytes.Compare(at, end) >= 0 {
			continue
		}
		bound := []table.Value{b}
		ranges = append(ranges, keyRange{from, bound})
		from = bound
	}
	return append(ranges, keyRange{from, to})
}

// newOrdered reads the range of o, so many ranges of it at a time.
func newOrdered(s scan.Service, t *client.Table, o scan.Options, readers int, bounds []table.Value) *ordered {
	r := &ordered{service: s, table: t, o: o, ranges: cut(o.From, o.To, bounds), slots: make(chan struct{}, readers)}
	r.batches = make([]chan batch, len(r.ranges))
	for i := range r.batches {
		r.batches[i] = make(chan batch, max(1, ahead/readers))
	}
	return r
}

// run calls each with every row, in key order. It stops at the first error of each; errEnough is none. A row is valid during the call.
func (r *ordered) run(ctx context.Context, each func(*scan.Row) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		for i := range r.ranges {
			select {
			case r.slots <- struct{}{}:
			case <-groupCtx.Done():
				return nil
			}
			group.Go(func() error { return r.read(groupCtx, i) })
		}
		return nil
	})
	group.Go(func() error { return r.deliver(groupCtx, each) })
	if err := group.Wait(); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return context.Cause(ctx)
}

// read reads one range, no further ahead than its batches allow.
func (r *ordered) read(ctx context.Context, i int) error {
	o := r.o
	o.From, o.To = r.ranges[i].from, r.ranges[i].to
	send := func(b batch) error {
		select {
		case r.batches[i] <- b:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	var err error
	if r.packed != nil {
		next := func() *scan.PackedPage { return reused[scan.PackedPage](&r.memory) }
		err = scan.PackedPages(ctx, r.service, r.table.Name, r.table.Key, o, next, func(page *scan.PackedPage) error { return send(batch{packed: page}) })
	} else {
		var memory *client.PageMemory // of the page that is read
		next := func() *client.PageMemory {
			memory = reused[client.PageMemory](&r.memory)
			return memory
		}
		err = scan.Pages(ctx, r.service, r.table.Name, r.table.Key, o, next, func(page []*scan.Row) error { return send(batch{rows: page, memory: memory}) })
	}
	if stopped := new(scan.StoppedError); errors.As(err, &stopped) {
		return err // why it is not read yet
	}
	if ctx.Err() != nil {
		return nil // whoever ended it knows why
	}
	if send(batch{err: err}) == nil {
		close(r.batches[i])
	}
	return nil
}

// reused takes memory from a pool, or makes it.
func reused[T any](pool *sync.Pool) *T {
	if m, ok := pool.Get().(*T); ok {
		return m
	}
	return new(T)
}

// deliver takes the batches of one range after the other.
func (r *ordered) deliver(ctx context.Context, each func(*scan.Row) error) error {
	for i := range r.ranges {
		for more := true; more; {
			var b batch
			select {
			case b, more = <-r.batches[i]:
			case <-ctx.Done():
				return nil // as in read
			}
			for _, row := range b.rows {
				if err := each(row); err != nil {
					return err
				}
			}
			if b.err != nil {
				return b.err
			}
			if b.memory != nil {
				r.memory.Put(b.memory)
			}
			if b.packed == nil {
				continue
			}
			for i := range b.packed.Len() {
				if err := r.packed(b.packed.Key(i), b.packed.Row(i)); err != nil {
					return err
				}
			}
			r.memory.Put(b.packed)
		}
		<-r.slots
	}
	return nil
}

// sortedBounds are the bounds of a table's partitions; none if the service does not name them, which costs speed only.
func sortedBounds(admin *client.Admin, name string) []table.Value {
	bounds, err := admin.Splits(name)
	if err != nil {
		return nil
	}
	compare := func(a, b table.Value) int { return bytes.Compare(table.AppendKey(nil, a), table.AppendKey(nil, b)) }
	slices.SortFunc(bounds, compare)
	return slices.CompactFunc(bounds, func(a, b table.Value) bool { return compare(a, b) == 0 })
}
