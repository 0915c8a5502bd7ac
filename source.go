package tsimport

import (
	"context"
	"io"
	"slices"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// gatherFor is how long rows wait for others before they are handed to the load, unless their buffer fills, a Flush
// waits or Close was called.
const gatherFor = 2 * time.Millisecond

// origin provides the rows of a Loader to the load.
type origin struct {
	source.Undivided
	l *Loader
}

func (o origin) Open(ctx context.Context, _ []byte) ([]source.Source, error) {
	return []source.Source{newRows(ctx, o.l)}, nil
}

// rows is the source of a Loader's rows: each buffer is a piece and a split. It can be read only once.
type rows struct {
	source.Pages
	ctx     context.Context // ends reading
	loader  *Loader
	columns []string // names of the key columns, then of the load's other columns
	keys    int      // number of key columns
}

func newRows(ctx context.Context, l *Loader) *rows {
	r := &rows{ctx: ctx, loader: l, keys: len(l.key)}
	for _, k := range l.key {
		r.columns = append(r.columns, k.Name)
	}
	return r
}

// About describes the rows, whose values are typed.
func (r *rows) About() source.About {
	return source.About{
		Name: "the rows that were put", Bytes: -1, Columns: r.columns, Wide: true, Pieces: int64(r.loader.bufferBytes),
		// rejects are reported, not stored
		Rejects:    source.Rejects{Kind: ".ndjson", Raw: func(source.Split, table.Span) []byte { return []byte{} }},
		AddColumns: func(names []string) { r.columns = slices.Concat(r.columns, names) },
	}
}

// Identity is empty: the rows cannot be read again.
func (r *rows) Identity() (source.Identity, error) { return source.Identity{}, nil }

// Sample returns no rows: key columns have the table's types, and every other value has its own.
func (r *rows) Sample(int, []string, func(*record.Record)) (read int, err error) { return 1, nil }

func (r *rows) Seek(source.Place, source.Chain) {}

func (r *rows) Begin() source.Place { return source.Place{} }

type piece struct {
	source.Ready
	*buffer
}

func (p piece) Bytes() int64 { return int64(p.bytes()) }

// Next returns the next buffer, waiting for rows if necessary.
func (r *rows) Next() (source.Piece, error) {
	r.loader.start.Do(func() { close(r.loader.started) })
	var gathered <-chan time.Time
	for {
		b, state := r.loader.take(true)
		switch {
		case b != nil:
			return piece{buffer: b}, nil
		case state == ended:
			return nil, io.EOF
		case state == gathering && gathered == nil:
			timer := time.NewTimer(gatherFor)
			defer timer.Stop()
			gathered = timer.C
		}
		select {
		case <-r.loader.put:
		case <-gathered:
			if b, _ := r.loader.take(false); b != nil {
				return piece{buffer: b}, nil
			}
			gathered = nil
		case <-r.ctx.Done():
			return nil, context.Cause(r.ctx)
		}
	}
}

// Add turns a buffer into one split.
func (r *rows) Add(p source.Piece) ([]source.Split, error) {
	b := p.(piece).buffer
	return []source.Split{{Number: int(min(b.first, 1)), Bytes: int64(b.bytes()), Rows: int64(len(b.rows)), First: b.first,
		Part: b}}, nil
}

func (r *rows) Suspend() error { return nil }

// NewParser returns a parser of all columns.
func (r *rows) NewParser([]int) source.Parser {
	return &parser{columns: r.columns, keys: r.keys, fields: make([]record.Datum, len(r.columns))}
}

type parser struct {
	source.Plain
	columns []string
	keys    int
	fields  []record.Datum
	cells   []record.Cell
}

// Parse calls each with every row of a split.
func (p *parser) Parse(sp source.Split, each func(*record.Record)) (records, lines int, err error) {
	b := sp.Part.(*buffer)
	for i := range b.rows {
		rec := record.Record{Span: table.Span{Record: uint32(i)}, Bad: b.bad[i]}
		if rec.Bad == nil {
			p.fill(b, i)
		}
		rec.Fields, rec.Cells = p.fields, p.cells
		each(&rec)
	}
	return len(b.rows), 0, nil
}

// fill distributes the columns of a row to fields and cells.
func (p *parser) fill(b *buffer, row int) {
	p.cells = p.cells[:0]
	for i := range p.fields {
		p.fields[i] = record.Datum{Kind: record.Absent}
	}
	cells := b.row(row)
	for i := range cells {
		c := &cells[i]
		name := b.data[c.name.from:c.name.to]
		at := slices.IndexFunc(p.columns, func(column string) bool { return column == string(name) })
		if at >= 0 && at < p.keys {
			p.fields[at] = b.datum(c)
			continue
		}
		if at >= 0 {
			p.fields[at] = b.datum(c)
		}
		p.cells = append(p.cells, record.Cell{Name: name, Datum: b.datum(c), At: c.at})
	}
}
