package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"example.com/tsimport/engine/wire"
)

// A secondary index is a table whose rows follow another table's rows. Both are written in the same batch, unless
// indexes are delayed (see late.go).

// index describes an index in its table's meta.
type index struct {
	ID      uint32
	Name    string
	Key     []wire.KeyColumn // complete key; the columns given at creation come first
	Named   int              `json:",omitempty"` // number of columns given at creation; 0 means all
	Columns []string         `json:",omitempty"`
	Local   bool             `json:",omitempty"`
}

// meta returns the index as described with its table, with the columns given at creation.
func (x *index) meta() wire.IndexMeta {
	m := wire.IndexMeta{Name: x.Name, Columns: x.Columns, Local: x.Local}
	for i, k := range x.Key {
		if x.Named > 0 && i == x.Named {
			break
		}
		m.Key = append(m.Key, k.Name)
	}
	return m
}

func (x *index) has(name string) bool {
	return slices.Contains(x.Columns, name) || slices.ContainsFunc(x.Key,
		func(k wire.KeyColumn) bool { return k.Name == name })
}

// table returns the index as a table, which is read like any other.
func (x *index) table(of *meta) *meta {
	m := &meta{ID: x.ID, Name: x.Name, Key: x.Key, TTL: of.TTL, NoUpdate: of.NoUpdate, MaxVersions: 1,
		Deviation: of.Deviation, Of: of.Name, Created: of.Created, LastIncrease: of.LastIncrease}
	for _, name := range x.Columns {
		m.Defined = append(m.Defined,
			of.Defined[slices.IndexFunc(of.Defined, func(d wire.DefinedColumn) bool { return d.Name == name })])
	}
	return m
}

// newIndex checks an index of a table and gives it a number.
func (s *Store) newIndex(m *meta, r *wire.IndexMeta) (*index, *wire.Error) {
	if err := wire.CheckIndexable(m.TTL, m.MaxVersions, !m.NoUpdate); err != nil {
		return nil, err
	}
	key, err := r.Check(m.Key, m.Defined)
	if err != nil {
		return nil, err
	}
	if err := wire.CheckIndexCount(len(m.Indexes) + 1); err != nil {
		return nil, err
	}
	taken := func(x index) bool { return x.Name == r.Name }
	if r.Name == m.Name || s.Table([]byte(r.Name)) != nil || slices.ContainsFunc(m.Indexes, taken) {
		return nil, wire.Fail(wire.CodeObjectAlreadyExist)
	}
	x := &index{ID: s.nextID, Name: r.Name, Key: key, Named: len(r.Key), Columns: r.Columns, Local: r.Local}
	s.nextID++
	return x, nil
}

// CreateIndex creates an index of a table. Writers wait while existing rows are added to it.
func (s *Store) CreateIndex(ctx context.Context, r *wire.CreateIndex) *wire.Error {
	s.ddl.Lock()
	defer s.ddl.Unlock()
	t, m, err := s.noIndex(r.Table, "create an index of an index table")
	if err != nil {
		return err
	}
	if err := s.quota(1); err != nil {
		return err
	}
	x, err := s.newIndex(&m, &r.Index)
	if err != nil {
		return err
	}
	// Save the counter first, so that after a crash no other table has this number, and with it the rows left behind.
	counter := s.db.NewBatch()
	counter.Set(counterKey, binary.BigEndian.AppendUint32(nil, s.nextID), nil)
	if err := s.commitAndWait(ctx, counter); err != nil {
		return err
	}
	if r.BaseData {
		err := s.fill(ctx, &m, x)
		ctx = context.WithoutCancel(ctx) // its rows exist: finish, or remove them, even if the client disconnects
		if err != nil {
			b := s.db.NewBatch()
			dropRows(b, x)
			if e := s.commit(ctx, b, false); e != nil {
				return e
			}
			return err
		}
	}
	m.Indexes = append(slices.Clip(m.Indexes), *x)
	s.transactions.endOf(t) // the index lacks their writes
	b := s.db.NewBatch()
	of := x.table(&m)
	if err := s.putTable(b, of); err != nil {
		return err
	}
	if err := s.saveTable(ctx, b, &m); err != nil {
		return err
	}
	t.meta.Store(&m)
	s.addTable(of)
	return nil
}

// DropIndex deletes an index and its rows.
func (s *Store) DropIndex(ctx context.Context, r *wire.DropIndex) *wire.Error {
	s.ddl.Lock()
	defer s.ddl.Unlock()
	t := s.Table(r.Table)
	if t == nil {
		return wire.Fail(wire.CodeObjectNotExist)
	}
	m := *t.meta.Load()
	at := slices.IndexFunc(m.Indexes, func(x index) bool { return x.Name == string(r.Index) })
	if at < 0 {
		return wire.Failf(wire.CodeObjectNotExist, "Requested index does not exist.")
	}
	if err := s.catchUp(ctx, m.ID, maxTime); err != nil { // so that none of its changes are pending
		return err
	}
	s.transactions.endOf(t)
	b := s.db.NewBatch()
	dropRows(b, &m.Indexes[at])
	m.Indexes = slices.Delete(slices.Clone(m.Indexes), at, at+1)
	if err := s.saveTable(ctx, b, &m); err != nil {
		return err
	}
	t.meta.Store(&m)
	s.forget(string(r.Index))
	return nil
}

func dropRows(b *pebble.Batch, x *index) {
	b.Delete(tableKey(x.Name), nil)
	b.DeleteRange(appendRowPrefix(nil, x.ID), appendRowPrefix(nil, x.ID+1), nil)
}

// forget drops a table whose description has been deleted.
func (s *Store) forget(name string) {
	if t := s.Table([]byte(name)); t != nil {
		t.dropped = true
		s.setTable(name, nil)
	}
}

// fill adds the rows of a table to a new index. They are synced with the table's description, which is written later.
func (s *Store) fill(ctx context.Context, m *meta, x *index) *wire.Error {
	from, to := appendRowPrefix(nil, m.ID), appendRowPrefix(nil, m.ID+1)
	return s.rewrite(ctx, from, to, func(b *pebble.Batch, key, value []byte) (more bool, err error) {
		columns, whole := decodeKey(key, m.Key)
		cells, also := readRow(value, nil)
		if !whole || !also {
			return false, fmt.Errorf("a row of table %s is damaged", m.Name)
		}
		entry, in, refused := x.entry(columns, cells)
		if refused != nil {
			return false, refused
		}
		if in {
			b.Set(entry, x.row(cells), nil)
		}
		return true, nil
	})
}

// entry returns the key of the row's entry in the index, if it has one.
func (x *index) entry(key, cells []wire.Cell) (entry []byte, in bool, err *wire.Error) {
	entry = appendRowPrefix(nil, x.ID)
	for _, k := range x.Key {
		c := newest(cells, k.Name)
		if i := slices.IndexFunc(key, func(c wire.Cell) bool { return string(c.Name) == k.Name }); i >= 0 {
			c = &key[i]
		}
		if c == nil || c.Type != k.Type.ValueType() {
			return nil, false, nil
		}
		if n := len(c.Value); n > wire.MaxKeyValueBytes {
			return nil, false,
				wire.Invalid("The length of primary key column: '%s' exceeds the MaxLength:%d with CurrentLength:%d.", k.Name,
					wire.MaxKeyValueBytes, n)
		}
		entry = appendColumn(entry, c)
	}
	return entry, true, nil
}

// row encodes the cells of an index row: the columns of the index, and marks for the time to live. The mark without a
// name has the time of the row's newest cell; each other mark that of an index key column outside the table's key.
func (x *index) row(cells []wire.Cell) []byte {
	var kept []wire.Cell
	base := int64(0)
	for i := range cells {
		base = max(base, cells[i].Timestamp)
	}
	if len(cells) > 0 {
		kept = append(kept, mark(nil, base))
	}
	for _, k := range x.Key {
		if c := newest(cells, k.Name); c != nil {
			kept = append(kept, mark(c.Name, c.Timestamp))
		}
	}
	for _, name := range x.Columns {
		if c := newest(cells, name); c != nil {
			kept = append(kept, *c)
		}
	}
	sortCells(kept)
	return appendRow(nil, kept, base, 1)
}

func mark(name []byte, timestamp int64) wire.Cell {
	return wire.Cell{Name: name, Type: wire.Boolean, Value: []byte{1}, Timestamp: timestamp, Stamped: true}
}

// unmark removes the marks from the cells of an index row, in place. there is false if a mark has expired.
func (m *meta) unmark(cells []wire.Cell, now *rules) (kept []wire.Cell, there bool) {
	kept = cells[:0]
	for i := range cells {
		c := &cells[i]
		if len(c.Name) > 0 && !slices.ContainsFunc(m.Key, func(k wire.KeyColumn) bool { return k.Name == string(c.Name) }) {
			kept = append(kept, *c)
		} else if now.expired(c.Timestamp) {
			return nil, false
		}
	}
	return kept, true
}

// newest returns the newest version of a column in sorted cells, or nil. Of equally old ones, it is the last written.
func newest(cells []wire.Cell, name string) *wire.Cell {
	for i := range cells {
		if string(cells[i].Name) != name {
			continue
		}
		for i+1 < len(cells) && cells[i+1].Timestamp == cells[i].Timestamp && bytes.Equal(cells[i+1].Name, cells[i].Name) {
			i++
		}
		return &cells[i]
	}
	return nil
}

// follow updates the indexes of a row's table, in the batch that will write the row. cells is the row's new, sorted
// content, and there says whether it will exist. refused is an error of the row, after which nothing is written.
func (w *writer) follow(r *writeRow, cells []wire.Cell, there bool) (refused *wire.Error, err error) {
	if len(r.meta.Indexes) == 0 {
		return nil, nil
	}
	type change struct{ from, to, row []byte }
	changes := make([]change, len(r.meta.Indexes))
	key := r.change.Row.Key
	for i := range r.meta.Indexes {
		if !there {
			break
		}
		x := &r.meta.Indexes[i]
		entry, in, refused := x.entry(key, cells)
		if refused != nil {
			return refused, nil
		}
		if in {
			changes[i].to, changes[i].row = entry, x.row(cells)
		}
	}
	value, closer, err := w.batch.Get(r.key)
	if err == nil {
		old, ok := readRow(value, nil)
		for i := range r.meta.Indexes {
			// A row with a value too large for the index was stored before the index existed, so it has no entry.
			changes[i].from, _, _ = r.meta.Indexes[i].entry(key, old)
		}
		closer.Close()
		if !ok {
			return nil, fmt.Errorf("a row of table %s is damaged", r.meta.Name)
		}
	} else if err != pebble.ErrNotFound {
		return nil, fmt.Errorf("read row of table %s: %w", r.meta.Name, err)
	}
	to := w.batch
	delay := w.store.choices.get().IndexDelay
	if delay > 0 {
		to = w.store.db.NewBatch()
		defer to.Close()
	}
	for _, c := range changes {
		if c.from != nil && !bytes.Equal(c.from, c.to) {
			if err := to.Delete(c.from, nil); err != nil {
				return nil, err
			}
		}
		if c.to != nil {
			if err := to.Set(c.to, c.row, nil); err != nil {
				return nil, err
			}
		}
	}
	if delay > 0 && !to.Empty() {
		return nil, w.store.postpone(w.batch, r.meta.ID, w.now+delay.Milliseconds(), to)
	}
	return nil, nil
}
