package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"example.com/tsimport/engine/wire"
)

// Indexes may follow their tables with a delay. Their changes are then stored with the row, in its batch, and applied
// when an index is read after they are due by the store's clock. Opening a store for writing applies all of them.

// late tracks delayed changes of indexes.
type late struct {
	mu     sync.Mutex    // held while changes are applied
	serial atomic.Uint64 // number of the last stored change
	any    atomic.Bool   // changes were stored since all were applied
}

func lateKey(table uint32, serial uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32([]byte{spaceLate}, table), serial)
}

// postpone stores changes of a table's indexes until due, in Unix milliseconds. The row's lock preserves their order.
func (s *Store) postpone(b *pebble.Batch, table uint32, due int64, changes *pebble.Batch) error {
	s.late.any.Store(true)
	value := append(binary.BigEndian.AppendUint64(nil, uint64(due)), changes.Repr()...)
	return b.Set(lateKey(table, s.late.serial.Add(1)), value, nil)
}

// catchUp applies the delayed index changes of a table that are due by until.
func (s *Store) catchUp(ctx context.Context, table uint32, until int64) *wire.Error {
	return s.carryOut(ctx, lateKey(table, 0), lateKey(table+1, 0), until)
}

// catchUpAll applies all delayed changes. The caller excludes writes.
func (s *Store) catchUpAll() error {
	if err := s.carryOut(context.Background(), []byte{spaceLate}, []byte{spaceLate + 1}, maxTime); err != nil {
		return fmt.Errorf("bring indexes up to date: %s", err.Error())
	}
	s.late.any.Store(false)
	return nil
}

const maxTime = 1<<63 - 1

func (s *Store) carryOut(ctx context.Context, from, to []byte, until int64) *wire.Error {
	s.late.mu.Lock()
	defer s.late.mu.Unlock()
	// Each batch holds changes and deletes their keys, so that after a crash either the changes or their results exist.
	return s.rewrite(ctx, from, to, func(b *pebble.Batch, key, value []byte) (more bool, err error) {
		if len(value) < 8 {
			return false, fmt.Errorf("a delayed index change is damaged")
		}
		if int64(binary.BigEndian.Uint64(value)) > until {
			return false, nil
		}
		changes := s.db.NewBatch()
		if err := changes.SetRepr(bytes.Clone(value[8:])); err != nil {
			return false, err
		}
		if err := b.Apply(changes, nil); err != nil {
			return false, err
		}
		return true, b.Delete(key, nil)
	})
}

// rewritten is the number of keys in a batch of rewrite.
const rewritten = 1000

// rewrite calls f for each key in [from, to) until f returns false. It commits f's changes in batches, unsynced.
func (s *Store) rewrite(
	ctx context.Context, from, to []byte, f func(b *pebble.Batch, key, value []byte) (more bool, err error),
) *wire.Error {
	b := s.db.NewBatch()
	err := s.each(ctx, from, to, func(it *pebble.Iterator) (more bool, err error) {
		value, err := it.ValueAndErr()
		if err != nil {
			return false, err
		}
		if more, err = f(b, it.Key(), value); err != nil || b.Count() < rewritten {
			return more, err
		}
		full := b
		b = s.db.NewBatch()
		if err := s.commit(ctx, full, false); err != nil {
			return false, err
		}
		return more, nil
	})
	if err != nil {
		return readError(err)
	}
	if b.Empty() {
		return nil
	}
	return s.commit(ctx, b, false)
}

// upToDate applies the due changes of an index before it is read.
func (s *Store) upToDate(ctx context.Context, m *meta) *wire.Error {
	if m.Of == "" || s.o.ReadOnly || !s.late.any.Load() {
		return nil
	}
	t := s.Table([]byte(m.Of))
	if t == nil {
		return nil // it was dropped in the meantime
	}
	return s.catchUp(ctx, t.id, s.millis())
}

// Choose sets the store's choices from now on. A change aborts open transactions; a change of the delay also updates
// all indexes. It is safe for concurrent use.
func (s *Store) Choose(c Choices) error {
	if c.IndexDelay < 0 || c.IndexDelay > maxIndexDelay {
		return fmt.Errorf("the index delay is %s; want 0s to %s", c.IndexDelay, maxIndexDelay)
	}
	if old := s.choices.get(); c != old {
		s.ddl.Lock()
		defer s.ddl.Unlock()
		s.transactions.endOf(nil) // their writes were made under the old choices
		if c.IndexDelay == old.IndexDelay {
			s.choices.now.Store(&c)
			return nil
		}
		if err := s.catchUpAll(); err != nil {
			return err
		}
	}
	s.choices.now.Store(&c)
	return nil
}

const maxIndexDelay = 366 * 24 * time.Hour
