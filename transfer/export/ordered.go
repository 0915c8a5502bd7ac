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
	batches []chan batch  // by range
	slots   chan struct{} // taken by a range until its rows have been delivered
	pages   sync.Pool     // of *scan.PackedPage whose rows have been delivered
}

// batch is rows that follow each other, or why there are no more. Being in its place, an error does not keep rows before it
// from being delivered.
type batch struct {
	page *scan.PackedPage
	err  error
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

// run calls each with the ordering key and the bytes of every row, in key order. It stops at the first error of each; errEnough is none. Both
// are valid during the call.
func (r *ordered) run(ctx context.Context, each func(key, row []byte) error) error {
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
	reused := func() *scan.PackedPage {
		if page, ok := r.pages.Get().(*scan.PackedPage); ok {
			return page
		}
		return new(scan.PackedPage)
	}
	err := scan.PackedPages(ctx, r.service, r.table.Name, r.table.Key, o, reused, func(page *scan.PackedPage) error { return send(batch{page: page}) })
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

// deliver takes the batches of one range after the other.
func (r *ordered) deliver(ctx context.Context, each func(key, row []byte) error) error {
	for i := range r.ranges {
		for more := true; more; {
			var b batch
			select {
			case b, more = <-r.batches[i]:
			case <-ctx.Done():
				return nil // as in read
			}
			if b.page == nil {
				if b.err != nil {
					return b.err
				}
				continue
			}
			for i := range b.page.Len() {
				if err := each(b.page.Key(i), b.page.Row(i)); err != nil {
					return err
				}
			}
			r.pages.Put(b.page)
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
