package reader

import "tsimport/table"

// Inference finds the types of a source's columns from sampled records. A column gets a type other than string only
// if every sampled value is the canonical text of its value in that type: 007, +5, 1e3 and 10.50 stay text, because
// storing them as numbers would not give them back.
type Inference struct {
	columns []columnGuess
	nulls   *Converter
	scratch Converter
}

type columnGuess struct {
	seen                     bool
	integer, double, boolean bool
}

// NewInference starts an inference over n columns with the texts that mean null.
func NewInference(n int, nulls []string) *Inference {
	in := &Inference{columns: make([]columnGuess, n)}
	for i := range in.columns {
		in.columns[i] = columnGuess{integer: true, double: true, boolean: true}
	}
	in.nulls, _ = NewConverter(nil, nil, nulls)
	return in
}

// Add takes one record into account. Records that will be rejected anyway say nothing.
func (in *Inference) Add(rec Record) {
	if rec.Bad != nil || len(rec.Fields) != len(in.columns) {
		return
	}
	var v table.Value
	for i, f := range rec.Fields {
		if !f.Quoted && in.nulls.isNull(f.Text) {
			continue
		}
		g := &in.columns[i]
		g.seen = true
		in.scratch.scratch = in.scratch.scratch[:0]
		g.integer = g.integer && integerValue(&v, f.Text, true) == nil
		g.double = g.double && in.scratch.doubleValue(&v, f.Text, true) == nil
		g.boolean = g.boolean && booleanValue(&v, f.Text, true) == nil
	}
}

// Type returns the type of column i; string for a column in which no value was seen.
func (in *Inference) Type(i int) table.Type {
	switch g := in.columns[i]; {
	case !g.seen:
		return table.String
	case g.integer:
		return table.Integer
	case g.double:
		return table.Double
	case g.boolean:
		return table.Boolean
	}
	return table.String
}
