package mysqldump

import (
	"bytes"
	"fmt"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/sqldump"
)

// Parser reads the rows of INSERT statements, split by split, as records with the columns of the table.
type Parser struct {
	columns []sqldump.Column
	data    []byte
	pos     int
	cutter  Cutter
	records int
	lines   int
	rec     record.Record
	scratch []byte
	bad     table.Reason
}

func NewParser(columns []sqldump.Column) *Parser { return &Parser{columns: columns} }

// Reset begins a split: the text between two cuts of a Cutter. begun means that it is not the first split of the text.
func (p *Parser) Reset(data []byte, begun bool) {
	p.data, p.pos, p.records, p.lines = data, 0, 0, 0
	p.cutter = Cutter{Begun: begun}
}

func (p *Parser) Records() int { return p.records }

func (p *Parser) Lines() int { return p.lines }

// Next returns the next record. It is valid until the next call.
func (p *Parser) Next() (*record.Record, bool) {
	start, ok := p.findRow()
	if !ok {
		return nil, false
	}
	p.rec = record.Record{Span: table.Span{Start: uint32(start), Record: uint32(p.records), Line: uint32(p.lines)},
		Fields: p.rec.Fields[:0]}
	p.records++
	end := start + 1 + p.cutter.inRow(p.data[start+1:])
	p.lines += bytes.Count(p.data[start:end], []byte("\n"))
	p.pos = end
	p.rec.Span.End = uint32(end)
	p.scratch = p.scratch[:0]
	if p.cutter.state != afterRow {
		p.bad = table.Reason{Code: table.CodeQuote, Message: "the row has no end", Value: table.Show(p.data[start:end])}
		p.rec.Bad = &p.bad
	} else if !p.row(p.data[start+1 : end-1]) {
		p.rec.Bad, p.rec.Fields = &p.bad, p.rec.Fields[:0] // an incomplete row must not be loaded
	}
	return &p.rec, true
}

// findRow moves to the opening parenthesis of the next row. It returns false if there is none.
func (p *Parser) findRow() (start int, ok bool) {
	c := &p.cutter
	for p.pos < len(p.data) {
		before := c.state
		if c.Begun {
			before = afterRow
		}
		n, _, err := c.statement(p.data[p.pos : p.pos+1])
		if err != nil {
			return 0, false // no text from a Cutter reaches this line
		}
		if p.data[p.pos] == '\n' {
			p.lines++
		}
		if p.pos += n; c.state == inRow && before != inRow {
			return p.pos - 1, true
		}
	}
	return 0, false
}

// row parses the values of a row. If it returns false, it has set bad.
func (p *Parser) row(text []byte) bool {
	v := values{text: text}
	for i := 0; ; i++ {
		one, err := v.next(&p.scratch)
		name := ""
		if i < len(p.columns) {
			name = p.columns[i].Name
		}
		if err != nil {
			p.bad = table.Reason{Column: name, Code: table.CodeType, Message: fmt.Sprintf("byte %d of the row: %v", v.pos+1,
				err), Value: table.Show(text[min(v.pos, len(text)):])}
			return false
		}
		if i < len(p.columns) {
			d, err := datum(&p.columns[i], one, &p.scratch)
			if err != nil {
				p.bad = table.Reason{Column: name, Code: table.CodeType,
					Message: fmt.Sprintf("the value in the dump does not have the type %s: %v", p.columns[i].SQL, err),
					Value:   table.Show(one.text)}
				return false
			}
			p.rec.Fields = append(p.rec.Fields, d)
		}
		if v.pos == len(text) {
			if i+1 == len(p.columns) {
				return true
			}
			p.bad = table.Reason{Code: table.CodeRagged, Message: fmt.Sprintf("%d values where the table has %d columns", i+1,
				len(p.columns)), Value: table.Show(text)}
			return false
		}
		v.pos++ // the comma
	}
}
