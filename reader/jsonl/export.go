package jsonl

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// isExport says whether the line, at its brace, has the shape of a row that the vendor's command line tool exports:
//
//	{"PK":{"Values":["a",7]},"Attr":{"Values":[{"C":"name","V":"b","TS":1626860469000},{"C":"n","V":1,"IsInt":true}]}}
//
// PK and optionally Attr and nothing else, each an object of Values and nothing else, which is an array. Anything
// else is an ordinary object, also when it is broken.
func (p *Parser) isExport() bool {
	s := &p.scan
	s.pos++
	s.space()
	if !bytes.HasPrefix(s.data[s.pos:], []byte(`"PK"`)) && !bytes.HasPrefix(s.data[s.pos:], []byte(`"Attr"`)) {
		return false
	}
	defer p.keys.reset()
	var pk, attr bool
	for {
		key, ok := p.key()
		switch {
		case ok && string(key) == "PK" && !pk:
			pk = true
		case ok && string(key) == "Attr" && !attr:
			attr = true
		default:
			return false
		}
		if !p.openValues() {
			return false
		}
		if _, ok := p.skip(nil, 3); !ok || s.token() != '}' {
			return false
		}
		s.pos++
		switch s.token() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			s.space()
			return pk && s.pos == len(s.data)
		default:
			return false
		}
	}
}

// openValues goes to the array of {"Values":[…]}.
func (p *Parser) openValues() bool {
	s := &p.scan
	if s.token() != '{' {
		return false
	}
	s.pos++
	key, ok := p.key()
	return ok && string(key) == "Values" && s.token() == '['
}

// cell is a value of an exported row.
type cell struct {
	name     []byte
	value    record.Datum
	kind     []byte // as the line names it, nil when it does not
	isInt    bool
	stamp    int64
	hasName  bool
	hasValue bool
}

// export parses the line, which isExport has seen, from its brace on.
func (p *Parser) export() bool {
	s := &p.scan
	s.pos = bytes.IndexByte(s.data, '{') + 1
	for {
		key, _ := p.key()
		pk := string(key) == "PK"
		p.openValues()
		s.pos++
		for n := 0; s.token() != ']'; n++ {
			c := cell{stamp: NoTimestamp}
			if !p.cell(&c, pk, n) || !p.setCell(&c, pk) {
				return false
			}
			if s.token() == ',' {
				s.pos++
			}
		}
		s.pos++
		s.token()
		s.pos++ // of Values' object
		more := s.token() == ','
		s.pos++
		if !more {
			return true
		}
	}
}

// cell reads the n-th value. Under PK the tool writes bare values; their names are the table's.
func (p *Parser) cell(c *cell, pk bool, n int) bool {
	s := &p.scan
	if s.token() == '{' {
		return p.namedCell(c)
	}
	if !pk {
		return p.broken("want an object with C and V under Attr")
	}
	c.hasName, c.hasValue = true, true
	at := len(s.scratch)
	if n < len(p.options.Keys) {
		s.scratch = append(s.scratch, p.options.Keys[n]...)
	} else {
		s.scratch = strconv.AppendInt(append(s.scratch, "pk"...), int64(n)+1, 10)
	}
	c.name = s.scratch[at:len(s.scratch):len(s.scratch)]
	return p.scalar(&c.value)
}

// namedCell reads {"C":name,"V":value,…}. Case does not count, as in the tool, whose put command takes c and v.
// Members that are not known might change the meaning of the value, so they are refused.
func (p *Parser) namedCell(c *cell) bool {
	s := &p.scan
	if !p.scalars(func(key []byte, d record.Datum) bool {
		switch {
		case bytes.EqualFold(key, []byte("C")) && d.Kind == record.String && !c.hasName:
			c.name, c.hasName = d.Bytes, true
		case bytes.EqualFold(key, []byte("V")) && !c.hasValue:
			c.value, c.hasValue = d, true
		case bytes.EqualFold(key, []byte("T")) && d.Kind == record.String:
			c.kind = d.Bytes
		case bytes.EqualFold(key, []byte("IsInt")) && d.Kind == record.Boolean:
			c.isInt = d.Int != 0
		case bytes.EqualFold(key, []byte("TS")) && d.Kind == record.Null:
		case bytes.EqualFold(key, []byte("TS")) && d.Kind == record.Number:
			stamp, err := strconv.ParseInt(string(d.Bytes), 10, 64)
			if err != nil || stamp < 0 {
				return p.refuse(string(c.name), table.CodeType, fmt.Sprintf("TS %s is not a timestamp in milliseconds", table.Show(d.Bytes)), s.pos-len(d.Bytes))
			}
			if stamp > 0 {
				c.stamp = stamp
			}
		default:
			return p.refuse(string(c.name), CodeJSON, fmt.Sprintf("member %q of an exported value is not known or not of its type", key), s.pos)
		}
		return true
	}) {
		return false
	}
	if !c.hasName || !c.hasValue {
		return p.refuse(string(c.name), CodeJSON, fmt.Sprintf("want C and V in an exported value before byte %d", s.pos+1), s.pos)
	}
	return true
}

// scalars reads an object of values that are neither objects nor arrays, and gives each member, until one is refused.
func (p *Parser) scalars(each func(key []byte, d record.Datum) bool) bool {
	s := &p.scan
	s.pos++
	for s.token() != '}' {
		var d record.Datum
		if key, ok := p.key(); !ok || !p.scalar(&d) || !each(key, d) {
			return false
		}
		if s.token() == ',' {
			s.pos++
		}
	}
	s.pos++
	return true
}

// scalar reads a value that is neither object nor array.
func (p *Parser) scalar(d *record.Datum) bool {
	s := &p.scan
	switch c := s.token(); {
	case c == '"':
		d.Kind = record.String
		d.Bytes, _ = s.text()
	case c == 't':
		d.Kind, d.Int = record.Boolean, 1
		s.word("true")
	case c == 'f':
		d.Kind = record.Boolean
		s.word("false")
	case c == 'n':
		s.word("null")
	case c == '{' || c == '[':
		return p.broken("want a string, number, boolean or null in an exported value")
	default:
		start := s.pos
		s.number()
		d.Kind, d.Bytes = record.Number, s.data[start:s.pos]
	}
	return true
}

// setCell puts a cell into its field, as the kind the line says.
func (p *Parser) setCell(c *cell, pk bool) bool {
	if why := c.convert(pk, &p.scan); why != "" {
		code := table.CodeType
		if why == outOfRange || why == tooPrecise {
			code = table.CodeRange
		}
		return p.refuse(string(c.name), code, fmt.Sprintf("%s: %s", table.Show(c.value.Bytes), why), p.scan.pos)
	}
	i, ok := p.setField(c.name, c.value)
	if ok && p.columns != nil && pk {
		p.columns.pendingKeys = append(p.columns.pendingKeys, string(c.name))
	}
	if ok && i >= 0 && c.stamp != NoTimestamp {
		p.timestamps[i], p.stamped = c.stamp, true
	}
	return ok
}

const (
	outOfRange = "out of range"
	tooPrecise = "more digits than a double keeps"
)

// convert gives the value the kind that IsInt or T names; it returns what is wrong. A number under Attr that is not
// marked is a double; under PK, where there are none, it stays a number.
func (c *cell) convert(pk bool, s *scanner) string {
	d := &c.value
	if d.Kind == record.Null {
		return ""
	}
	number := d.Kind == record.Number
	switch {
	case c.isInt || string(c.kind) == "integer":
		if !number {
			return "no integer"
		}
		v, err := strconv.ParseInt(string(d.Bytes), 10, 64)
		if err != nil {
			return because(err, "no integer")
		}
		*d = record.Datum{Kind: record.Integer, Int: v}
	case string(c.kind) == "double" || c.kind == nil && number && !pk:
		if !number {
			return "no double"
		}
		v, err := strconv.ParseFloat(string(d.Bytes), 64)
		if err != nil {
			return because(err, "no double")
		}
		if !table.KeepsDouble(d.Bytes, v) {
			return tooPrecise
		}
		*d = record.Datum{Kind: record.Double, Double: v}
	case string(c.kind) == "binary":
		at := len(s.scratch)
		var err error
		if s.scratch, err = base64.StdEncoding.AppendDecode(s.scratch, d.Bytes); d.Kind != record.String || err != nil {
			return "not base64"
		}
		*d = record.Datum{Kind: record.Binary, Bytes: s.scratch[at:len(s.scratch):len(s.scratch)]}
	case string(c.kind) == "string" && d.Kind != record.String:
		return "no string"
	case string(c.kind) == "boolean" && d.Kind != record.Boolean:
		return "no boolean"
	case c.kind != nil && string(c.kind) != "string" && string(c.kind) != "boolean":
		return "of a type that is not known"
	}
	return ""
}

func because(err error, otherwise string) string {
	if errors.Is(err, strconv.ErrRange) {
		return outOfRange
	}
	return otherwise
}
