package export

import (
	"bytes"
	"context"
	"iter"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
)

// Keys provides the sorted, distinct ordering keys of the rows to export.
type Keys interface {
	// From returns the keys at or after first. Each is valid until the next one is returned.
	From(first []byte) iter.Seq2[[]byte, error]
}

// keyed returns the rows of the keys. A stretch has the rows of one request.
func (e *exporter) keyed(o scan.Options) iter.Seq2[stretch, error] {
	return func(yield func(stretch, error) bool) {
		var keys [][]byte
		for key, err := range e.Keys.From(e.last) {
			if err != nil {
				yield(nil, err)
				return
			}
			if keys = append(keys, bytes.Clone(key)); len(keys) == scan.MaxGetRows {
				if !yield(e.stretchOf(keys, o), nil) {
					return
				}
				keys = nil
			}
		}
		if len(keys) > 0 {
			yield(e.stretchOf(keys, o), nil)
		}
	}
}

// stretchOf returns the rows of some keys. It counts missing rows.
func (e *exporter) stretchOf(keys [][]byte, o scan.Options) stretch {
	return func(ctx context.Context, send func(batch) error) error {
		rows, err := e.rowsOf(ctx, keys, o)
		return send(func(do func(key, row []byte) error) error {
			for i, row := range rows {
				if row == nil {
					e.result.Missing++
					continue
				}
				packed, err := client.PackRow(e.names, row)
				if err == nil {
					err = do(keys[i], packed)
				}
				if err != nil {
					return err
				}
			}
			return err
		})
	}
}

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
