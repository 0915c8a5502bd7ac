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

// page is rows of the snapshot: each value's text after its length plus one, as a varint; 0 is null.
type page struct {
	source.Ready
	of    *Table
	text  []byte // nil after Reuse
	bytes int64  // its memory
	rows  int
	first [][]byte // key
}

// texts are texts of pages that are not parsed again: most of a reading's garbage.
var texts sync.Pool

// newText returns memory for a page of about budget bytes.
func newText(budget int) []byte {
	if kept, ok := texts.Get().(*[]byte); ok && cap(*kept) >= budget && cap(*kept) <= 2*budget {
		return (*kept)[:0]
	}
	return make([]byte, 0, budget+budget/8)
}

// reuse gives the text's memory to a later page, unless a large row has made it large.
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
	used    []bool // nil is all
	fields  []record.Datum
	record  record.Record // valid during a call, as its fields are
	scratch []byte
}

// NewParser makes a parser of the used columns; nil means all.
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
				continue // it was never set
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

// datum makes a datum of the text of a value.
func (p *parser) datum(d *record.Datum, c *Column, text []byte) (err error) {
	d.Kind = c.Kind
	if c.Read != nil {
		*d = record.Datum{Kind: c.Kind} // it may make another kind of each value
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

// Release frees the memory of the last row, which may have been large.
func (p *parser) Release() { p.scratch = nil }
