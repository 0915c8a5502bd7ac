package export

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"sync"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
)

// ahead is the number of pages read ahead, at least one for each range being read. A page has up to 8 MB in memory.
const ahead = 8

// errEnough ends a scan early without an error.
var errEnough = errors.New("enough was read")

// batch calls do for consecutive rows and their ordering keys, valid during the call. It may fail after some rows.
type batch func(do func(key, row []byte) error) error

// stretch sends the batches of a part of the rows. Unlike a batch's error, a stretch's does not wait for earlier rows.
type stretch func(ctx context.Context, send func(batch) error) error

// deliver passes the rows of parts to do in order. It reads up to readers parts concurrently, each some batches ahead.
// It stops at the first error of do, and returns nil if that is errEnough.
func deliver(ctx context.Context, readers int, parts iter.Seq2[stretch, error], do func(key, row []byte) error) error {
	group, groupCtx := errgroup.WithContext(ctx)
	order := make(chan chan batch, readers-1) // plus the stretch being delivered
	group.Go(func() error {
		for read, err := range parts {
			if err != nil {
				return err
			}
			batches := make(chan batch, max(1, ahead/readers))
			select {
			case order <- batches:
			case <-groupCtx.Done():
				return nil // another goroutine has returned the reason
			}
			group.Go(func() error {
				err := read(groupCtx, func(b batch) error {
					select {
					case batches <- b:
						return nil
					case <-groupCtx.Done():
						return context.Cause(groupCtx)
					}
				})
				switch {
				case errors.As(err, new(*scan.StoppedError)): // tells the user why reading was slow
					return err
				case groupCtx.Err() != nil:
					return nil
				case err == nil:
					close(batches)
				}
				return err
			})
		}
		close(order)
		return nil
	})
	group.Go(func() error {
		for {
			var batches chan batch
			select {
			case batches = <-order:
			case <-groupCtx.Done():
			}
			if batches == nil {
				return nil
			}
			for more := true; more; {
				var b batch
				select {
				case b, more = <-batches:
				case <-groupCtx.Done():
					return nil // other stretches come after the rest of this one
				}
				if b == nil {
					continue
				}
				if err := b(do); err != nil {
					return err
				}
			}
		}
	})
	if err := group.Wait(); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return context.Cause(ctx)
}

type keyRange struct{ from, to []table.Value }

// cut divides the range between two keys at the partitions' bounds, which increase. nil means the start or the end.
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

// ranges returns the rows between o.From and o.To, divided at the partitions' bounds.
func ranges(s scan.Service, t *client.Table, o scan.Options, bounds []table.Value) iter.Seq2[stretch, error] {
	pages := sync.Pool{New: func() any { return new(scan.PackedPage) }} // pages with delivered rows
	return func(yield func(stretch, error) bool) {
		for _, of := range cut(o.From, o.To, bounds) {
			o.From, o.To = of.from, of.to
			if !yield(rangeOf(s, t, o, &pages), nil) {
				return
			}
		}
	}
}

func rangeOf(s scan.Service, t *client.Table, o scan.Options, pages *sync.Pool) stretch {
	return func(ctx context.Context, send func(batch) error) error {
		unused := func() *scan.PackedPage { return pages.Get().(*scan.PackedPage) }
		err := scan.PackedPages(ctx, s, t.Name, t.Key, o, unused, func(page *scan.PackedPage) error {
			return send(func(do func(key, row []byte) error) error {
				for i := range page.Len() {
					if err := do(page.Key(i), page.Row(i)); err != nil {
						return err
					}
				}
				pages.Put(page)
				return nil
			})
		})
		if err == nil || errors.As(err, new(*scan.StoppedError)) {
			return err
		}
		return send(func(func(key, row []byte) error) error { return err })
	}
}

// sortedBounds returns the bounds of a table's partitions, or none after an error. The export is then only slower.
func sortedBounds(admin *client.Admin, name string) []table.Value {
	bounds, err := admin.Splits(name)
	if err != nil {
		return nil
	}
	return table.SortDistinct(bounds)
}
