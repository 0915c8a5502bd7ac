package intake

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"tsimport/internal/table"
	"tsimport/reader/convert"
	"tsimport/reader/record"
)

// Rejected records of binary formats are kept as JSON lines, which load again.

// appendRecord appends a record as a line of JSON. Fields that were not read are left out. Times and decimals that are
// loaded as integers are written as those. A value of a column whose type nobody gave keeps its own, for it may have been
// rejected for that: in loaded are the columns by their names in the input. A value that is longer than the service takes, and what follows once the record
// is longer than a row can be, is left out: in its place stands how long it was, which is not JSON, so that the line cannot
// be loaded as if that were the value.
func appendRecord(dst []byte, columns []string, rec *record.Record, loaded map[string]*table.Column) []byte {
	dst = append(dst, '{')
	first := true
	for i := range rec.Fields {
		d := &rec.Fields[i]
		if d.Kind == record.Null {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendString(dst, columns[i]), ':')
		col := loaded[columns[i]]
		own := col != nil && col.Own != table.Null
		if col != nil && !own && col.Type == table.Integer && col.Time == nil {
			if n, ok := convert.Integer(d); ok {
				dst = strconv.AppendInt(dst, n, 10)
				continue
			}
		}
		if n := len(d.Bytes); n > table.MaxValueBytes || n > maxKeptValue && len(dst)+n > table.MaxRowBytes {
			dst = fmt.Appendf(dst, "<%d bytes, left out>", n)
			continue
		}
		switch {
		case own && d.Kind == record.Double && !math.IsNaN(d.Double) && !math.IsInf(d.Double, 0):
			dst = appendDouble(dst, d.Double, col)
			continue
		case own && d.Kind == record.Binary:
			dst = append(base64.StdEncoding.AppendEncode(append(dst, `{"base64":"`...), d.Bytes), `"}`...)
			continue
		}
		switch d.Kind {
		case record.Number, record.JSON:
			dst = append(dst, d.Bytes...)
		case record.Integer:
			dst = strconv.AppendInt(dst, d.Int, 10)
		case record.Unsigned:
			dst = strconv.AppendUint(dst, uint64(d.Int), 10)
		case record.Boolean:
			dst = strconv.AppendBool(dst, d.Int != 0)
		case record.Binary:
			dst = appendString(dst, base64.StdEncoding.EncodeToString(d.Bytes))
		default:
			dst = appendString(dst, convert.Text(d))
		}
	}
	return append(dst, "}\n"...)
}

// maxKeptValue is how long a value may be that a record keeps however long it is.
const maxKeptValue = 1 << 10

func appendString(dst []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string always marshals
	return append(dst, text...)
}

// appendDouble appends a double that its text says to be one, but in a column that gets its text.
func appendDouble(dst []byte, f float64, col *table.Column) []byte {
	from := len(dst)
	dst = table.AppendDouble(dst, f)
	if col.Type != table.String && !bytes.ContainsAny(dst[from:], ".e") {
		dst = append(dst, ".0"...)
	}
	return dst
}

// bySource returns the columns by their names in the input.
func bySource(fields []table.Column) map[string]*table.Column {
	set := map[string]*table.Column{}
	for i := range fields {
		set[fields[i].Source] = &fields[i]
	}
	return set
}
