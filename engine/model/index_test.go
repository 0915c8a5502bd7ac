package model

import (
	"fmt"
	"slices"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"pgregory.net/rapid"
)

// Index is a global secondary index. It stores nothing: its rows are computed from the rows of its table at each look.
type Index struct {
	Name         string
	Key, Columns []string
}

// DefinedColumn is a predefined column of a table.
type DefinedColumn struct {
	Name string
	Type Type
}

// look returns a table, or an index as a table of its current rows.
func (m *Model) look(name string, now int64) *Table {
	if t := m.Tables[name]; t != nil {
		return t
	}
	if of, x := m.index(name); x != nil {
		return of.show(x, now)
	}
	return nil
}

func (m *Model) index(name string) (*Table, *Index) {
	for _, t := range m.Tables {
		for i := range t.Indexes {
			if t.Indexes[i].Name == name {
				return t, &t.Indexes[i]
			}
		}
	}
	return nil, nil
}

// show returns an index as a table: a row for each row that has all columns of its key. Expired ones are still walked
// over.
func (t *Table) show(x *Index, now int64) *Table {
	s := &Table{Options: t.Options}
	for _, name := range x.whole(t) {
		s.Key = append(s.Key, KeyColumn{Name: name, Type: t.typeOf(name)})
	}
	for _, r := range t.rows {
		if r.without[x.Name] {
			continue
		}
		n := &row{ofIndex: true, hidden: !t.exists(r, now)}
		for _, k := range s.Key {
			if v, stamp, ok := r.column(k.Name); ok {
				n.key = append(n.key, KeyCell{k.Name, v})
				n.hidden = n.hidden || stamp != 0 && t.expired(Cell{Timestamp: stamp}, now)
			}
		}
		if len(n.key) < len(s.Key) {
			continue
		}
		for _, name := range x.Columns {
			if v, stamp, ok := r.column(name); ok {
				n.cells = append(n.cells, Cell{name, v, stamp})
			}
		}
		sortCells(n.cells)
		s.rows = append(s.rows, n)
	}
	slices.SortFunc(s.rows, func(a, b *row) int { return compareKeys(a.key, b.key) })
	return s
}

// whole is an index's key: its own columns, then the remaining ones of the table's key.
func (x *Index) whole(t *Table) []string {
	names := slices.Clone(x.Key)
	for _, k := range t.Key {
		if !slices.Contains(names, k.Name) {
			names = append(names, k.Name)
		}
	}
	return names
}

func (t *Table) typeOf(column string) Type {
	for _, k := range t.Key {
		if k.Name == column {
			return k.Type
		}
	}
	for _, d := range t.Defined {
		if d.Name == column {
			return d.Type
		}
	}
	return 0
}

// column is a value of a row: of its key (without a time), or the newest written to a column.
func (r *row) column(name string) (value any, stamp int64, ok bool) {
	for _, k := range r.key {
		if k.Name == name {
			return k.Value, 0, true
		}
	}
	for _, c := range r.cells {
		if c.Name == name {
			return c.Value, c.Timestamp, true
		}
	}
	return nil, 0, false
}

// tooLong refuses cells that an index cannot have in its key.
func (t *Table) tooLong(key Key, cells []Cell) *Refusal {
	cells = slices.Clone(cells)
	sortCells(cells)
	r := &row{key: key, cells: cells}
	for _, x := range t.Indexes {
		if refusal := x.tooLong(t, r); refusal != nil {
			return refusal
		}
	}
	return nil
}

func (x *Index) tooLong(t *Table, r *row) *Refusal {
	for _, name := range x.whole(t) {
		v, _, ok := r.column(name)
		if !ok {
			return nil
		}
		if n := dataBytes(v); n > 1024 {
			return invalid(fmt.Sprintf("The length of primary key column: '%s' exceeds the MaxLength:1024 with CurrentLength:%d.", name, n))
		}
	}
	return nil
}

// checkDefined refuses a value of another type than its predefined column.
func (t *Table) checkDefined(op Op) *Refusal {
	for _, d := range t.Defined {
		if d.Name != op.Name || op.Kind == DeleteColumn || op.Kind == DeleteVersion {
			continue
		}
		if typ, ok := typeOf(op.Value); !ok || typ != d.Type {
			actual := map[string]string{"float64": "VT_DOUBLE", "bool": "VT_BOOLEAN"}[fmt.Sprintf("%T", op.Value)]
			if ok {
				actual = typeName(typ)
			}
			return invalid(fmt.Sprintf("Invalid column type for column %s expect %s actual %s", op.Name, typeName(d.Type), actual))
		}
	}
	return nil
}

func indexable(o Options) *Refusal {
	switch {
	case o.MaxVersions != 1:
		return invalid("The maximum versions of a table with secondary indexes must be 1.")
	case o.TTL != -1 && !o.NoUpdate:
		return invalid("Don't support allow update operation on table with index and ttl")
	}
	return nil
}

// checkIndex checks an index of a table; the caller adds it.
func (m *Model) checkIndex(name string, t *Table, x Index) *Refusal {
	switch {
	case indexable(t.Options) != nil:
		return indexable(t.Options)
	case t.auto(x.Key[0]):
		return invalid(fmt.Sprintf("First primary key can't be auto increment, table: %s.", x.Name))
	case len(t.Indexes) == 5:
		return invalid("Number of index per table exceeds the quota:5.")
	case x.Name == name, m.look(x.Name, 0) != nil, slices.ContainsFunc(t.Indexes, func(y Index) bool { return y.Name == x.Name }):
		return &Refusal{409, "OTSObjectAlreadyExist", "Requested table already exists."}
	}
	return nil
}

func (t *Table) auto(column string) bool {
	return slices.ContainsFunc(t.Key, func(k KeyColumn) bool { return k.Auto && k.Name == column })
}

// CreateIndex adds an index to a table, with or without the existing rows.
func (m *Model) CreateIndex(table string, x Index, base bool) *Refusal {
	t := m.Tables[table]
	if t == nil {
		if _, x := m.index(table); x != nil {
			return invalid("Can't create an index of an index table.")
		}
		return noTable()
	}
	if r := m.checkIndex(table, t, x); r != nil {
		return r
	}
	for _, r := range t.rows {
		if refusal := x.tooLong(t, r); base && refusal != nil {
			return refusal
		}
	}
	for _, r := range t.rows {
		without := map[string]bool{x.Name: !base}
		for name, is := range r.without {
			if name != x.Name {
				without[name] = is
			}
		}
		r.without = without
	}
	t.Indexes = append(t.Indexes, x)
	m.endSessions(table)
	return nil
}

func (m *Model) DropIndex(table, name string) *Refusal {
	t := m.Tables[table]
	at := -1
	if t == nil {
		if _, x := m.index(table); x == nil {
			return noTable()
		}
	} else {
		at = slices.IndexFunc(t.Indexes, func(x Index) bool { return x.Name == name })
	}
	if at < 0 {
		return &Refusal{404, "OTSObjectNotExist", "Requested index does not exist."}
	}
	t.Indexes = slices.Delete(t.Indexes, at, at+1)
	m.endSessions(table)
	return nil
}

// Of the machine.

var indexNames = []string{"x0", "x1", "x2"}

// drawIndex draws an index of a table with such a key.
func drawIndex(rt *rapid.T, key []KeyColumn) Index {
	names := []string{"a", "b", "c"}
	for _, k := range key {
		names = append(names, k.Name)
	}
	x := Index{Name: rapid.SampledFrom(indexNames).Draw(rt, "index")}
	x.Key = rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, min(4, len(names)), rapid.ID[string]).Draw(rt, "index key")
	for _, name := range []string{"a", "b", "c"} {
		if !slices.Contains(x.Key, name) && rapid.Bool().Draw(rt, "has "+name) {
			x.Columns = append(x.Columns, name)
		}
	}
	return x
}

var definedColumns = []DefinedColumn{{"a", Integer}, {"b", String}, {"c", Binary}}

// drawIndexedOptions draws options that are mostly valid for a table with indexes.
func (m *machine) drawIndexedOptions(rt *rapid.T, name string) Options {
	o := drawOptions(rt)
	o.MaxVersions = 1
	o.NoUpdate = rapid.IntRange(0, 2).Draw(rt, "no updates") == 0
	if !o.NoUpdate && rapid.IntRange(0, 5).Draw(rt, "expires all the same") > 0 {
		o.TTL = -1
	}
	if t := m.model.Tables[name]; t != nil && len(t.Indexes) > 0 && rapid.IntRange(0, 5).Draw(rt, "versions") == 0 {
		o.MaxVersions = 2
	}
	return o
}

// index changes indexes.
func (m *machine) index(rt *rapid.T) {
	name := rapid.SampledFrom(m.names).Draw(rt, "table")
	if rapid.IntRange(0, 2).Draw(rt, "drop") == 0 {
		x := rapid.SampledFrom(indexNames).Draw(rt, "index")
		_, err := m.engine.DeleteIndex(&tablestore.DeleteIndexRequest{MainTableName: name, IndexName: x})
		same(rt, "DropIndex", refusal(err), m.model.DropIndex(name, x))
		return
	}
	var key []KeyColumn
	if t := m.model.Tables[name]; t != nil {
		key = t.Key
	}
	x := drawIndex(rt, key)
	base := rapid.Bool().Draw(rt, "with the rows that are there")
	_, err := m.engine.CreateIndex(&tablestore.CreateIndexRequest{MainTableName: name, IndexMeta: x.sdk(), IncludeBaseData: base})
	same(rt, "CreateIndex", refusal(err), m.model.CreateIndex(name, x, base))
}

func (x *Index) sdk() *tablestore.IndexMeta {
	return &tablestore.IndexMeta{IndexName: x.Name, Primarykey: x.Key, DefinedColumns: x.Columns, IndexType: tablestore.IT_GLOBAL_INDEX}
}

// createIndexed makes a table with predefined columns, and perhaps with indexes.
func (m *machine) createIndexed(rt *rapid.T, name string, key []KeyColumn) {
	o := m.drawIndexedOptions(rt, name)
	var indexes []Index
	for range rapid.IntRange(0, 2).Draw(rt, "indexes") {
		indexes = append(indexes, drawIndex(rt, key))
	}
	same(rt, "CreateTable", m.engine.createTable(name, key, o, definedColumns, indexes), m.model.createIndexed(name, key, o, indexes))
}

func (m *Model) createIndexed(name string, key []KeyColumn, o Options, indexes []Index) *Refusal {
	if m.look(name, 0) != nil {
		return &Refusal{409, "OTSObjectAlreadyExist", "Requested table already exists."}
	}
	t := &Table{Key: key, Options: o, Defined: definedColumns}
	for _, x := range indexes {
		if r := m.checkIndex(name, t, x); r != nil {
			return r
		}
		t.Indexes = append(t.Indexes, x)
	}
	m.Tables[name] = t
	return nil
}
