package pipeline

import (
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
	if !slices.ContainsFunc(s.Columns, func(c table.Column) bool { return c.Type == table.Null }) {
		p.keyTypes()
		return nil
	}
	first := p.plan.sources[0].Columns
	in := reader.NewInference(len(first), p.cfg.Read.Nulls)
	share := max(sampleBytes/len(p.plan.sources), minSampleBytes)
	for _, src := range p.plan.sources {
		if err := sample(in, src, first, p.cfg.Read.Dialect, share); err != nil {
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
func sample(in *reader.Inference, src *source, first []string, d reader.Dialect, budget int) error {
	next := src.Next
	if src.Size < 0 {
		next = src.Peek
	}
	parser := reader.NewParser(d)
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
			return err
		}
		sampleSplit(in, parser, split.Data, place, budget-read)
		read += len(split.Data)
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
