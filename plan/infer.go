package plan

import (
	"tsimport/reader/convert"
	"tsimport/reader/record"
	"tsimport/table"
)

// Type inference looks at about sampleBytes of the inputs together, but at minSampleBytes of each at least.
const (
	sampleBytes    = 8 << 20
	minSampleBytes = 64 << 10
)

// infer gives a type to every column that has none, from a sample of every input.
func (p *planner) infer() error {
	first := p.columns
	in := convert.NewInference(len(first), p.request.Read.Convert)
	p.plan.Empty = true
	share := max(sampleBytes/len(p.plan.Sources), minSampleBytes)
	for _, src := range p.plan.Sources {
		if err := p.sample(in, src, first, share); err != nil {
			return err
		}
	}
	if err := p.checkWidth(); err != nil {
		return err
	}
	place := places(first)
	for i := range p.plan.Fields {
		col := &p.plan.Fields[i]
		if col.Type != table.Null {
			continue
		}
		col.Type = p.request.Inferred[col.Source]
		if col.Type == table.Null {
			col.Type = in.Type(place[col.Source])
		}
		if i < p.plainKeys() && !col.Type.KeyType() {
			col.Type = table.String
		}
		col.Exact, col.Inferred = true, true
	}
	return nil
}

// sample adds the first records of a source, about budget bytes of them; of a stream, which cannot be read twice, those
// in the first piece.
func (p *planner) sample(in *convert.Inference, src *Source, first []string, budget int) error {
	place := make([]int, len(first))
	fields := make([]record.Datum, len(first))
	has := places(src.Columns)
	for i, name := range first {
		place[i] = -1
		if at, ok := has[name]; ok {
			place[i] = at
		}
	}
	read, err := src.Sample(budget, first, func(rec *record.Record) {
		p.sampled.records++
		if rec.Bad != nil || len(rec.Fields) != len(src.Columns) {
			return
		}
		for i, from := range place {
			fields[i] = record.Datum{}
			if from >= 0 {
				fields[i] = rec.Fields[from]
			}
		}
		in.Add(&record.Record{Fields: fields})
		p.countValues(in, fields)
	})
	if err != nil {
		return err
	}
	p.sampled.bytes += read
	p.plan.Empty = p.plan.Empty && read == 0
	return src.Suspend()
}

// places returns the place of every name.
func places(names []string) map[string]int {
	at := make(map[string]int, len(names))
	for i, name := range names {
		at[name] = i
	}
	return at
}

// countValues notes whether a sampled record has few enough values for a row.
func (p *planner) countValues(in *convert.Inference, fields []record.Datum) {
	if len(fields) <= table.MaxColumns || p.sampled.fits {
		return
	}
	values := 0
	for i := range fields {
		if in.Plain(&fields[i]).Kind != record.Null {
			values++
		}
	}
	p.sampled.whole = true
	p.sampled.fits = values-len(p.key()) <= table.MaxColumns
}

// checkWidth refuses inputs of which no row could be written. A row may lack most of its columns, so those whose sampled
// records do are not refused.
func (p *planner) checkWidth() error {
	n := len(p.plan.Schema.Attributes())
	if n <= table.MaxColumns || p.sampled.whole && p.sampled.fits && !p.request.DeleteNull {
		return nil
	}
	return usagef("%s has %d columns beside the primary key, and a row has at most %d; choose some with --columns, or leave some out with --exclude",
		p.plan.Sources[0].Name, n, table.MaxColumns)
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
	block := p.plan.Shares().SplitLimit(p.request.Read.Workers())
	for _, s := range p.plan.Sources {
		limit := int(float64(block) / growth)
		if p.request.Order == OrderNone && s.Anywhere() {
			limit = min(limit, max(int(s.Size/anywhereSplits), anywhereSplitBytes))
		}
		if limit < s.SplitBytes() {
			s.SetSplitBytes(max(limit, minSplitBytes))
		}
	}
	return nil
}

// Sources that are read anywhere have many small splits, so that there is one for every lane: about so many, but none
// smaller than so many bytes.
const (
	anywhereSplits     = 4096
	anywhereSplitBytes = 32 << 10
)

// minSplitBytes keeps splits from costing more than their rows.
const minSplitBytes = 4 << 10
