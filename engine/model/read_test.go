package model

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// GetRow is GetRow, and one key of BatchGetRow. A nil Row means no row.
func (m *Model) GetRow(table string, key Key, s *Selection, now int64) Outcome {
	t := m.look(table, now)
	if t == nil {
		return Outcome{Refusal: noTable()}
	}
	if r := t.checkKey(key); r != nil {
		return Outcome{Refusal: r}
	}
	if s.Txn != "" {
		x, r := m.session(s.Txn, now)
		if r == nil {
			r = x.holds(table, key)
		}
		if r != nil {
			return Outcome{Refusal: r}
		}
		m.swap(x)
		defer m.swap(x)
	}
	_, r := t.find(key)
	cells, returned := t.read(r, s, now)
	if !returned {
		return Outcome{Read: 1}
	}
	return Outcome{Read: max(1, units(key.dataBytes()+cellBytes(cells))), Row: &Row{key, cells}}
}

// read returns the selected cells of a row, and whether the row is answered.
func (t *Table) read(r *row, s *Selection, now int64) (cells []Cell, returned bool) {
	cells = t.selected(r, s, now)
	if !t.exists(r, now) {
		return cells, false
	}
	returned = t.answers(s, cells)
	if !returned || s.Filter == nil {
		return cells, returned
	}
	if p, ok := s.Filter.(*Pagination); ok {
		cells = p.cut(cells)
		return cells, t.answers(s, cells)
	}
	return cells, s.Filter.keeps(withKey(r, cells, true))
}

// answers reports whether a row is answered by its cells: always if no columns or one of the key is named.
func (t *Table) answers(s *Selection, cells []Cell) bool {
	return len(s.Columns) == 0 || len(cells) > 0 || slices.ContainsFunc(t.Key, func(k KeyColumn) bool { return slices.Contains(s.Columns, k.Name) })
}

// withKey is what a filter sees: the cells, and the key's columns of an existing row.
func withKey(r *row, cells []Cell, exists bool) []Cell {
	cells = slices.Clone(cells)
	if exists {
		for _, k := range r.key {
			cells = append(cells, Cell{Name: k.Name, Value: k.Value})
		}
	}
	return cells
}

// selected returns the visible cells by name, time and number of versions.
func (t *Table) selected(r *row, s *Selection, now int64) []Cell {
	kept := []Cell{}
	versions := map[string]int{}
	for _, c := range t.visible(r, now) {
		switch {
		case len(s.Columns) > 0 && !slices.Contains(s.Columns, c.Name):
		case s.Start != "" && c.Name < s.Start:
		case s.End != "" && c.Name >= s.End:
		case s.At != 0 && c.Timestamp != s.At:
		case s.To != 0 && (c.Timestamp < s.From || c.Timestamp >= s.To):
		case s.MaxVersions != 0 && versions[c.Name] == s.MaxVersions:
		default:
			versions[c.Name]++
			kept = append(kept, c)
		}
	}
	return kept
}

// GetRange reads [start, end) in a direction. Expired rows are still walked over: they count as scanned, and the key to
// continue from may be theirs.
func (m *Model) GetRange(table string, start, end Key, backward bool, limit int, s *Selection, now int64) (*Page, *Refusal) {
	t := m.look(table, now)
	if t == nil {
		return nil, noTable()
	}
	for _, k := range []Key{start, end} {
		if r := t.checkKey(k); r != nil {
			return nil, r
		}
	}
	order := compareKeys(start, end)
	switch {
	case backward && order <= 0:
		return nil, invalid("Begin key must more than end key in BACKWARD")
	case !backward && order >= 0:
		return nil, invalid("Begin key must less than end key in FORWARD")
	}
	if s.Txn != "" {
		x, r := m.session(s.Txn, now)
		for _, k := range []Key{start, end} {
			if r == nil {
				r = x.holds(table, k)
			}
		}
		if r != nil {
			return nil, r
		}
		m.swap(x)
		defer m.swap(x)
	}
	p := &Page{}
	scanned, walked := 0, 0
	for _, r := range t.walk(start, end, backward) {
		if limit > 0 && len(p.Rows) == limit || walked == 5000 || scanned >= 4<<20 {
			p.Next = r.key
			break
		}
		walked++
		cells, returned := t.read(r, s, now)
		scanned += r.key.dataBytes() + cellBytes(t.selected(r, s, now))
		if returned {
			p.Rows = append(p.Rows, Row{r.key, cells})
		}
	}
	p.Read = max(1, units(scanned))
	return p, nil
}

// walk returns the rows of a range in its direction.
func (t *Table) walk(start, end Key, backward bool) []*row {
	rows := slices.Clone(t.rows)
	if backward {
		slices.Reverse(rows)
	}
	return slices.DeleteFunc(rows, func(r *row) bool {
		from, to := compareKeys(r.key, start), compareKeys(r.key, end)
		if backward {
			from, to = -from, -to
		}
		return from < 0 || to >= 0
	})
}

// Resync takes over what a table shows after its options were raised: versions that were invisible, but not yet purged,
// may show again. It returns an error for cells that could not have come from there.
func (m *Model) Resync(table string, rows []Row, now int64) error {
	t := m.Tables[table]
	shown := map[*row]bool{}
	for _, got := range rows {
		_, r := t.find(got.Key)
		if r == nil {
			return fmt.Errorf("row %v was never written", got.Key)
		}
		shown[r] = true
		was := slices.Concat(r.cells, r.gone)
		for _, c := range got.Cells {
			if !slices.ContainsFunc(was, func(x Cell) bool { return sameCell(x, c) }) {
				return fmt.Errorf("row %v: cell %v was never written", got.Key, c)
			}
		}
		r.cells, r.gone = slices.Clone(got.Cells), was
	}
	for _, r := range t.rows {
		if !shown[r] && t.exists(r, now) {
			return fmt.Errorf("row %v is lost", r.key)
		}
	}
	return nil
}

func sameCell(a, b Cell) bool {
	return a.Name == b.Name && a.Timestamp == b.Timestamp && fmt.Sprintf("%T %v", a.Value, a.Value) == fmt.Sprintf("%T %v", b.Value, b.Value)
}

// Filter is a condition on the cells of a row.
type Filter interface {
	keeps(cells []Cell) bool
}

// Comparator compares a cell's value with a filter's.
type Comparator int

const (
	Equal Comparator = iota + 1
	NotEqual
	Greater
	GreaterEqual
	Less
	LessEqual
)

type Compare struct {
	Column                      string
	Comparator                  Comparator
	Value                       any
	FilterIfMissing, LatestOnly bool
	Rule                        *Rule // nil is none
}

// Rule extracts a value from a text: the pattern's first group, or the whole match, converted to the type As.
type Rule struct {
	Pattern string
	As      any // int64(0), 0.0 or ""
}

func (r *Rule) value(v any) (any, bool) {
	text, ok := v.(string)
	if !ok {
		return nil, false
	}
	match := regexp.MustCompile(r.Pattern).FindStringSubmatch(text)
	if match == nil {
		return nil, false
	}
	text = match[min(1, len(match)-1)]
	switch r.As.(type) {
	case int64:
		n, err := strconv.ParseInt(text, 10, 64)
		return n, err == nil
	case float64:
		f, err := strconv.ParseFloat(text, 64)
		return f, err == nil
	}
	return text, true
}

func (f *Compare) keeps(cells []Cell) bool {
	var versions []Cell
	for _, c := range cells {
		if c.Name == f.Column {
			versions = append(versions, c)
		}
	}
	if len(versions) == 0 {
		return !f.FilterIfMissing
	}
	if f.LatestOnly {
		versions = versions[:1]
	}
	return slices.ContainsFunc(versions, func(c Cell) bool { return f.holds(c.Value) })
}

// holds compares; values of different types compare as nothing.
func (f *Compare) holds(v any) bool {
	if f.Rule != nil {
		taken, ok := f.Rule.value(v)
		if !ok {
			return false
		}
		v = taken
	}
	order, ok := compareAttributes(v, f.Value)
	if !ok {
		return false
	}
	switch f.Comparator {
	case Equal:
		return order == 0
	case NotEqual:
		return order != 0
	case Greater:
		return order > 0
	case GreaterEqual:
		return order >= 0
	case Less:
		return order < 0
	}
	return order <= 0
}

// compareAttributes compares two values of one type.
func compareAttributes(a, b any) (order int, sameType bool) {
	switch x := a.(type) {
	case int64:
		y, ok := b.(int64)
		return cmp.Compare(x, y), ok
	case float64:
		y, ok := b.(float64)
		return cmp.Compare(x, y), ok
	case bool:
		y, ok := b.(bool)
		return map[bool]int{true: 1}[x] - map[bool]int{true: 1}[y], ok
	case string:
		y, ok := b.(string)
		return cmp.Compare(x, y), ok
	case []byte:
		y, ok := b.([]byte)
		return bytes.Compare(x, y), ok
	}
	return 0, false
}

// Not, And and Or combine filters.
type (
	Not struct{ Of Filter }
	And []Filter
	Or  []Filter
)

func (f *Not) keeps(cells []Cell) bool { return !f.Of.keeps(cells) }

func (f And) keeps(cells []Cell) bool {
	return !slices.ContainsFunc(f, func(g Filter) bool { return !g.keeps(cells) })
}

func (f Or) keeps(cells []Cell) bool {
	return slices.ContainsFunc(f, func(g Filter) bool { return g.keeps(cells) })
}

// Pagination cuts a row's columns in order; it is a filter only of reads, and keeps every row.
type Pagination struct{ Offset, Limit int }

func (f *Pagination) keeps([]Cell) bool { return true }

func (f *Pagination) cut(cells []Cell) []Cell {
	var names []string
	kept := []Cell{}
	for _, c := range cells {
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
		if n := len(names) - 1; n >= f.Offset && n < f.Offset+f.Limit {
			kept = append(kept, c)
		}
	}
	return kept
}
