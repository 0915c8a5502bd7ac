package tablescan

import (
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

func (p *part) NewParser([]int) source.Parser {
	parser := &parser{keys: len(p.of.cfg.Table.Key), place: map[string]int{}}
	for i, name := range p.Added {
		parser.place[name] = parser.keys + i
	}
	parser.fields = make([]record.Datum, parser.keys+len(p.Added))
	parser.written, parser.tells = parser.place[Written]
	return parser
}

type parser struct {
	source.Plain
	keys   int
	place  map[string]int // by requested column: its index in fields
	fields []record.Datum
	cells  []record.Cell
	at     []int64 // by field: timestamp of its value
	rec    record.Record
	packs  bool

	tells   bool // whether a field holds the time of a row's last write
	written int  // index of that field
}

// Records converts rows of a table to records. It is not safe for concurrent use.
type Records struct {
	parser parser
}

// NewRecords returns Records for a table with this many key columns.
func NewRecords(keys int) *Records {
	return &Records{parser: parser{keys: keys, fields: make([]record.Datum, keys)}}
}

// Of returns a row as a record, with its key in Fields and its attributes in Cells. It is valid until the next call.
func (r *Records) Of(row []byte) *record.Record {
	r.parser.unpack(row)
	rec := &r.parser.rec
	rec.Fields, rec.Cells = r.parser.fields, r.parser.cells
	return rec
}

func (p *parser) Parse(sp source.Split, each func(*record.Record)) (records, lines int, err error) {
	pg := sp.Part.(*page)
	p.at = make([]int64, len(p.fields))
	unpack := p.unpacked
	for i := range pg.rows {
		r := &pg.rows[i]
		p.rec = record.Record{Span: table.Span{Record: uint32(i)}, Bad: r.bad, Fields: p.fields}
		if p.packs {
			p.key(r.row)
			p.rec.Packed, p.rec.Unpack = r.row, unpack
		} else {
			p.unpack(r.row)
			p.rec.Cells = p.cells
		}
		each(&p.rec)
	}
	return len(pg.rows), 0, nil
}

func (p *parser) LeavePacked() { p.packs = len(p.place) == 0 }

func (p *parser) unpacked() {
	p.unpack(p.rec.Packed)
	p.rec.Packed, p.rec.Cells = nil, p.cells
}

func (p *parser) key(row []byte) (attributes plainbuffer.Cells) {
	key := plainbuffer.KeyCells(row)
	for i := 0; key.Next(); i++ {
		p.fields[i] = record.Of(key.Value())
	}
	return key.Attributes()
}

// unpack decodes the key of a row, its cells, and the newest versions of the requested columns.
func (p *parser) unpack(row []byte) {
	attributes := p.key(row)
	for i := p.keys; i < len(p.fields); i++ {
		p.fields[i], p.at[i] = record.Datum{Kind: record.Absent}, -1
	}
	p.cells = p.cells[:0]
	for c := attributes; c.Next(); {
		p.cells = append(p.cells, record.Cell{})
		cell := &p.cells[len(p.cells)-1]
		cell.Name, cell.At = c.Name(), max(c.Timestamp, 0)
		cell.Datum = record.Of(c.Value())
		if len(p.place) == 0 {
			continue
		}
		if at, asked := p.place[string(cell.Name)]; asked && cell.At > p.at[at] {
			p.fields[at], p.at[at] = cell.Datum, cell.At
		}
		if p.tells && cell.At > p.at[p.written] {
			p.fields[p.written], p.at[p.written] = record.Datum{Kind: record.Integer, Int: cell.At}, cell.At
		}
	}
}

// Release frees the last row, which may be large.
func (p *parser) Release() { p.cells, p.rec = nil, record.Record{} }
