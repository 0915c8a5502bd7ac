package sourcetest

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Rows is a source of typed rows that were never text, as from a database. Its rejects are kept as JSON lines.
type Rows struct {
	source.Undivided
	source.Pages
	Name    string
	Columns []string
	Data    [][]record.Datum
	// Bad says why records cannot be read, by record number.
	Bad map[int64]*table.Reason
	// Fail is the number of records after which the source fails; 0 means that it does not fail.
	Fail int
	// Page is the number of records in a split; 0 means 10.
	Page int
	// Unique says that the values of the column id are unique.
	Unique bool

	begin, next int64
	widen       func(row int64, rec *record.Record, each func(*record.Record)) // adds cells to a record; may be nil
}

// NewRows returns a source of n rows with an integer key, id, and a column of each type.
func NewRows(name string, n int) *Rows {
	r := &Rows{Name: name, Columns: []string{"id", "text", "double", "flag", "bytes", "nothing"}}
	for i := range n {
		d := []record.Datum{
			{Kind: record.Integer, Int: int64(i)},
			{Kind: record.String, Bytes: fmt.Appendf(nil, "row %d", i)},
			{Kind: record.Double, Double: float64(i) / 7},
			{Kind: record.Boolean, Int: int64(i % 2)},
			{Kind: record.Binary, Bytes: []byte{0, byte(i), 255}},
			{},
		}
		if i%3 == 0 {
			d[1] = record.Datum{} // becomes a null
		}
		r.Data = append(r.Data, d)
	}
	return r
}

func (r *Rows) Open(context.Context, []byte) ([]source.Source, error) {
	fresh := *r
	fresh.begin, fresh.next = 0, 0
	return []source.Source{&fresh}, nil
}

type page struct {
	source.Ready
	from, to int64
}

func (page) Bytes() int64 { return 0 }

func (r *Rows) About() source.About {
	a := source.About{Name: r.Name, Bytes: int64(100 * len(r.Data)), Columns: r.Columns,
		Rejects: source.Rejects{Kind: ".ndjson"}}
	if r.Unique {
		a.Unique = []source.KeyColumn{{Name: "id", Kind: record.Integer}}
	}
	return a
}

func (r *Rows) Identity() (source.Identity, error) {
	h := fnv.New64a()
	fmt.Fprint(h, r.Columns, r.Data)
	return source.Identity{Bytes: int64(len(r.Data)), Content: fmt.Sprintf("%x", h.Sum64())}, nil
}

// Sample reads the first rows. It counts about a hundred bytes for each.
func (r *Rows) Sample(budget int, _ []string, each func(*record.Record)) (read int, err error) {
	for i := range r.Data {
		if read >= budget {
			break
		}
		r.each(page{from: int64(i), to: int64(i) + 1}, each)
		read += 100
	}
	return read, nil
}

func (r *Rows) Seek(to source.Place, _ source.Chain) { r.begin, r.next = to.Record, to.Record }

func (r *Rows) Begin() source.Place { return source.Place{Record: r.begin} }

func (r *Rows) Next() (source.Piece, error) {
	end := int64(len(r.Data))
	if r.Fail > 0 {
		end = min(end, int64(r.Fail))
	}
	if r.next >= end {
		if end < int64(len(r.Data)) {
			return nil, fmt.Errorf("read %s: it broke off after %d rows", r.Name, end)
		}
		return nil, io.EOF
	}
	p := page{from: r.next, to: min(r.next+int64(cmp.Or(r.Page, 10)), end)}
	r.next = p.to
	return p, nil
}

func (r *Rows) Add(p source.Piece) ([]source.Split, error) {
	pg := p.(page)
	rows := pg.to - pg.from
	return []source.Split{{Number: int(min(pg.from, 1)), Bytes: 100 * rows, Rows: rows, First: pg.from, Part: pg}}, nil
}

func (r *Rows) Suspend() error {
	r.next = r.begin
	return nil
}

func (r *Rows) NewParser([]int) source.Parser { return &parser{rows: r} }

type parser struct {
	source.Plain
	rows *Rows
}

func (p *parser) Parse(sp source.Split, each func(*record.Record)) (records, lines int, err error) {
	return p.rows.each(sp.Part.(page), each), 0, nil
}

// each calls each for every row of a page, always with the same memory.
func (r *Rows) each(pg page, each func(*record.Record)) int {
	fields := make([]record.Datum, len(r.Columns))
	for i := pg.from; i < pg.to; i++ {
		copy(fields, r.Data[i])
		rec := record.Record{Fields: fields, Span: table.Span{Record: uint32(i - pg.from)}, Bad: r.Bad[i]}
		if r.widen != nil {
			r.widen(i, &rec, each)
			continue
		}
		each(&rec)
	}
	clear(fields)
	return int(pg.to - pg.from)
}

func (r *Rows) Anywhere() bool { return true }

func (r *Rows) Reopen() error { return nil }

func (r *Rows) Divisible() bool { return true }

func (r *Rows) LoadStretch(to source.Stretch) ([]source.Split, error) {
	return r.Add(page{from: to.Record, to: to.Record + to.Records})
}

func (r *Rows) Finished() error { return nil }
