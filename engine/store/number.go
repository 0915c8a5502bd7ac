package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"example.com/tsimport/engine/wire"
)

// numbers generates auto-increment values, one ascending series for the whole store: the clock's microseconds, or the
// last number plus one. Before a number above reserved is used, a higher reserved is logged, and a reopened store
// continues above it. So no number repeats or decreases. (The highest stored number would be lost with its row.)
type numbers struct {
	mu       sync.Mutex
	last     int64
	reserved int64
}

// numberBlock is the number of values reserved at once: the microseconds in ten seconds.
const numberBlock = 10_000_000

var (
	numbersKey = []byte{spaceNumbers}
	noNumber   = []byte{tagInteger, 0, 0, 0, 0, 0, 0, 0, 0} // placeholder in a key
)

func (s *Store) loadNumbers() error {
	last, err := readNumber(s.db, numbersKey, 8)
	if err != nil {
		return fmt.Errorf("read the last auto-increment value: %w", err)
	}
	s.numbers.last, s.numbers.reserved = int64(last), int64(last)
	return nil
}

// takeNumbers returns the first of n consecutive numbers.
func (s *Store) takeNumbers(ctx context.Context, n int) (first int64, err *wire.Error) {
	s.numbers.mu.Lock()
	defer s.numbers.mu.Unlock()
	first = max(s.numbers.last+1, s.o.Now().UnixMicro())
	last := first + int64(n) - 1
	if last > s.numbers.reserved {
		reserved := last + numberBlock
		b := s.db.NewBatch()
		defer func() {
			if s.health.cause() == nil { // otherwise Pebble's log may still use the batch
				b.Close()
			}
		}()
		b.Set(numbersKey, binary.BigEndian.AppendUint64(nil, uint64(reserved)), nil)
		if err := s.commitAndWait(ctx, b); err != nil {
			return 0, err
		}
		s.numbers.reserved = reserved
	}
	s.numbers.last = last
	return first, nil
}

// assign numbers the rows with a placeholder, in request order. The caller owns their stripes until the rows are
// visible, so lower numbers are visible first. Such rows need no locks themselves: nobody can name them yet.
func (w *writer) assign(ctx context.Context) *wire.Error {
	if w.placeholders == 0 {
		return nil
	}
	n, err := w.store.takeNumbers(ctx, w.placeholders)
	if err != nil {
		return err
	}
	values := make([]byte, 0, 8*w.placeholders)
	for i := range w.rows {
		r := &w.rows[i]
		if r.number == 0 {
			continue
		}
		at := columnAt(r.key, r.number) + 1 // skip the tag
		binary.BigEndian.PutUint64(r.key[at:], uint64(n)^1<<63)
		values = binary.LittleEndian.AppendUint64(values, uint64(n))
		c := &r.change.Row.Key[r.number]
		c.Type, c.Value = wire.Integer, values[len(values)-8:len(values):len(values)]
		n++
	}
	return nil
}

// checkNumber returns the key column that needs a number, or 0. A change of a row that has a number must delete the row
// or expect that it exists.
func (m *meta) checkNumber(c *wire.Change) (column int, err *wire.Error) {
	for i := range m.Key {
		switch {
		case !m.Key[i].AutoIncrement:
		case c.Row.Key[i].Type == wire.AutoIncrement:
			return i, nil
		case c.Op != wire.DeleteRow && c.Expect != wire.ExpectExist:
			return 0, wire.Invalid("Invalid expect: %s when modify a specific row for table with pk auto increment", c.Expect)
		}
	}
	return 0, nil
}

// columnAt returns the offset of column i in a row key made by appendKey.
func columnAt(key []byte, i int) int {
	at := rowPrefixBytes
	for ; i > 0; i-- {
		if key[at] == tagInteger {
			at += len(noNumber)
			continue
		}
		at++
		for {
			at += bytes.IndexByte(key[at:], 0) + 2
			if key[at-1] == 0x01 {
				break
			}
		}
	}
	return at
}

// partitionPart returns a row's key up to the end of its partition key.
func partitionPart(key []byte) []byte { return key[:columnAt(key, 1)] }
