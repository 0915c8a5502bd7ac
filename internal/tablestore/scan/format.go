package scan

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
)

// Formatter writes rows. After Flush, the output ends with a complete row.
type Formatter interface {
	Write(*Fields) error
	Flush() error
}

// CSV writes rows as in RFC 4180 with a header: the primary key first, then the given attribute columns. A missing cell
// is an empty field, an empty string or binary value is "", and a binary value is base64. Loads restore these values.
type CSV struct {
	w       *bufio.Writer
	places  Places
	values  []plainbuffer.Encoded // values of the current row; nil for missing cells
	buf     []byte
	written int64 // number of bytes written
}

// NewCSV makes a CSV and writes its header.
func NewCSV(w io.Writer, keys, attributes []string) (*CSV, error) {
	f := ContinueCSV(w, keys, attributes)
	for i, name := range slices.Concat(keys, attributes) {
		if i > 0 {
			f.buf = append(f.buf, ',')
		}
		f.buf = appendText(f.buf, []byte(name))
	}
	return f, f.end()
}

// ContinueCSV makes a CSV that continues the output of another, without a header.
func ContinueCSV(w io.Writer, keys, attributes []string) *CSV {
	f := &CSV{w: bufio.NewWriterSize(w, 1<<16), values: make([]plainbuffer.Encoded, len(keys))}
	for _, c := range attributes {
		f.add(c)
	}
	return f
}

func (f *CSV) add(column string) {
	f.places.Set(column, len(f.values))
	f.values = append(f.values, nil)
}

// Write writes one row. It leaves out columns that were not given.
func (f *CSV) Write(r *Fields) error {
	clear(f.values)
	copy(f.values, r.Key)
	for _, c := range r.Cells {
		if place := f.places.Of(c.Column); place >= 0 {
			f.values[place] = c.Value
		}
	}
	f.buf = f.buf[:0]
	for i, v := range f.values {
		if i > 0 {
			f.buf = append(f.buf, ',')
		}
		if v != nil {
			f.buf = appendField(f.buf, v)
		}
	}
	return f.end()
}

// raw writes a line of the raw fields with the indexes in from. A field that does not exist is empty.
func (f *CSV) raw(fields [][]byte, from []int) error {
	f.buf = f.buf[:0]
	for i, place := range from {
		if i > 0 {
			f.buf = append(f.buf, ',')
		}
		if place < len(fields) {
			f.buf = append(f.buf, fields[place]...)
		}
	}
	return f.end()
}

func (f *CSV) end() error {
	if len(f.buf) == 0 {
		f.buf = append(f.buf, '"', '"') // a single missing cell would read as an empty line
	}
	f.buf = append(f.buf, '\n')
	f.written += int64(len(f.buf))
	_, err := f.w.Write(f.buf)
	return err
}

func (f *CSV) Flush() error { return f.w.Flush() }

func appendField(dst []byte, v plainbuffer.Encoded) []byte {
	switch v.Type() {
	case table.Integer:
		return strconv.AppendInt(dst, int64(v.Word()), 10)
	case table.Double:
		return table.AppendDouble(dst, math.Float64frombits(v.Word()))
	case table.Boolean:
		return strconv.AppendBool(dst, v.True())
	case table.Binary:
		if len(v.Bytes()) > 0 {
			return base64.StdEncoding.AppendEncode(dst, v.Bytes())
		}
	}
	return appendText(dst, v.Bytes())
}

func appendText(dst, text []byte) []byte {
	if len(text) > 0 && !quotes(text) {
		return append(dst, text...)
	}
	dst = append(dst, '"')
	for _, c := range text {
		if c == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

// special marks the bytes that require a field to be quoted.
var special = [256]uint64{',': 1, '"': 1, '\r': 1, '\n': 1}

// quotes reports whether a field must be quoted. It checks eight bytes at once, and the rest one by one. A byte order
// mark at the start of a line would be taken for a seam between joined files.
func quotes(s []byte) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	found := uint64(0)
	marked := bytes.HasPrefix(s, []byte("\ufeff"))
	for ; len(s) >= 8; s = s[8:] {
		w := binary.LittleEndian.Uint64(s)
		comma, quote, cr, lf := w^each*',', w^each*'"', w^each*'\r', w^each*'\n'
		// Each term has a high bit if and only if its word has a zero byte.
		found |= ((comma-each)&^comma | (quote-each)&^quote | (cr-each)&^cr | (lf-each)&^lf) & high
	}
	for _, c := range s {
		found |= special[c]
	}
	return found != 0 || marked
}

// JSONL writes rows as JSON objects, one per line, keys first. The text shows each value's type: an integer has no
// fraction, a double has one or an exponent, and a binary value is {"base64": "…"}. NaN and infinities are errors.
type JSONL struct {
	w    *bufio.Writer
	keys []string
	buf  bytes.Buffer
}

func NewJSONL(w io.Writer, keys []string) *JSONL {
	return &JSONL{w: bufio.NewWriterSize(w, 1<<16), keys: keys}
}

func (f *JSONL) Write(r *Fields) error {
	f.buf.Reset()
	f.buf.WriteByte('{')
	for i, v := range r.Key {
		if err := f.member(f.keys[i], v); err != nil {
			return err
		}
	}
	for _, c := range r.Cells {
		if err := f.member(c.Name, c.Value); err != nil {
			return err
		}
	}
	f.buf.WriteString("}\n")
	_, err := f.w.Write(f.buf.Bytes())
	return err
}

func (f *JSONL) member(name string, v plainbuffer.Encoded) error {
	if f.buf.Len() > 1 {
		f.buf.WriteByte(',')
	}
	f.text(name)
	f.buf.WriteByte(':')
	switch v.Type() {
	case table.String:
		f.text(string(v.Bytes()))
	case table.Binary:
		f.buf.WriteString(`{"base64":"` + base64.StdEncoding.EncodeToString(v.Bytes()) + `"}`)
	case table.Double:
		double := math.Float64frombits(v.Word())
		if math.IsNaN(double) || math.IsInf(double, 0) {
			return fmt.Errorf("column %q has the double %v, which JSON lacks; leave the column out (--columns)", name, double)
		}
		text := table.AppendDouble(nil, double)
		if !bytes.ContainsAny(text, ".e") {
			text = append(text, ".0"...)
		}
		f.buf.Write(text)
	default:
		f.buf.Write(appendField(nil, v))
	}
	return nil
}

func (f *JSONL) text(s string) {
	e := json.NewEncoder(&f.buf)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // encoding a string to a Buffer never fails
	f.buf.Truncate(f.buf.Len() - 1)
}

func (f *JSONL) Flush() error { return f.w.Flush() }
