package partitioner

import (
	"bytes"

	"example.com/tsimport/internal/table"
)

// TableBounds are a table among several and the bounds of its partitions, in any order.
type TableBounds struct {
	Table  string
	Bounds []table.Value
}

// NewTablesMap makes the map of a load into several tables, which are given in the order of their names. Each table has its
// lanes, and before, between and after the tables are gaps: lanes for the keys of tables that are not known yet. Nothing
// can be sent from a gap.
func NewTablesMap(known []TableBounds) *Map {
	m := &Map{tables: []string{""}}
	add := func(name string, key []byte, v table.Value) {
		m.bounds, m.values, m.tables = append(m.bounds, key), append(m.values, v), append(m.tables, name)
	}
	for _, t := range known {
		add(t.Table, table.AppendTable(nil, t.Table), table.Value{})
		one := NewMap(t.Bounds)
		for i := range one.bounds {
			add(t.Table, append(table.AppendTable(nil, t.Table), one.bounds[i]...), one.values[i])
		}
		add("", table.AppendTableEnd(nil, t.Table), table.Value{})
	}
	m.index()
	return m
}

// Table returns the table of lane i of a load into several tables, "" for a gap and where there is one table.
func (m *Map) Table(i int) string {
	if m.tables == nil {
		return ""
	}
	return m.tables[i]
}

// Gap reports whether lane i is for tables that are not known yet.
func (m *Map) Gap(i int) bool { return m.tables != nil && m.tables[i] == "" }

// Several reports whether keys begin with the name of their table.
func (m *Map) Several() bool { return m.tables != nil }

// UnknownTables calls each with the names of tables that rows of the block wait for, if it is one of a gap; a name may come
// several times.
func UnknownTables(b *table.Block, each func(name []byte)) {
	var last []byte
	for i := range b.Rows {
		name, _ := table.CutTable(table.Ref{Block: b, Index: int32(i)}.Key())
		if last == nil || !bytes.Equal(name, last) {
			each(name)
			last = name
		}
	}
}
