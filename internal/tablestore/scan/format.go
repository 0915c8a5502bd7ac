package scan

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
)

// Formatter writes rows. Flush writes what is still held back: after it there are whole rows only.
type Formatter interface {
	Write(*Row) error
	Flush() error
}

// CSV writes rows as RFC 4180 with a header: the primary key first, then the attribute columns given. An absent cell is
// an empty field, an empty string or binary is a quoted empty field, a binary value is base64; a value reads back as
// it was.
type CSV struct {
	w       *bufio.Writer
	columns []string
	place   map[string]int
	last    []columnPlace // of the cells of the row before: those of the next one mostly have the same
	keys    int
	cells   []any
	buf     []byte
	written int64 // bytes of lines
	packed  packedColumns
}

// columnPlace is the place of a column in a line, negative for none.
type columnPlace struct {
	name  string
	place int
}

// NewCSV writes the header.
func NewCSV(w io.Writer, keys, attributes []string) (*CSV, error) {
	f := ContinueCSV(w, keys, attributes)
	for i, c := range f.columns {
		f.cells[i] = c
	}
	return f, f.line()
}

// ContinueCSV writes rows after those that another one has written.
func ContinueCSV(w io.Writer, keys, attributes []string) *CSV {
	f := &CSV{w: bufio.NewWriterSize(w, 1<<16), place: map[string]int{}, keys: len(keys)}
	f.columns = append(append(f.columns, keys...), attributes...)
	for i, c := range attributes {
		f.place[c] = len(keys) + i
	}
	f.cells = make([]any, len(f.columns))
	return f
}

// Write writes one row. Columns that were not given are left out.
func (f *CSV) Write(r *Row) error {
	f.fill(r)
	return f.line()
}

// fill puts the values of a row into the cells, and reports whether each has its place.
func (f *CSV) fill(r *Row) bool {
	clear(f.cells)
	for i, k := range r.PrimaryKey.PrimaryKeys {
		f.cells[i] = k.Value
	}
	all := true
	for i, c := range r.Columns {
		if i >= len(f.last) {
			f.last = append(f.last, columnPlace{place: -1})
		}
		at := &f.last[i]
		if at.place < 0 || at.name != c.ColumnName {
			place, ok := f.place[c.ColumnName]
			if !ok {
				all = false
				continue
			}
			*at = columnPlace{c.ColumnName, place}
		}
		f.cells[at.place] = c.Value
	}
	return all
}

// add gives an attribute column a place after all others, unless it has one.
func (f *CSV) add(column string) bool {
	if _, ok := f.place[column]; ok {
		return false
	}
	f.place[column] = len(f.columns)
	f.columns, f.cells = append(f.columns, column), append(f.cells, nil)
	return true
}

// line writes the cells.
func (f *CSV) line() error {
	f.buf = f.buf[:0]
	for i, v := range f.cells {
		if i > 0 {
			f.buf = append(f.buf, ',')
		}
		f.buf = appendField(f.buf, v)
	}
	return f.end()
}

// raw writes a line of fields as they are, each from its place among those given; one that they do not have is empty.
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

// end ends the line and writes it.
func (f *CSV) end() error {
	if len(f.buf) == 0 {
		f.buf = append(f.buf, '"', '"') // a single absent cell would read as an empty line
	}
	f.buf = append(f.buf, '\n')
	f.written += int64(len(f.buf))
	_, err := f.w.Write(f.buf)
	return err
}

// Flush writes what is held back.
func (f *CSV) Flush() error { return f.w.Flush() }

func appendField(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return dst
	case string:
		if v == "" {
			return append(dst, '"', '"')
		}
		if quotes, _ := lookThrough(v); !quotes {
			return append(dst, v...)
		}
		dst = append(dst, '"')
		dst = append(dst, strings.ReplaceAll(v, `"`, `""`)...)
		return append(dst, '"')
	case []byte:
		if len(v) == 0 {
			return append(dst, '"', '"')
		}
		return base64.StdEncoding.AppendEncode(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		return table.AppendDouble(dst, v)
	case bool:
		return strconv.AppendBool(dst, v)
	}
	panic("scan: value of an unknown type")
}

// special are the bytes for which a field is quoted.
var special = [256]uint64{',': 1, '"': 1, '\r': 1, '\n': 1}

// lookThrough reports whether a field has to be quoted, and whether it is ASCII. It looks at eight bytes at a time, and one by one at those
// after them.
func lookThrough[T string | []byte](s T) (quotes, ascii bool) {
	const each, high = 0x0101010101010101, 0x8080808080808080
	found, all := uint64(0), uint64(0)
	for ; len(s) >= 8; s = s[8:] {
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		comma, quote, cr, lf := w^each*',', w^each*'"', w^each*'\r', w^each*'\n'
		// Of a word that has a byte of zero, and of no other, this has a high bit.
		found |= ((comma-each)&^comma | (quote-each)&^quote | (cr-each)&^cr | (lf-each)&^lf) & high
		all |= w
	}
	for i := range len(s) {
		found |= special[s[i]]
		all |= uint64(s[i])
	}
	return found != 0, all&high == 0
}

// JSONL writes rows as JSON objects, one a line, keys first. An integer has no fraction, a double always has one or an
// exponent, a binary value is an object {"base64": "…"}; so every type can be told from the text. What JSON has no text
// for, a string that is not UTF-8, NaN or an infinity, is an error.
type JSONL struct {
	w   *bufio.Writer
	buf bytes.Buffer
}

// NewJSONL writes to w.
func NewJSONL(w io.Writer) *JSONL { return &JSONL{w: bufio.NewWriterSize(w, 1<<16)} }

// Write writes one row.
func (f *JSONL) Write(r *Row) error {
	f.buf.Reset()
	f.buf.WriteByte('{')
	for _, k := range r.PrimaryKey.PrimaryKeys {
		if err := f.member(k.ColumnName, k.Value); err != nil {
			return err
		}
	}
	for _, c := range r.Columns {
		if err := f.member(c.ColumnName, c.Value); err != nil {
			return err
		}
	}
	f.buf.WriteString("}\n")
	_, err := f.w.Write(f.buf.Bytes())
	return err
}

func (f *JSONL) member(name string, v any) error {
	if f.buf.Len() > 1 {
		f.buf.WriteByte(',')
	}
	f.text(name)
	f.buf.WriteByte(':')
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return fmt.Errorf("column %q has a string that is not UTF-8, which JSON lines cannot hold: %.60q; leave the column out (--columns)", name, v)
		}
		f.text(v)
	case []byte:
		f.buf.WriteString(`{"base64":"` + base64.StdEncoding.EncodeToString(v) + `"}`)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("column %q has the double %v, which JSON lines cannot hold; leave the column out (--columns)", name, v)
		}
		text := table.AppendDouble(nil, v)
		if !bytes.ContainsAny(text, ".eIN") {
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
	_ = e.Encode(s) // a string always encodes, and a Buffer always takes it
	f.buf.Truncate(f.buf.Len() - 1)
}

// Flush writes what is held back.
func (f *JSONL) Flush() error { return f.w.Flush() }
