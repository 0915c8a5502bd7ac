package reader

import (
	"bytes"
	"fmt"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/csv"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// surplusFields is how many fields a record of CSV may have beyond its columns before the rest is dropped: a field takes many
// times the memory of its delimiter. Such a record is ragged either way.
const surplusFields = 64 << 10

// parser reads the records of a source's splits.
type parser struct {
	s     *File
	csv   *csv.Parser
	jsonl *jsonl.Parser
	rows  typedParser
	dump  rowParser
	rec   record.Record // with the columns of partition folders
	both  []inBoth
}

// NewParser makes a parser that reads the columns used, by their places; what else a record has may be Null.
func (s *File) NewParser(used []int) source.Parser {
	p := &parser{s: s, both: s.inBoth(used)}
	switch s.Format {
	case Parquet, Arrow:
		var own []int
		for _, i := range used {
			if i < len(s.Columns)-len(s.fixed) {
				own = append(own, i)
			}
		}
		for _, b := range p.both {
			if !slices.Contains(own, b.own) {
				own = append(own, b.own)
			}
		}
		slices.Sort(own)
		p.rows = s.typedParser(own)
		p.rows.LimitMemory(s.o.Memory.PageBytes)
	case JSONLines, DynamoDB, MongoDB:
		own := slices.Clone(s.Columns[:len(s.Columns)-len(s.fixed)])
		for i, name := range own {
			if member, other := s.member[name]; other {
				own[i] = member
			}
		}
		p.jsonl = jsonl.NewParser(jsonl.Options{Columns: own, Flatten: s.o.Flatten, Strict: true, Keys: s.keys, Layout: s.Layout, Wide: s.wide,
			Tags: s.Format.tags(), Wrapped: s.inItem, Missing: s.o.Missing, Untyped: s.mayHaveTags()})
	case PGDump, MySQLDump:
		p.dump = s.dump.newParser()
	case CSV: // findFormat has refused what is none of these
		p.csv = csv.NewParser(s.Dialect)
		p.csv.MaxFields = len(s.Columns) + surplusFields
	}
	return p
}

// LimitMemory says how many bytes the parser may hold of the pages of Parquet from now on; 0 means no bound.
func (p *parser) LimitMemory(n int64) {
	if p.rows != nil {
		p.rows.LimitMemory(n)
	}
}

// Release gives back the memory that the parser keeps from split to split.
func (p *parser) Release() {
	if p.rows != nil {
		p.rows.Release()
	}
}

// Close releases the parser's memory.
func (p *parser) Close() error {
	if p.rows != nil {
		return p.rows.Close()
	}
	return nil
}

// Parse calls each with every record of the split, in order. It returns how many records and lines there were.
func (p *parser) Parse(sp source.Split, each func(*record.Record)) (records, lines int, err error) {
	switch long := longOf(sp); {
	case long != nil:
		if p.csv != nil {
			p.csv.Reset(nil)
		}
		each(long.record())
		return 1, max(long.lines, 1), nil
	case p.rows != nil:
		records, err = p.parseRows(sp, each)
		return records, 0, err
	case p.jsonl != nil:
		if sp.Offset > p.s.text.offset {
			p.jsonl.Continue(sp.Data)
		} else {
			p.jsonl.Reset(sp.Data)
		}
		for rec, ok := p.jsonl.Next(); ok; rec, ok = p.jsonl.Next() {
			if rec.Bad != nil && rec.Bad.Code == table.CodeUTF8 {
				rec.Bad.Message += p.s.EncodingHint(sp.Data[rec.Span.Start:rec.Span.End])
			}
			if rec.Timestamps = nil; p.jsonl.Stamped() {
				rec.Timestamps = p.jsonl.Timestamps()
			}
			each(p.complete(p.s.shorten(sp, rec)))
		}
		return p.jsonl.Records(), p.jsonl.Lines(), nil
	}
	if p.dump != nil {
		p.dump.Reset(sp.Data, sp.Offset > p.s.text.offset)
		for rec, ok := p.dump.Next(); ok; rec, ok = p.dump.Next() {
			each(p.complete(p.s.shorten(sp, rec)))
		}
		return p.dump.Records(), p.dump.Lines(), nil
	}
	p.csv.Reset(sp.Data)
	limit := p.s.o.Memory.record()
	for rec, ok := p.csv.Next(); ok; rec, ok = p.csv.Next() {
		if int(rec.Span.End-rec.Span.Start) > limit {
			rec = p.s.shorten(sp, rec)
		}
		if rec.Bad == nil {
			rec.Bad = p.s.seamAt(sp.Data, rec)
		}
		each(p.complete(rec))
	}
	return p.csv.Records(), p.csv.Lines(), nil
}

// EmptyLines implements source.Skips.
func (p *parser) EmptyLines() int {
	if p.csv == nil {
		return 0
	}
	return p.csv.Empty()
}

// complete adds the columns of partition folders to a record, in their places also if it has too few or too many fields.
func (p *parser) complete(rec *record.Record) *record.Record {
	own := len(p.s.Columns) - len(p.s.fixed)
	if len(p.s.fixed) == 0 || rec.Bad != nil {
		return rec
	}
	has := min(own, len(rec.Fields))
	p.rec = record.Record{Span: rec.Span, Timestamps: rec.Timestamps, Cells: rec.Cells, Short: own - has, Fields: append(p.rec.Fields[:0], rec.Fields[:has]...)}
	p.rec.Fields = append(p.rec.Fields, make([]record.Datum, own-has)...)
	for _, c := range p.s.fixed {
		d := record.Datum{Kind: record.Text, Bytes: []byte(c.Value)}
		if c.Null {
			d = record.Datum{}
		}
		p.rec.Fields = append(p.rec.Fields, d)
	}
	p.rec.Fields = append(p.rec.Fields, rec.Fields[has:]...)
	for _, b := range p.both {
		if own, folder := &p.rec.Fields[b.own], &p.rec.Fields[b.folder]; !p.s.sameValue(own, folder) {
			p.rec.Bad = &table.Reason{Column: p.s.Columns[b.folder], Code: table.CodeFolder, Value: table.Show([]byte(convert.Text(own))),
				Message: fmt.Sprintf("the record's own value differs from that of its folder, %q", folder.Bytes)}
			*folder = *own // so that the record is kept as it is
			break
		}
	}
	return &p.rec
}

// Raw returns the text of a record for a file of rejected ones, nil if the source's records have none, empty if it is not kept. Records of JSON are
// made a line each: a line end in one of them means no more than a space.
func (s *File) Raw(sp source.Split, m table.Span) []byte {
	if long := longOf(sp); long != nil {
		return long.raw(s)
	}
	if sp.Data == nil || s.dump != nil {
		return nil
	}
	if l := s.longIn(sp, m); l != nil {
		return l.raw(s)
	}
	raw := sp.Data[m.Start:m.End]
	if s.Layout == jsonl.Lines || bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw
	}
	line := bytes.Clone(raw)
	for i, b := range line {
		if b == '\n' || b == '\r' {
			line[i] = ' '
		}
	}
	return line
}
