package reader

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"tsimport/table"
)

// Converter makes typed values of a record's fields, in the order of the schema's columns.
type Converter struct {
	columns []table.Column
	index   []int // field of the record for each column
	width   int   // fields a record must have
	nulls   [][]byte
	values  []table.Value
	scratch []byte
}

// NewConverter maps the names of a source's columns onto the schema's. It fails with the first column that the source
// does not have. Nulls are texts that mean "no value" beside the unquoted empty field.
func NewConverter(names []string, columns []table.Column, nulls []string) (*Converter, error) {
	place := make(map[string]int, len(names))
	for i, n := range names {
		place[n] = i
	}
	c := &Converter{columns: columns, width: len(names), values: make([]table.Value, len(columns))}
	for _, col := range columns {
		i, ok := place[col.Source]
		if !ok {
			return nil, fmt.Errorf("no column %q", col.Source)
		}
		c.index = append(c.index, i)
	}
	for _, n := range nulls {
		c.nulls = append(c.nulls, []byte(n))
	}
	return c, nil
}

// Convert returns the record's values, or why it is refused. The values are valid until the next call, and as long
// as the record's fields are.
func (c *Converter) Convert(rec Record) ([]table.Value, *table.Reason) {
	if rec.Bad != nil {
		return nil, rec.Bad
	}
	if len(rec.Fields) != c.width {
		return nil, &table.Reason{Code: table.CodeRagged,
			Message: fmt.Sprintf("%d fields where the header has %d", len(rec.Fields), c.width)}
	}
	c.scratch = c.scratch[:0]
	for i := range c.columns {
		f := rec.Fields[c.index[i]]
		if !f.Quoted && c.isNull(f.Text) {
			c.values[i] = table.Value{}
			continue
		}
		if why := c.value(&c.values[i], &c.columns[i], f.Text); why != nil {
			why.Column, why.Value = c.columns[i].Name, table.Show(f.Text)
			return nil, why
		}
	}
	return c.values, nil
}

func (c *Converter) isNull(text []byte) bool {
	if len(text) == 0 {
		return true
	}
	for _, n := range c.nulls {
		if bytes.Equal(text, n) {
			return true
		}
	}
	return false
}

func (c *Converter) value(v *table.Value, col *table.Column, text []byte) *table.Reason {
	switch col.Type {
	case table.String:
		if !utf8.Valid(text) {
			return &table.Reason{Code: table.CodeUTF8, Message: "the bytes are not valid UTF-8"}
		}
		*v = table.Value{Type: table.String, Bytes: text}
		return nil
	case table.Integer:
		return integerValue(v, text, col.Exact)
	case table.Double:
		return c.doubleValue(v, text, col.Exact)
	case table.Boolean:
		return booleanValue(v, text, col.Exact)
	case table.Binary:
		return c.binaryValue(v, text, col.Hex)
	}
	panic("reader: column of type " + col.Type.String())
}

func notCanonical(t table.Type) *table.Reason {
	return &table.Reason{Code: table.CodeNotCanonical,
		Message: fmt.Sprintf("as %s the value would not keep its text; give the column a --type", t)}
}

func integerValue(v *table.Value, text []byte, exact bool) *table.Reason {
	digits, negative := text, false
	if len(digits) > 0 && (digits[0] == '-' || digits[0] == '+') {
		negative = digits[0] == '-'
		digits = digits[1:]
	}
	if len(digits) == 0 {
		return &table.Reason{Code: table.CodeType, Message: "not an integer"}
	}
	var n uint64
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	over := false
	for _, d := range digits {
		if d < '0' || d > '9' {
			return &table.Reason{Code: table.CodeType, Message: "not an integer"}
		}
		if over = over || n > (limit-uint64(d-'0'))/10; !over {
			n = n*10 + uint64(d-'0')
		}
	}
	if over {
		return &table.Reason{Code: table.CodeRange, Message: "the integer does not fit in 64 bits"}
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

func (c *Converter) doubleValue(v *table.Value, text []byte, exact bool) *table.Reason {
	significant := false // a digit other than 0 before the exponent
	exponent := false
	for _, b := range text {
		switch {
		case b >= '0' && b <= '9':
			significant = significant || b != '0' && !exponent
		case b == 'e' || b == 'E':
			exponent = true
		case b != '.' && b != '-' && b != '+': // also keeps out NaN, Inf and hexadecimal
			return &table.Reason{Code: table.CodeType, Message: "not a decimal number"}
		}
	}
	// ParseFloat keeps its argument only in errors, which are dropped here.
	d, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), 64)
	if math.IsInf(d, 0) {
		return &table.Reason{Code: table.CodeRange, Message: "the number does not fit in a double"}
	}
	if err != nil {
		return &table.Reason{Code: table.CodeType, Message: "not a decimal number"}
	}
	if d == 0 && significant {
		return &table.Reason{Code: table.CodeRange, Message: "the number is too small for a double"}
	}
	if exact {
		from := len(c.scratch)
		c.scratch = table.AppendDouble(c.scratch, d)
		if !bytes.Equal(c.scratch[from:], text) {
			return notCanonical(table.Double)
		}
	}
	*v = table.Value{Type: table.Double, Double: d}
	return nil
}

var booleanWords = map[string]int64{
	"true": 1, "t": 1, "yes": 1, "y": 1, "1": 1,
	"false": 0, "f": 0, "no": 0, "n": 0, "0": 0,
}

func booleanValue(v *table.Value, text []byte, exact bool) *table.Reason {
	b, ok := booleanWords[string(text)]
	if !ok {
		b, ok = booleanWords[string(bytes.ToLower(text))]
	}
	if !ok {
		return &table.Reason{Code: table.CodeType, Message: "not a boolean (true, false, t, f, yes, no, y, n, 1 or 0)"}
	}
	if exact && string(text) != "true" && string(text) != "false" {
		return notCanonical(table.Boolean)
	}
	*v = table.Value{Type: table.Boolean, Int: b}
	return nil
}

func (c *Converter) binaryValue(v *table.Value, text []byte, isHex bool) *table.Reason {
	from := len(c.scratch)
	var err error
	if isHex {
		c.scratch, err = hex.AppendDecode(c.scratch, text)
	} else {
		c.scratch, err = base64.StdEncoding.Strict().AppendDecode(c.scratch, text)
	}
	if err != nil && isHex {
		return &table.Reason{Code: table.CodeType, Message: "not hexadecimal"}
	}
	if err != nil {
		return &table.Reason{Code: table.CodeType, Message: "not base64 (for hexadecimal use binary(hex))"}
	}
	*v = table.Value{Type: table.Binary, Bytes: c.scratch[from:len(c.scratch):len(c.scratch)]}
	return nil
}
