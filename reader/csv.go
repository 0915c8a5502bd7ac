package reader

import (
	"bytes"

	"tsimport/table"
)

// Field is one field of a record. Text is a view, valid until the next call of the parser.
type Field struct {
	Text   []byte
	Quoted bool
}

// Record is one CSV record. Bad is set when its quoting cannot be right; Fields are then not to be used.
type Record struct {
	Fields []Field
	Mark   table.Mark
	Bad    *table.Reason
}

// Parser reads the records of one split after another. Line ends are LF and CR LF, inside quotes they belong to the
// field and are kept as they are; empty lines are no records. A quote opens a field only as its first byte; elsewhere
// in a field that has none it is text.
type Parser struct {
	d       Dialect
	data    []byte
	pos     int
	records uint32
	lines   uint32
	fields  []Field
	scratch []byte
}

// NewParser makes a parser for the dialect.
func NewParser(d Dialect) *Parser { return &Parser{d: d} }

// Reset starts a split. Data is not changed.
func (p *Parser) Reset(data []byte) {
	p.data, p.pos, p.records, p.lines = data, 0, 0, 0
}

// Records returns the records delivered since Reset, Lines the lines passed.
func (p *Parser) Records() int { return int(p.records) }

// Lines returns the lines passed since Reset.
func (p *Parser) Lines() int { return int(p.lines) }

// Next returns the next record, or false at the end of the split.
func (p *Parser) Next() (Record, bool) {
	for p.pos < len(p.data) {
		start := p.pos
		rest := p.data[start:]
		end, next := len(rest), len(rest)
		if nl := bytes.IndexByte(rest, '\n'); nl >= 0 {
			end, next = nl, nl+1
		}
		if end > 0 && rest[end-1] == '\r' {
			end--
		}
		line := rest[:end]
		if len(line) == 0 {
			p.pos += next
			p.lines++
			continue
		}
		rec := Record{Mark: table.Mark{Start: uint32(start), Record: p.records, Line: p.lines}}
		p.fields = p.fields[:0]
		if p.d.Quote == 0 || bytes.IndexByte(line, p.d.Quote) < 0 {
			p.split(line)
			p.pos += next
			p.lines++
		} else {
			rec.Bad = p.quoted()
		}
		p.records++
		rec.Fields = p.fields
		rec.Mark.End = uint32(p.pos)
		return rec, true
	}
	return Record{}, false
}

// split cuts a line without quotes at its delimiters.
func (p *Parser) split(line []byte) {
	for {
		i := bytes.IndexByte(line, p.d.Delimiter)
		if i < 0 {
			p.fields = append(p.fields, Field{Text: line})
			return
		}
		p.fields = append(p.fields, Field{Text: line[:i]})
		line = line[i+1:]
	}
}

// quoted reads the record at pos field by field and moves pos behind it. It finds the same end of the record as
// Dialect.lastBoundary does, whatever is wrong inside.
func (p *Parser) quoted() (bad *table.Reason) {
	p.scratch = p.scratch[:0]
	start := p.pos
	for {
		var f Field
		var end byte // what ended the field: delimiter, '\n', or 0 at the end of the data
		if p.pos < len(p.data) && p.data[p.pos] == p.d.Quote {
			var why *table.Reason
			f, why = p.quotedField()
			if why != nil && bad == nil {
				bad = why
			}
			var tail []byte
			tail, end = p.plainField()
			if len(tail) > 0 && bad == nil {
				bad = &table.Reason{Code: table.CodeQuote, Message: "text after the closing quote", Value: table.Show(tail)}
			}
		} else {
			f.Text, end = p.plainField()
		}
		p.fields = append(p.fields, f)
		if end != p.d.Delimiter || end == 0 {
			break
		}
	}
	p.lines += uint32(bytes.Count(p.data[start:p.pos], []byte{'\n'}))
	if p.data[p.pos-1] != '\n' {
		p.lines++
	}
	return bad
}

// quotedField reads a field from its opening quote to behind its closing one.
func (p *Parser) quotedField() (Field, *table.Reason) {
	p.pos++
	from := len(p.scratch)
	copied := false
	for {
		i := bytes.IndexByte(p.data[p.pos:], p.d.Quote)
		if i < 0 {
			text := p.data[p.pos:]
			p.pos = len(p.data)
			return Field{Quoted: true}, &table.Reason{Code: table.CodeQuote, Message: "a quote opens and never closes", Value: table.Show(text)}
		}
		text := p.data[p.pos : p.pos+i]
		p.pos += i + 1
		if p.pos < len(p.data) && p.data[p.pos] == p.d.Quote {
			p.scratch = append(append(p.scratch, text...), p.d.Quote)
			p.pos++
			copied = true
			continue
		}
		if !copied {
			return Field{Text: text, Quoted: true}, nil
		}
		p.scratch = append(p.scratch, text...)
		return Field{Text: p.scratch[from:len(p.scratch):len(p.scratch)], Quoted: true}, nil
	}
}

// plainField reads up to and over the delimiter or line end.
func (p *Parser) plainField() (text []byte, end byte) {
	start := p.pos
	for ; p.pos < len(p.data); p.pos++ {
		switch c := p.data[p.pos]; c {
		case p.d.Delimiter, '\n':
			text = p.data[start:p.pos]
			p.pos++
			if c == '\n' && len(text) > 0 && text[len(text)-1] == '\r' {
				text = text[:len(text)-1]
			}
			return text, c
		}
	}
	text = p.data[start:]
	if len(text) > 0 && text[len(text)-1] == '\r' {
		text = text[:len(text)-1]
	}
	return text, 0
}

// lastBoundary returns where the last whole record of data ends, 0 when none does. Data begins at a record.
func (d *Dialect) lastBoundary(data []byte) int {
	last, i := 0, 0
	for d.Quote != 0 {
		q := bytes.IndexByte(data[i:], d.Quote)
		if q < 0 {
			break
		}
		q += i
		if nl := bytes.LastIndexByte(data[i:q], '\n'); nl >= 0 {
			last = i + nl + 1
		}
		i = q + 1
		if q > 0 && data[q-1] != d.Delimiter && data[q-1] != '\n' {
			continue // inside a field a quote is text
		}
		end := d.closingQuote(data, i)
		if end < 0 {
			return last
		}
		i = end
	}
	if nl := bytes.LastIndexByte(data[i:], '\n'); nl >= 0 {
		last = i + nl + 1
	}
	return last
}

// closingQuote returns the position behind the quote that closes the field whose text begins at i, or -1 when data
// does not tell: a quote as the last byte may be the first of a doubled one.
func (d *Dialect) closingQuote(data []byte, i int) int {
	for {
		c := bytes.IndexByte(data[i:], d.Quote)
		if c < 0 || i+c+1 == len(data) {
			return -1
		}
		i += c + 1
		if data[i] != d.Quote {
			return i
		}
		i++
	}
}
