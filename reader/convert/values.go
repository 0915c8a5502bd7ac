package convert

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

func notCanonical(t table.Type) *table.Reason {
	return &table.Reason{Code: table.CodeNotCanonical,
		Message: fmt.Sprintf("as %s the value would not keep its text; give the column a --type", t)}
}

func wrong(format string, a ...any) *table.Reason {
	return &table.Reason{Code: table.CodeType, Message: fmt.Sprintf(format, a...)}
}

func outOfRange(message string) *table.Reason {
	return &table.Reason{Code: table.CodeRange, Message: message}
}

func tooPrecise() *table.Reason {
	return outOfRange("the number has more digits than a double keeps; as a string it is exact")
}

func (c *Converter) stringValue(v *table.Value, d *record.Datum) *table.Reason {
	text := d.Bytes
	switch d.Kind {
	case record.Text, record.String, record.Number, record.JSON, record.Binary:
	default:
		from := len(c.scratch)
		c.scratch = appendText(c.scratch, d)
		text = c.scratch[from:len(c.scratch):len(c.scratch)]
	}
	if !c.ascii && !utf8.Valid(text) {
		return c.notUTF8(text)
	}
	*v = table.Value{Type: table.String, Bytes: text}
	return nil
}

func (c *Converter) notUTF8(text []byte) *table.Reason {
	return &table.Reason{Code: table.CodeUTF8, Message: "the bytes are not valid UTF-8" + c.looks(text)}
}

// Text returns the exact text of a datum.
func Text(d *record.Datum) string { return string(appendText(nil, d)) }

// Number returns a datum's value if it is a number; for an integer that is not exact as a double, the nearest double.
func Number(d *record.Datum) (float64, bool) {
	var v table.Value
	var c Converter
	if d.Kind == record.Integer {
		return float64(d.Int), true
	}
	if d.Kind == record.Boolean || d.Kind == record.Text && !mayBeNumber(d.Bytes) {
		return 0, false
	}
	if c.doubleValue(&v, d, false) == nil {
		return v.Double, true
	}
	if d.Kind == record.Number && integerValue(&v, d, false) == nil {
		return float64(v.Int), true
	}
	return 0, false
}

// mayBeNumber reports whether text has only characters of decimal numbers. It saves the allocation of parse errors.
func mayBeNumber(text []byte) bool {
	for _, b := range text {
		if (b < '0' || b > '9') && b != '.' && b != '-' && b != '+' && b != 'e' && b != 'E' {
			return false
		}
	}
	return len(text) > 0
}

func Integer(d *record.Datum) (int64, bool) {
	var v table.Value
	if integerValue(&v, d, false) != nil {
		return 0, false
	}
	return v.Int, true
}

// appendText appends a datum's exact text. Times are written as in RFC 3339, decimals with all their digits.
func appendText(dst []byte, d *record.Datum) []byte {
	switch d.Kind {
	case record.Integer:
		return strconv.AppendInt(dst, d.Int, 10)
	case record.Unsigned:
		return strconv.AppendUint(dst, uint64(d.Int), 10)
	case record.Double:
		return table.AppendDouble(dst, d.Double)
	case record.Boolean:
		return strconv.AppendBool(dst, d.Int != 0)
	case record.Decimal:
		return d.AppendDecimal(dst)
	case record.Date, record.TimeOfDay, record.Timestamp:
		return appendTime(dst, d)
	}
	return append(dst, d.Bytes...)
}

func integerValue(v *table.Value, d *record.Datum, exact bool) *table.Reason {
	switch d.Kind {
	case record.Text, record.String, record.Number:
		return parseInteger(v, d.Bytes, exact)
	case record.Integer, record.Date, record.TimeOfDay, record.Timestamp:
		*v = table.Value{Type: table.Integer, Int: d.Int}
		return nil
	case record.Unsigned:
		if d.Int < 0 {
			return outOfRange("the integer does not fit in 64 bits with a sign")
		}
		*v = table.Value{Type: table.Integer, Int: d.Int}
		return nil
	case record.Double:
		if d.Double != math.Trunc(d.Double) || math.Abs(d.Double) > 1<<53 {
			return wrong("not an integer")
		}
		*v = table.Value{Type: table.Integer, Int: int64(d.Double)}
		return nil
	case record.Decimal:
		n := d.Unscaled()
		if !n.IsInt64() {
			return outOfRange("the decimal's digits do not fit in 64 bits")
		}
		*v = table.Value{Type: table.Integer, Int: n.Int64()}
		return nil
	}
	return wrong("not an integer")
}

func parseInteger(v *table.Value, text []byte, exact bool) *table.Reason {
	digits, negative := text, false
	if len(digits) > 0 && (digits[0] == '-' || digits[0] == '+') {
		negative = digits[0] == '-'
		digits = digits[1:]
	}
	if len(digits) == 0 {
		return wrong("not an integer")
	}
	n, fits, ok := parseDigits(digits, negative)
	if !ok {
		return wrong("not an integer")
	}
	if !fits {
		return outOfRange("the integer does not fit in 64 bits")
	}
	if exact && (text[0] == '+' || digits[0] == '0' && (len(digits) > 1 || negative)) {
		return notCanonical(table.Integer)
	}
	*v = table.Value{Type: table.Integer, Int: int64(n)}
	if negative {
		v.Int = int64(-n)
	}
	return nil
}

func (c *Converter) doubleValue(v *table.Value, d *record.Datum, exact bool) *table.Reason {
	switch d.Kind {
	case record.Text, record.String:
		return c.parseDouble(v, d.Bytes, exact)
	case record.Number:
		return c.numberAsDouble(v, d)
	case record.Double:
		if math.IsNaN(d.Double) || math.IsInf(d.Double, 0) {
			return outOfRange("the service takes neither NaN nor infinity")
		}
		*v = table.Value{Type: table.Double, Double: d.Double}
		return nil
	case record.Unsigned:
		if d.Int < 0 {
			return tooPrecise()
		}
		fallthrough
	case record.Integer:
		if f := float64(d.Int); int64(f) == d.Int && math.Abs(f) < 1<<63 {
			*v = table.Value{Type: table.Double, Double: f}
			return nil
		}
		return tooPrecise()
	case record.Decimal:
		from := len(c.scratch)
		c.scratch = d.AppendDecimal(c.scratch)
		return c.parseDouble(v, c.scratch[from:], false)
	}
	return wrong("not a number")
}

// numberAsDouble converts a JSON number to a double. The value must be exact, but its text may differ.
func (c *Converter) numberAsDouble(v *table.Value, d *record.Datum) *table.Reason {
	if !integral(d.Bytes) {
		return c.parseDouble(v, d.Bytes, false)
	}
	var n table.Value
	if parseInteger(&n, d.Bytes, false) == nil && n.Int != 0 {
		return c.doubleValue(v, &record.Datum{Kind: record.Integer, Int: n.Int}, false)
	}
	if why := c.parseDouble(v, d.Bytes, false); why != nil {
		return why
	}
	if string(strconv.AppendFloat(nil, v.Double, 'f', 0, 64)) != string(d.Bytes) {
		return tooPrecise()
	}
	return nil
}

func (c *Converter) parseDouble(v *table.Value, text []byte, exact bool) *table.Reason {
	if f, canonical, ok := plainDecimal(text); ok && (canonical || !exact) {
		*v = table.Value{Type: table.Double, Double: f}
		return nil
	}
	significant := false // whether a nonzero digit precedes the exponent
	exponent := false
	for _, b := range text {
		switch {
		case b >= '0' && b <= '9':
			significant = significant || b != '0' && !exponent
		case b == 'e' || b == 'E':
			exponent = true
		case b != '.' && b != '-' && b != '+': // this also excludes NaN, Inf and hexadecimal
			return wrong("not a decimal number")
		}
	}
	// ParseFloat keeps its argument only in errors, which are discarded.
	f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), 64)
	if math.IsInf(f, 0) {
		return outOfRange("the number does not fit in a double")
	}
	if err != nil {
		return wrong("not a decimal number")
	}
	if f == 0 && significant {
		return outOfRange("the number is too small for a double")
	}
	if !exact && !table.KeepsDouble(text, f) {
		return tooPrecise()
	}
	if exact && !table.PrintsDouble(text, f) {
		return notCanonical(table.Double)
	}
	*v = table.Value{Type: table.Double, Double: f}
	return nil
}

var booleanWords = map[string]int64{
	"true": 1, "t": 1, "yes": 1, "y": 1, "on": 1, "1": 1,
	"false": 0, "f": 0, "no": 0, "n": 0, "off": 0, "0": 0,
}

func booleanValue(v *table.Value, d *record.Datum, exact bool) *table.Reason {
	if d.Kind == record.Boolean {
		*v = table.Value{Type: table.Boolean, Int: d.Int}
		return nil
	}
	if d.Kind != record.Text && d.Kind != record.String && d.Kind != record.Number {
		return wrong("not a boolean")
	}
	b, ok := booleanWords[string(d.Bytes)]
	if !ok {
		b, ok = booleanWords[string(bytes.ToLower(d.Bytes))]
	}
	if !ok {
		return wrong("not a boolean (true, false, t, f, yes, no, y, n, on, off, 1 or 0)")
	}
	if exact && string(d.Bytes) != "true" && string(d.Bytes) != "false" {
		return notCanonical(table.Boolean)
	}
	*v = table.Value{Type: table.Boolean, Int: b}
	return nil
}

func (c *Converter) binaryValue(v *table.Value, d *record.Datum, isHex bool) *table.Reason {
	if d.Kind == record.Binary {
		*v = table.Value{Type: table.Binary, Bytes: d.Bytes}
		return nil
	}
	text := d.Bytes
	if d.Kind == record.JSON {
		tagged, ok := record.Tagged(text)
		if !ok {
			return wrong(`not a binary value, which JSON has as {"base64": "…"}`)
		}
		text, isHex = tagged, false
	} else if d.Kind != record.Text && d.Kind != record.String {
		return wrong("not a binary value")
	}
	from := len(c.scratch)
	var err error
	if isHex {
		if bytes.HasPrefix(text, []byte(`\x`)) || bytes.HasPrefix(text, []byte("0x")) { // as PostgreSQL and MySQL write it
			text = text[2:]
		}
		c.scratch, err = hex.AppendDecode(c.scratch, text)
	} else {
		c.scratch, err = base64.StdEncoding.Strict().AppendDecode(c.scratch, text)
	}
	if err != nil && isHex {
		return wrong("not hexadecimal")
	}
	if err != nil || bytes.ContainsAny(text, "\r\n") { // the decoder would ignore line ends
		return wrong("not base64 (for hexadecimal use binary(hex))")
	}
	*v = table.Value{Type: table.Binary, Bytes: c.scratch[from:len(c.scratch):len(c.scratch)]}
	return nil
}
