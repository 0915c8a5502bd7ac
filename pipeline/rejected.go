package pipeline

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// appendRow appends a row that was encoded as a line of JSON: its key and cells by the table's names.
func appendRow(dst []byte, body []byte) []byte {
	row, err := plainbuffer.Decode(body)
	if err != nil {
		return append(appendString(append(dst, `{"error":`...), err.Error()), "}\n"...)
	}
	dst = append(dst, '{')
	first := true
	for i, c := range append(row.Key, row.Cells...) {
		if i < len(row.Key) && c.Value.Type == table.Null {
			continue // the service would have numbered the row
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
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

func appendString(dst []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string always marshals
	return append(dst, text...)
}
