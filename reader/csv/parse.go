package csv

import (
	"bytes"

	"tsimport/reader/record"
	"tsimport/table"
)

// Parser reads the records of one split after another. Line ends inside quotes belong to the field and are kept as they
// are; empty lines and comments are no records. A quote opens a field only as its first byte; elsewhere in a field that
// has none it is text. Text behind a closing quote and a quote that never closes make a record Bad.
type Parser struct {
	d       Dialect
	eol     byte
	data    []byte
	pos     int
	records uint32
	lines   uint32
	rec     record.Record
	scratch []byte
	simple  bool

	// MaxFields is how many fields of a record are kept at most; 0 is all.
	MaxFields int
}

// NewParser makes a parser for the dialect.
func NewParser(d Dialect) *Parser { return &Parser{d: d, eol: d.eol(), simple: d.simple()} }

// Reset starts a split. Data is not changed.
func (p *Parser) Reset(data []byte) {
	p.data, p.pos, p.records, p.lines = data, 0, 0, 0
}

// Records returns the records delivered since Reset.
func (p *Parser) Records() int { return int(p.records) }

// Lines returns the lines passed since Reset.
func (p *Parser) Lines() int { return int(p.lines) }

// Next returns the next record, or false at the end of the split.
func (p *Parser) Next() (*record.Record, bool) {
	for p.pos < len(p.data) {
		start := p.pos
		rest := p.data[start:]
		end, next := len(rest), len(rest)
		if n := bytes.IndexByte(rest, p.eol); n >= 0 {
			end, next = n, n+1
		}
		if end > 0 && p.eol == '\n' && rest[end-1] == '\r' {
			end--
		}
		line := rest[:end]
		if len(line) == 0 || p.d.Comment != "" && bytes.HasPrefix(line, []byte(p.d.Comment)) {
			p.pos += next
			p.lines++
			continue
		}
		p.rec = record.Record{
			Fields: p.rec.Fields[:0],
			Mark:   table.Mark{Start: uint32(start), Record: p.records, Line: p.lines},
		}
		switch {
		case !p.simple:
			p.general()
		case p.d.Quote == 0 || bytes.IndexByte(line, p.d.Quote) < 0:
			p.split(line)
			p.pos += next
			p.lines++
		default:
			p.quoted()
		}
		p.records++
		p.rec.Mark.End = uint32(p.pos)
		return &p.rec, true
	}
	return nil, false
}

func (p *Parser) field(text []byte, quoted bool) {
	n := len(p.rec.Fields)
	if p.MaxFields > 0 && n >= p.MaxFields {
		return
	}
	if n == cap(p.rec.Fields) {
		p.rec.Fields = append(p.rec.Fields, record.Datum{})
	}
	// What a field of a CSV file does not use is zero since the memory was made: writing all of it costs more than finding
	// the field.
	p.rec.Fields = p.rec.Fields[:n+1]
	d := &p.rec.Fields[n]
	d.Kind, d.Quoted, d.Bytes = record.Text, quoted, text
}

// split cuts a line without quotes at its delimiters.
func (p *Parser) split(line []byte) {
	delimiter := p.d.Delimiter[0]
	for {
		i := bytes.IndexByte(line, delimiter)
		if i < 0 {
			p.field(line, false)
			return
		}
		p.field(line[:i], false)
		line = line[i+1:]
	}
}

func (p *Parser) bad(message string, text []byte) {
	if p.rec.Bad == nil {
		p.rec.Bad = &table.Reason{Code: table.CodeQuote, Message: message, Value: table.Show(text)}
	}
}

// countLines counts the lines of the record from start to pos.
func (p *Parser) countLines(start int) {
	p.lines += uint32(bytes.Count(p.data[start:p.pos], []byte{p.eol}))
	if p.data[p.pos-1] != p.eol {
		p.lines++
	}
}

// quoted reads the record at pos field by field and moves pos behind it. It ends the record where Scan does, whatever
// is wrong inside.
func (p *Parser) quoted() {
	p.scratch = p.scratch[:0]
	start := p.pos
	for more := true; more; {
		if p.pos < len(p.data) && p.data[p.pos] == p.d.Quote {
			p.quotedField()
			var tail []byte
			if tail, more = p.plainField(); len(tail) > 0 {
				p.bad("text after the closing quote", tail)
			}
			continue
		}
		var text []byte
		text, more = p.plainField()
		p.field(text, false)
	}
	p.countLines(start)
}

// quotedField reads a field from its opening quote to behind its closing one.
func (p *Parser) quotedField() {
	p.pos++
	from, copied := len(p.scratch), false
	for {
		i := bytes.IndexByte(p.data[p.pos:], p.d.Quote)
		if i < 0 {
			p.bad("a quote opens and never closes", p.data[p.pos:])
			p.pos = len(p.data)
			p.field(nil, true)
			return
		}
		text := p.data[p.pos : p.pos+i]
		p.pos += i + 1
		if p.pos < len(p.data) && p.data[p.pos] == p.d.Quote {
			p.scratch = append(append(p.scratch, text...), p.d.Quote)
			p.pos++
			copied = true
			continue
		}
		if copied {
			p.scratch = append(p.scratch, text...)
			text = p.scratch[from:len(p.scratch):len(p.scratch)]
		}
		p.field(text, true)
		return
	}
}

// plainField reads up to and over the delimiter or record end, and reports whether the record goes on.
func (p *Parser) plainField() (text []byte, more bool) {
	start, delimiter := p.pos, p.d.Delimiter[0]
	for ; p.pos < len(p.data); p.pos++ {
		switch c := p.data[p.pos]; c {
		case delimiter:
			p.pos++
			return p.data[start : p.pos-1], true
		case p.eol:
			p.pos++
			return p.withoutCR(p.data[start : p.pos-1]), false
		}
	}
	return p.withoutCR(p.data[start:]), false
}

func (p *Parser) withoutCR(text []byte) []byte {
	if n := len(text); n > 0 && p.eol == '\n' && text[n-1] == '\r' {
		return text[:n-1]
	}
	return text
}

// general reads the record at pos of a dialect that needs more care.
func (p *Parser) general() {
	g := general{d: &p.d, data: p.data, pos: p.pos}
	f := fieldText{buf: p.scratch[:0]}
	start := p.pos
	type place struct {
		from, to int
		null     bool // \N, as databases write it where a backslash escapes
	}
	var places []place
	for end := endDelimiter; end == endDelimiter; {
		from, begin := len(f.buf), g.pos
		f.quoted, f.open, f.trailed, f.escaped = false, false, false, false
		_, end = g.field(&f)
		null := f.escaped && !f.quoted && string(f.buf[from:]) == "N"
		if len(p.rec.Fields) < p.MaxFields || p.MaxFields == 0 {
			places = append(places, place{from, len(f.buf), null})
		}
		p.field(nil, f.quoted)
		if f.open {
			p.bad("a quote opens and never closes", p.data[begin:])
		}
		if f.trailed {
			p.bad("text after the closing quote", p.data[begin:g.pos])
		}
	}
	for i, at := range places {
		p.rec.Fields[i].Bytes = f.buf[at.from:at.to:at.to]
		if at.null {
			p.rec.Fields[i].Kind = record.Null
		}
	}
	p.scratch, p.pos = f.buf, g.pos
	p.countLines(start)
}
