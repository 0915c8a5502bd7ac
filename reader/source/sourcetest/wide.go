package sourcetest

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Wide is a source of self-describing rows, as from a table without a schema. Its fields are the key.
type Wide struct {
	Rows
	// Cells holds the cells of each row.
	Cells [][]record.Cell

	added []string
}

// NewWide returns n rows with an integer key, id, and cells of all types. A column such as c7 has one type.
func NewWide(name string, n int, now time.Time) *Wide {
	w := &Wide{Rows: Rows{Name: name, Columns: []string{"id"}}}
	at := now.UnixMilli()
	for i := range n {
		cells := []record.Cell{
			WideCell("always", record.Datum{Kind: record.String, Bytes: fmt.Appendf(nil, "row %d", i)}, -1),
			WideCell(fmt.Sprintf("c%d", i%40), OfAnyType(i), -1),
			WideCell(fmt.Sprintf("only in %d", i), OfAnyType(i+1), at-int64(i%7)),
			WideCell("empty", record.Datum{Kind: record.String, Bytes: []byte{}}, -1),
		}
		if i%3 == 0 { // versions out of order
			for _, back := range []int64{20, 30, 10} {
				cells = append(cells, WideCell("versions", record.Datum{Kind: record.Integer, Int: int64(i) - back}, at-back))
			}
		}
		if i%5 == 0 {
			cells = append(cells, WideCell("sometimes", record.Datum{}, -1))
		} else if i%5 == 1 {
			cells = append(cells, WideCell("sometimes", record.Datum{Kind: record.Boolean, Int: 1}, -1))
		}
		if i%11 == 10 {
			cells = nil
		}
		w.Append(record.Datum{Kind: record.Integer, Int: int64(i)}, cells...)
	}
	return w
}

func WideCell(name string, d record.Datum, at int64) record.Cell {
	return record.Cell{Name: []byte(name), Datum: d, At: at}
}

// OfAnyType returns a value of the i-th type that cells can have.
func OfAnyType(i int) record.Datum {
	switch i % 5 {
	case 0:
		return record.Datum{Kind: record.Integer, Int: int64(i) - math.MaxInt64}
	case 1:
		return record.Datum{Kind: record.Double, Double: float64(i) / 3}
	case 2:
		return record.Datum{Kind: record.Boolean, Int: int64(i / 5 % 2)}
	case 3:
		return record.Datum{Kind: record.Binary, Bytes: []byte{0, byte(i), 255}}
	}
	return record.Datum{Kind: record.String, Bytes: fmt.Appendf(nil, "text \x00 %d", i)}
}

func (w *Wide) Append(key record.Datum, cells ...record.Cell) {
	w.Data, w.Cells = append(w.Data, []record.Datum{key}), append(w.Cells, cells)
}

func (w *Wide) Open(context.Context, []byte) ([]source.Source, error) {
	fresh := *w
	fresh.begin, fresh.next, fresh.added = 0, 0, nil
	return []source.Source{&fresh}, nil
}

func (w *Wide) About() source.About {
	about := w.Rows.About()
	about.Wide, about.Columns = true, slices.Concat(w.Columns, w.added)
	about.AddColumns = func(names []string) { w.added = append(w.added, names...) } // newest versions become fields
	return about
}

func (w *Wide) Identity() (source.Identity, error) {
	id, err := w.Rows.Identity()
	h := fnv.New64a()
	fmt.Fprint(h, id.Content, w.Cells)
	id.Content = fmt.Sprintf("%x", h.Sum64())
	return id, err
}

func (w *Wide) Sample(budget int, columns []string, each func(*record.Record)) (read int, err error) {
	return w.rows().Sample(budget, columns, each)
}

func (w *Wide) NewParser(used []int) source.Parser { return w.rows().NewParser(used) }

// rows returns the rows for a parser, which adds their cells. A copy of all of w would read fields that Next writes.
func (w *Wide) rows() *Rows {
	rows := Rows{Name: w.Name, Columns: w.Columns, Data: w.Data, Bad: w.Bad, Page: w.Page}
	var fields []record.Datum
	var cells []record.Cell
	var text []byte
	keep := func(b []byte) []byte {
		text = append(text, b...)
		return text[len(text)-len(b) : len(text) : len(text)]
	}
	rows.widen = func(i int64, rec *record.Record, each func(*record.Record)) {
		fields, cells, text = fields[:0], cells[:0], text[:0]
		for _, c := range w.Cells[i] {
			c.Name = keep(c.Name)
			if c.Bytes != nil {
				c.Bytes = keep(c.Bytes)
			}
			cells = append(cells, c)
		}
		fields = append(fields, rec.Fields...)
		for _, name := range w.added {
			fields = append(fields, newest(cells, name))
		}
		rec.Fields, rec.Cells = fields, cells
		each(rec)
		for i := range text { // so that nothing can still refer to it
			text[i] = '!'
		}
		clear(cells)
	}
	return &rows
}

// newest returns the newest version of a column. A version without a timestamp is the newest.
func newest(cells []record.Cell, name string) record.Datum {
	var found *record.Cell
	for i := range cells {
		c := &cells[i]
		if string(c.Name) == name && (found == nil || c.At < 0 || found.At >= 0 && c.At > found.At) {
			found = c
		}
	}
	if found == nil {
		return record.Datum{Kind: record.Absent}
	}
	return found.Datum
}
