package jsonl

import (
	"bytes"
	"slices"

	"example.com/tsimport/reader/record"
)

// A self-describing row is a line like those of Tablestore's tool, with a name and type for each value, and versions:
//
//	{"Wide":true,"PK":{"Values":[{"C":"id","V":7,"IsInt":true}]},"Attr":{"Values":[{"C":"n","V":1.5,"TS":1626860469000},{"C":"n","V":"x"}]}}
//
// PK has the record's Fields, Attr its Cells. Strings, true, false and null represent themselves. A number is a double
// or, with IsInt, an integer. For other types, T has one of the names below, and V is
//
//	binary, decimal                bytes in base64; Scale of a decimal is the number of digits after the point
//	double                         a number, or the 64 bits of a NaN or an infinity, in hexadecimal
//	unsigned, integer, boolean     an integer; for boolean, true or false
//	date, time, timestamp          an integer in units of Unit per second; Local means that the zone is unknown
//	text, number, json, string     text, or base64 with Base64 if it is not UTF-8
//
// A name that is not UTF-8 is in C64, in base64.
var kindNames = [...]string{
	record.Text: "text", record.Number: "number", record.Integer: "integer", record.Boolean: "boolean",
	record.Unsigned: "unsigned", record.Double: "double", record.String: "string", record.Binary: "binary",
	record.JSON:    "json",
	record.Decimal: "decimal", record.Date: "date", record.TimeOfDay: "time", record.Timestamp: "timestamp",
	record.Absent: "",
}

// kindNamed returns the kind that T names.
func kindNamed(name []byte) (record.Kind, bool) {
	k := slices.Index(kindNames[:], string(name))
	return record.Kind(max(k, 0)), k >= 0 && len(name) > 0
}

const (
	wantWide    = `want {"Wide":true,"PK":{"Values":[…]},"Attr":{"Values":[…]}}`
	wantArchive = `want {"Wide":true,"PK":{"Values":[…]},"Attr":{"Values":[…]}} with a value for each key column`
)

// IsWide reports whether the first object of a text looks like a self-describing row. It examines only the beginning.
func IsWide(text []byte) bool {
	for _, token := range []string{"{", `"Wide"`, ":", "true", ",", `"PK"`, ":", "{", `"Values"`, ":", "["} {
		var ok bool
		if text, ok = bytes.CutPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte(token)); !ok {
			return false
		}
	}
	return true
}

// wide parses a self-describing row from its opening brace.
func (p *Parser) wide() bool {
	s := &p.scan
	p.record.Cells = p.record.Cells[:0]
	want := wantWide
	if p.options.Archive > 0 {
		want = wantArchive
	}
	if !IsWide(s.data[s.pos:]) {
		return p.broken(want)
	}
	start := s.pos
	if _, ok := p.skip(nil, 1); !ok {
		return false
	}
	end := s.pos
	p.keys.reset()
	// From here on, the text is known to be a JSON object without repeated keys.
	s.pos = start + bytes.IndexByte(s.data[start:], ',')
	values := 0 // number of values under PK so far
	for s.token() == ',' {
		s.pos++
		key, named := p.key()
		pk := string(key) == "PK"
		if !named || !pk && string(key) != "Attr" || !p.openValues() {
			return p.broken(want)
		}
		s.pos++
		for s.token() != ']' {
			if s.token() != '{' {
				return p.broken(want)
			}
			if !p.wideCell(pk) {
				return false
			}
			if pk {
				values++
			}
			if s.token() == ',' {
				s.pos++
			}
		}
		s.pos++
		if s.token() != '}' {
			return p.broken(want)
		}
		s.pos++
	}
	if p.options.Archive > 0 && values != p.options.Archive {
		return p.broken(want)
	}
	s.pos = end
	p.fillFields()
	return true
}

// wideCell reads a value into its field or adds it to the cells.
func (p *Parser) wideCell(pk bool) bool {
	var c cell
	d, ok := p.cell(&c, pk)
	if !ok {
		return false
	}
	if !pk {
		p.record.Cells = append(p.record.Cells, record.Cell{Name: c.name, Datum: d, At: c.at})
		return true
	}
	_, ok = p.setField(c.name, d)
	return ok
}

// setField sets the field with a name and returns its index, or -1 if there is none. If ok is false, it has set bad.
func (p *Parser) setField(name []byte, d record.Datum) (i int, ok bool) {
	i = p.column(name)
	if i >= 0 && p.seen[i] == p.turn || i < 0 && !p.keys.add(0, name) {
		return i, p.twice(name)
	}
	if p.columns != nil {
		p.columns.note(name, d)
	}
	if i >= 0 {
		p.seen[i], p.record.Fields[i] = p.turn, d
	} else if p.options.Strict {
		p.notColumn(name)
	}
	return i, true
}

func (p *Parser) notColumn(name []byte) {
	if !p.strange {
		p.unknown, p.strange = append(p.unknown, name...), true
	}
}

// fillFields sets fields that PK lacks to the newest cells with their names. Cells without a timestamp are newest.
func (p *Parser) fillFields() {
	missing := false
	for i := range p.record.Fields {
		if p.seen[i] != p.turn {
			p.record.Fields[i] = record.Datum{Kind: record.Absent}
			missing = true
		}
	}
	if !missing {
		return
	}
	for i := range p.record.Cells {
		c := &p.record.Cells[i]
		field, ok := p.index[string(c.Name)]
		if !ok || p.seen[field] == p.turn {
			continue
		}
		if f := &p.record.Fields[field]; f.Kind == record.Absent || c.At < 0 || p.timestamps[field] >= 0 &&
			c.At > p.timestamps[field] {
			*f, p.timestamps[field] = c.Datum, c.At
		}
	}
	for i := range p.record.Fields {
		p.seen[i], p.timestamps[i] = p.turn, NoTimestamp
	}
}
