package store

import (
	"bytes"
	"context"

	"github.com/cockroachdb/pebble/v2"

	"tsimport/engine/wire"
)

// SplitPoints cuts a table into parts of about the requested size, at partition keys: each point is a PlainBuffer row
// of the first primary-key column alone. It reads the whole table.
func (s *Store) SplitPoints(ctx context.Context, t *Table, r *wire.SplitPoints) ([][]byte, *wire.Error) {
	m := t.meta.Load()
	unit := r.UnitBytes.Or(wire.DefaultSplitUnitBytes)
	it, err := s.db.NewIterWithContext(ctx, &pebble.IterOptions{
		LowerBound: appendRowPrefix(nil, m.ID), UpperBound: appendRowPrefix(nil, m.ID+1)})
	if err != nil {
		return nil, readError(err)
	}
	defer it.Close()
	var points [][]byte
	var key []wire.Cell
	var part []byte // the partition key of the row before
	size, ok := int64(0), it.First()
	for n := 0; ok; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return nil, readError(ctx.Err())
		}
		if r.Limit.Set && len(points) >= int(r.Limit.Value) {
			break
		}
		if key, ok = decodeKey(it.Key(), m.Key, key[:0]); !ok {
			return nil, wire.Failf(wire.CodeInternalServerError, "Read: key is damaged.")
		}
		// Divided, because the product of two hostile numbers could overflow.
		if size/unit >= r.Size.Value && !bytes.Equal(part, key[0].Value) {
			points = append(points, wire.AppendRow(wire.AppendHeader(nil), key[:1], nil))
			size = 0
		}
		part = key[0].Value
		size += int64(len(it.Key()) + len(it.Value()))
		ok = it.Next()
	}
	if err := it.Error(); err != nil {
		return nil, readError(err)
	}
	return points, nil
}
