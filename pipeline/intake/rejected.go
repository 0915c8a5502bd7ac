package intake

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
)

// Rejected records of binary formats are kept as JSON lines, so that they can be loaded again.

// rejectWriter writes a rejected record as a line that gives the same result when it is loaded.
type rejectWriter struct {
	uses     map[string][]table.Column // table columns by input column
	integers map[string]bool           // input columns that are loaded as plain integers
	flatten  bool                      // objects become columns
	wide     bool                      // records describe themselves
	own      func(column string) bool  // reports that a self-describing record's field does not just repeat a cell
	names    []string
}

func newRejectWriter(p *plan.Plan) *rejectWriter {
	k := rejectWriterOf(p.Fields, p.Request.Read.Convert.VersionColumn, p.Request.Read.Flatten)
	k.wide, k.own = p.Wide, p.Described
	return k
}

func rejectWriterOf(fields []table.Column, version string, flatten bool) *rejectWriter {
	k := &rejectWriter{uses: map[string][]table.Column{}, integers: map[string]bool{}, flatten: flatten}
	for _, c := range fields {
		k.uses[c.Source] = append(k.uses[c.Source], c)
		if c.Type == table.Integer && c.Time == nil {
			k.integers[c.Source] = true
		}
	}
	if version != "" {
		k.uses[version] = append(k.uses[version], table.Column{Source: version, Name: version, Type: table.Integer})
	}
	return k
}

// appendRecord appends a record as a line of JSON, without fields that were not read. Times and decimals that are
// loaded as integers are written as integers, nested values as text. A value longer than the service accepts, all that
// exceeds the length of a row, and a value that JSON cannot express are replaced by text that is not JSON, so that the
// line cannot be loaded. A self-describing record is kept whole (jsonl.AppendWide).
func (k *rejectWriter) appendRecord(dst []byte, columns []string, rec *record.Record) []byte {
	if k.wide {
		k.names = k.names[:0]
		for _, c := range columns {
			if !k.own(c) {
				c = ""
			}
			k.names = append(k.names, c)
		}
		return jsonl.AppendWide(dst, k.names, rec)
	}
	dst = append(dst, '{')
	first := true
	for i := range rec.Fields {
		d := &rec.Fields[i]
		if d.None() || slices.Contains(columns[i+1:], columns[i]) { // the last one is the folder's column
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(appendString(dst, columns[i]), ':')
		if n := len(d.Bytes); n > table.MaxValueBytes || n > maxKeptValue && len(dst)+n > table.MaxRowBytes {
			dst = fmt.Appendf(dst, "<%d bytes, left out>", n)
			continue
		}
		dst = k.appendValue(dst, columns[i], d)
	}
	return append(dst, "}\n"...)
}

// appendValue appends a value in the first form that every use of its column treats like the value itself.
func (k *rejectWriter) appendValue(dst []byte, column string, d *record.Datum) []byte {
	uses := k.uses[column]
	same := func(form *record.Datum) bool {
		return (form.Kind != record.String || utf8.Valid(form.Bytes)) && // JSON holds only UTF-8
			!slices.ContainsFunc(uses, func(c table.Column) bool { return !loadsAlike(&c, d, form) })
	}
	if d.Kind == record.Decimal && len(d.Bytes) == 0 {
		return append(dst, "<a decimal that was not read>"...)
	}
	if k.integers[column] {
		if n, ok := convert.Integer(d); ok {
			if form := number(strconv.AppendInt(nil, n, 10)); same(form) {
				return appendForm(dst, form)
			}
		}
	}
	var list []*record.Datum
	for i := range uses {
		list = append(list, k.typedForms(&uses[i], d)...)
	}
	for _, form := range append(list, plainForm(d)) {
		if same(form) {
			return appendForm(dst, form)
		}
	}
	for i := range uses {
		v, why := convert.Value(&uses[i], d)
		if why != nil {
			continue
		}
		for _, form := range forms(&uses[i], v) {
			if same(form) {
				return appendForm(dst, form)
			}
		}
	}
	text := convert.Text(d)
	if d.Kind == record.Binary || !utf8.ValidString(text) {
		text = "base64 " + base64.StdEncoding.EncodeToString(d.Bytes)
	}
	return append(appendString(append(dst, '<'), text), " has no form in JSON that loads as the same value>"...)
}

// typedForms returns forms of a value that show the type that its column gives it, so that the line makes the same cell
// without the flags of the load. If the column takes only one type, or refuses the value's, the value keeps its type.
func (k *rejectWriter) typedForms(c *table.Column, d *record.Datum) []*record.Datum {
	v := valueOf(d)
	if c.Own == table.Null && c.Time == nil {
		if made, why := convert.Value(c, d); why == nil {
			v = made
		}
	}
	switch {
	case v.Type == table.Double && d.Kind != record.Number: // a JSON number is already as it should be
		return doubles(v.Double)
	case v.Type == table.String:
		return []*record.Datum{text(string(v.Bytes))}
	case v.Type == table.Boolean:
		return []*record.Datum{{Kind: record.Boolean, Int: v.Int}}
	case v.Type == table.Binary && !k.flatten:
		tagged := append(base64.StdEncoding.AppendEncode([]byte(`{"base64":"`), v.Bytes), `"}`...)
		return []*record.Datum{{Kind: record.JSON, Bytes: tagged, Tagged: true}}
	}
	return nil
}

// valueOf returns the value of a double or of bytes, and null for other kinds.
func valueOf(d *record.Datum) table.Value {
	switch d.Kind {
	case record.Double:
		return table.Value{Type: table.Double, Double: d.Double}
	case record.Binary:
		return table.Value{Type: table.Binary, Bytes: d.Bytes}
	}
	return table.Value{}
}

// doubles returns the forms of a double. The first one does not look like an integer.
func doubles(f float64) []*record.Datum {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	n := table.AppendDouble(nil, f)
	list := []*record.Datum{number(n)}
	if !bytes.ContainsAny(n, ".e") {
		list = append([]*record.Datum{number(append(slices.Clone(n), ".0"...))}, list...)
	}
	return list
}

// loadsAlike reports whether a column makes the same value of a and b, or refuses both.
func loadsAlike(c *table.Column, a, b *record.Datum) bool {
	v, why := convert.Value(c, a)
	w, whyNot := convert.Value(c, b)
	if why != nil || whyNot != nil {
		return why != nil && whyNot != nil
	}
	return v.Type == w.Type && v.Int == w.Int && math.Float64bits(v.Double) == math.Float64bits(w.Double) &&
		string(v.Bytes) == string(w.Bytes)
}

func plainForm(d *record.Datum) *record.Datum {
	switch d.Kind {
	case record.Number, record.Boolean:
		return d
	case record.Integer:
		return number(strconv.AppendInt(nil, d.Int, 10))
	case record.Unsigned:
		return number(strconv.AppendUint(nil, uint64(d.Int), 10))
	case record.Binary:
		return text(base64.StdEncoding.EncodeToString(d.Bytes))
	}
	return text(convert.Text(d)) // even for a nested value, as --flatten would split an object into columns
}

// forms returns the forms from which a column makes the value.
func forms(c *table.Column, v table.Value) []*record.Datum {
	switch {
	case c.Time != nil:
		at := time.Unix(floor(v.Int, c.Time.Unit), (v.Int-floor(v.Int, c.Time.Unit)*c.Time.Unit)*(1e9/c.Time.Unit)).In(
			c.Time.Zone)
		layout := c.Time.Layout
		return []*record.Datum{text(at.Format(layout)), text(at.Format(strings.Replace(layout, "05", "05.999999999", 1)))}
	case v.Type == table.Integer:
		return []*record.Datum{number(strconv.AppendInt(nil, v.Int, 10))}
	case v.Type == table.Double:
		return doubles(v.Double)
	case v.Type == table.Boolean:
		return []*record.Datum{{Kind: record.Boolean, Int: v.Int}}
	case v.Type == table.Binary:
		return []*record.Datum{text(base64.StdEncoding.EncodeToString(v.Bytes)), text(hex.EncodeToString(v.Bytes))}
	}
	return []*record.Datum{text(string(v.Bytes))}
}

// floor divides, rounding down.
func floor(n, by int64) int64 {
	if n < 0 {
		return -((-n-1)/by + 1)
	}
	return n / by
}

func text(s string) *record.Datum { return &record.Datum{Kind: record.String, Bytes: []byte(s)} }

// number returns a JSON number, or null if the literal is not one.
func number(literal []byte) *record.Datum {
	if !json.Valid(literal) {
		return &record.Datum{}
	}
	return &record.Datum{Kind: record.Number, Bytes: literal}
}

func appendForm(dst []byte, d *record.Datum) []byte {
	switch d.Kind {
	case record.Null:
		return append(dst, "null"...)
	case record.Number, record.JSON:
		return append(dst, d.Bytes...)
	case record.Boolean:
		return strconv.AppendBool(dst, d.Int != 0)
	}
	return appendString(dst, string(d.Bytes))
}

// maxKeptValue is the maximum length of values that are kept however long the record is.
const maxKeptValue = 1 << 10

func appendString(dst []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string always marshals
	return append(dst, text...)
}

// RowForm returns a function that appends a row, given its encoded bytes, in place of a record that was not kept.
func (f *Flow) RowForm() func(dst, body []byte) []byte {
	if !f.plan.Wide {
		return appendRow
	}
	return func(dst, body []byte) []byte { return appendWide(dst, f.plan.Schema, body) }
}

// appendRow appends an encoded row as a line of JSON, with its key and cells under the table's names.
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

// appendWide appends a row with all the data of its record, as a self-describing record.
func appendWide(dst []byte, s *table.Schema, body []byte) []byte {
	var names []string
	rec := new(record.Record)
	_, err := plainbuffer.Walk(body, func(v plainbuffer.View) {
		if v.Value.Type != table.Null { // otherwise the service would have numbered the row
			names = append(names, cmp.Or(s.Columns[len(rec.Fields)].Source, string(v.Name)))
			rec.Fields = append(rec.Fields, record.Of(v.Value))
		}
	}, func(v plainbuffer.View) {
		rec.Cells = append(rec.Cells, record.Cell{Name: v.Name, Datum: record.Of(v.Value), At: v.Timestamp})
	})
	if err != nil {
		return append(appendString(append(dst, `{"error":`...), err.Error()), "}\n"...)
	}
	return jsonl.AppendWide(dst, names, rec)
}
