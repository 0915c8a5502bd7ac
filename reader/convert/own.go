package convert

import (
	"fmt"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// takes reports whether a column of type own accepts a value with another natural type. long marks a number that would
// be a string on its own but is accepted among numbers. Inference and Converter both use takes.
func takes(own, natural table.Type, long bool) bool {
	switch {
	case own == table.Any || own == natural:
		return true
	case long:
		return own == table.Integer || own == table.Double
	}
	return own == table.Double && natural == table.Integer
}

// ownFits reports whether a column whose values have the type own accepts a typed value.
func ownFits(own table.Type, d *record.Datum) bool {
	if d.Kind == record.Number && own != table.String {
		switch own {
		case table.Integer:
			return integral(d.Bytes)
		case table.Double, table.Any:
			return true // the conversion checks that the double is exact
		}
		return false
	}
	if own == table.Binary && d.Kind == record.JSON {
		_, ok := record.Tagged(d.Bytes) // binary values have a type tag
		return ok
	}
	natural := Natural(d)
	return takes(own, natural, natural == table.String && d.Kind == record.Unsigned)
}

var owns = map[table.Type]string{
	table.Integer: "integers", table.Double: "numbers", table.Boolean: "booleans", table.String: "strings",
	table.Binary: "binary values",
}

func kindOf(d *record.Datum) string {
	switch d.Kind {
	case record.Number:
		if !integral(d.Bytes) {
			return "a number with a point or an exponent"
		}
		return "an integer"
	case record.Integer, record.Unsigned:
		return "an integer"
	case record.Double:
		return "a double"
	case record.Boolean:
		return "a boolean"
	case record.Binary:
		return "a binary value"
	case record.JSON:
		if d.Tagged {
			return "a binary value"
		}
		if len(d.Bytes) > 0 && d.Bytes[0] == '[' {
			return "an array"
		}
		return "an object"
	case record.Decimal:
		return "a decimal"
	case record.Date, record.TimeOfDay, record.Timestamp:
		return "a time"
	}
	return fmt.Sprintf("a %s", Natural(d))
}
