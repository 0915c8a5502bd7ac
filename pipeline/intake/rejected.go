package intake

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"

	"tsimport/internal/table"
	"tsimport/reader/convert"
	"tsimport/reader/record"
)

// Rejected records of binary formats are kept as JSON lines, which load again.

// appendRecord appends a record as a line of JSON. Fields that were not read are left out. Times and decimals that are
// loaded as integers are written as those. A value that is longer than the service takes, and what follows once the record
// is longer than a row can be, is left out: in its place stands how long it was, which is not JSON, so that the line cannot
// be loaded as if that were the value.
func appendRecord(dst []byte, columns []string, rec *record.Record, integers map[string]bool) []byte {
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
		if integers[columns[i]] {
			if n, ok := convert.Integer(d); ok {
				dst = strconv.AppendInt(dst, n, 10)
				continue
			}
		}
		if n := len(d.Bytes); n > table.MaxValueBytes || n > maxKeptValue && len(dst)+n > table.MaxRowBytes {
			dst = fmt.Appendf(dst, "<%d bytes, left out>", n)
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

// integers returns the input columns that are loaded as integers of their own.
func integers(fields []table.Column) map[string]bool {
	set := map[string]bool{}
	for _, c := range fields {
		if c.Type == table.Integer && c.Time == nil {
			set[c.Source] = true
		}
	}
	return set
}
