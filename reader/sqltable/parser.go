package sqltable

import (
	"fmt"
	"strconv"
	"unsafe"

	"tsimport/internal/table"
	"tsimport/reader/record"
	"tsimport/reader/source"
)

// page is rows as they are in the snapshot: the texts of their values, and how long each is; -1 is null.
type page struct {
	of          *Table
	text        []byte
	lens        []int32
	first, last [][]byte // keys
}

func (pg *page) rows() int { return len(pg.lens) / len(pg.of.Columns) }

// Prepare has nothing to do.
func (*page) Prepare() error { return nil }

// Bytes is what the page takes.
func (pg *page) Bytes() int64 { return int64(cap(pg.text) + 4*cap(pg.lens)) }

// interval says in which interval the keys lie. Texts are sorted by the server's rules, so that only integers are compared as they are here.
func (pg *page) interval() []source.KeyInterval {
	var k source.KeyInterval
	for i, place := range pg.of.Key {
		if pg.of.Columns[place].Kind != record.Integer {
			return nil
		}
		first, err1 := strconv.ParseInt(string(pg.first[i]), 10, 64)
		last, err2 := strconv.ParseInt(string(pg.last[i]), 10, 64)
		if err1 != nil || err2 != nil {
			return nil
		}
		k.First = append(k.First, record.Datum{Kind: record.Integer, Int: first})
		k.Last = append(k.Last, record.Datum{Kind: record.Integer, Int: last})
	}
	return []source.KeyInterval{k}
}

// parser makes records of the rows of pages.
type parser struct {
	of      *Table
	used    []bool // nil is all
	fields  []record.Datum
	scratch []byte
}

// NewParser makes a parser of the columns used; nil is all.
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

// Parse calls each with every row of a page.
func (p *parser) Parse(sp source.Split, each func(*record.Record)) (records, lines int, err error) {
	pg := sp.Part.(*page)
	text, lens := pg.text, pg.lens
	for n := range pg.rows() {
		p.scratch = p.scratch[:0]
		for i := range p.fields {
			length := lens[0]
			lens = lens[1:]
			p.fields[i] = record.Datum{}
			if length < 0 {
				continue
			}
			value := text[:length:length]
			text = text[length:]
			if p.used != nil && !p.used[i] {
				continue
			}
			if err := p.datum(&p.fields[i], &p.of.Columns[i], value); err != nil {
				return n, 0, fmt.Errorf("read column %s: %w", p.of.Columns[i].Name, err)
			}
		}
		each(&record.Record{Fields: p.fields, Span: table.Span{Record: uint32(n)}})
	}
	return pg.rows(), 0, nil
}

// datum makes a datum of the text of a value.
func (p *parser) datum(d *record.Datum, c *Column, text []byte) (err error) {
	d.Kind = c.Kind
	if c.Read != nil {
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

// LimitMemory changes nothing: a page is in memory anyway.
func (p *parser) LimitMemory(int64) {}

// Release gives back the memory of the last row, which may have been large.
func (p *parser) Release() { p.scratch = nil }

// Close has nothing to give back.
func (p *parser) Close() error { return nil }
