package pipeline

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"tsimport/reader"
	"tsimport/table"
)

// Type inference looks at about sampleBytes of the inputs together, but at minSampleBytes of each at least.
const (
	sampleBytes    = 8 << 20
	minSampleBytes = 64 << 10
)

// infer gives a type to every column that has none, from a sample of every input.
func (p *planner) infer() error {
	s := p.plan.Schema
	first := p.plan.sources[0].Columns
	in := reader.NewInference(len(first), p.cfg.Read.Nulls)
	p.plan.empty = true
	share := max(sampleBytes/len(p.plan.sources), minSampleBytes)
	for _, src := range p.plan.sources {
		if err := p.sample(in, src, first, share); err != nil {
			return err
		}
	}
	for i := range s.Columns {
		col := &s.Columns[i]
		if col.Type != table.Null {
			continue
		}
		col.Type = in.Type(slices.Index(first, col.Source))
		if i < len(s.Key) && !col.Type.KeyType() {
			col.Type = table.String
		}
		col.Exact, col.Inferred = true, true
	}
	p.keyTypes()
	return nil
}

func (p *planner) keyTypes() {
	for i := range p.plan.Schema.Key {
		p.plan.Schema.Key[i].Type = p.plan.Schema.Columns[i].Type
	}
}

// sample adds the first records of a source, about budget bytes of them; of a stream, which cannot be read twice, the
// first split at most.
func (p *planner) sample(in *reader.Inference, src *source, first []string, budget int) error {
	next := src.Next
	if src.Size < 0 {
		next = src.Peek
	}
	parser := reader.NewParser(p.cfg.Read.Dialect)
	place := make([]int, len(first))
	for i, name := range first {
		place[i] = slices.Index(src.Columns, name)
	}
	for read := 0; read == 0 || read < budget && src.Size >= 0; {
		split, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if src.Size < 0 {
				return err // a stream cannot be read again
			}
			break // loading meets it again, after the rows before it
		}
		sampleSplit(in, parser, split.Data, place, budget-read)
		read += len(split.Data)
		p.sampled.bytes += min(len(split.Data), budget)
		p.sampled.records += parser.Records()
		p.plan.empty = p.plan.empty && parser.Records() == 0
	}
	return src.Suspend()
}

// sampleSplit adds the records in the first budget bytes of a split, field place[i] as the i-th column.
func sampleSplit(in *reader.Inference, parser *reader.Parser, data []byte, place []int, budget int) {
	fields := make([]reader.Field, len(place))
	parser.Reset(data)
	for {
		rec, ok := parser.Next()
		if !ok || int(rec.Mark.Start) > budget {
			return
		}
		if rec.Bad != nil || len(rec.Fields) != len(place) {
			continue
		}
		for i, from := range place {
			fields[i] = rec.Fields[from]
		}
		in.Add(reader.Record{Fields: fields})
	}
}

// blockBytes is about what the rows of one split may take once they are encoded.
const blockBytes = 8 << 20

// sizeSplits makes splits smaller where encoding makes much of little text: every cell travels with its column's name,
// so a record of a thousand short cells grows a hundredfold, and several splits are in memory at a time.
func (p *planner) sizeSplits() error {
	encoded := 0 // of a row with a value in every column, beside the values
	for _, c := range p.plan.Schema.Columns {
		encoded += len(c.Name) + 24
	}
	records, text := max(p.sampled.records, 1), max(p.sampled.bytes, 1)
	growth := 1 + float64(encoded)*float64(records)/float64(text)
	want := cmp.Or(p.cfg.Read.SplitBytes, reader.DefaultSplitBytes)
	if limit := int(blockBytes / growth); limit < want {
		want = max(limit, minSplitBytes)
	}
	for _, s := range p.plan.sources {
		s.SetSplitBytes(want)
	}
	return nil
}

// minSplitBytes keeps splits from costing more than their rows.
const minSplitBytes = 4 << 10
