package jsonl

import (
	"bytes"
	"strconv"

	"example.com/tsimport/reader/record"
)

// isExport reports whether the line, at its brace, looks like a row exported by Tablestore's command-line tool:
//
//	{"PK":{"Values":["a",7]},"Attr":{"Values":[{"C":"name","V":"b","TS":1626860469000},{"C":"n","V":1,"IsInt":true}]}}
//
// It has only PK and optionally Attr, each an object with only an array Values. Other lines are ordinary objects.
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

// openValues moves to the array in {"Values":[…]}.
func (p *Parser) openValues() bool {
	s := &p.scan
	if s.token() != '{' {
		return false
	}
	s.pos++
	key, ok := p.key()
	return ok && string(key) == "Values" && s.token() == '['
}

// export parses a line that isExport has recognised, from its opening brace.
func (p *Parser) export() bool {
	s := &p.scan
	s.pos = bytes.IndexByte(s.data, '{') + 1
	for {
		key, _ := p.key()
		pk := string(key) == "PK"
		p.openValues()
		s.pos++
		for n := 0; s.token() != ']'; n++ {
			if !p.exported(pk, n) {
				return false
			}
			if s.token() == ',' {
				s.pos++
			}
		}
		s.pos++
		s.token()
		s.pos++ // the closing brace after Values
		more := s.token() == ','
		s.pos++
		if !more {
			return true
		}
	}
}

// exported reads the n-th value into its field. Under PK the tool writes values without names; the table has the names.
func (p *Parser) exported(pk bool, n int) bool {
	s := &p.scan
	c := cell{vendors: true, at: NoTimestamp}
	var d record.Datum
	switch {
	case s.token() == '{':
		var ok bool
		if d, ok = p.cell(&c, pk); !ok {
			return false
		}
	case !pk:
		return p.broken("want an object with C and V under Attr")
	default:
		at := len(s.scratch)
		if n < len(p.options.Keys) {
			s.scratch = append(s.scratch, p.options.Keys[n]...)
		} else {
			s.scratch = strconv.AppendInt(append(s.scratch, "pk"...), int64(n)+1, 10)
		}
		c.name = s.scratch[at:len(s.scratch):len(s.scratch)]
		if !p.scalar(&d) {
			return false
		}
	}
	i, ok := p.setField(c.name, d)
	if ok && p.columns != nil && pk {
		p.columns.pendingKeys = append(p.columns.pendingKeys, string(c.name))
	}
	if ok && i >= 0 && c.at != NoTimestamp {
		p.timestamps[i], p.stamped = c.at, true
	}
	return ok
}

// scalars reads an object of scalars and calls each for every member. It stops if each returns false.
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

// scalar reads a value that is not an object or array.
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
