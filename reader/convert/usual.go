package convert

import (
	"fmt"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// Most texts are strings or short canonical numbers. For those, the fast path below does not try other types.

// usual is the kind of most texts in a column.
type usual uint8

const (
	unusual      usual = iota // in an inference: a mixture, or too few texts to tell
	usualString               // in an inference: the column can no longer be numbers or booleans
	usualInteger              // in an inference: all texts are integers; few are booleans
	usualDouble               // in an inference: all texts are doubles; few are integers or booleans
	usualBoolean              // not used by inferences
)

// usualOf returns the usual kind of a column's texts. It is unusual if options may change or replace values.
func (c *Converter) usualOf(col *table.Column) usual {
	if !c.asItIs || len(c.nulls)+len(c.o.QuotedNulls) > 0 || col.Time != nil {
		return unusual
	}
	switch col.Type {
	case table.String:
		return usualString
	case table.Integer:
		return usualInteger
	case table.Double:
		return usualDouble
	case table.Boolean:
		return usualBoolean
	}
	return unusual
}

// usualValue sets v if d is a text of the usual kind. v must have had the column's type before, or none.
func (c *Converter) usualValue(v *table.Value, of usual, d *record.Datum) (ok bool) {
	if d.Kind != record.Text || len(d.Bytes) == 0 {
		return false
	}
	switch of {
	case usualString:
		if ok = c.ascii || utf8.Valid(d.Bytes); ok {
			v.Type, v.Absent, v.Bytes = table.String, false, d.Bytes
		}
	case usualInteger:
		var n int64
		if n, ok = usualWhole(d.Bytes); ok {
			v.Type, v.Absent, v.Int = table.Integer, false, n
		}
	case usualDouble:
		f, canonical, plain := plainDecimal(d.Bytes)
		if ok = canonical && plain; ok {
			v.Type, v.Absent, v.Double = table.Double, false, f
		}
	case usualBoolean:
		if ok = string(d.Bytes) == "true"; ok {
			v.Type, v.Absent, v.Int = table.Boolean, false, 1
		} else if ok = string(d.Bytes) == "false"; ok {
			v.Type, v.Absent, v.Int = table.Boolean, false, 0
		}
	}
	return ok
}

// Measures of values that have no unit.
const (
	Numbers      = "number"
	NumericTexts = "numeric text" // untyped texts, all of them numbers
	Texts        = "text"
	Bytes        = "binary"
)

var unitNames = map[record.Unit]string{record.Seconds: "s", record.Millis: "ms", record.Micros: "µs",
	record.Nanos: "ns", record.Months: "months"}

// Measure describes the kind, unit, scale and zone of a value, such as "timestamp, µs". It is "" for other kinds.
func Measure(d record.Datum) string {
	unit := unitNames[d.Unit]
	switch d.Kind {
	case record.Timestamp:
		if d.Local {
			return "local timestamp, " + unit
		}
		return "timestamp, " + unit
	case record.Date:
		return "date, days"
	case record.TimeOfDay:
		return "time, " + unit
	case record.Decimal:
		return fmt.Sprintf("decimal, scale %d", d.Scale)
	case record.Integer, record.Unsigned, record.Double:
		if unit != "" {
			return "duration, " + unit
		}
		return Numbers
	case record.String:
		return Texts
	case record.Binary:
		return Bytes
	}
	return ""
}

// Measure returns the measure of column i, from its sampled values.
func (in *Inference) Measure(i int) string {
	g := &in.columns[i]
	switch {
	case g.own[table.Integer].n+g.own[table.Double].n+g.long.n > 0:
		return Numbers
	case g.text.n > 0 && (g.integer.n == 0 || g.decimal.n == 0):
		return NumericTexts
	case g.text.n+g.own[table.String].n > 0:
		return Texts
	}
	return ""
}
