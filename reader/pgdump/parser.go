package pgdump

import (
	"fmt"
	"strconv"

	"tsimport/internal/table"
	"tsimport/reader/csv"
	"tsimport/reader/record"
	"tsimport/reader/sqldump"
)

// Dialect is that of the rows of COPY.
func Dialect() csv.Dialect {
	d, _, _ := csv.Named("postgres")
	d.RecordEnd = "\n" // a CR before it is data
	return d
}

// Parser reads the rows of a COPY, split by split, as records of the table's columns.
type Parser struct {
	rows    *csv.Parser
	columns []sqldump.Column
	scratch []byte
	bad     table.Reason
}

// NewParser makes a parser.
func NewParser(columns []sqldump.Column) *Parser {
	p := &Parser{rows: csv.NewParser(Dialect()), columns: columns}
	p.rows.MaxFields = len(columns) + 1
	return p
}

// Reset begins a split: whole rows.
func (p *Parser) Reset(data []byte, _ bool) { p.rows.Reset(data) }

// Records returns the records since Reset.
func (p *Parser) Records() int { return p.rows.Records() }

// Lines returns the lines since Reset.
func (p *Parser) Lines() int { return p.rows.Lines() }

// Next returns the next record, valid until the next call.
func (p *Parser) Next() (*record.Record, bool) {
	rec, ok := p.rows.Next()
	if !ok {
		return nil, false
	}
	if n := len(rec.Fields); rec.Bad == nil && n != len(p.columns) {
		p.bad = table.Reason{Code: table.CodeRagged, Message: fmt.Sprintf("%d values where the table has %d columns", n, len(p.columns))}
		rec.Bad = &p.bad
	}
	if rec.Bad != nil {
		rec.Fields = nil // what is kept of it is not to be loaded as a row
		return rec, true
	}
	p.scratch = p.scratch[:0]
	for i := range rec.Fields {
		d := &rec.Fields[i]
		if d.Kind != record.Text {
			continue
		}
		if err := p.value(d, &p.columns[i]); err != nil {
			p.bad = table.Reason{Column: p.columns[i].Name, Code: table.CodeType, Message: fmt.Sprintf("the value of the dump is not of the type %s: %v", p.columns[i].SQL, err), Value: table.Show(d.Bytes)}
			rec.Bad, rec.Fields = &p.bad, nil
			break
		}
	}
	return rec, true
}

// value makes a value of the column's type of a text.
func (p *Parser) value(d *record.Datum, c *sqldump.Column) error {
	if c.Kind == record.Text {
		d.Quoted = len(d.Bytes) == 0 // no value is \N
		return nil
	}
	text := d.Bytes
	v := record.Datum{Kind: c.Kind, Bytes: text}
	var err error
	switch c.Form {
	case asInteger:
		v.Int, err = strconv.ParseInt(string(text), 10, 64)
	case asReal:
		v.Double, err = strconv.ParseFloat(string(text), 32) // the double that it is, not the nearest to its text
	case asDouble:
		v.Double, err = strconv.ParseFloat(string(text), 64)
	case asBoolean:
		if v.Int = 0; string(text) == "t" {
			v.Int = 1
		} else if string(text) != "f" {
			err = errBoolean
		}
	case asBytes:
		out, wrong := appendBytes(p.scratch, text)
		v.Bytes, err = p.keep(out), wrong
	case asTime:
		v.Bytes = p.keep(appendTime(p.scratch, text))
	case asZoned:
		out, wrong := appendZoned(p.scratch, text)
		v.Bytes, err = p.keep(out), wrong
	case asInterval:
		out, wrong := appendInterval(p.scratch, text)
		v.Bytes, err = p.keep(out), wrong
	}
	if err == nil {
		*d = v
	}
	return err
}

// keep is what was appended to scratch.
func (p *Parser) keep(out []byte) []byte {
	from := len(p.scratch)
	p.scratch = out
	return out[from:len(out):len(out)]
}
