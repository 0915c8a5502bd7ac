package convert

import (
	"fmt"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// Most texts are canonical short numbers or strings. They are taken without trying other types.

// usual is the usual kind of a column's texts.
type usual uint8

const (
	unusual      usual = iota // of an inference, also a mixture, or too few to say
	usualString               // of an inference: no text to come can make the column one of numbers or booleans
	usualInteger              // of an inference: all are integers, and nearly all are more than booleans
	usualDouble               // of an inference: all are doubles, and nearly all are more than integers and booleans
	usualBoolean              // not of an inference
)

// usualOf returns the usual kind of a column's texts, unless the options replace some values.
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

// usualValue makes the value of a usual text, false if it is not one. The value had the column's type before, or none.
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

// Measures without a unit.
const (
	Numbers      = "number"
	NumericTexts = "numeric text" // all texts without a type are numbers
	Texts        = "text"
	Bytes        = "binary"
)

var unitNames = map[record.Unit]string{record.Seconds: "s", record.Millis: "ms", record.Micros: "µs",
	record.Nanos: "ns", record.Months: "months"}

// Measure names the kind, unit, scale and zone of values by the source's schema, such as "timestamp, µs", or "".
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

// Measure is the measure of column i in the sample.
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
