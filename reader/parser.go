package reader

import (
	"fmt"
	"slices"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// parser adds folder columns and operations to the records of a format, and delivers overlong records as rejected.
type parser struct {
	source.Parser // parses the input's own columns
	s             *File
	op            opColumn
	long          bool          // whether the last split was an overlong record
	rec           record.Record // record with the columns from folder names
	both          []inBoth
}

// NewParser returns a parser of the used columns, given by their indexes. Other fields may be Null.
func (s *File) NewParser(used []int) source.Parser {
	p := &parser{s: s, both: s.inBoth(used), op: opColumn{field: -1}}
	if c := s.o.Changes; c != nil && c.Column != "" {
		p.op = opColumn{slices.Index(s.Columns, c.Column), c}
		used = append(slices.Clone(used), p.op.field)
	}
	var own []int
	for _, i := range used {
		if i < len(s.Columns)-len(s.fixed) {
			own = append(own, i)
		}
	}
	for _, b := range p.both {
		own = append(own, b.own)
	}
	slices.Sort(own)
	p.Parser = s.form.parser(slices.Compact(own))
	return p
}

func (p *parser) Parse(sp source.Split, each func(*record.Record)) (records, lines int, err error) {
	long := longOf(sp)
	if p.long = long != nil; p.long {
		each(long.record())
		return 1, max(long.lines, 1), nil
	}
	if p.op.field >= 0 {
		whole := each
		each = func(rec *record.Record) {
			p.op.opOf(rec)
			whole(rec)
		}
	}
	if len(p.s.fixed) > 0 {
		whole := each
		each = func(rec *record.Record) { whole(p.complete(rec)) }
	}
	if records, lines, err = p.Parser.Parse(sp, each); Damaged(err) {
		err = lasting(err)
	}
	return records, lines, err
}

func (p *parser) EmptyLines() int {
	if skips, ok := p.Parser.(source.Skips); ok && !p.long {
		return skips.EmptyLines()
	}
	return 0
}

func (p *parser) Followed() (of source.Followed) {
	if follows, ok := p.Parser.(source.Follows); ok && !p.long {
		of = follows.Followed()
	}
	return of
}

// complete adds the columns from folder names to a record, always at their own indexes.
func (p *parser) complete(rec *record.Record) *record.Record {
	own := len(p.s.Columns) - len(p.s.fixed)
	if rec.Bad != nil {
		return rec
	}
	has := min(own, len(rec.Fields))
	p.rec = record.Record{Span: rec.Span, Timestamps: rec.Timestamps, Mode: rec.Mode, Cells: rec.Cells, Short: own - has,
		Fields: append(p.rec.Fields[:0], rec.Fields[:has]...)}
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
			p.rec.Bad = &table.Reason{Column: p.s.Columns[b.folder], Code: table.CodeFolder,
				Value:   table.Show([]byte(convert.Text(own))),
				Message: fmt.Sprintf("the record's own value differs from that of its folder, %q", folder.Bytes)}
			*folder = *own // rejects keep the record's own value
			break
		}
	}
	return &p.rec
}

// Raw returns the text of a record for the rejects. It returns nil if records have no text, or "" if it was not kept.
func (s *File) Raw(sp source.Split, m table.Span) []byte {
	if long := longOf(sp); long != nil {
		return long.raw(s)
	}
	if sp.Data == nil || s.text.part {
		return nil
	}
	if l := s.longIn(sp, m); l != nil {
		return l.raw(s)
	}
	raw := sp.Data[m.Start:m.End]
	if s.form.raw != nil {
		return s.form.raw(raw)
	}
	return raw
}
