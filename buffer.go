package tsimport

import (
	"math"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// buffer is a copy of rows on their way to the load. One goroutine fills it; after handover it is immutable.
type buffer struct {
	key      []table.KeyColumn
	deleting bool // rows are deletes: their attributes are ignored

	first int64 // number of the first row, from 0
	rows  []int // end of each row's cells in cells
	cells []cell
	data  []byte                // names, strings and bytes
	bad   map[int]*table.Reason // rejected rows, with reasons
}

type cell struct {
	bits       uint64 // value of an integer, a boolean or a double
	at         int64  // timestamp in milliseconds; negative means none
	name, text span
	kind       record.Kind
}

type span struct{ from, to int }

// cellBytes and rowBytes are the bytes that a cell and a row take besides their data: a row's are its end and its Done.
const (
	cellBytes = 56
	rowBytes  = 16
)

// Rows above these limits are rejected without being copied. The service's own limits are lower.
const (
	mostRowBytes   = 2 * table.MaxRowBytes
	mostRowColumns = 16 * table.MaxColumns
)

func (b *buffer) add(columns []Column) {
	if why := b.check(columns); why != nil {
		if b.bad == nil {
			b.bad = map[int]*table.Reason{}
		}
		b.bad[len(b.rows)] = why
		b.rows = append(b.rows, len(b.cells))
		return
	}
	size := 0
	for i := range columns {
		if c := &columns[i]; !b.deleting || b.keyColumn(c.name) >= 0 {
			size += len(c.name) + len(c.text) + len(c.bytes)
		}
	}
	b.data = slices.Grow(b.data, size) // once, as a row may be several megabytes
	for i := range columns {
		c := &columns[i]
		if b.deleting && b.keyColumn(c.name) < 0 {
			continue
		}
		to := cell{kind: c.kind, bits: uint64(c.num), at: -1, name: span{from: len(b.data)}}
		if c.kind == record.Double {
			to.bits = math.Float64bits(c.float)
		}
		if c.dated {
			to.at = c.at
		}
		b.data = append(b.data, c.name...)
		to.name.to, to.text.from = len(b.data), len(b.data)
		b.data = append(append(b.data, c.text...), c.bytes...)
		to.text.to = len(b.data)
		b.cells = append(b.cells, to)
	}
	b.rows = append(b.rows, len(b.cells))
}

// check returns why no table would accept the row, or nil.
func (b *buffer) check(columns []Column) *table.Reason {
	size := 0
	seen := [table.MaxKeyColumns]bool{}
	for i := range columns {
		c := &columns[i]
		size += len(c.name) + len(c.text) + len(c.bytes)
		if c.dated && c.at < 0 {
			return &table.Reason{Column: table.Show([]byte(c.name)), Code: table.CodeRange, Message: "timestamp before 1970"}
		}
		k := b.keyColumn(c.name)
		if k < 0 {
			continue
		}
		switch {
		case seen[k]:
			return &table.Reason{Column: c.name, Code: table.CodeSameCell, Message: "the row has the primary-key column twice"}
		case c.dated:
			return &table.Reason{Column: c.name, Code: table.CodeType, Message: "a primary-key column cannot have a timestamp"}
		case c.kind != record.Null && keyKinds[b.key[k].Type] != c.kind:
			return &table.Reason{Column: c.name, Code: table.CodeType, Message: "the key column is " + b.key[k].Type.String()}
		}
		seen[k] = true
	}
	if size > mostRowBytes || len(columns) > mostRowColumns {
		return &table.Reason{Code: table.CodeRowTooLarge, Message: "the row far exceeds the maximum row size"}
	}
	return nil
}

var keyKinds = map[table.Type]record.Kind{table.Integer: record.Integer, table.String: record.String,
	table.Binary: record.Binary}

// keyColumn returns the position of a primary-key column, -1 for other columns.
func (b *buffer) keyColumn(name string) int {
	for i := range b.key {
		if b.key[i].Name == name {
			return i
		}
	}
	return -1
}

func (b *buffer) bytes() int { return len(b.data) + len(b.cells)*cellBytes + len(b.rows)*rowBytes }

func (b *buffer) row(i int) []cell {
	from := 0
	if i > 0 {
		from = b.rows[i-1]
	}
	return b.cells[from:b.rows[i]]
}

// datum returns the value of a cell, a view into the buffer.
func (b *buffer) datum(c *cell) record.Datum {
	d := record.Datum{Kind: c.kind}
	switch c.kind {
	case record.Integer, record.Boolean:
		d.Int = int64(c.bits)
	case record.Double:
		d.Double = math.Float64frombits(c.bits)
	case record.String, record.Binary:
		d.Bytes = b.data[c.text.from:c.text.to:c.text.to]
	}
	return d
}
