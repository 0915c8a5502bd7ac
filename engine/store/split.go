package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/cockroachdb/pebble/v2"

	"example.com/tsimport/engine/wire"
)

// readForSplits limits the bytes read for exact split points. A larger table is cut by Pebble's size estimates, unless
// the memtables, which these leave out, are larger than its files.
const readForSplits = 64 << 20

// SplitPoints cuts a table into parts of about the requested size, at partition keys. Each point is a PlainBuffer row
// with only the first primary-key column. Parts have at least the requested size in a table of up to 64 MiB, and about
// that in a larger one, where deleted and overwritten rows count until they are compacted away.
func (s *Store) SplitPoints(ctx context.Context, t *Table, r *wire.SplitPoints) ([][]byte, *wire.Error) {
	m := t.meta.Load()
	if err := s.upToDate(ctx, m); err != nil {
		return nil, err
	}
	unit := r.UnitBytes.Or(wire.DefaultSplitUnitBytes)
	limit := math.MaxInt
	if r.Limit.Set {
		limit = int(r.Limit.Value)
	}
	sizes, err := s.sizesOf(appendRowPrefix(nil, m.ID), appendRowPrefix(nil, m.ID+1))
	if err != nil {
		return nil, readError(err)
	}
	// Divide, because the product of two numbers from a client could overflow.
	if sizes.most/unit < r.Size.Value || limit == 0 {
		return nil, nil
	}
	it, err := s.db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: sizes.lower, UpperBound: sizes.upper})
	if err != nil {
		return nil, readError(err)
	}
	defer it.Close()
	c := cutter{ctx: ctx, it: it, keys: newKeyReader(m.Key), limit: limit,
		full: func(size int64) bool { return size/unit >= r.Size.Value }}
	if about := sizes.rows + sizes.memtables; about <= s.readForSplits || sizes.memtables > sizes.rows {
		err = c.byRows()
	} else if err = c.bySizes(s, sizes); err == nil {
		err = it.Error()
	}
	if err != nil {
		return nil, readError(err)
	}
	return c.points, nil
}

// sizes holds Pebble's estimates of the size of a key range, in bytes of keys and values.
type sizes struct {
	lower, upper []byte  // upper is exclusive
	most         int64   // upper bound: all files and memtables that may contain a part of the range
	rows         int64   // approximate bytes of the range's rows in files
	memtables    int64   // size of all memtables
	ratio        float64 // bytes of keys and values per byte of their files
}

func (s *Store) sizesOf(lower, upper []byte) (sizes, error) {
	// Memtables are counted first, so that data flushed in between counts twice rather than never.
	z := sizes{lower: lower, upper: upper, memtables: int64(s.db.Metrics().MemTable.Size)}
	levels, err := s.db.SSTables(pebble.WithKeyRangeFilter(lower, upper), pebble.WithProperties())
	if err != nil {
		return z, err
	}
	var raw, files uint64
	for _, level := range levels {
		for _, f := range level {
			raw += f.Properties.RawKeySize + f.Properties.RawValueSize
			files += f.Size
		}
	}
	z.most = int64(raw) + z.memtables
	if files > 0 {
		z.ratio = float64(raw) / float64(files)
	}
	z.rows, err = s.inFiles(z, lower, upper)
	return z, err
}

// inFiles estimates the bytes of keys and values in files between two keys of the range. It counts whole blocks.
func (s *Store) inFiles(z sizes, from, to []byte) (int64, error) {
	n, err := s.db.EstimateDiskUsage(from, to)
	return int64(float64(n) * z.ratio), err
}

// cutter collects the split points of a table in key order.
type cutter struct {
	ctx    context.Context
	it     *pebble.Iterator
	keys   keyReader
	limit  int
	full   func(size int64) bool // reports whether a part of this size ends at the next partition key
	size   int64                 // bytes since the last point
	points [][]byte
}

var errDamagedKey = errors.New("a key of the table is damaged")

func (c *cutter) add(key []wire.Cell) {
	c.points = append(c.points, wire.AppendRow(wire.AppendHeader(nil), key[:1], nil))
	c.size = 0
}

func (c *cutter) byRows() error {
	var part []byte // partition key of the previous row
	ok := c.it.First()
	for n := 0; ok && len(c.points) < c.limit; n++ {
		if n%256 == 0 && c.ctx.Err() != nil {
			return c.ctx.Err()
		}
		key, whole := c.keys.read(c.it.Key())
		if !whole {
			return errDamagedKey
		}
		if c.full(c.size) && !bytes.Equal(part, key[0].Value) {
			c.add(key)
		}
		part = append(part[:0], key[0].Value...)
		c.size += int64(len(c.it.Key()) + len(c.it.Value()))
		ok = c.it.Next()
	}
	return c.it.Error()
}

// bySizes reads only rows at which a part ends or a range is halved. Rows in memtables are not counted.
func (c *cutter) bySizes(s *Store, z sizes) error {
	if !c.it.First() {
		return nil
	}
	from, _, err := c.partition()
	if err != nil {
		return err
	}
	return c.halve(func(from, to []byte) (int64, error) { return s.inFiles(z, from, to) }, from, z.upper, z.rows)
}

// halve processes a range of n bytes in pieces so small that a point is late by at most a quarter of a part.
func (c *cutter) halve(size func(from, to []byte) (int64, error), from, to []byte, n int64) error {
	for fresh := true; ; {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if len(c.points) >= c.limit {
			return nil
		}
		if !c.full(4 * n) {
			break
		}
		if fresh && !c.seek(following(from), to) {
			break // a single partition key cannot be cut
		}
		fresh = false
		mid := between(from, to)
		if mid == nil {
			break
		}
		if !c.seek(mid, to) {
			to = mid
			continue
		}
		at, key, err := c.partition()
		if err != nil {
			return err
		}
		if bytes.Equal(at, from) { // the next partition key is the first possible point
			if !c.seek(following(from), to) {
				break
			}
			if at, key, err = c.partition(); err != nil {
				return err
			}
		}
		left, err := size(from, at)
		if err != nil {
			return err
		}
		cell := key[0]
		cell.Value = bytes.Clone(cell.Value)
		if err := c.halve(size, from, at, left); err != nil {
			return err
		}
		if c.full(c.size) && len(c.points) < c.limit {
			c.add([]wire.Cell{cell})
		}
		// Ask again instead of subtracting: each size covers whole blocks.
		if n, err = size(at, to); err != nil {
			return err
		}
		from, fresh = at, true
	}
	c.size += n
	return c.it.Error()
}

// seek moves to the first row at or after a key, and reports whether there is one before to.
func (c *cutter) seek(key, to []byte) bool {
	return c.it.SeekGE(key) && bytes.Compare(c.it.Key(), to) < 0
}

// partition returns the least key with the current row's partition key, and the row's decoded key.
func (c *cutter) partition() (from []byte, key []wire.Cell, err error) {
	key, whole := c.keys.read(c.it.Key())
	if !whole {
		return nil, nil, errDamagedKey
	}
	return appendColumn(bytes.Clone(c.it.Key()[:rowPrefixBytes]), &key[0]), key, nil
}

// following returns a key above all rows of a partition key, and below the next partition key.
func following(partition []byte) []byte {
	return append(bytes.Clone(partition), tagInfMax+1)
}

// between returns a key in the middle of two, or nil if there is none.
func between(from, to []byte) []byte {
	same := 0
	for same < len(from) && same < len(to) && from[same] == to[same] {
		same++
	}
	digits := func(key []byte, n int) *big.Int {
		padded := make([]byte, n)
		copy(padded, key[same:])
		return new(big.Int).SetBytes(padded)
	}
	for n := 8; ; n += 8 {
		a, b := digits(from, n), digits(to, n)
		if d := new(big.Int).Sub(b, a); d.BitLen() > 1 {
			mid := make([]byte, n)
			a.Add(a, d.Rsh(d, 1)).FillBytes(mid)
			return append(bytes.Clone(from[:same]), mid...)
		}
		if same+n >= max(len(from), len(to)) {
			return nil
		}
	}
}

// EvenKeys counts a table's rows and returns the partition keys of n of them, evenly spaced. It reads the keys twice.
func (s *Store) EvenKeys(ctx context.Context, t *Table, n int) (keys []wire.Cell, rows int64, err error) {
	from, to := appendRowPrefix(nil, t.id), appendRowPrefix(nil, t.id+1)
	err = s.each(ctx, from, to, func(*pebble.Iterator) (bool, error) { rows++; return true, nil })
	if err != nil || rows == 0 || n < 1 {
		return nil, rows, err
	}
	m := t.meta.Load()
	parts := min(int64(n), rows)
	row := int64(0)
	err = s.each(ctx, from, to, func(it *pebble.Iterator) (bool, error) {
		if next := int64(len(keys)); next < parts && row == next*rows/parts {
			key, ok := decodeKey(it.Key(), m.Key)
			if !ok {
				return false, fmt.Errorf("read table %s: a key is damaged", m.Name)
			}
			keys = append(keys, key[0])
		}
		row++
		return true, nil
	})
	return keys, rows, err
}

// each calls f at every key in [from, to) until f returns false.
func (s *Store) each(ctx context.Context, from, to []byte, f func(*pebble.Iterator) (more bool, err error)) error {
	it, err := s.db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	defer it.Close()
	for n, ok := 0, it.First(); ok; n, ok = n+1, it.Next() {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if more, err := f(it); err != nil || !more {
			return err
		}
	}
	return it.Error()
}
