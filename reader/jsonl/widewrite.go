package jsonl

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// Limits in bytes of lines written by AppendWide. Longer lines could not be read back.
const (
	maxWideLine  = 56 << 20 // after this, cells are omitted
	longWideLine = 32 << 20 // after this, values longer than longValue are omitted
	longValue    = 1 << 10
)

// AppendWide appends a self-describing record as a line. columns has the names of its fields; fields without a name are
// omitted, because the cells repeat them. Values that no row can hold, and values after many megabytes, are replaced by
// their size. That is not JSON, so that the line cannot be loaded as if it were complete.
func AppendWide(dst []byte, columns []string, rec *record.Record) []byte {
	return wideLine{len(dst), true}.append(dst, columns, rec)
}

// AppendWhole is like AppendWide, for rows of archives, whose lines are not limited. It omits no values.
func AppendWhole(dst []byte, columns []string, rec *record.Record) []byte {
	return wideLine{}.append(dst, columns, rec)
}

// AppendKey appends fields in the format that they have under PK.
func AppendKey(dst []byte, columns []string, fields []record.Datum) []byte {
	return wideLine{}.fields(dst, columns, fields)
}

// wideLine holds the position and limits of a line being written.
type wideLine struct {
	start   int // offset of the line in the buffer
	bounded bool
}

func (l wideLine) append(dst []byte, columns []string, rec *record.Record) []byte {
	dst = l.fields(append(dst, `{"Wide":true,"PK":{"Values":`...), columns, rec.Fields)
	dst = append(dst, `},"Attr":{"Values":[`...)
	for i := range rec.Cells {
		if i > 0 {
			dst = append(dst, ',')
		}
		if l.bounded && len(dst)-l.start > maxWideLine {
			dst = fmt.Appendf(dst, "<%d cells, left out>", len(rec.Cells)-i)
			break
		}
		c := &rec.Cells[i]
		dst = l.cell(dst, c.Name, &c.Datum, c.At)
	}
	return append(dst, "]}}\n"...)
}

func (l wideLine) fields(dst []byte, columns []string, fields []record.Datum) []byte {
	dst = append(dst, '[')
	first := true
	for i, name := range columns[:min(len(columns), len(fields))] {
		if name == "" {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = l.cell(dst, []byte(name), &fields[i], NoTimestamp)
	}
	return append(dst, ']')
}

func (l wideLine) cell(dst, name []byte, d *record.Datum, at int64) []byte {
	if utf8.Valid(name) {
		dst = appendText(append(dst, `{"C":`...), name)
	} else {
		dst = appendBase64(append(dst, `{"C64":`...), name)
	}
	dst = append(dst, `,"V":`...)
	if n := len(d.Bytes); l.bounded && (n > table.MaxRowBytes || n > longValue && len(dst)-l.start+n > longWideLine) {
		dst = fmt.Appendf(dst, "<%d bytes, left out>", n)
	} else {
		dst = appendWideValue(dst, d)
	}
	if at >= 0 {
		dst = strconv.AppendInt(append(dst, `,"TS":`...), at, 10)
	}
	return append(dst, '}')
}

// appendWideValue appends the value of V and the members that describe it.
func appendWideValue(dst []byte, d *record.Datum) []byte {
	switch d.Kind {
	case record.Null, record.Absent:
		return append(dst, "null"...)
	case record.Integer:
		return append(strconv.AppendInt(dst, d.Int, 10), `,"IsInt":true`...)
	case record.Boolean:
		return strconv.AppendBool(dst, d.Int != 0)
	case record.Double:
		if !math.IsNaN(d.Double) && !math.IsInf(d.Double, 0) {
			return table.AppendDouble(dst, d.Double)
		}
		dst = fmt.Appendf(dst, `"%x"`, math.Float64bits(d.Double))
	case record.Unsigned:
		dst = strconv.AppendUint(dst, uint64(d.Int), 10)
	case record.Date, record.TimeOfDay, record.Timestamp:
		dst = strconv.AppendInt(dst, d.Int, 10)
	case record.Binary, record.Decimal:
		dst = appendBase64(dst, d.Bytes)
	default:
		if !utf8.Valid(d.Bytes) {
			dst = append(appendBase64(dst, d.Bytes), `,"Base64":true`...)
			break
		}
		if dst = appendText(dst, d.Bytes); d.Kind == record.String {
			return dst
		}
	}
	dst = append(append(append(dst, `,"T":"`...), kindNames[d.Kind]...), '"')
	if d.Unit != 0 {
		dst = strconv.AppendInt(append(dst, `,"Unit":`...), int64(d.Unit), 10)
	}
	if d.Scale != 0 {
		dst = strconv.AppendInt(append(dst, `,"Scale":`...), int64(d.Scale), 10)
	}
	if d.Local {
		dst = append(dst, `,"Local":true`...)
	}
	if d.Quoted {
		dst = append(dst, `,"Quoted":true`...)
	}
	return dst
}

func appendText(dst, s []byte) []byte {
	if !slices.ContainsFunc(s, func(b byte) bool { return b < ' ' || b > '~' || b == '"' || b == '\\' }) {
		return append(append(append(dst, '"'), s...), '"')
	}
	text, _ := json.Marshal(string(s)) // marshalling a string cannot fail
	return append(dst, text...)
}

func appendBase64(dst, b []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), b), '"')
}
