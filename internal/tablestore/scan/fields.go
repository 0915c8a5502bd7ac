package scan

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Types counts values by type.
type Types [table.Any + 1]int64

// Column is an attribute column of some row.
type Column struct {
	Name  string
	Text  bool  // the name is UTF-8
	Types Types // of the values that were counted

	number  int     // from 0 in order of discovery, negative for columns left out
	opens   string  // length and name, the beginning of a cell
	next    *Column // its successor in the last row that had it
	row     int64   // the last row that had it,
	at      int     // its place in Fields.Cells
	version int64   // and the timestamp of the value there
}

// Field is a column's value in a row.
type Field struct {
	*Column
	Value plainbuffer.Encoded
}

// Fields are the newest values of wanted columns of one row after the other, from its bytes, in cell order.
type Fields struct {
	Wanted      map[string]bool // attributes; nil is all
	AllVersions bool            // fields of their own

	Row   []byte                // unchanged
	Key   []plainbuffer.Encoded // in the order of the schema
	Cells []Field
	Older int64 // versions that are not among Cells

	columns map[string]*Column // by opens
	found   int                // columns that are not left out
	first   *Column            // of the row before
	rows    int64
}

// Read takes the next row, whose bytes stay views. A RowReader must have checked it.
func (f *Fields) Read(row []byte) {
	f.Row, f.Key, f.Cells, f.Older = row, f.Key[:0], f.Cells[:0], 0
	f.rows++
	key := plainbuffer.KeyCells(row)
	for key.Next() {
		f.Key = append(f.Key, key.Encoded())
	}
	expected := &f.first
	for c := key.Attributes(); c.Next(); {
		of := *expected
		if of == nil || len(c.Content) < len(of.opens) || string(c.Content[:len(of.opens)]) != of.opens {
			of = f.column(c.Content[:4+len(c.Name())])
			*expected = of
		}
		expected = &of.next
		switch at := max(c.Timestamp, 0); {
		case of.number < 0:
		case of.row != f.rows || f.AllVersions:
			of.row, of.at, of.version = f.rows, len(f.Cells), at
			f.Cells = append(f.Cells, Field{of, c.Encoded()})
		default:
			f.Older++
			if at > of.version {
				of.version, f.Cells[of.at].Value = at, c.Encoded()
			}
		}
	}
}

// column finds a column by the beginning of its cells.
func (f *Fields) column(opens []byte) *Column {
	of := f.columns[string(opens)]
	if of == nil {
		of = &Column{opens: string(opens), number: -1}
		if of.Name = of.opens[4:]; f.Wanted == nil || f.Wanted[of.Name] {
			of.number, of.Text = f.found, utf8.ValidString(of.Name)
			f.found++
		}
		if f.columns == nil {
			f.columns = map[string]*Column{}
		}
		f.columns[of.opens] = of
	}
	return of
}

// Named returns a column by its name.
func (f *Fields) Named(name string) *Column {
	n := len(name)
	return f.column(append([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}, name...))
}

func (f *Fields) Count() {
	for _, c := range f.Cells {
		c.Types[c.Value.Type()]++
	}
}

// Columns are the columns that are not left out, by name.
func (f *Fields) Columns() []*Column {
	all := slices.DeleteFunc(slices.Collect(maps.Values(f.columns)), func(c *Column) bool { return c.number < 0 })
	slices.SortFunc(all, func(a, b *Column) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Places are the places of columns in an output, by name.
type Places struct {
	of    map[string]int
	known []int // by number of the column; 0 is not looked up, else the place plus 1
}

// Of returns a column's place, negative if it has none.
func (p *Places) Of(c *Column) int {
	for len(p.known) <= c.number {
		p.known = append(p.known, 0)
	}
	if p.known[c.number] == 0 {
		place, ok := p.of[c.Name]
		if !ok {
			return -1
		}
		p.known[c.number] = place + 1
	}
	return p.known[c.number] - 1
}

func (p *Places) Set(name string, place int) {
	if p.of == nil {
		p.of = map[string]int{}
	}
	p.of[name] = place
}
