package intake

import (
	"bytes"
	"slices"
	"strconv"

	"tsimport/internal/table"
	"tsimport/pipeline/plan"
	"tsimport/reader/record"
)

// rowTexts makes a text of each row of CSV files, to be hashed in place of its values: the canonical texts of these in the order of the first file's
// columns, with delimiters between them. Rows that have a text have the same one exactly if they have the same values. A row of which a
// value has the delimiter in its text, or is an empty string, has no text. Most records' lines are the texts of their rows.
type rowTexts struct {
	columns   []string // of the first file
	delimiter byte
	order     []int // of the values
	text      []byte
}

// newRowTexts returns nil where rows have no texts.
func newRowTexts(p *plan.Plan) *rowTexts {
	r := p.Request
	if r.Keep != plan.KeepKeyFields || r.Mode != table.Put || p.Makers != nil || p.Tables != nil || p.Wide || r.Read.Convert.VersionColumn != "" || len(p.Sources) == 0 {
		return nil
	}
	for _, s := range p.Sources {
		if s.About().Delimiter == 0 {
			return nil // its rows may have timestamps
		}
	}
	first := p.Sources[0].About()
	t := &rowTexts{columns: first.Columns, delimiter: first.Delimiter, text: make([]byte, 0, 256)}
	for _, name := range first.Columns {
		t.order = append(t.order, slices.IndexFunc(p.Fields, func(c table.Column) bool { return c.Source == name && c.Type != table.Any }))
	}
	if len(t.order) != len(p.Fields) || slices.Contains(t.order, -1) {
		return nil // a line says more than the row has
	}
	return t
}

// hasLines reports whether the lines of a source can be texts.
func (t *rowTexts) hasLines(s *plan.Source) bool {
	about := s.About()
	return t != nil && about.Delimiter == t.delimiter && slices.Equal(about.Columns, t.columns)
}

// of returns the text of the row that values has made of a record, nil if it has none. It is valid until the next call, and as long as the record is.
func (t *rowTexts) of(v *values, rec *record.Record) []byte {
	if v.lines && rec.Line != nil && v.converter.Canonical() {
		return rec.Line
	}
	t.text = t.text[:0]
	for k, i := range t.order {
		if k > 0 {
			t.text = append(t.text, t.delimiter)
		}
		from := len(t.text)
		switch value := &v.last[i]; value.Type {
		case table.Null:
		case table.Integer:
			t.text = strconv.AppendInt(t.text, value.Int, 10)
		case table.Double:
			t.text = table.AppendDouble(t.text, value.Double)
		case table.Boolean:
			t.text = strconv.AppendBool(t.text, value.Int != 0)
		default:
			if len(value.Bytes) == 0 {
				return nil
			}
			t.text = append(t.text, value.Bytes...)
		}
		if bytes.IndexByte(t.text[from:], t.delimiter) >= 0 {
			return nil
		}
	}
	return t.text
}
