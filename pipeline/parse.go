package pipeline

import (
	"context"
	"fmt"

	"tsimport/encode"
	"tsimport/plan"
	"tsimport/reader"
	"tsimport/reader/convert"
	"tsimport/reader/record"
	"tsimport/table"
)

// parser is one worker of the reading stages: it prepares pieces, and makes rows of the records of splits.
type parser struct {
	plan     *plan.Plan
	cfg      *Config
	survey   *surveyor
	encoder  *encode.Encoder
	worker   reader.Worker
	sources  map[*plan.Source]*sourceParser
	integers map[string]bool // input columns that are loaded as plain integers

	rows   table.Block // of the split that is parsed, its memory is used again
	byLane [][]int32
}

// sourceParser is what a worker keeps for a source.
type sourceParser struct {
	parser  *reader.Parser
	convert *convert.Converter
}

func newParser(planned *plan.Plan, cfg *Config, survey *surveyor) *parser {
	encoder := encode.New(planned.Schema, cfg.Write.Mode, cfg.Write.DeleteNull)
	encoder.Window = planned.Window()
	return &parser{
		plan: planned, cfg: cfg, survey: survey, encoder: encoder,
		sources: map[*plan.Source]*sourceParser{}, integers: integers(planned.Schema),
	}
}

// integers returns the input columns that are loaded as integers of their own.
func integers(s *table.Schema) map[string]bool {
	set := map[string]bool{}
	for _, c := range s.Columns {
		if c.Type == table.Integer && c.Time == nil {
			set[c.Source] = true
		}
	}
	return set
}

func (p *parser) run(ctx context.Context, work <-chan *job) error {
	defer p.close()
	for {
		j, ok := receive(ctx, work)
		if !ok {
			return nil
		}
		if j.piece != nil {
			j.prepared <- p.worker.Prepare(j.piece) // has room for the one answer
			continue
		}
		made, err := p.parse(j.source, j.split)
		j.block <- outcome{made, err} // has room for the one block
	}
}

func (p *parser) close() {
	p.worker.Close()
	for _, s := range p.sources {
		_ = s.parser.Close() // nothing is written that could be lost
	}
}

// maxParsers bounds the sources that a worker keeps its parser of: in source order one is enough.
const maxParsers = 64

// of returns the worker's parser for a source. Those of other sources are let go when there are too many.
func (p *parser) of(s *plan.Source) (*sourceParser, error) {
	if sp := p.sources[s]; sp != nil {
		return sp, nil
	}
	if len(p.sources) >= maxParsers || p.cfg.Write.Order == plan.LastWins {
		for old, sp := range p.sources {
			_ = sp.parser.Close() // as in close
			delete(p.sources, old)
		}
	}
	options := p.cfg.Read.Convert
	options.Decode = s.Decode()
	c, err := convert.New(s.Columns, p.plan.Schema.Columns, options)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Name, err)
	}
	sp := &sourceParser{parser: s.NewParser(c.Fields()), convert: c}
	p.sources[s] = sp
	return sp, nil
}

func (p *parser) parse(s *plan.Source, split reader.Split) (*parsed, error) {
	sp, err := p.of(s)
	if err != nil {
		return nil, err
	}
	made := &parsed{split: &table.Split{
		Source: s.Name, Header: s.Header, Number: split.Number, Offset: split.Offset, Input: split.Bytes,
	}}
	p.rows.Reset()
	made.records, made.lines, err = sp.parser.Parse(split, func(rec *record.Record) {
		values, why := sp.convert.Convert(rec)
		var stamps []int64
		if why == nil {
			stamps, why = sp.convert.Stamps(rec)
		}
		var raw []byte
		if split.Data != nil {
			raw = split.Data[rec.Mark.Start:rec.Mark.End]
		}
		if why == nil {
			why = p.encoder.Append(&p.rows, values, stamps, rec.Mark, raw)
		}
		if why != nil {
			if raw == nil {
				raw = appendRecord(nil, s.Columns, rec, p.integers)
			}
			made.rejects = append(made.rejects, splitReject{rec.Mark, *why, raw})
		}
	})
	if err != nil {
		return nil, err
	}
	p.divide(made)
	return made, nil
}

// divide packs the rows of a split into blocks of their lanes, each as large as it must be.
func (p *parser) divide(made *parsed) {
	m := p.survey.current.Load()
	made.partitions = m
	for len(p.byLane) < m.Len() {
		p.byLane = append(p.byLane, nil)
	}
	for i := range p.rows.Rows {
		lane := m.Find(table.Ref{Block: &p.rows, Index: int32(i)}.Key())
		p.byLane[lane] = append(p.byLane[lane], int32(i))
	}
	limit := plan.DivideMemory(p.cfg.Limits.Memory).BlockLimit(m.Len())
	for lane, rows := range p.byLane {
		p.byLane[lane] = rows[:0]
		for len(rows) > 0 {
			n := len(rows)
			size := p.rows.Memory(rows)
			if size > limit {
				n = max(1, n*limit/size)
				size = p.rows.Memory(rows[:n])
			}
			b := &table.Block{Split: made.split, Data: make([]byte, 0, size), Rows: make([]table.Row, 0, n)}
			b.Copy(&p.rows, rows[:n])
			made.blocks = append(made.blocks, laneBlock{lane, b})
			rows = rows[n:]
		}
	}
	if cap(p.rows.Data) > maxKeptBytes {
		p.rows = table.Block{} // one enormous split must not hold its memory for ever
	}
}

// maxKeptBytes bounds the memory that a worker keeps from split to split.
const maxKeptBytes = 32 << 20

// keyOf returns the ordering key of the first record of a split that makes a row, nil when none does.
func (p *parser) keyOf(sp *sourceParser, rec *record.Record, keys int) []byte {
	values, why := sp.convert.Convert(rec)
	if why != nil {
		return nil
	}
	var key []byte
	for _, v := range values[:keys] {
		if v.Type == table.Null {
			return nil
		}
		key = table.AppendKey(key, v)
	}
	return key
}
