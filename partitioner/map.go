package partitioner

import (
	"bytes"
	"slices"

	"example.com/tsimport/internal/table"
)

// Map maps keys to lanes 0 to Len()-1 in key order, each from its lower bound to the next. It is immutable.
type Map struct {
	values []table.Value // lower bounds of lanes 1, 2, …
	bounds [][]byte      // values as AppendKey encodes them, increasing
	// common is the bounds' common prefix; heads are the next eight bytes of each bound, which Find compares as integers.
	common []byte
	heads  []uint64
	// tables are the lanes' tables, "" for a gap; nil if there is one table.
	tables []string
}

// NewMap makes lanes before, between and after bounds given in any order. It drops repeated and impossible bounds.
func NewMap(bounds []table.Value) *Map {
	m := &Map{}
	type bound struct {
		value table.Value
		key   []byte
	}
	var all []bound
	for _, v := range bounds {
		if v.Type.KeyType() {
			v.Bytes = bytes.Clone(v.Bytes)
			all = append(all, bound{v, table.AppendKey(nil, v)})
		}
	}
	slices.SortFunc(all, func(a, b bound) int { return bytes.Compare(a.key, b.key) })
	all = slices.CompactFunc(all, func(a, b bound) bool { return bytes.Equal(a.key, b.key) })
	for _, b := range all {
		m.values = append(m.values, b.value)
		m.bounds = append(m.bounds, b.key)
	}
	m.index()
	return m
}

func (m *Map) index() {
	if len(m.bounds) == 0 {
		return
	}
	m.common = m.bounds[0][:table.SharedPrefix(m.bounds[0], m.bounds[len(m.bounds)-1])]
	for _, b := range m.bounds {
		m.heads = append(m.heads, table.Head(b[len(m.common):]))
	}
}

// Len returns the number of lanes, at least one.
func (m *Map) Len() int { return len(m.bounds) + 1 }

// Find returns the lane of an ordering key made by table.AppendKey; the columns after the first do not matter.
func (m *Map) Find(key []byte) int {
	if len(m.bounds) == 0 {
		return 0
	}
	n := len(m.common)
	if c := bytes.Compare(key[:min(n, len(key))], m.common); c != 0 {
		if c < 0 {
			return 0
		}
		return len(m.bounds)
	}
	h := table.Head(key[n:])
	// Bounds before low are at most the key; bounds from high on are above it.
	low, high := 0, len(m.heads)
	for low < high {
		i := int(uint(low+high) >> 1)
		switch g := m.heads[i]; {
		case g < h, g == h && bytes.Compare(m.bounds[i], key) <= 0:
			low = i + 1
		default:
			high = i
		}
	}
	return low
}

// Equal reports whether both maps divide the key space identically.
func (m *Map) Equal(o *Map) bool {
	return slices.EqualFunc(m.bounds, o.bounds, bytes.Equal) && slices.Equal(m.tables, o.tables)
}

// Lower returns lane i's lower bound as AppendKey encodes it; nil for the first lane.
func (m *Map) Lower(i int) []byte {
	if i == 0 {
		return nil
	}
	return m.bounds[i-1]
}

func (m *Map) Range(i int) table.KeyRange {
	r := table.KeyRange{Lower: m.Lower(i)}
	if i < len(m.bounds) {
		r.Upper = m.bounds[i]
	}
	return r
}

// LowerValue returns lane i's lower bound. The first lane, and the first lane of each of several tables, has none.
func (m *Map) LowerValue(i int) (table.Value, bool) {
	if i == 0 || m.values[i-1].Type == table.Null {
		return table.Value{}, false
	}
	return m.values[i-1], true
}

// TableBounds holds one of several tables and the bounds of its partitions, in any order.
type TableBounds struct {
	Table  string
	Bounds []table.Value
}

// NewTablesMap makes the map of a load into several tables, given in name order, with gaps for unknown ones between.
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

// Table returns lane i's table in a load into several tables, or "" if the lane is a gap or there is one table.
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

// UnknownTables calls each with the names of the tables that a block's rows in a gap wait for. A name may be repeated.
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
