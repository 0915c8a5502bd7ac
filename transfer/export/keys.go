package export

import (
	"bytes"
	"context"
	"iter"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/scan"
)

// Keys are the ordering keys of the rows that an export is to have, sorted and different.
type Keys interface {
	// From returns the keys from one on, each valid until the next.
	From(first []byte) iter.Seq2[[]byte, error]
}

// got is the rows of keys, nil where there is none, or why they were not read. The error is in their place, as in batch: rows of
// later keys, with which an export would be continued after these, do not pass it.
type got struct {
	keys [][]byte
	rows []*scan.Row
	err  error
}

// get calls each with the rows of the keys, in their order, of which so many requests read ahead.
func (e *exporter) get(o scan.Options, each func(key, row []byte) error) error {
	names := plainbuffer.Names{}
	group, ctx := errgroup.WithContext(e.ctx)
	batches := make(chan chan got, e.Readers)
	group.Go(func() error {
		defer close(batches)
		var keys [][]byte
		send := func() error {
			to, of := make(chan got, 1), keys
			keys = nil
			select {
			case batches <- to:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			group.Go(func() error {
				rows, err := e.rowsOf(ctx, of, o)
				to <- got{of, rows, err}
				return nil
			})
			return nil
		}
		for key, err := range e.Keys.From(e.last) {
			if err != nil {
				return err
			}
			if keys = append(keys, bytes.Clone(key)); len(keys) == scan.MaxGetRows {
				if err := send(); err != nil {
					return err
				}
			}
		}
		if len(keys) == 0 {
			return nil
		}
		return send()
	})
	group.Go(func() error {
		for from := range batches {
			b := <-from
			if b.err != nil {
				return b.err
			}
			for i, row := range b.rows {
				if row == nil {
					e.result.Missing++
					continue
				}
				packed, err := client.PackRow(names, row)
				if err == nil {
					err = each(b.keys[i], packed)
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	return group.Wait()
}

// rowsOf reads the rows of some keys.
func (e *exporter) rowsOf(ctx context.Context, ordering [][]byte, o scan.Options) ([]*scan.Row, error) {
	keys := make([][]table.Value, len(ordering))
	for i, rest := range ordering {
		for _, k := range e.Scan.Table.Key {
			v, n, err := table.DecodeKey(k.Type, rest)
			if err != nil {
				return nil, err
			}
			keys[i], rest = append(keys[i], v), rest[n:]
		}
	}
	return scan.Get(ctx, e.Scan.Client, e.Scan.Table.Name, e.Scan.Table.Key, keys, o)
}
