package intake

import (
	"context"
	"errors"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// The rows of a split can be many times as long as its text or pages, if records have a thousand short cells or all
// rows share a dictionary entry. So a split is handed over in parts, each of about the size of a usual split.

// rejectBytes is roughly the memory of a rejected record, without its text.
const rejectBytes = 512

// partMaker makes the parts of one split. Its many fields are the parser's tools and the beginning of a part.
type partMaker struct {
	*parser
	ctx     context.Context
	source  *plan.Source
	values  *values
	split   source.Split
	shown   string   // the split's key in readable form
	columns []string // the source's columns
	emit    func(made *Parsed, last bool) bool

	made    *Parsed
	passed  int  // number of records in parts handed over
	at      int  // number of records so far
	refused int  // bytes of rejected and archived records
	stopped bool // emit has returned false

	keepsText bool // a rejected or archived record refers to the split's text

	under *partitioner.Map // the part's map, if it has one lane and its blocks are reused; nil otherwise
	full  []*table.Block   // the part's rows that were set aside
	aside int              // bytes in them

	start, record, line uint32 // beginning of the part in the split
	input               int64  // number of the split's bytes in earlier parts
}

// parseInParts parses the split of a job. Before the split's turn, it parses only as many parts as there is room for.
func (p *parser) parseInParts(ctx context.Context, j *job) {
	p.handParts(ctx, j, func(emit func(*Parsed, bool) bool) error {
		return p.parts(ctx, j.source, j.split, j.turn, emit)
	})
}

// handParts calls parse and hands over the parts with which that calls emit.
func (p *parser) handParts(ctx context.Context, j *job, parse func(emit func(made *Parsed, last bool) bool) error) {
	to, first := j.parsed, true
	hand := func(h part) bool {
		if to == j.parsed && !first && (len(to) >= partsAhead || !j.budget.try(h.bytes)) {
			h.bytes = 0
			to = j.later
			j.parsed <- part{later: true} // never blocks, as it is buffered
		}
		if first || to == j.later {
			h.bytes = 0 // the split's bytes include it
		}
		first = false
		return send(ctx, to, h)
	}
	err := parse(func(made *Parsed, last bool) bool {
		return hand(part{handed: Handed{Parsed: made}, last: last, bytes: made.bytes()})
	})
	if err != nil {
		hand(part{handed: Handed{Err: err}, last: true})
	}
}

// parts makes rows of the records of a split, divides them among the lanes, and calls emit for each part until that
// returns false. The last part may be empty. turn is closed when the split's turn comes.
func (p *parser) parts(ctx context.Context, s *plan.Source, split source.Split, turn <-chan struct{},
	emit func(*Parsed, bool) bool) error {
	sp, err := p.forSource(s)
	if err != nil {
		return err
	}
	m := &partMaker{parser: p, ctx: ctx, source: s, values: sp.values, columns: sp.columns, split: split, emit: emit}
	if show := sp.showKey; show != nil && split.Key != nil {
		m.shown = show(split.Key)
	}
	_, err = p.inTurn(ctx, sp, turn, func() (*Parsed, error) { return nil, m.parse(sp.parser) })
	if s.GiveBack != nil && err == nil && !m.keepsText { // no row or reject refers to its memory any more
		s.GiveBack(split)
	}
	return err
}

// inTurn calls parse, which reads a split and, if its pages need too much memory, calls it again at the split's turn.
func (p *parser) inTurn(ctx context.Context, sp *sourceParser, turn <-chan struct{},
	parse func() (*Parsed, error)) (*Parsed, error) {
	if !sp.waits {
		sp.parser.LimitMemory(p.memory.PagesAhead(p.flow.plan.Request.Read.Workers()))
		made, err := parse()
		if !errors.Is(err, source.ErrMemory) {
			return made, err
		}
		sp.waits = true
	}
	if _, open := receive(ctx, turn); open || ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if p.flow.plan.Parallel {
		// Splits of several sources can have their turns at the same time.
		if !send(ctx, p.flow.alone, struct{}{}) {
			return nil, context.Cause(ctx)
		}
		defer func() { <-p.flow.alone }()
	}
	sp.parser.LimitMemory(p.memory.Pages)
	defer sp.parser.Release()
	return parse()
}

// parse reads the split from its beginning, and skips the records of parts already handed over.
func (m *partMaker) parse(parser source.Parser) error {
	m.at = 0
	limit, blockLimit := m.memory.SplitLimit(m.flow.plan.Request.Read.Workers()), m.memory.BlockLimit(1)
	m.begin()
	if packs, ok := parser.(source.Packs); ok && m.asTheyCame {
		packs.LeavePacked()
	}
	records, lines, err := parser.Parse(m.split, func(rec *record.Record) {
		switch {
		case m.values.makers != nil && m.ctx.Err() != nil: // expressions can take a long time
			m.stopped = true
			return
		case m.stopped || m.at < m.passed:
			m.at++
			return
		case m.aside+len(m.rows.Data)+len(m.rows.Rows)*table.RowBytes+m.refused >= limit:
			m.flush(rec.Span)
		case m.under != nil && len(m.rows.Data) >= blockLimit:
			m.setAside()
		}
		m.at++
		m.add(rec)
	})
	if err != nil || m.stopped {
		return err
	}
	m.made.Records, m.made.lines = records-m.passed, lines-int(m.line)
	if skips, ok := parser.(source.Skips); ok {
		m.made.Skipped.EmptyLines = skips.EmptyLines()
	}
	if follows, ok := parser.(source.Follows); ok {
		m.made.Skipped.Followed = follows.Followed()
	}
	m.made.Split.Input = m.split.Bytes - m.input
	m.end()
	m.emit(m.made, true)
	return nil
}

func (m *partMaker) begin() {
	number := m.split.Number
	if m.passed > 0 {
		number = max(number, 1) // only the first part of a source has its beginning
	}
	m.made = &Parsed{Split: &table.Split{
		Source: m.source.Name, Ordinal: m.source.Ordinal, Header: m.source.Header, Number: number,
		Offset: m.split.Offset + int64(m.start), Key: m.shown,
	}}
	if m.passed == 0 {
		m.made.Key = m.split.Key
	}
	m.made.Inside = m.passed > 0 && m.split.Key != nil
	m.rows.Reset()
	m.refused, m.full, m.aside, m.under = 0, m.full[:0], 0, nil
	if under := m.flow.partitions.Load(); m.flow.Reuses && under.Len() == 1 {
		m.under = under
	}
}

func (m *partMaker) end() {
	if m.under != nil {
		m.together()
		return
	}
	m.divide(m.made)
}

// flush hands over the part, which ends before the record at next.
func (m *partMaker) flush(next table.Span) {
	m.made.Records, m.made.lines = m.at-m.passed, int(next.Line-m.line)
	input := m.split.Bytes
	if m.split.Data != nil {
		input = int64(float64(input) * float64(next.Start) / float64(len(m.split.Data)))
	} else if m.split.Rows > 0 {
		input = int64(float64(input) * float64(m.at) / float64(m.split.Rows))
	}
	m.made.Split.Input = input - m.input
	m.input = input
	m.passed, m.start, m.record, m.line = m.at, next.Start, uint32(m.at), next.Line
	m.end()
	m.stopped = !m.emit(m.made, false)
	m.begin()
}

// add makes a row of a record, rejects it, or archives it.
func (m *partMaker) add(rec *record.Record) {
	at := rec.Span
	var raw []byte
	if m.flow.plan.Request.Keep == plan.KeepRecord && m.source.Raw != nil {
		raw = m.source.Raw(m.split, at)
	}
	rec.Span.Start -= m.start
	rec.Span.End -= m.start
	rec.Span.Record -= m.record
	rec.Span.Line -= m.line
	archived, why := m.row(m.values, m.columns, rec, raw)
	if why == nil && !archived {
		if m.cells != nil && m.cells.expired > 0 {
			m.made.Expired = append(m.made.Expired, Expired{rec.Span.Record, m.cells.expired})
		}
		return
	}
	m.refused += rejectBytes
	if raw == nil && m.source.Raw != nil {
		raw = m.source.Raw(m.split, at)
	}
	m.keepsText = m.keepsText || raw != nil
	if raw == nil {
		raw = m.kept.appendRecord(nil, m.columns, rec)
		m.refused += cap(raw)
	}
	if archived {
		m.made.Archived = append(m.made.Archived, Archived{rec.Span, m.encoder.Table, raw})
		return
	}
	r := Reject{Span: rec.Span, Table: m.encoder.Table, Reason: *why, Raw: raw}
	if m.flow.plan.Request.RejectedKeys && rec.Bad == nil {
		r.Key = m.keyOf(m.source, rec)
	}
	m.made.Rejects = append(m.made.Rejects, r)
}

// keyOf returns the ordering key of a record that makes no row, or nil if it cannot be read.
func (p *parser) keyOf(s *plan.Source, rec *record.Record) []byte {
	sp, err := p.forKeys(s)
	if err != nil {
		return nil
	}
	return sp.values.appendKey(nil, rec)
}
