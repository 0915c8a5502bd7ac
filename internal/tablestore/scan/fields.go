package scan

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Types counts values by their type.
type Types [table.Any + 1]int64

// Column is an attribute column that occurred in a row.
type Column struct {
	Name  string
	Text  bool  // the name is valid UTF-8
	Types Types // number of values by type

	number  int     // number in order of discovery, from 0; negative for unwanted columns
	opens   string  // the beginning of a cell: length and name
	next    *Column // the column after it in the last row that had both
	row     int64   // number of the last row with the column
	at      int     // index in Fields.Cells in that row
	version int64   // timestamp of that value
}

// Field is a column's value in a row.
type Field struct {
	*Column
	Value plainbuffer.Encoded
}

// Fields decodes one row after another to the newest values of the wanted columns, in the order of the cells.
type Fields struct {
	Wanted      map[string]bool // attributes; nil means all
	AllVersions bool            // return every version as a field

	Row   []byte                // the row that Read was given
	Key   []plainbuffer.Encoded // in the order of the schema
	Cells []Field
	Older int64 // number of versions that are not in Cells

	columns map[string]*Column // columns by the beginning of their cells
	found   int                // number of wanted columns
	first   *Column            // first column of the previous row
	rows    int64
}

// Read decodes the next row. The fields are views into it. A RowReader must have checked the row.
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

// Columns returns the wanted columns, sorted by name.
func (f *Fields) Columns() []*Column {
	all := slices.DeleteFunc(slices.Collect(maps.Values(f.columns)), func(c *Column) bool { return c.number < 0 })
	slices.SortFunc(all, func(a, b *Column) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Places maps columns to their positions in an output.
type Places struct {
	of    map[string]int
	known []int // position plus 1, by the column's number; 0 if not looked up yet
}

// Of returns a column's position, or a negative number if it has none.
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
