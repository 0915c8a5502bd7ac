package pipeline

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	"tsimport/plainbuffer"
	"tsimport/reader/convert"
	"tsimport/reader/record"
	"tsimport/table"
)

// Rejected records of formats that are no text are kept as JSON lines, which load again.

// appendRecord appends a record as a line of JSON. Fields that were not read are left out. Times and decimals that are
// loaded as integers are written as those.
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

func appendString(dst []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string always marshals
	return append(dst, text...)
}

// appendRow appends a row that was encoded as a line of JSON: its key and cells by the table's names.
func appendRow(dst []byte, body []byte) []byte {
	row, err := plainbuffer.Decode(body)
	if err != nil {
		return append(appendString(append(dst, `{"error":`...), err.Error()), "}\n"...)
	}
	dst = append(dst, '{')
	for i, c := range append(row.Key, row.Cells...) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, c.Name), ':')
		switch c.Value.Type {
		case table.Null:
			dst = append(dst, "null"...)
		case table.Integer:
			dst = strconv.AppendInt(dst, c.Value.Int, 10)
		case table.Double:
			dst = table.AppendDouble(dst, c.Value.Double)
		case table.Boolean:
			dst = strconv.AppendBool(dst, c.Value.Int != 0)
		case table.Binary:
			dst = appendString(dst, base64.StdEncoding.EncodeToString(c.Value.Bytes))
		default:
			dst = appendString(dst, string(c.Value.Bytes))
		}
	}
	return append(dst, "}\n"...)
}
