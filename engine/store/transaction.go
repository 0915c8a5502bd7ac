package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"example.com/tsimport/engine/wire"
)

// A local transaction covers one partition key of one table. Its writes are held in a batch on top of the store, which
// a commit applies as a whole. Until then they are invisible to others, who cannot write to the partition key.

const (
	transactionMillis = 60_000 // how long a transaction lasts
	// maxWaitingBytes limits the batches of all transactions. Even an update of a few bytes puts the whole row into one.
	maxWaitingBytes = 256 << 20
)

// transactions holds the open transactions. They begin and are committed while Store.ddl is held exclusively, between
// writes; those that expire or fail may end during writes.
type transactions struct {
	open    atomic.Int64 // number of open transactions; if 0, other writes need not check for them
	waiting atomic.Int64 // bytes in their batches

	mu    sync.Mutex // locked after all others
	byID  map[string]*transaction
	byKey map[string]*transaction // by part
}

// transaction is an open transaction. A request takes it for exclusive use and gives it back.
type transaction struct {
	id    string
	table *Table
	key   wire.Cell // the partition key
	part  string    // prefix of the keys of its rows
	began int64     // Unix milliseconds
	busy  bool      // guarded by transactions.mu, like size
	size  int64     // bytes of the batch

	written int           // sum of wire.Change.DataBytes
	batch   *pebble.Batch // nil if nothing was written
}

// expired reports whether the time of a transaction is over and it is not in use.
func (t *transaction) expired(now int64) bool { return !t.busy && now-t.began >= transactionMillis }

// take gives a request exclusive use of a transaction until the request calls give.
func (s *Store) take(id wire.TransactionID) (*transaction, *wire.Error) {
	x := &s.transactions
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.byID[string(id)]
	switch {
	case t == nil || t.expired(s.millis()):
		return nil, wire.Fail(wire.CodeSessionNotExist)
	case t.busy:
		return nil, wire.Fail(wire.CodeSessionBusy)
	}
	t.busy = true
	return t, nil
}

func (x *transactions) give(t *transaction) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t.busy = false
}

func (x *transactions) keep(t *transaction, b *pebble.Batch) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.byID[t.id] == t {
		x.waiting.Add(int64(b.Len()) - t.size)
	}
	t.batch, t.size = b, int64(b.Len())
}

// end ends the transactions for which over returns true. Their batches remain open, as a request may still read one.
func (x *transactions) end(over func(*transaction) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, t := range x.byID {
		if over(t) {
			delete(x.byID, t.id)
			delete(x.byKey, t.part)
			x.open.Add(-1)
			x.waiting.Add(-t.size)
		}
	}
}

// endOf ends a table's transactions, or all if table is nil. The caller holds Store.ddl exclusively.
func (x *transactions) endOf(table *Table) {
	x.end(func(t *transaction) bool { return table == nil || t.table == table })
}

func (x *transactions) endExpired(now int64) {
	x.end(func(t *transaction) bool { return t.expired(now) })
}

// StartTransaction begins a transaction on a partition key and returns its id.
func (s *Store) StartTransaction(table *Table, key wire.Cell) (id string, err *wire.Error) {
	s.ddl.Lock()
	defer s.ddl.Unlock()
	m := table.meta.Load()
	switch {
	case table.dropped:
		return "", wire.Fail(wire.CodeObjectNotExist)
	case !m.LocalTxn:
		return "", wire.Invalid("Try to call method using explicit transaction on explicit-transaction-disabled table.")
	case s.choices.get().DeletionsHideEarlier:
		return "", wire.Unsupported("local transactions while deletions hide what is written later")
	}
	part, err := m.appendColumns(appendRowPrefix(nil, m.ID), []wire.Cell{key})
	if err != nil {
		return "", err
	}
	var random [16]byte
	rand.Read(random[:]) // never fails
	key.Value = bytes.Clone(key.Value)
	t := &transaction{id: hex.EncodeToString(random[:]), table: table, key: key, part: string(part), began: s.millis()}
	x := &s.transactions
	x.endExpired(t.began)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.byKey[t.part] != nil {
		return "", wire.Fail(wire.CodeRowOperationConflict)
	}
	if x.byID == nil {
		x.byID, x.byKey = map[string]*transaction{}, map[string]*transaction{}
	}
	x.byID[t.id], x.byKey[t.part] = t, t
	x.open.Add(1)
	return t.id, nil
}

// TransactionKey returns the table and the partition key of a transaction. ok is false if the transaction has ended.
func (s *Store) TransactionKey(id wire.TransactionID) (table string, key wire.Cell, ok bool) {
	s.transactions.mu.Lock()
	defer s.transactions.mu.Unlock()
	t := s.transactions.byID[string(id)]
	if t == nil {
		return "", key, false
	}
	return t.table.meta.Load().Name, t.key, true
}

// EndTransaction commits or aborts a transaction. A commit applies all writes or none, and is as durable as Write.
// After an error the transaction is still open, unless the outcome is unknown.
func (s *Store) EndTransaction(ctx context.Context, id wire.TransactionID, commit bool) *wire.Error {
	b, err := s.endTransaction(ctx, id, commit)
	if err == nil && b != nil && !s.o.NoSync {
		err = s.wait(b)
	}
	return err
}

// endTransaction atomically makes the writes visible and frees the partition key. It returns the batch to wait for.
func (s *Store) endTransaction(ctx context.Context, id wire.TransactionID, commit bool) (b *pebble.Batch,
	err *wire.Error) {
	s.ddl.Lock()
	defer s.ddl.Unlock()
	t, err := s.take(id)
	if err != nil {
		return nil, err
	}
	defer s.transactions.give(t)
	if commit && t.batch != nil {
		b = t.batch
		err = s.commit(ctx, b, !s.o.NoSync)
	}
	if err == nil || err.Code == wire.CodeInternalServerError {
		s.transactions.end(func(open *transaction) bool { return open == t })
	}
	return b, err
}

// refuseLocked refuses rows whose partition keys are locked by transactions.
func (w *writer) refuseLocked() {
	x := &w.store.transactions
	x.mu.Lock()
	defer x.mu.Unlock()
	now := w.store.millis()
	for i := range w.rows {
		r := &w.rows[i]
		if !r.meta.LocalTxn {
			continue
		}
		if t := x.byKey[string(partitionPart(r.key))]; t != nil && !t.expired(now) {
			r.outcome.Err = wire.Fail(wire.CodeRowOperationConflict)
		}
	}
	w.leaveOut()
}

// holds returns an error for the key of a row outside the transaction.
func (t *transaction) holds(key []byte, partition *wire.Cell, m *meta) *wire.Error {
	switch own := t.table.meta.Load(); {
	case m.ID != own.ID:
		return wire.Failf(wire.CodeDataOutOfRange, "Data out of scope of transaction. Transaction Table:%s. Data Table:%s",
			own.Name, m.Name)
	case !strings.HasPrefix(string(key), t.part):
		return wire.Failf(wire.CodeDataOutOfRange,
			"Data out of scope of transaction. Transaction PartKey:%s. Data PartKey:%s", t.key.Text(), partition.Text())
	}
	return nil
}

// over returns a reader of the store with the transaction's writes on top.
func (t *transaction) over(s *Store) pebble.Reader {
	if t.batch == nil {
		return s.db
	}
	return t.batch
}

// readIn takes the transaction for a read. It must cover the key of the row, or both bounds of the range.
func (s *Store) readIn(id wire.TransactionID, m *meta, keys ...[]wire.Cell) (*transaction, *wire.Error) {
	t, err := s.take(id)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		var k []byte
		if k, err = m.appendKey(nil, key); err == nil {
			err = t.holds(k, &key[0], m)
		}
		if err != nil {
			s.transactions.give(t)
			return nil, err
		}
	}
	return t, nil
}

// WriteIn is like Write, but adds the rows to a transaction, which holds them until it is committed.
func (s *Store) WriteIn(id wire.TransactionID, tables []TableWrite, atomic bool) *wire.Error {
	s.ddl.RLock()
	defer s.ddl.RUnlock()
	t, err := s.take(id)
	if err != nil {
		return err
	}
	defer s.transactions.give(t)
	if s.transactions.waiting.Load() > s.waitingLimit {
		if s.transactions.endExpired(s.millis()); s.transactions.waiting.Load() > s.waitingLimit {
			return wire.Failf(wire.CodeServerBusy,
				"The open local transactions hold more than %d MB; commit or abort some.", maxWaitingBytes>>20)
		}
	}
	w := writers.Get().(*writer)
	defer w.release()
	w.store, w.now, w.atomic = s, s.millis(), atomic
	w.prepare(tables)
	for i := range w.rows {
		r := &w.rows[i]
		r.outcome.Err = t.holds(r.key, &r.change.Row.Key[0], r.meta)
	}
	if atomic {
		w.checkAtomic(tables)
	}
	w.leaveOut()
	if err := w.checkRepeats(); err != nil {
		return err
	}
	return w.applyIn(t)
}

func (w *writer) applyIn(t *transaction) *wire.Error {
	if len(w.rows) == 0 {
		return nil
	}
	size := t.written
	for i := range w.rows {
		size += w.rows[i].change.DataBytes
	}
	if size > wire.MaxRequestDataBytes {
		return wire.Fail(wire.CodeOutOfTransactionSize)
	}
	b := t.batch
	if b == nil || w.atomic { // use a copy, which is dropped if a row fails
		b = w.store.db.NewIndexedBatch()
		if t.batch != nil {
			if err := b.Apply(t.batch, nil); err != nil {
				return wire.Failf(wire.CodeServerUnavailable, "Nothing was applied: %v.", err)
			}
		}
	}
	w.batch = b
	err := w.applyRows(context.Background(), w.rows)
	w.batch = nil   // so that release does not close it
	if err != nil { // the batch may have some of the rows
		w.store.transactions.end(func(open *transaction) bool { return open == t })
		return err
	}
	for i := range w.rows {
		failed := *w.rows[i].outcome
		if failed.Err == nil {
			continue
		}
		if size -= w.rows[i].change.DataBytes; w.atomic {
			for j := range w.rows {
				*w.rows[j].outcome = failed
			}
			return nil
		}
	}
	t.written = size
	w.store.transactions.keep(t, b)
	return nil
}
