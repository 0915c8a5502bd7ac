package convert

import (
	"fmt"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// Measures without a unit.
const (
	Numbers      = "number"
	NumericTexts = "numeric text" // all texts without a type are numbers
	Texts        = "text"
	Bytes        = "binary"
)

var unitNames = map[record.Unit]string{record.Seconds: "s", record.Millis: "ms", record.Micros: "µs", record.Nanos: "ns", record.Months: "months"}

// Measure names the kind, unit, scale and zone of values by the source's schema, such as "timestamp, µs"; empty if unknown.
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
