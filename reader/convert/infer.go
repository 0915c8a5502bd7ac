package convert

import (
	"tsimport/reader/record"
	"tsimport/table"
)

// Inference finds the types of a source's columns from sampled records. A column of text gets a type other than string
// only if every sampled value is the canonical text of its value in that type: 007, +5, 1e3 and 10.50 stay text,
// because storing them as numbers would not give them back. Values that the file itself gives a type keep it.
type Inference struct {
	columns   []columnGuess
	converter *Converter
}

type columnGuess struct {
	text                     bool // an untyped text was seen
	integer, double, boolean bool // all untyped texts so far are that
	own                      table.Type
	large                    bool // an integer was seen that a double does not keep
	long                     bool // a number was seen that is neither a 64-bit integer nor a double
	mixed                    bool // values of several own types were seen
}

// NewInference starts an inference over n columns; the options say what is null.
func NewInference(n int, o Options) *Inference {
	in := &Inference{columns: make([]columnGuess, n)}
	for i := range in.columns {
		in.columns[i] = columnGuess{integer: true, double: true, boolean: true}
	}
	o.VersionColumn = ""
	in.converter, _ = New(nil, nil, o) // without columns nothing can be missing
	return in
}

// Add takes one record into account. Records that will be rejected anyway say nothing.
func (in *Inference) Add(rec *record.Record) {
	if rec.Bad != nil || len(rec.Fields) != len(in.columns) {
		return
	}
	for i := range rec.Fields {
		in.columns[i].add(in.converter, &rec.Fields[i])
	}
}

func (g *columnGuess) add(c *Converter, d *record.Datum) {
	c.scratch = c.scratch[:0]
	if d.Kind == record.Text {
		t, why := c.text(d)
		if why != nil || t.Kind == record.Null {
			return
		}
		var v table.Value
		g.text = true
		g.integer = g.integer && parseInteger(&v, t.Bytes, true) == nil
		g.double = g.double && c.parseDouble(&v, t.Bytes, true) == nil
		g.boolean = g.boolean && booleanValue(&v, &t, true) == nil
		return
	}
	if d.Kind == record.Null {
		return
	}
	own := Natural(d)
	if own == table.String && (d.Kind == record.Number || d.Kind == record.Unsigned) {
		g.long = true
		return
	}
	if own == table.Integer {
		var v table.Value
		g.large = g.large || c.doubleValue(&v, d, false) != nil
	}
	switch {
	case g.own == table.Null:
		g.own = own
	case g.own == own:
	case g.own == table.Double && own == table.Integer || g.own == table.Integer && own == table.Double:
		g.own = table.Double
	default:
		g.mixed = true
	}
}

// Plain returns a datum as it counts: a field's text trimmed and decoded, Null where it means no value. It is valid until
// the next call.
func (in *Inference) Plain(d *record.Datum) *record.Datum {
	if d.Kind != record.Text {
		return d
	}
	in.converter.scratch = in.converter.scratch[:0]
	t, why := in.converter.text(d)
	if why != nil {
		return d
	}
	return &t
}

// Fault returns why a datum's text is not in its encoding, nil if it is.
func (in *Inference) Fault(d *record.Datum) *table.Reason {
	t := *d
	switch d.Kind {
	case record.Text:
		var why *table.Reason
		in.converter.scratch = in.converter.scratch[:0]
		if t, why = in.converter.text(d); why != nil {
			return why
		}
	case record.String:
	default:
		return nil
	}
	var v table.Value
	if t.Kind == record.Null {
		return nil
	}
	return in.converter.stringValue(&v, &t)
}

// Type returns the type of column i: string for a column in which no value was seen, Any for one in which the file
// itself has values of several types.
func (in *Inference) Type(i int) table.Type {
	switch g := in.columns[i]; {
	case g.long && !g.mixed && !g.text && (g.own == table.Null || g.own == table.Integer || g.own == table.Double || g.own == table.String):
		return table.String // all of it, so that the column has one type
	case g.long:
		return table.Any
	case g.mixed || g.text && g.own != table.Null || g.own == table.Double && g.large:
		return table.Any
	case g.own != table.Null:
		return g.own
	case !g.text:
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
