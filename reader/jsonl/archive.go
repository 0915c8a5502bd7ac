package jsonl

import (
	"strconv"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// Archives of version 1 have lines of another form, which nothing writes any more: the values under PK stand alone, in the order of the key, and
// T names the type of each cell, also of integers and strings:
//
//	{"PK":{"Values":["a",7]},"Attr":{"Values":[{"C":"n","V":7,"T":"integer","TS":1626860469000},{"C":"n","V":"x","T":"string","TS":1626860468000}]}}
//
// A key value that is not UTF-8 is an object, as in the lines of today.

// archivedKey reads a value under PK that stands alone: the n-th of the key.
func (p *Parser) archivedKey(n int) bool {
	if n >= len(p.options.Archive) {
		return p.broken(wantArchive)
	}
	s, from := &p.scan, p.scan.pos
	var d record.Datum
	if !p.scalar(&d) {
		return false
	}
	ok := false
	switch p.options.Archive[n].Type {
	case table.Integer:
		v, err := strconv.ParseInt(string(d.Bytes), 10, 64)
		ok = d.Kind == record.Number && err == nil
		d = record.Datum{Kind: record.Integer, Int: v}
	case table.String:
		ok = d.Kind == record.String
	case table.Binary:
		if ok = d.Kind == record.String; ok {
			d.Kind = record.Binary
			d.Bytes, ok = unbase64(s, d.Bytes)
		}
	}
	name := p.options.Archive[n].Name
	if !ok {
		return p.refuse(name, table.CodeType, "the value is not of the key column's type", from)
	}
	i := p.column([]byte(name))
	if i < 0 {
		return true
	}
	if p.seen[i] == p.turn {
		return p.twice([]byte(name))
	}
	p.seen[i], p.record.Fields[i] = p.turn, d
	return true
}
