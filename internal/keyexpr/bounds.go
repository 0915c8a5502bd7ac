package keyexpr

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"example.com/tsimport/internal/table"
)

// Bounds holds the arguments of GetRange, from Start to End exclusive, or of GetRow, for the rows with given values.
type Bounds struct {
	Given   []string     `json:"given"`            // NAME=value
	Row     bool         `json:"row,omitempty"`    // Start is the whole key of one row, and there is no End
	Ranges  int          `json:"ranges"`           // if above 1, Start and End describe this many ranges; see Prefix
	Prefix  string       `json:"prefix,omitempty"` // format, in Go and Python, of a range's number, from 0
	Start   []BoundValue `json:"start"`
	End     []BoundValue `json:"end,omitempty"`
	Filters bool         `json:"filters,omitempty"` // the ranges may contain rows with other values
	Go      string       `json:"go"`
	Python  string       `json:"python"`
	order   Order        // order of the column's values in the key
}

// BoundValue is a key column of a bound.
type BoundValue struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value,omitempty"` // as text, or in hexadecimal if binary; follows Prefix
	Limit string `json:"limit,omitempty"` // "min" or "max" in place of a value
	many  bool   // the value begins with Prefix
	value table.Value
}

// Values of BoundValue.Limit.
const (
	limitMin = "min"
	limitMax = "max"
)

// Given maps input columns to their known values.
type Given map[string]table.Value

// Upto maps input columns to the exclusive ends of ranges of values. The ranges begin at the values in a Given.
type Upto map[string]table.Value

// Bounds returns the bounds of the rows with given values in a column and in the columns before it in the key, or nil
// if there are none or a value is missing.
func (d Design) Bounds(column string, given Given) *Bounds { return d.bounds(column, given, "") }

func (d Design) bounds(column string, given Given, ranged string) *Bounds {
	f := finder{d: d, given: given, programs: map[*node]*Program{}, known: map[string]bool{column: true}, ranged: ranged}
	f.find(column)
	if f.failed || !f.begun || !f.used[column] {
		return nil
	}
	b := &Bounds{Ranges: 1, Filters: f.filters, Row: f.whole, Start: f.start, End: f.end, order: f.order}
	if f.many > 0 {
		b.Ranges, b.Prefix = f.many, f.prefix
	}
	for i := range d.Inputs {
		if name := d.Inputs[i].Name; f.used[name] {
			b.Given = append(b.Given, name+"="+shownValue(given[name]))
		}
	}
	b.Go, b.Python = b.inGo(), b.inPython()
	return b
}

// RangeBounds is like Bounds for rows whose value in a column is at least the given one and less than to.
func (d Design) RangeBounds(column string, given Given, to table.Value) *Bounds {
	least := d.bounds(column, given, column)
	most := maps.Clone(given)
	most[column] = to
	b := d.bounds(column, most, column)
	if least == nil || b == nil {
		return nil
	}
	switch least.order {
	case Ascending:
		b.Start, b.End = least.Start, b.Start
	case CoarseAscending:
		b.Start = least.Start
	case Descending:
		b.Start, b.End = b.End, least.End
	case CoarseDescending:
		b.End = least.End
	default:
		return nil
	}
	if b.Start == nil || b.End == nil {
		return nil // the successor of a whole key is unknown
	}
	b.Row, b.Filters = false, b.Filters || least.order == CoarseAscending || least.order == CoarseDescending
	for i, text := range least.Given {
		if b.Given[i] != text {
			b.Given[i] = text + ".." + shownValue(to)
		}
	}
	b.Go, b.Python = b.inGo(), b.inPython()
	return b
}

// finder builds bounds from the pieces of a key, as long as their values are known.
type finder struct {
	d        Design
	given    Given
	ranged   string             // the column with a range of values: only an ordered part of it is known
	order    Order              // order of the ranged column in the key
	programs map[*node]*Program // compiled pieces
	known    map[string]bool    // columns whose values may be used
	used     map[string]bool    // columns whose values were used
	ended    bool               // the rest of the key is unknown
	after    bool               // the end bound sorts after all keys with its prefix
	begun    bool               // a bound has a value
	failed   bool
	whole    bool
	filters  bool

	many       int
	prefix     string
	start, end []BoundValue
}

func (f *finder) find(column string) {
	f.used = map[string]bool{}
	ordered := f.orderedIn(column)
	for i, p := range f.d.Programs {
		f.column(i, p, ordered)
		if f.failed {
			return
		}
	}
	if f.whole = !f.ended; f.whole {
		f.end = nil
	}
}

// orderedIn returns the index, over all key columns, of the piece that keeps the column's order. If none does, it
// returns the index of the first piece that uses the column.
func (f *finder) orderedIn(column string) int {
	n, first := 0, -1
	for _, p := range f.d.Programs {
		if p == nil {
			continue
		}
		for _, piece := range piecesOf(p.root) {
			if s, ok := single(piece.node.order); ok && s.Column == column &&
				(p.root.pieces == nil || piece.node.typ == table.String) {
				f.order = s.Order
				return n
			}
			if _, names := f.compiled(p, piece); first < 0 && slices.Contains(names, column) {
				first = n
			}
			n++
		}
	}
	return first
}

// compiled returns a piece as a program of its own, and the names of its input columns.
func (f *finder) compiled(p *Program, piece piece) (made *Program, names []string) {
	made = f.programs[piece.node]
	if made == nil {
		var err error
		if made, err = Compile(piece.node.src, p.env); err != nil {
			f.failed = true
			return nil, nil
		}
		f.programs[piece.node] = made
	}
	for _, in := range made.columns {
		names = append(names, f.d.Inputs[in].Name)
	}
	return made, names
}

// piecesBefore counts the pieces of all key columns before column.
func (f *finder) piecesBefore(column int) (n int) {
	for _, p := range f.d.Programs[:column] {
		if p != nil {
			n += len(piecesOf(p.root))
		}
	}
	return n
}

// column adds one key column to both bounds.
func (f *finder) column(i int, p *Program, ordered int) {
	b := BoundValue{Name: f.d.Columns[i].Name}
	if p == nil {
		b.Type = table.Integer.String()
		f.limits(b)
		return
	}
	b.Type = p.Type.String()
	if f.ended {
		f.limits(b)
		return
	}
	pieces := piecesOf(p.root)
	if len(pieces) == 1 && p.Type != table.String {
		v, ok := f.value(p, pieces[0], f.piecesBefore(i), ordered)
		switch {
		case f.failed:
		case !ok:
			f.limits(b)
		default:
			b.value = v
			f.exact(b)
		}
		return
	}
	var text []byte
	complete, at := true, f.piecesBefore(i)
	for n, piece := range pieces {
		before := ordered >= 0 && at+n < ordered
		if before && len(text) == 0 && f.many == 0 && f.enumerate(p, piece) {
			b.many = true
			continue
		}
		v, ok := f.value(p, piece, at+n, ordered)
		if f.failed {
			return
		}
		if !ok {
			complete = false
			break
		}
		text = appendText(text, v)
		open := !piece.sealed && n < len(pieces)-1
		f.filters = f.filters || open
		f.failed = open && f.ranged != "" && at+n == ordered // the following pieces change the order
	}
	b.value = table.Value{Type: table.String, Bytes: text}
	switch {
	case complete:
		f.exact(b)
	case len(text) == 0 && !b.many:
		f.limits(b)
	default:
		f.beginning(b)
	}
}

// enumerate plans one range for each value of a piece, if it has few values and depends on unknown columns.
func (f *finder) enumerate(p *Program, piece piece) bool {
	n := piece.node
	if len(n.order) != 1 || n.order[0].Order != NoOrder || n.order[0].Values < 2 || n.order[0].Values > mostRanges ||
		n.width == 0 || n.typ != table.String {
		return false
	}
	_, names := f.compiled(p, piece)
	if !slices.ContainsFunc(names, func(name string) bool { return !f.known[name] || name == f.ranged }) {
		return false
	}
	f.many, f.prefix = n.order[0].Values, fmt.Sprintf("%%0%dd", n.width)
	if n.width <= 3 && f.many == 1<<(4*n.width) {
		f.prefix = fmt.Sprintf("%%0%dx", n.width)
	}
	return true
}

// value computes a piece from given values; ok is false if they do not suffice.
func (f *finder) value(p *Program, piece piece, at, ordered int) (v table.Value, ok bool) {
	made, names := f.compiled(p, piece)
	if f.failed || at != ordered && slices.Contains(names, f.ranged) {
		return v, false
	}
	before := at < ordered
	row := make([]table.Value, len(f.d.Inputs))
	for i, name := range names {
		f.known[name] = f.known[name] || before
		if !f.known[name] {
			return v, false
		}
		given, has := f.given[name]
		if !has {
			f.failed = true // the bounds need a value that was not given
			return v, false
		}
		row[made.columns[i]] = given
	}
	v, why := made.NewEvaluator().Eval(row)
	if why != nil || v.Type == table.Null {
		f.failed = true
		return v, false
	}
	for _, name := range names {
		f.used[name] = true
	}
	v.Bytes = bytes.Clone(v.Bytes)
	return v, true
}

func (f *finder) limits(b BoundValue) {
	f.ended = true
	b.Limit = limitMin
	f.start = append(f.start, b)
	if !f.after {
		b.Limit = limitMax
	}
	f.end = append(f.end, b)
}

func (f *finder) exact(b BoundValue) {
	f.begun = true
	b.Value = boundText(b.value)
	f.start, f.end = append(f.start, b), append(f.end, b)
}

// beginning adds bounds around the strings that begin with b's value.
func (f *finder) beginning(b BoundValue) {
	f.begun, f.ended = true, true
	b.value.Bytes = bytes.Clone(b.value.Bytes)
	b.Value = boundText(b.value)
	f.start = append(f.start, b)
	next, ok := following(b.value.Bytes)
	f.failed = f.failed || !ok
	b.value.Bytes = next
	b.Value = boundText(b.value)
	f.end = append(f.end, b)
	f.after = true
}

// following returns the first string after all that begin with text: the last character with a successor is replaced.
func following(text []byte) (next []byte, ok bool) {
	for len(text) > 0 {
		r, size := utf8.DecodeLastRune(text)
		text = text[:len(text)-size]
		switch {
		case r == utf8.RuneError && size == 1, r == utf8.MaxRune:
			continue
		case r == 0xD7FF:
			r = 0xE000 // skips the surrogates
		default:
			r++
		}
		return utf8.AppendRune(slices.Clone(text), r), true
	}
	return nil, false
}

func boundText(v table.Value) string {
	if v.Type == table.Binary {
		return fmt.Sprintf("%x", v.Bytes)
	}
	return string(appendText(nil, v))
}

func (b *Bounds) text(w *strings.Builder) {
	if b == nil {
		return
	}
	given := strings.Join(b.Given, ", ")
	switch {
	case b.Row && b.Ranges > 1:
		fmt.Fprintf(w, "  the rows of %s have one of %d keys; in Go:\n", given, b.Ranges)
	case b.Row:
		fmt.Fprintf(w, "  the row of %s is read with GetRow; in Go:\n", given)
	case b.Ranges > 1:
		fmt.Fprintf(w, "  the rows of %s are in %d ranges; in Go:\n", given, b.Ranges)
	default:
		fmt.Fprintf(w, "  the rows of %s are in one range; in Go:\n", given)
	}
	indent := func(code string) { fmt.Fprintf(w, "    %s\n", strings.ReplaceAll(code, "\n", "\n    ")) }
	indent(b.Go)
	w.WriteString("  in Python:\n")
	indent(b.Python)
	if b.Filters {
		w.WriteString("  rows with other values may be among them; filter them out\n")
	}
}

func (b *Bounds) inGo() string {
	name, verb := []string{"start", "end"}, "// GetRange from start to end"
	if b.Row {
		name[0], verb = "key", "// GetRow of key"
	}
	var lines []string
	indent := ""
	if b.Ranges > 1 {
		lines = append(lines, fmt.Sprintf("for i := range %d {", b.Ranges))
		indent = "\t"
	}
	for n, bound := range [][]BoundValue{b.Start, b.End} {
		if bound == nil {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s%s := new(tablestore.PrimaryKey)", indent, name[n]))
		for _, v := range bound {
			call := fmt.Sprintf("AddPrimaryKeyColumn(%q, %s)", v.Name,
				v.in("int64(%d)", "[]byte(%s)", "fmt.Sprintf(%q, i)", b.Prefix))
			switch v.Limit {
			case limitMin:
				call = fmt.Sprintf("AddPrimaryKeyColumnWithMinValue(%q)", v.Name)
			case limitMax:
				call = fmt.Sprintf("AddPrimaryKeyColumnWithMaxValue(%q)", v.Name)
			}
			lines = append(lines, indent+name[n]+"."+call)
		}
	}
	if b.Ranges > 1 {
		lines = append(lines, "\t"+verb, "}")
	}
	return strings.Join(lines, "\n")
}

// in formats a value as source code, with a language's formats for integers, binary values and the prefix of range i.
func (v BoundValue) in(integer, binary, numbered, prefix string) string {
	text := strconv.QuoteToASCII(string(v.value.Bytes))
	switch {
	case v.value.Type == table.Integer:
		return fmt.Sprintf(integer, v.value.Int)
	case v.value.Type == table.Binary:
		return fmt.Sprintf(binary, byteLiteral(v.value.Bytes))
	case v.many && len(v.value.Bytes) == 0:
		return fmt.Sprintf(numbered, prefix)
	case v.many:
		return fmt.Sprintf(numbered, prefix) + " + " + text
	}
	return text
}

func (b *Bounds) inPython() string {
	name := []string{"inclusive_start", "exclusive_end"}
	if b.Row {
		name[0] = "primary_key"
	}
	var lines []string
	indent := ""
	if b.Ranges > 1 {
		lines = append(lines, fmt.Sprintf("for i in range(%d):", b.Ranges))
		indent = "    "
	}
	for n, bound := range [][]BoundValue{b.Start, b.End} {
		if bound == nil {
			continue
		}
		var parts []string
		for _, v := range bound {
			value := v.in("%d", "bytearray(b%s)", "%q %% i", b.Prefix)
			if v.Limit != "" {
				value = "INF_" + strings.ToUpper(v.Limit)
			}
			parts = append(parts, fmt.Sprintf("(%s, %s)", strconv.QuoteToASCII(v.Name), value))
		}
		lines = append(lines, fmt.Sprintf("%s%s = [%s]", indent, name[n], strings.Join(parts, ", ")))
	}
	return strings.Join(lines, "\n")
}

// byteLiteral formats bytes as a string literal of both Go and Python.
func byteLiteral(data []byte) string {
	out := `"`
	for _, b := range data {
		out += fmt.Sprintf(`\x%02x`, b)
	}
	return out + `"`
}
