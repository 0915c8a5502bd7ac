package store

import (
	"bytes"
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"tsimport/engine/wire"
)

// SplitPoints cuts a table into parts of about the requested size, at partition keys: each point is a PlainBuffer row
// of the first primary-key column alone. It reads the whole table.
func (s *Store) SplitPoints(ctx context.Context, t *Table, r *wire.SplitPoints) ([][]byte, *wire.Error) {
	m := t.meta.Load()
	if err := s.upToDate(ctx, m); err != nil {
		return nil, err
	}
	unit := r.UnitBytes.Or(wire.DefaultSplitUnitBytes)
	it, err := s.db.NewIterWithContext(ctx, &pebble.IterOptions{
		LowerBound: appendRowPrefix(nil, m.ID), UpperBound: appendRowPrefix(nil, m.ID+1)})
	if err != nil {
		return nil, readError(err)
	}
	defer it.Close()
	var points [][]byte
	keys := newKeyReader(m.Key)
	var part []byte // the partition key of the row before
	size, ok := int64(0), it.First()
	for n := 0; ok; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return nil, readError(ctx.Err())
		}
		if r.Limit.Set && len(points) >= int(r.Limit.Value) {
			break
		}
		key, whole := keys.read(it.Key())
		if !whole {
			return nil, wire.Failf(wire.CodeInternalServerError, "Read: key is damaged.")
		}
		// Divided, because the product of two hostile numbers could overflow.
		if size/unit >= r.Size.Value && !bytes.Equal(part, key[0].Value) {
			points = append(points, wire.AppendRow(wire.AppendHeader(nil), key[:1], nil))
			size = 0
		}
		part = append(part[:0], key[0].Value...)
		size += int64(len(it.Key()) + len(it.Value()))
		ok = it.Next()
	}
	if err := it.Error(); err != nil {
		return nil, readError(err)
	}
	return points, nil
}

// EvenKeys counts a table's rows and gives the partition keys of n of them (of all when they are fewer), evenly spaced
// in row order from the first on. It reads the table's keys twice.
func (s *Store) EvenKeys(ctx context.Context, t *Table, n int) (keys []wire.Cell, rows int64, err error) {
	err = s.eachKey(ctx, t, func([]byte) error { rows++; return nil })
	if err != nil || rows == 0 || n < 1 {
		return nil, rows, err
	}
	m := t.meta.Load()
	parts := min(int64(n), rows)
	row := int64(0)
	err = s.eachKey(ctx, t, func(b []byte) error {
		if next := int64(len(keys)); next < parts && row == next*rows/parts {
			key, ok := decodeKey(b, m.Key)
			if !ok {
				return fmt.Errorf("read table %s: a key is damaged", m.Name)
			}
			keys = append(keys, key[0])
		}
		row++
		return nil
	})
	return keys, rows, err
}

// eachKey calls f with the key of every row; f may only look at it.
func (s *Store) eachKey(ctx context.Context, t *Table, f func(key []byte) error) error {
	it, err := s.db.NewIterWithContext(ctx, &pebble.IterOptions{
		LowerBound: appendRowPrefix(nil, t.id), UpperBound: appendRowPrefix(nil, t.id+1)})
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	defer it.Close()
	for n, ok := 0, it.First(); ok; n, ok = n+1, it.Next() {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := f(it.Key()); err != nil {
			return err
		}
	}
	return it.Error()
}
