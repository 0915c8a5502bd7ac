package csv

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// Parser reads the records of a split. Line ends inside quotes are data and remain unchanged. Comments are not records;
// empty lines are records only if the dialect says so. A quote opens a field only as its first byte; elsewhere it is
// text. Text after a closing quote, an unclosed quote or a doubtful escape sequence makes a record Bad.
type Parser struct {
	d       Dialect
	end     []byte // record end
	null    string
	data    []byte
	pos     int
	passed  passed
	rec     record.Record
	scratch []byte
	simple  bool // the fast parser can read records with quotes
	plain   bool // the fast parser can read lines without quotes and escapes
	raw     bool // raw texts of fields have meanings
	lineEnd bool // records end at line ends
	window  window

	// MaxFields is the number of fields to keep of each record; 0 means all.
	MaxFields int
}

// passed counts what the parser has moved past since Reset.
type passed struct {
	records uint32
	lines   uint32
	empty   int // empty lines that were skipped
}

func NewParser(d Dialect) *Parser {
	p := &Parser{d: d, end: []byte(d.End()), null: d.Null, simple: d.simple(), plain: d.plain()}
	if p.null == "" && d.Escape == '\\' {
		p.null = `\N` // it means null in every dialect with backslash escapes
	}
	p.raw = p.null != "" || d.Doubt != "" || d.Typed
	p.lineEnd = len(p.end) == 1 && p.end[0] == d.lineByte()
	p.findMarks()
	return p
}

// Reset starts a new split. The parser does not change data.
func (p *Parser) Reset(data []byte) {
	p.data, p.pos, p.passed = data, 0, passed{}
	p.window.from, p.window.to = 0, 0
}

// Records returns the number of records returned since Reset.
func (p *Parser) Records() int { return int(p.passed.records) }

// Lines returns the number of lines read since Reset.
func (p *Parser) Lines() int { return int(p.passed.lines) }

// Empty returns the number of empty lines skipped since Reset.
func (p *Parser) Empty() int { return p.passed.empty }

// End returns the offset of the end of the last record.
func (p *Parser) End() uint32 { return p.rec.Span.End }

// Next returns the next record, or false at the end of the split.
func (p *Parser) Next() (*record.Record, bool) {
	for p.pos < len(p.data) {
		if p.window.used {
			switch p.markedLine() {
			case recordLine:
				return &p.rec, true
			case emptyLine:
				p.passed.empty++
				continue
			}
		}
		start := p.pos
		line, next := p.line()
		if p.passes(line) {
			if line != nil && len(line) == 0 {
				p.passed.empty++
			}
			p.pass(next)
			continue
		}
		p.rec = record.Record{
			Fields: p.rec.Fields[:0],
			Span:   table.Span{Start: uint32(start), Record: p.passed.records, Line: p.passed.lines},
		}
		switch {
		case p.plain && (p.d.Quote == 0 || bytes.IndexByte(line, p.d.Quote) < 0) &&
			(p.d.Escape == 0 || bytes.IndexByte(line, p.d.Escape) < 0):
			p.scratch = p.scratch[:0]
			p.split(line)
			p.pass(next)
		case p.simple:
			p.quoted()
		default:
			p.general()
		}
		p.passed.records++
		p.rec.Span.End = uint32(p.pos)
		return &p.rec, true
	}
	return nil, false
}

// line returns the text before the next record end, even an escaped or quoted one, and the length including that end.
func (p *Parser) line() (line []byte, next int) {
	rest := p.data[p.pos:]
	n := bytes.Index(rest, p.end)
	if n < 0 && !bytes.ContainsAny(p.end, "\r\n") && len(bytes.Trim(rest, "\r\n")) == 0 {
		return nil, len(rest) // an editor added a line end after the last record end
	}
	if n < 0 {
		return p.withoutCR(rest), len(rest)
	}
	return p.withoutCR(rest[:n]), n + len(p.end)
}

func (p *Parser) pass(n int) {
	start := p.pos
	p.pos += n
	if p.lineEnd {
		p.passed.lines++
		return
	}
	p.countLines(start)
}

// passes reports whether the parser skips a line that is not a record.
func (p *Parser) passes(line []byte) bool {
	switch {
	case line == nil:
		return true
	case len(line) == 0:
		return !p.d.Blank
	}
	return p.d.Comment != "" && bytes.HasPrefix(line, []byte(p.d.Comment)) ||
		p.d.EndMark != "" && string(line) == p.d.EndMark
}

func (p *Parser) field(text []byte, quoted bool) {
	p.rec.Fields = p.appendField(p.rec.Fields, text, quoted)
}

func (p *Parser) appendField(fields []record.Datum, text []byte, quoted bool) []record.Datum {
	n := len(fields)
	if p.MaxFields > 0 && n >= p.MaxFields {
		return fields
	}
	if n == cap(fields) {
		fields = append(fields, record.Datum{})
	}
	// Members that CSV does not use are always zero. Setting them would cost more than finding the field.
	fields = fields[:n+1]
	d := &fields[n]
	d.Kind, d.Quoted, d.Bytes = record.Text, quoted, text
	return fields
}

// Masks of the low seven bits and of the high bit of each byte in a word.
const (
	lowBits  = 0x7f7f7f7f7f7f7f7f
	highBits = 0x8080808080808080
)

// split splits a line without quotes at its delimiters. It reads eight bytes at once, because most fields are short.
func (p *Parser) split(line []byte) {
	delimiter := uint64(p.d.Delimiter[0]) * 0x0101010101010101
	from := 0
	all := uint64(0)
	for i := 0; i < len(line); i += 8 {
		word := uint64(0)
		if i+8 <= len(line) {
			word = binary.LittleEndian.Uint64(line[i:])
		} else {
			for k, c := range line[i:] {
				word |= uint64(c) << (8 * k)
			}
		}
		all |= word
		// Set the high bit of each byte that is a delimiter.
		found := word ^ delimiter
		found = ^((found & lowBits) + lowBits | found | lowBits)
		for ; found != 0; found &= found - 1 {
			at := i + bits.TrailingZeros64(found)/8
			if at >= len(line) {
				break // zero delimiters in the padding
			}
			p.field(line[from:at], false)
			from = at + 1
		}
	}
	p.field(line[from:], false)
	p.rec.ASCII = all&highBits == 0 && !p.raw
	if p.raw {
		p.settleAll()
	}
}

// settleAll calls settle for all fields of a record without quotes, whose raw texts are their texts.
func (p *Parser) settleAll() {
	for i := range p.rec.Fields {
		f := &p.rec.Fields[i]
		p.settle(f, f.Bytes)
	}
}

func afterQuote(text []byte) string {
	if len(bytes.Trim(text, " \t")) == 0 {
		return "blanks after the closing quote; --trim drops them"
	}
	return "text after the closing quote"
}

const neverCloses = "a quote opens and never closes"

// reject rejects the record. It keeps only the first reason.
func (p *Parser) reject(code, message string, text []byte) {
	if p.rec.Bad == nil {
		p.rec.Bad = &table.Reason{Code: code, Message: message, Value: table.Show(text)}
	}
}

func (p *Parser) countLines(start int) {
	p.passed.lines += uint32(p.d.Lines(p.data[start:p.pos]))
	if p.lineEnd && p.data[p.pos-1] != p.end[0] {
		p.passed.lines++
	}
}

// quoted reads the record at pos field by field. Even a bad record ends at the record end that Scan finds.
func (p *Parser) quoted() {
	p.scratch = p.scratch[:0]
	start := p.pos
	for more := true; more; {
		if p.pos < len(p.data) && p.data[p.pos] == p.d.Quote {
			p.quotedField()
			var tail []byte
			if tail, more = p.plainField(); len(tail) > 0 {
				p.reject(table.CodeQuote, afterQuote(tail), tail)
			}
			continue
		}
		var text []byte
		text, more = p.plainField()
		p.field(text, false)
	}
	p.countLines(start)
	if p.raw {
		p.settleAll()
	}
}

// quotedField reads a field from its opening quote through its closing quote.
func (p *Parser) quotedField() {
	p.pos++
	from, copied := len(p.scratch), false
	for {
		i := bytes.IndexByte(p.data[p.pos:], p.d.Quote)
		if i < 0 {
			p.reject(table.CodeQuote, neverCloses, p.data[p.pos:])
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

// plainField reads up to a delimiter or record end, inclusive. more reports whether the record continues.
func (p *Parser) plainField() (text []byte, more bool) {
	start, delimiter := p.pos, p.d.Delimiter[0]
	for ; p.pos < len(p.data); p.pos++ {
		switch c := p.data[p.pos]; c {
		case delimiter:
			p.pos++
			return p.data[start : p.pos-1], true
		case p.end[0]:
			p.pos++
			return p.withoutCR(p.data[start : p.pos-1]), false
		}
	}
	return p.withoutCR(p.data[start:]), false
}

// withoutCR removes the CRs that belong to the record end.
func (p *Parser) withoutCR(text []byte) []byte {
	n := len(text)
	for n > 0 && text[n-1] == '\r' && p.d.dropsCR() {
		n--
	}
	return text[:n]
}

// general reads the record at pos byte by byte, in any dialect.
func (p *Parser) general() {
	g := general{d: &p.d, end: string(p.end), data: p.data, pos: p.pos}
	f := fieldText{buf: p.scratch[:0]}
	start := p.pos
	type place struct{ from, to, rawFrom, rawTo int }
	var places []place
	for end := endDelimiter; end == endDelimiter; {
		from, begin := len(f.buf), g.pos
		f.quoted, f.open, f.trailed, f.why = false, false, false, ""
		end = g.field(&f)
		if f.open {
			f.stop = g.pos
		}
		if len(p.rec.Fields) < p.MaxFields || p.MaxFields == 0 {
			places = append(places, place{from, len(f.buf), begin, f.stop})
		}
		p.field(nil, f.quoted)
		if f.open {
			p.reject(table.CodeQuote, neverCloses, p.data[begin:])
		}
		if f.trailed {
			p.reject(table.CodeQuote, afterQuote(f.buf[len(f.buf)-f.after:]), p.data[begin:g.pos])
		}
		if f.why != "" && string(p.data[begin:f.stop]) != p.null {
			p.reject(table.CodeEscape, f.why, p.data[begin:f.stop])
		}
	}
	p.scratch, p.pos = f.buf, g.pos
	for i, at := range places {
		field := &p.rec.Fields[i]
		field.Bytes = f.buf[at.from:at.to:at.to]
		if p.raw {
			p.settle(field, p.data[at.rawFrom:at.rawTo])
		}
	}
	p.countLines(start)
}
