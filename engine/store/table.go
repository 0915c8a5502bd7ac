package store

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"example.com/tsimport/engine/wire"
)

// Table is a handle for a table. After the table is deleted, writes with it fail.
type Table struct {
	id      uint32
	meta    atomic.Pointer[meta]
	dropped bool // guarded by Store.ddl
}

// meta is the description of a table, stored as JSON. It is immutable, and replaced as a whole.
type meta struct {
	ID           uint32
	Name         string
	Key          []wire.KeyColumn
	Defined      []wire.DefinedColumn `json:",omitempty"`
	TTL          int32
	MaxVersions  int32
	Deviation    int64
	NoUpdate     bool `json:",omitempty"`
	FullRow      bool `json:",omitempty"` // updates replace the whole row
	LocalTxn     bool `json:",omitempty"` // the table supports local transactions
	Read, Write  int32
	LastIncrease int64
	LastDecrease int64    `json:",omitempty"`
	Created      int64    // Unix microseconds, later than for any earlier table
	Adjusted     int64    `json:",omitempty"` // time of the last change of reserved throughput, in Unix milliseconds
	Indexes      []index  `json:",omitempty"`
	Of           string   `json:",omitempty"` // the table of this index; empty if it is not an index
	Stream       *stream  `json:",omitempty"` // nil means none
	Bounds       [][]byte `json:",omitempty"` // bounds between the partitions at creation, as variants
}

// stream holds the requested options of a stream, which the engine only describes.
type stream struct {
	Hours   int32
	Columns []string `json:",omitempty"`
}

func (m *meta) setStream(s *wire.StreamSpec) {
	if !s.Set {
		return
	}
	if m.Stream = nil; s.Enable {
		m.Stream = &stream{s.Hours.Or(24), s.Columns}
	}
}

// counterKey is the key of the next table's number, createdKey that of the last table's creation time.
var (
	counterKey = []byte{0x00}
	createdKey = []byte{0x00, 0x02} // serialKey has 0x01
)

func tableKey(name string) []byte { return append([]byte{spaceTables}, name...) }

func (s *Store) loadTables() error {
	next, err := readNumber(s.db, counterKey, 4)
	if err != nil {
		return fmt.Errorf("read table counter: %w", err)
	}
	created, err := readNumber(s.db, createdKey, 8)
	if err != nil {
		return fmt.Errorf("read the creation time of the last table: %w", err)
	}
	s.nextID, s.lastCreated = max(1, uint32(next)), int64(created)
	from, to := []byte{spaceTables}, []byte{spaceTables + 1}
	return s.each(context.Background(), from, to, func(it *pebble.Iterator) (more bool, err error) {
		m := &meta{}
		if err := json.Unmarshal(it.Value(), m); err != nil {
			return false, fmt.Errorf("read table %q: %w", it.Key()[1:], err)
		}
		s.addTable(m)
		s.lastCreated = max(s.lastCreated, m.Created)
		return true, nil
	})
}

// readNumber returns the number of size bytes stored under a key, or 0 if the key is missing.
func readNumber(db *pebble.DB, key []byte, size int) (number uint64, err error) {
	value, closer, err := db.Get(key)
	if err == pebble.ErrNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer closer.Close()
	if len(value) != size {
		return 0, errors.New("it is damaged")
	}
	for _, b := range value {
		number = number<<8 | uint64(b)
	}
	return number, nil
}

// Table looks up a table. It returns nil if the table does not exist.
func (s *Store) Table(name []byte) *Table {
	s.names.RLock()
	defer s.names.RUnlock()
	return s.tables[string(name)]
}

// Tables returns the names of all tables in order, without their indexes.
func (s *Store) Tables() []string {
	s.names.RLock()
	defer s.names.RUnlock()
	names := make([]string, 0, len(s.tables))
	for n, t := range s.tables {
		if t.meta.Load().Of == "" {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

func (s *Store) setTable(name string, t *Table) {
	s.names.Lock()
	defer s.names.Unlock()
	if t == nil {
		delete(s.tables, name)
		return
	}
	s.tables[name] = t
}

// CreateTable creates a table from a request that package wire has checked.
func (s *Store) CreateTable(ctx context.Context, r *wire.CreateTable) *wire.Error {
	s.ddl.Lock()
	defer s.ddl.Unlock()
	if s.Table(r.Name) != nil {
		return wire.Fail(wire.CodeObjectAlreadyExist)
	}
	if err := s.quota(1 + len(r.Indexes)); err != nil {
		return err
	}
	now := s.o.Now()
	// Clients recognize a replaced table by this time, so it always increases, even if the clock was set back.
	created := max(now.UnixMicro(), s.lastCreated+1)
	m := &meta{
		ID: s.nextID, Name: string(r.Name), Key: r.Key, Defined: r.Defined, TTL: r.Options.TTL.Value,
		MaxVersions: r.Options.MaxVersions.Value, Deviation: r.Options.Deviation.Or(wire.DefaultDeviation),
		NoUpdate: !r.Options.AllowUpdate.Or(true), FullRow: r.Options.FullRow.Or(false), Read: r.Throughput.Read.Value,
		Write: r.Throughput.Write.Value, LastIncrease: now.Unix(), Created: created, Bounds: savedBounds(r.Bounds),
		LocalTxn: r.LocalTxn.Value,
	}
	m.setStream(&r.Stream)
	before := s.nextID
	s.nextID++
	b := s.db.NewBatch()
	if err := s.addIndexes(b, m, r.Indexes); err != nil {
		s.nextID = before
		return err
	}
	b.Set(counterKey, binary.BigEndian.AppendUint32(nil, s.nextID), nil)
	b.Set(createdKey, binary.BigEndian.AppendUint64(nil, uint64(m.Created)), nil)
	if err := s.saveTable(ctx, b, m); err != nil {
		return err
	}
	s.lastCreated = m.Created
	s.addTable(m)
	for i := range m.Indexes {
		s.addTable(m.Indexes[i].table(m))
	}
	return nil
}

// noIndex looks up a table and copies its description for a change. An index is refused; the error names the change.
func (s *Store) noIndex(name []byte, refused string) (t *Table, m meta, err *wire.Error) {
	if t = s.Table(name); t == nil {
		return nil, m, wire.Fail(wire.CodeObjectNotExist)
	}
	if m = *t.meta.Load(); m.Of != "" {
		err = wire.Invalid("Can't %s.", refused)
	}
	return t, m, err
}

// quota refuses more tables than the limit. Indexes count as tables.
func (s *Store) quota(more int) *wire.Error {
	s.names.RLock()
	defer s.names.RUnlock()
	if s.o.MaxTables > 0 && len(s.tables)+more > s.o.MaxTables {
		return wire.Fail(wire.CodeQuotaExhausted)
	}
	return nil
}

func (s *Store) addIndexes(b *pebble.Batch, m *meta, indexes []wire.IndexMeta) *wire.Error {
	for i := range indexes {
		x, err := s.newIndex(m, &indexes[i])
		if err == nil {
			err = s.putTable(b, x.table(m))
		}
		if err != nil {
			return err
		}
		m.Indexes = append(m.Indexes, *x)
	}
	return nil
}

func (s *Store) addTable(m *meta) {
	t := &Table{id: m.ID}
	t.meta.Store(m)
	s.setTable(m.Name, t)
}

func (s *Store) saveTable(ctx context.Context, b *pebble.Batch, m *meta) *wire.Error {
	if err := s.putTable(b, m); err != nil {
		return err
	}
	return s.commitAndWait(ctx, b)
}

func (s *Store) putTable(b *pebble.Batch, m *meta) *wire.Error {
	text, err := json.Marshal(m)
	if err != nil {
		return wire.Failf(wire.CodeInternalServerError, "Encode table %s: %v.", m.Name, err)
	}
	b.Set(tableKey(m.Name), text, nil)
	return nil
}

// UpdateTable changes only the settings that the request names.
func (s *Store) UpdateTable(ctx context.Context, r *wire.UpdateTable) (*wire.TableDescription, *wire.Error) {
	s.ddl.Lock()
	defer s.ddl.Unlock()
	t, m, err := s.noIndex(r.Name, "update index table directly")
	if err != nil {
		return nil, err
	}
	m.TTL = r.Options.TTL.Or(m.TTL)
	m.MaxVersions = r.Options.MaxVersions.Or(m.MaxVersions)
	m.Deviation = r.Options.Deviation.Or(m.Deviation)
	m.NoUpdate = !r.Options.AllowUpdate.Or(!m.NoUpdate)
	m.setStream(&r.Stream)
	if len(m.Indexes) > 0 {
		if err := wire.CheckIndexable(m.TTL, m.MaxVersions, !m.NoUpdate); err != nil {
			return nil, err
		}
	}
	if err := m.reserve(&r.Throughput, s.o.Now(), s.o.ThroughputInterval); err != nil {
		return nil, err
	}
	b := s.db.NewBatch()
	for i := range m.Indexes { // indexes have the table's options
		if err := s.putTable(b, m.Indexes[i].table(&m)); err != nil {
			return nil, err
		}
	}
	if err := s.saveTable(ctx, b, &m); err != nil {
		return nil, err
	}
	t.meta.Store(&m)
	for i := range m.Indexes {
		x := &m.Indexes[i]
		s.Table([]byte(x.Name)).meta.Store(x.table(&m))
	}
	return t.Describe(), nil
}

// DeleteTable deletes a table and its rows. Its number is never reused, so no row can reappear.
func (s *Store) DeleteTable(ctx context.Context, name []byte) *wire.Error {
	s.ddl.Lock()
	defer s.ddl.Unlock()
	t, m, err := s.noIndex(name, "delete index table directly")
	if err != nil {
		return err
	}
	if err := s.catchUp(ctx, m.ID, maxTime); err != nil { // see DropIndex
		return err
	}
	b := s.db.NewBatch()
	for i := range m.Indexes {
		dropRows(b, &m.Indexes[i])
	}
	b.Delete(tableKey(string(name)), nil)
	b.DeleteRange(appendRowPrefix(nil, t.id), appendRowPrefix(nil, t.id+1), nil)
	if err := s.commitAndWait(ctx, b); err != nil {
		return err
	}
	s.transactions.endOf(t)
	s.forget(string(name))
	for i := range m.Indexes {
		s.forget(m.Indexes[i].Name)
	}
	return nil
}

// IsIndex reports whether the table is an index of another.
func (t *Table) IsIndex() bool { return t.meta.Load().Of != "" }

func (t *Table) Indexes() int { return len(t.meta.Load().Indexes) }

func (t *Table) Describe() *wire.TableDescription {
	m := t.meta.Load()
	d := &wire.TableDescription{
		Name: m.Name, Key: m.Key, Defined: m.Defined,
		Reserved:     wire.Capacity{Read: m.Read, Write: m.Write},
		LastIncrease: m.LastIncrease, LastDecrease: m.LastDecrease,
		TTL: m.TTL, MaxVersions: m.MaxVersions, Deviation: m.Deviation, AllowUpdate: !m.NoUpdate, FullRow: m.FullRow,
		Created: m.Created, Bounds: m.partitionBounds(),
	}
	if m.Stream != nil {
		d.Stream = wire.StreamSpec{Enable: true, Hours: wire.Optional[int32]{Value: m.Stream.Hours, Set: true},
			Columns: m.Stream.Columns}
	}
	for i := range m.Indexes {
		d.IndexMetas = append(d.IndexMetas, m.Indexes[i].meta())
	}
	return d
}

// appendKey checks a primary key against the schema and appends the row key.
func (m *meta) appendKey(dst []byte, key []wire.Cell) ([]byte, *wire.Error) {
	if len(key) > wire.MaxKeyColumns && m.Of == "" { // only indexes have more columns
		return dst, wire.TooManyKeyColumns()
	}
	if len(key) != len(m.Key) {
		return dst, wire.Failf(wire.CodeInvalidPK, "Validate PK size fail. Input: %d, Meta: %d.", len(key), len(m.Key))
	}
	return m.appendColumns(appendRowPrefix(dst, m.ID), key)
}

// appendColumns checks and appends the first columns of a primary key.
func (m *meta) appendColumns(dst []byte, key []wire.Cell) ([]byte, *wire.Error) {
	for i := range key {
		c, want := &key[i], &m.Key[i]
		if string(c.Name) != want.Name {
			return dst, wire.Failf(wire.CodeInvalidPK, "Validate PK name fail. Input: %s, Meta: %s.", c.Name, want.Name)
		}
		if c.Type == wire.AutoIncrement {
			if !want.AutoIncrement {
				return dst, wire.Invalid("Primary key column '%s' is not auto increment.", c.Name)
			}
			dst = append(dst, noNumber...)
			continue
		}
		if typ := want.Type.ValueType(); c.Type != typ && c.Type != wire.InfMin && c.Type != wire.InfMax {
			return dst, wire.Failf(wire.CodeInvalidPK, "Validate PK type fail. Input: %s, Meta: %s.", c.Type, typ)
		}
		dst = appendColumn(dst, c)
	}
	return dst, nil
}

func (m *meta) rules(nowMillis int64) rules {
	return rules{ttl: int64(m.TTL), maxVersions: int(m.MaxVersions), now: nowMillis}
}

// reserve changes the reserved throughput as requested. A request for the current values is not a change.
func (m *meta) reserve(t *wire.Throughput, now time.Time, interval time.Duration) *wire.Error {
	read, write := t.Read.Or(m.Read), t.Write.Or(m.Write)
	if read == m.Read && write == m.Write {
		return nil
	}
	if m.Adjusted != 0 {
		// If the clock was set back, the time since the last change is unknown.
		if since := now.Sub(time.UnixMilli(m.Adjusted)); since >= 0 && since < interval {
			return wire.Fail(wire.CodeTooFrequentReservation)
		}
	}
	m.Adjusted = now.UnixMilli()
	if read > m.Read || write > m.Write {
		m.LastIncrease = now.Unix()
	}
	if read < m.Read || write < m.Write {
		m.LastDecrease = now.Unix()
	}
	m.Read, m.Write = read, write
	return nil
}

// UpdateDefined adds or deletes predefined columns. It does not change stored cells.
func (s *Store) UpdateDefined(ctx context.Context, r *wire.DefinedColumns) *wire.Error {
	s.ddl.Lock()
	defer s.ddl.Unlock()
	t, m, err := s.noIndex(r.Name, "update index table directly")
	if err != nil {
		return err
	}
	for _, x := range m.Indexes {
		for _, name := range r.Delete {
			if x.has(name) {
				return wire.Invalid("Defined column '%s' is used by index '%s'.", name, x.Name)
			}
		}
	}
	if m.Defined, err = r.Apply(m.Key, m.Defined); err != nil {
		return err
	}
	if err := s.saveTable(ctx, s.db.NewBatch(), &m); err != nil {
		return err
	}
	t.meta.Store(&m)
	return nil
}

func savedBounds(bounds []wire.Cell) (saved [][]byte) {
	for i := range bounds {
		saved = append(saved, wire.AppendVariant(nil, &bounds[i]))
	}
	return saved
}

func (m *meta) partitionBounds() (bounds []wire.Cell) {
	for _, b := range m.Bounds {
		c := wire.Cell{Name: []byte(m.Key[0].Name)}
		var ok bool
		if c.Type, c.Value, _, ok = wire.ReadVariant(b); ok {
			bounds = append(bounds, c)
		}
	}
	return bounds
}
