package jsonl

import (
	"fmt"

	"example.com/tsimport/reader/record"
)

// object parses the object at the current position into fields. With Flatten, nested names are appended to path.
func (p *Parser) object(depth int) bool {
	s := &p.scan
	if depth > MaxDepth {
		return p.broken(fmt.Sprintf("want nesting up to %d", MaxDepth))
	}
	id := p.keys.object()
	s.pos++
	if s.token() == '}' {
		s.pos++
		return true
	}
	prefix := len(p.path)
	for {
		key, ok := p.key()
		if !ok {
			return false
		}
		name := key
		if p.options.Flatten {
			p.path = p.path[:prefix]
			if depth > 1 {
				p.path = append(p.path, '.')
			}
			p.path = append(p.path, key...)
			name = p.path
		}
		if !p.member(id, name, key, depth) {
			return false
		}
		switch s.token() {
		case ',':
			s.pos++
		case '}':
			s.pos++
			p.path = p.path[:prefix]
			return true
		default:
			return p.broken("want ',' or '}'")
		}
	}
}

func (p *Parser) key() ([]byte, bool) {
	s := &p.scan
	if s.token() != '"' {
		return nil, p.broken("want a key")
	}
	key, ok := s.text()
	if !ok {
		return nil, p.failed(nil)
	}
	if s.token() != ':' {
		return nil, p.broken("want ':'")
	}
	s.pos++
	return key, true
}

// member parses the field called name. With Flatten, full names must be unique; otherwise, the keys of each object.
func (p *Parser) member(id uint32, name, key []byte, depth int) bool {
	s := &p.scan
	i := p.column(name)
	nested := p.options.Flatten && s.token() == '{'
	switch {
	case i >= 0 && p.seen[i] == p.turn:
		return p.twice(name)
	case i >= 0:
		p.seen[i] = p.turn
	case !p.options.Flatten:
		if !p.keys.add(id, key) {
			return p.twice(name)
		}
	default:
		at := len(s.scratch) // a copy, because keys retains it and path changes
		s.scratch = append(s.scratch, name...)
		if !p.keys.add(0, s.scratch[at:len(s.scratch):len(s.scratch)]) {
			return p.twice(name)
		}
	}
	if !nested {
		if i < 0 && p.options.Strict && p.options.Tags == NoTags && s.token() != 'n' { // dropping a null loses nothing
			p.notColumn(name)
		}
		return p.value(i, name, depth)
	}
	// The members of the object become columns. The object is a value itself if a column has its name or it is empty.
	if start := s.pos; i >= 0 || p.columns != nil && s.emptyObject() {
		if !p.value(i, name, depth) {
			return false
		}
		s.pos = start
	}
	return p.object(depth + 1)
}

func (p *Parser) twice(name []byte) bool {
	return p.refuse("", CodeJSON, fmt.Sprintf("key %q occurs twice, again at byte %d", name, p.scan.pos+1), p.scan.pos)
}

// value parses a value into field i. If i is -1, it only checks the value.
func (p *Parser) value(i int, name []byte, depth int) bool {
	s := &p.scan
	c := s.token()
	var d record.Datum
	start, tagged, ok := s.pos, p.options.Tags != NoTags, false
	switch {
	case c == '"' && i < 0:
		d.Kind = record.String
		_, _, ok = s.skipText()
	case c == '"':
		d.Kind = record.String
		d.Bytes, ok = s.text()
	case c == '-' || c-'0' <= 9:
		ok = s.number()
		d.Kind, d.Bytes = record.Number, s.data[start:s.pos]
	case c == 't':
		d.Kind, d.Int, ok = record.Boolean, 1, s.word("true")
	case c == 'f':
		d.Kind, ok = record.Boolean, s.word("false")
	case c == 'n':
		ok = s.word("null")
	case c == '{' || c == '[':
		var spaced bool
		if spaced, ok = p.skip(name, depth+1); !ok {
			return false
		}
		d.Kind, d.Bytes = record.JSON, s.data[start:s.pos]
		if spaced && (i >= 0 || tagged || p.options.Untyped) {
			d.Bytes = s.compact(start, s.pos)
		}
		if !tagged && !p.options.Flatten {
			_, d.Tagged = record.Tagged(d.Bytes)
		}
	default:
		return p.broken("want a value")
	}
	if !ok {
		return p.failed(name)
	}
	if tagged {
		if !p.untag(name, &d, start) {
			return false
		}
		if i < 0 && p.options.Strict && d.Kind != record.Null {
			p.notColumn(name)
		}
	}
	if p.options.Untyped && d.Kind == record.JSON && !p.unexpected(name, d.Bytes, start) {
		return false
	}
	if p.columns != nil {
		p.columns.note(name, d)
	}
	if i >= 0 {
		p.record.Fields[i] = d
	}
	return true
}

// skip checks and skips the object or array at the current position. spaced means that it contains white space.
func (p *Parser) skip(column []byte, depth int) (spaced, ok bool) {
	s := &p.scan
	if depth > MaxDepth {
		return false, p.broken(fmt.Sprintf("want nesting up to %d", MaxDepth))
	}
	open := s.data[s.pos]
	closing := open + 2 // true for both { and [
	s.pos++
	var id uint32
	if open == '{' {
		id = p.keys.object()
	}
	// blank moves to the next token and records whether white space precedes it.
	blank := func() byte {
		at := s.pos
		c := s.token()
		spaced = spaced || s.pos > at
		return c
	}
	if blank() == closing {
		s.pos++
		return spaced, true
	}
	for {
		if open == '{' {
			if blank() != '"' {
				return false, p.broken("want a key")
			}
			key, ok := s.text()
			if !ok {
				return false, p.failed(column)
			}
			if !p.keys.add(id, key) {
				return false, p.twice(key)
			}
			if blank() != ':' {
				return false, p.broken("want ':'")
			}
			s.pos++
		}
		inner, ok := p.skipValue(column, depth, blank())
		if !ok {
			return false, false
		}
		spaced = spaced || inner
		switch blank() {
		case ',':
			s.pos++
		case closing:
			s.pos++
			return spaced, true
		default:
			return false, p.broken(fmt.Sprintf("want ',' or %q", closing))
		}
	}
}

// skipValue is like skip, for any value. c is its first byte.
func (p *Parser) skipValue(column []byte, depth int, c byte) (spaced, ok bool) {
	s := &p.scan
	switch {
	case c == '"':
		_, _, ok = s.skipText()
	case c == '-' || c-'0' <= 9:
		ok = s.number()
	case c == 't':
		ok = s.word("true")
	case c == 'f':
		ok = s.word("false")
	case c == 'n':
		ok = s.word("null")
	case c == '{' || c == '[':
		return p.skip(column, depth+1)
	default:
		return false, p.broken("want a value")
	}
	return false, ok || p.failed(column)
}

// emptyObject reports whether the object at the current position has no members.
func (s *scanner) emptyObject() bool {
	at := s.pos
	s.pos++
	empty := s.token() == '}'
	s.pos = at
	return empty
}

// compact copies a valid value to scratch, without the white space outside strings.
func (s *scanner) compact(start, end int) []byte {
	at := len(s.scratch)
	for pos := start; pos < end; {
		switch c := s.data[pos]; c {
		case ' ', '\t', '\r', '\n':
			pos++
		case '"':
			n := pos + 1
			for s.data[n] != '"' {
				if s.data[n] == '\\' {
					n++
				}
				n++
			}
			s.scratch = append(s.scratch, s.data[pos:n+1]...)
			pos = n + 1
		default:
			s.scratch = append(s.scratch, c)
			pos++
		}
	}
	return s.scratch[at:len(s.scratch):len(s.scratch)]
}
