package sqltable

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"unsafe"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// page holds rows of the snapshot. Each value is its length plus one as a varint, 0 for null, followed by its text.
type page struct {
	source.Ready
	of    *Table
	text  []byte // nil once reused
	bytes int64  // memory of the page
	rows  int
	first [][]byte // key of the first row
}

// texts holds the buffers of parsed pages. Without it, they would be most of the garbage of a reading.
var texts sync.Pool

// newText returns an empty buffer for a page of about budget bytes.
func newText(budget int) []byte {
	if kept, ok := texts.Get().(*[]byte); ok && cap(*kept) >= budget && cap(*kept) <= 2*budget {
		return (*kept)[:0]
	}
	return make([]byte, 0, budget+budget/8)
}

// reuse makes the buffer available to a later page, unless a large row has made it too large.
func (pg *page) reuse() {
	if cap(pg.text) <= 2*pageBytes {
		text := pg.text
		texts.Put(&text)
	}
	pg.text = nil
}

var errReused = errors.New("the memory of a page was reused before the page was parsed")

func (pg *page) Bytes() int64 { return pg.bytes }

type parser struct {
	source.Plain
	of      *Table
	used    []bool // nil means all columns
	fields  []record.Datum
	record  record.Record // valid only during a call, like its fields
	scratch []byte
}

// NewParser returns a parser of the used columns; nil means all.
func (p *part) NewParser(used []int) source.Parser {
	r := &parser{of: p.t, fields: make([]record.Datum, len(p.t.Columns))}
	if used != nil {
		r.used = make([]bool, len(r.fields))
		for _, i := range used {
			r.used[i] = true
		}
	}
	return r
}

func (p *parser) Parse(sp source.Split, each func(*record.Record)) (records, lines int, err error) {
	pg := sp.Part.(*page)
	text := pg.text
	if text == nil {
		return 0, 0, errReused
	}
	for n := range pg.rows {
		p.scratch = p.scratch[:0]
		for i := range p.fields {
			d := &p.fields[i]
			length := uint64(text[0])
			text = text[1:]
			if length >= 0x80 {
				more, size := binary.Uvarint(text)
				length, text = length&0x7f|more<<7, text[size:]
			}
			if length == 0 {
				*d = record.Datum{}
				continue
			}
			value := text[: length-1 : length-1]
			text = text[length-1:]
			if p.used != nil && !p.used[i] {
				continue // the field of an unused column is never set
			}
			if err := p.datum(d, &p.of.Columns[i], value); err != nil {
				return n, 0, fmt.Errorf("read column %s: %w", p.of.Columns[i].Name, err)
			}
		}
		p.record = record.Record{Fields: p.fields, Span: table.Span{Record: uint32(n)}}
		each(&p.record)
	}
	return pg.rows, 0, nil
}

func (p *parser) datum(d *record.Datum, c *Column, text []byte) (err error) {
	d.Kind = c.Kind
	if c.Read != nil {
		*d = record.Datum{Kind: c.Kind} // Read may set another kind for each value
		return c.Read(d, text, &p.scratch)
	}
	switch c.Kind {
	case record.Integer:
		d.Int, err = strconv.ParseInt(unsafe.String(unsafe.SliceData(text), len(text)), 10, 64)
	case record.Unsigned:
		var n uint64
		n, err = strconv.ParseUint(unsafe.String(unsafe.SliceData(text), len(text)), 10, 64)
		d.Int = int64(n)
	case record.Double:
		d.Double, err = strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), 64)
	default:
		d.Bytes = text
	}
	return err
}

// Release frees the memory of the last row, which may be large.
func (p *parser) Release() { p.scratch = nil }
