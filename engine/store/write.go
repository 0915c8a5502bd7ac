package store

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"example.com/tsimport/engine/filter"
	"example.com/tsimport/engine/wire"
)

// TableWrite is one table's part of a write. Table is nil if missing. Rows with an error in Outcomes are skipped.
type TableWrite struct {
	Table      *Table
	Changes    []wire.Change
	Conditions []*filter.Filter // column conditions by change, nil if it has none; empty if no change has one
	Outcomes   []wire.Outcome
}

// Write applies the rows in order, in one Pebble batch, and returns when they are on disk (unless NoSync is set). An
// error means that nothing of the request was applied, unless its code is CodeInternalServerError.
//
// If atomic is set, all or none of each table's rows are applied; if none, every row of the table has the first error.
// The rows of a table must have the same partition key.
func (s *Store) Write(ctx context.Context, tables []TableWrite, atomic bool) *wire.Error {
	w := writers.Get().(*writer)
	defer w.release()
	w.store, w.now, w.atomic = s, s.millis(), atomic
	s.ddl.RLock()
	err := w.write(ctx, tables)
	s.ddl.RUnlock()
	if err == nil && !s.o.NoSync {
		err = s.wait(w.batch)
	}
	if s.health.cause() != nil {
		w.batch = nil // Pebble's log may still use it, so never reuse it
	}
	return err
}

// writer is the working memory of a Write.
type writer struct {
	store *Store
	now   int64 // timestamp in milliseconds for cells without one
	batch *pebble.Batch

	atomic       bool // write all or none of a table's rows
	placeholders int  // number of rows that need a number

	rows   []writeRow
	keys   []byte // the row keys, concatenated
	value  []byte
	cells  []wire.Cell // of the row before the change; views into before
	before []byte
}

// writeRow is a row whose key fits the schema.
type writeRow struct {
	meta    *meta
	change  *wire.Change
	columns *filter.Filter // column condition; nil means none
	outcome *wire.Outcome
	key     []byte
	from    int // offset in keys, until all keys are appended
	number  int // key column that needs a number; 0 for none
}

// millis returns the store's clock in milliseconds, which never goes back while the store is open.
func (s *Store) millis() int64 {
	now := s.o.Now().UnixMilli()
	for {
		last := s.clock.Load()
		if now <= last {
			return last
		}
		if s.clock.CompareAndSwap(last, now) {
			return now
		}
	}
}

// RestartClock allows the clock to go back once. Earlier cells may then be in the future.
func (s *Store) RestartClock() { s.clock.Store(0) }

var writers = sync.Pool{New: func() any { return &writer{} }}

const maxKeptBytes = 1 << 20

func (w *writer) release() {
	if w.batch != nil {
		w.batch.Close()
	}
	clear(w.rows)
	clear(w.cells[:cap(w.cells)])
	keep := writer{rows: w.rows[:0], keys: w.keys[:0], value: w.value[:0], cells: w.cells[:0], before: w.before[:0]}
	if cap(keep.value) > maxKeptBytes || cap(keep.before) > maxKeptBytes {
		keep.value, keep.before = nil, nil
	}
	if cap(keep.cells) > 4*wire.MaxCells {
		keep.cells = nil
	}
	*w = keep
	writers.Put(w)
}

func (w *writer) write(ctx context.Context, tables []TableWrite) *wire.Error {
	bytes, reads := w.prepare(tables)
	if w.store.transactions.open.Load() > 0 {
		w.refuseLocked()
	}
	if w.atomic {
		w.checkAtomic(tables)
	}
	if err := w.checkRepeats(); err != nil {
		return err
	}
	if reads {
		w.batch = w.store.db.NewIndexedBatchWithSize(bytes) // indexed, so that a row sees earlier rows
	} else {
		w.batch = w.store.db.NewBatchWithSize(bytes)
	}
	var stripes stripeSet
	for i := range w.rows {
		r := &w.rows[i]
		if r.number > 0 {
			stripes.add(w.store.stripe(partitionPart(r.key)), true) // see assign
			continue
		}
		stripes.add(w.store.stripe(r.key), r.readsFirst())
	}
	w.store.lock(&stripes)
	defer w.store.unlock(&stripes)
	// Read the time only now: of two writes to a row, the one applied later must not have an earlier time, or its cells
	// would be hidden. (When it was read before the locks, a quarter of increments were lost.)
	w.now = w.store.millis()
	if err := w.assign(ctx); err != nil {
		return err
	}
	if err := w.apply(ctx); err != nil {
		return err
	}
	if w.batch.Empty() {
		return nil
	}
	return w.store.commit(ctx, w.batch, !w.store.o.NoSync)
}

// apply adds the rows to the batch. An error concerns the whole request, and the batch is dropped.
func (w *writer) apply(ctx context.Context) *wire.Error {
	if w.atomic {
		return w.applyAtomic(ctx)
	}
	return w.applyRows(ctx, w.rows)
}

func (w *writer) applyRows(ctx context.Context, rows []writeRow) *wire.Error {
	for i := range rows {
		if rows[i].columns != nil && ctx.Err() != nil { // matching a regular expression may take a long time
			return cancelled()
		}
		if err := w.row(&rows[i]); err != nil {
			return wire.Failf(wire.CodeServerUnavailable, "Nothing was applied: %v.", err)
		}
		if w.atomic && rows[i].outcome.Err != nil {
			return nil // the caller finds the error in the outcome
		}
	}
	return nil
}

func readsFirst(c *wire.Change) bool {
	return c.Conditional() || c.Op == wire.UpdateRow
}

// readsFirst reports whether the row must be read before the change, for the change or an index.
func (r *writeRow) readsFirst() bool { return readsFirst(r.change) || len(r.meta.Indexes) > 0 }

// prepare gives every row its key or an error. It returns the batch's approximate size, and whether a row must be read.
func (w *writer) prepare(tables []TableWrite) (bytes int, reads bool) {
	for i := range tables {
		t := &tables[i]
		for j := range t.Changes {
			c, o := &t.Changes[j], &t.Outcomes[j]
			if o.Err != nil {
				continue
			}
			if t.Table == nil || t.Table.dropped {
				o.Err = wire.Fail(wire.CodeObjectNotExist)
				continue
			}
			m := t.Table.meta.Load()
			if m.Of != "" {
				o.Err = wire.Invalid("Can't write index table directly.")
				continue
			}
			from := len(w.keys)
			if w.keys, o.Err = m.appendKey(w.keys, c.Row.Key); o.Err == nil {
				o.Err = m.checkCells(c, w.now, w.store.choices.get())
			}
			number := 0
			if o.Err == nil {
				number, o.Err = m.checkNumber(c)
			}
			if o.Err != nil {
				w.keys = w.keys[:from]
				continue
			}
			if number > 0 {
				w.placeholders++
			}
			w.rows = append(w.rows, writeRow{meta: m, change: c, outcome: o, from: from, number: number})
			if len(t.Conditions) > 0 {
				w.rows[len(w.rows)-1].columns = t.Conditions[j]
			}
			reads = reads || w.rows[len(w.rows)-1].readsFirst()
			bytes += c.DataBytes + 64 + 4*len(c.Row.Cells)
		}
	}
	for i := range w.rows { // only now, because keys may move while it grows
		end := len(w.keys)
		if i+1 < len(w.rows) {
			end = w.rows[i+1].from
		}
		w.rows[i].key = w.keys[w.rows[i].from:end:end]
	}
	return bytes, reads
}

// checkRepeats refuses a request that repeats a row with a conditional change, or a row of a table with indexes.
func (w *writer) checkRepeats() *wire.Error {
	if len(w.rows) < 2 || !slices.ContainsFunc(w.rows, func(r writeRow) bool { return r.onlyOnce() }) {
		return nil
	}
	first := make(map[string]*writeRow, len(w.rows))
	for i := range w.rows {
		r := &w.rows[i]
		if r.number > 0 {
			continue // a new row, which cannot repeat another
		}
		before, repeated := first[string(r.key)]
		if !repeated {
			first[string(r.key)] = r
			continue
		}
		for _, x := range []*wire.Change{before.change, r.change} {
			if x.Expect != wire.Ignore {
				return wire.Invalid("Repeated rows do not support row exist expectation check in BatchModify.")
			}
			if len(x.Condition) > 0 {
				return wire.Invalid("Repeated rows do not support row condition check in BatchModify.")
			}
		}
		if r.onlyOnce() {
			return wire.Invalid("Repeated rows do not support tables with secondary indexes in BatchModify.")
		}
	}
	return nil
}

// onlyOnce reports whether a row must not be repeated in a request.
func (r *writeRow) onlyOnce() bool { return r.change.Conditional() || len(r.meta.Indexes) > 0 }

// checkCells checks the cells against the table's deviation and predefined columns, and whether it allows updates.
func (m *meta) checkCells(c *wire.Change, now int64, choices Choices) *wire.Error {
	if c.Op == wire.UpdateRow && m.NoUpdate {
		return wire.Invalid("Update operation is not allowed in this table")
	}
	for i := range c.Row.Cells {
		cell := &c.Row.Cells[i]
		if cell.Op == wire.DeleteColumn || cell.Op == wire.DeleteVersion {
			continue
		}
		if cell.Stamped {
			if from, to := m.window(now, choices); cell.Timestamp < from || cell.Timestamp >= to {
				ms := now % 1000 // bounds are in whole seconds
				return wire.Invalid("Invalid timestamp. Cell:%s. Timestamp:%d. MinTimestamp:%d. MaxTimestamp:%d.", cell.Name,
					cell.Timestamp, from+ms, min(to, math.MaxInt64-ms)+ms)
			}
		}
		for j := range m.Defined {
			if d := &m.Defined[j]; string(cell.Name) == d.Name && cell.Type != d.ValueType() {
				return wire.Invalid("Invalid column type for column %s expect %s actual %s", cell.Name, d.ValueType(), cell.Type)
			}
		}
	}
	return nil
}

// window returns the range of timestamps, in milliseconds and from whole seconds on, that a write may have.
func (m *meta) window(now int64, choices Choices) (from, to int64) {
	second := now / 1000
	oldest := second - m.Deviation
	if choices.ExclusiveLowerEdge {
		oldest++
	}
	if m.TTL > 0 {
		oldest = max(oldest, second-int64(m.TTL))
	}
	return max(oldest, 0) * 1000, min(second+m.Deviation, math.MaxInt64/1000) * 1000
}

// row adds a row's change to the batch. An error means that the store could not be read, and the batch is dropped.
func (w *writer) row(r *writeRow) error {
	c, o := r.change, r.outcome
	o.Consumed.Write = wire.Units(c.Row.DataBytes())
	if c.Conditional() {
		o.Consumed.Read = wire.Units(wire.DataBytes(c.Row.Key))
	}
	var exists bool
	var err error
	if readsFirst(c) {
		if w.cells, exists, err = w.old(r); err != nil {
			return err
		}
		if !r.met(w.cells, exists) {
			o.Err, o.Consumed = wire.Fail(wire.CodeConditionCheckFail), wire.Capacity{Read: 1, Write: 1}
			return nil
		}
	}
	switch c.Op {
	case wire.DeleteRow:
		if w.store.choices.get().DeletionsHideEarlier {
			w.store.choices.deleted(r.key, nil, w.now)
		}
		if o.Err, err = w.follow(r, nil, false); o.Err != nil || err != nil {
			return err
		}
		if err := w.batch.Delete(r.key, nil); err != nil {
			return err
		}
	case wire.PutRow:
		if o.Err, err = w.put(r, stamp(c.Row.Cells, w.now)); o.Err != nil || err != nil {
			return err
		}
	case wire.UpdateRow:
		u := update{cells: w.cells, now: w.now, row: r.key, chosen: &w.store.choices, choices: w.store.choices.get()}
		if r.meta.FullRow {
			u.cells = slices.DeleteFunc(u.cells, func(had wire.Cell) bool { // drops columns that the update does not name
				return !slices.ContainsFunc(c.Row.Cells, func(op wire.Cell) bool { return bytes.Equal(op.Name, had.Name) })
			})
		}
		o.Err = u.apply(c.Row.Cells)
		w.cells = u.cells[:0]
		if o.Err != nil {
			return nil
		}
		if exists || u.creates {
			if o.Err, err = w.put(r, u.cells); o.Err != nil || err != nil {
				return err
			}
		}
	}
	o.Row = returned(c)
	return nil
}

// met reports whether a change's conditions hold for the old row. A missing row has no columns.
func (r *writeRow) met(cells []wire.Cell, exists bool) bool {
	c := r.change
	if c.Expect == wire.ExpectExist && !exists || c.Expect == wire.ExpectNotExist && exists {
		return false
	}
	if r.columns == nil {
		return true
	}
	if !exists {
		return r.columns.Match(nil, nil)
	}
	return r.columns.Match(c.Row.Key, cells)
}

// old returns the row's visible cells before the change, as views into w.before, and whether the row exists.
func (w *writer) old(r *writeRow) (cells []wire.Cell, exists bool, err error) {
	cells = w.cells[:0]
	w.store.gather.noteRead()
	value, closer, err := w.batch.Get(r.key)
	if err == pebble.ErrNotFound {
		return cells, false, nil
	}
	if err != nil {
		return cells, false, fmt.Errorf("read row of table %s: %w", r.meta.Name, err)
	}
	w.before = append(w.before[:0], value...)
	closer.Close()
	cells, ok := readRow(w.before, cells)
	if !ok {
		return cells, false, fmt.Errorf("a row of table %s is damaged", r.meta.Name)
	}
	rules := r.meta.rules(w.now)
	stored := len(cells)
	cells = rules.visible(cells)
	return cells, stored == 0 || len(cells) > 0, nil
}

// put writes a row and its index changes. refused is an error of the row, after which nothing is written.
func (w *writer) put(r *writeRow, cells []wire.Cell) (refused *wire.Error, err error) {
	sortCells(cells)
	if refused, err = w.follow(r, cells, true); refused != nil || err != nil {
		return refused, err
	}
	w.value = appendRow(w.value[:0], cells, w.now, int(r.meta.MaxVersions))
	return nil, w.batch.Set(r.key, w.value, nil)
}

func stamp(cells []wire.Cell, now int64) []wire.Cell {
	for i := range cells {
		if !cells[i].Stamped {
			cells[i].Timestamp = now
		}
	}
	return cells
}

// returned returns the row that a change requests in answer: its key, and with RT_AFTER_MODIFY the requested sums.
func returned(c *wire.Change) []byte {
	switch c.Return {
	case wire.ReturnKey:
		return wire.AppendRow(wire.AppendHeader(nil), c.Row.Key, nil)
	case wire.ReturnAfterModify:
		var cells []wire.Cell
		for _, cell := range c.Row.Cells {
			if slices.ContainsFunc(c.ReturnColumns, func(name []byte) bool { return bytes.Equal(name, cell.Name) }) {
				cells = append(cells, cell)
			}
		}
		sortCells(cells)
		return wire.AppendRow(wire.AppendHeader(nil), c.Row.Key, cells)
	}
	return nil
}
