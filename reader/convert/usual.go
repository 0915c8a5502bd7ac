package convert

import (
	"unicode/utf8"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// Most texts are the canonical ones of short numbers, or are strings. They are taken without a look at what else they could be.

// usual is what the texts of a column usually are.
type usual uint8

const (
	unusual      usual = iota // of an inference, also a mixture, or too few to say
	usualString               // of an inference: no text to come can make the column one of numbers or booleans
	usualInteger              // of an inference: all are integers, and nearly all are more than booleans
	usualDouble               // of an inference: all are doubles, and nearly all are more than integers and booleans
	usualBoolean              // not of an inference
)

// usualOf returns what the texts of a column usually are, unless the options say that some count as another value.
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

// usualValue makes the value of a usual text, and reports whether it was one. The value had the column's type before, or none.
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
