package pgdump

import (
	"bytes"
	"fmt"
	"unsafe"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqldump"
)

// Parser reads the rows of a COPY statement, split by split, as records with the columns of the table.
type Parser struct {
	columns []sqldump.Column
	data    []byte
	pos     int
	records int
	rec     record.Record
	scratch []byte
	bad     table.Reason
}

func NewParser(columns []sqldump.Column) *Parser { return &Parser{columns: columns} }

// Reset begins a split, which must have complete lines.
func (p *Parser) Reset(data []byte, _ bool) { p.data, p.pos, p.records = data, 0, 0 }

func (p *Parser) Records() int { return p.records }

func (p *Parser) Lines() int { return p.records }

// Next returns the next record. It is valid until the next call.
func (p *Parser) Next() (*record.Record, bool) {
	if p.pos == len(p.data) {
		return nil, false
	}
	start := p.pos
	end, next := len(p.data), len(p.data)
	if n := bytes.IndexByte(p.data[start:], '\n'); n >= 0 {
		end, next = start+n, start+n+1
	}
	p.pos = next
	p.rec = record.Record{Fields: p.rec.Fields[:0], Span: table.Span{Start: uint32(start), End: uint32(next),
		Record: uint32(p.records), Line: uint32(p.records)}}
	p.records++
	p.scratch = p.scratch[:0]
	if !p.row(p.data[start:end]) {
		p.rec.Bad, p.rec.Fields = &p.bad, p.rec.Fields[:0] // an incomplete row must not be loaded
	}
	return &p.rec, true
}

// row parses the values of a row. If it returns false, it has set bad.
func (p *Parser) row(line []byte) bool {
	escaped := bytes.IndexByte(line, '\\') >= 0
	for i, rest, more := 0, line, true; ; i++ {
		if !more && i == len(p.columns) {
			return true
		}
		if !more || i == len(p.columns) {
			n := 1 + bytes.Count(line, []byte{'\t'})
			p.bad = table.Reason{Code: table.CodeRagged, Message: fmt.Sprintf("%d values where the table has %d columns", n,
				len(p.columns)), Value: table.Show(line)}
			return false
		}
		field := rest
		if n := bytes.IndexByte(rest, '\t'); n >= 0 {
			field, rest = rest[:n:n], rest[n+1:]
		} else {
			more = false
		}
		d, c := record.Datum{}, &p.columns[i]
		if string(field) == `\N` {
			p.rec.Fields = append(p.rec.Fields, d)
			continue
		}
		text, ok := field, true
		if escaped {
			text, ok = p.unescape(field)
		}
		if !ok {
			p.bad = table.Reason{Column: c.Name, Code: table.CodeEscape,
				Message: "a backslash before a byte that pg_dump does not escape", Value: table.Show(field)}
			return false
		}
		if d.Bytes = text; p.value(&d, c) != nil {
			p.bad = table.Reason{Column: c.Name, Code: table.CodeType,
				Message: fmt.Sprintf("the value in the dump does not have the type %s: %v", c.SQL, p.value(&d, c)),
				Value:   table.Show(text)}
			return false
		}
		p.rec.Fields = append(p.rec.Fields, d)
	}
}

// escapes maps the bytes that can follow a backslash to their meanings.
var escapes = func() (of [256]byte) {
	for i, b := range []byte(`bfnrtv\`) {
		of[b] = "\b\f\n\r\t\v\\"[i]
	}
	return of
}()

// unescape returns a field with its escapes decoded, or false if one is invalid.
func (p *Parser) unescape(field []byte) ([]byte, bool) {
	n := bytes.IndexByte(field, '\\')
	if n < 0 {
		return field, true
	}
	from := len(p.scratch)
	for n >= 0 {
		if n+1 == len(field) || escapes[field[n+1]] == 0 {
			return nil, false
		}
		p.scratch = append(append(p.scratch, field[:n]...), escapes[field[n+1]])
		field = field[n+2:]
		n = bytes.IndexByte(field, '\\')
	}
	p.scratch = append(p.scratch, field...)
	return p.scratch[from:len(p.scratch):len(p.scratch)], true
}

// value converts text to a value with the column's type.
func (p *Parser) value(d *record.Datum, c *sqldump.Column) error {
	if c.Kind == record.Text {
		d.Kind, d.Quoted = record.Text, len(d.Bytes) == 0 // a null would be \N
		return nil
	}
	text := d.Bytes
	v := record.Datum{Kind: c.Kind, Bytes: text}
	var err error
	switch c.Form {
	case asInteger:
		v.Int, err = sqldump.Integer(unsafe.String(unsafe.SliceData(text), len(text)))
	case asReal, asDouble:
		v.Double, err = sqldump.Double(text, c.Form == asReal)
	case asBoolean:
		if v.Int = 0; string(text) == "t" {
			v.Int = 1
		} else if string(text) != "f" {
			err = errBoolean
		}
	case asBytes:
		v.Bytes, err = p.keep(appendBytes(p.scratch, text))
	case asTime:
		v.Bytes, err = p.keep(record.AppendTimestamp(p.scratch, text), nil)
	case asZoned:
		v.Bytes, err = p.keep(appendZoned(p.scratch, text))
	case asInterval:
		v.Bytes, err = p.keep(appendInterval(p.scratch, text))
	}
	if err == nil {
		*d = v
	}
	return err
}

// keep sets scratch to out, to which a value was appended, and returns the value.
func (p *Parser) keep(out []byte, err error) ([]byte, error) {
	from := len(p.scratch)
	p.scratch = out
	return out[from:len(out):len(out)], err
}
