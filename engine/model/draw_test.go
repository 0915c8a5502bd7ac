package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

func drawOptions(rt *rapid.T) Options {
	return Options{
		TTL:         rapid.SampledFrom([]int{-1, -1, 5, 60}).Draw(rt, "TTL"),
		MaxVersions: rapid.IntRange(1, 3).Draw(rt, "max versions"),
		Deviation:   rapid.SampledFrom([]int64{1, 10, 86400, 1e10}).Draw(rt, "deviation"),
	}
}

// Few values each, so that rows, columns and versions collide.
var (
	integers = []any{int64(0), int64(1), int64(-1), int64(math.MaxInt64), int64(math.MinInt64)}
	texts    = []any{"", "a", "a\x00", "b", "ü"}
	binaries = []any{[]byte{}, []byte{0}, []byte{0, 1}, []byte{255}}
	columns  = []string{"a", "b", "c", "ü"}
	values   = []any{int64(1), int64(2), int64(math.MaxInt64), 0.5, -1.5, true, false, "x", "xy", "id=2", "1.5", "", []byte("x"), strings.Repeat("x", 4097)}
)

func drawValue(rt *rapid.T, typ Type) any {
	return rapid.SampledFrom(map[Type][]any{Integer: integers, String: texts, Binary: binaries}[typ]).Draw(rt, "key value")
}

// drawKey draws a key of the table, seldom an invalid one.
func (m *machine) drawKey(rt *rapid.T, name string) (k Key) {
	t := m.model.look(name, m.now())
	if t == nil {
		return Key{{"k0", "x"}}
	}
	if n := len(t.rows); n > 0 && t.rows[0].ofIndex && rapid.Bool().Draw(rt, "a row of the index") {
		return slices.Clone(t.rows[rapid.IntRange(0, n-1).Draw(rt, "row")].key)
	}
	for _, c := range t.Key {
		k = append(k, KeyCell{c.Name, drawValue(rt, c.Type)})
	}
	if n := len(t.rows); t.Key[len(k)-1].Auto && n > 0 && rapid.IntRange(0, 4).Draw(rt, "a row there is") > 0 {
		return slices.Clone(t.rows[rapid.IntRange(0, n-1).Draw(rt, "row")].key)
	}
	switch rapid.IntRange(0, 40).Draw(rt, "fault of the key") {
	case 38:
		k[len(k)-1].Name = "other"
	case 39:
		k[0].Value = drawValue(rt, t.Key[0].Type%3+1)
	case 40:
		if k = k[:len(k)-1]; len(k) == 0 {
			k = Key{{"k0", "x"}, {"k1", "y"}}
		}
	}
	return k
}

// drawStamp draws a time near the clock, seldom beyond the deviation; 0 means none.
func (m *machine) drawStamp(rt *rapid.T) int64 {
	off := rapid.SampledFrom([]int64{0, 0, -1, 1, -999, 999, -1000, 1000, -1500, -5000, -6000, -60_000, 9000, -86_400_000}).Draw(rt, "stamp")
	return m.now() + off
}

// drawCell draws a value of a column, seldom of another type than its predefined one.
func (m *machine) drawCell(rt *rapid.T, column string) any {
	if at := slices.IndexFunc(definedColumns, func(d DefinedColumn) bool { return d.Name == column }); m.indexed && at >= 0 && rapid.IntRange(0, 9).Draw(rt, "type") > 0 {
		v := drawValue(rt, definedColumns[at].Type)
		if v == "b" && rapid.IntRange(0, 9).Draw(rt, "long") == 0 {
			return strings.Repeat("x", 1025)
		}
		return v
	}
	return rapid.SampledFrom(values).Draw(rt, "value")
}

func (m *machine) drawOps(rt *rapid.T, kind RowKind) []Op {
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) Op {
		op := Op{Name: rapid.SampledFrom(columns).Draw(rt, "column")}
		if kind == UpdateRow {
			op.Kind = rapid.SampledFrom([]OpKind{Put, Put, DeleteColumn, DeleteVersion, Increment}).Draw(rt, "operation")
		}
		switch op.Kind {
		case Put:
			op.Value = m.drawCell(rt, op.Name)
			if rapid.IntRange(0, 2).Draw(rt, "stamped") == 0 {
				op.Timestamp = m.drawStamp(rt)
			}
		case DeleteVersion:
			op.Timestamp = m.drawStamp(rt)
		case Increment:
			op.Value = rapid.SampledFrom([]int64{1, -1, math.MaxInt64, math.MinInt64}).Draw(rt, "delta")
		}
		return op
	}), 0, 5).Draw(rt, "columns")
}

func (m *machine) drawChange(rt *rapid.T) Change {
	c := Change{
		Table:  rapid.SampledFrom(append(m.names[1:], m.names...)).Draw(rt, "table"),
		Kind:   rapid.SampledFrom([]RowKind{PutRow, PutRow, UpdateRow, UpdateRow, UpdateRow, DeleteRow}).Draw(rt, "kind"),
		Expect: rapid.SampledFrom([]Existence{Ignore, Ignore, Ignore, Ignore, Exist, NotExist}).Draw(rt, "expects"),
	}
	c.Key = m.drawKey(rt, c.Table)
	if rapid.IntRange(0, 4).Draw(rt, "conditional") == 0 {
		c.Condition = drawFilter(rt, 2)
	}
	if c.Kind == DeleteRow {
		return c
	}
	if c.Kind == PutRow && len(c.Key) > 1 && rapid.IntRange(0, 30).Draw(rt, "placeholder") >= m.oddsAgainstPlaceholder(c.Table) {
		c.Key[len(c.Key)-1].Value = Placeholder{}
		c.Expect, c.Condition = Ignore, nil
	}
	c.Ops = m.drawOps(rt, c.Kind)
	if c.Kind == UpdateRow && len(c.Ops) == 0 && rapid.IntRange(0, 9).Draw(rt, "no cells") > 0 {
		c.Ops = []Op{{Kind: Increment, Name: "n", Value: int64(1)}}
	}
	if c.Kind == PutRow {
		c.ReturnKey = isPlaceholder(c.Key[len(c.Key)-1].Value) || rapid.Bool().Draw(rt, "return key")
	} else if c.increments() && rapid.Bool().Draw(rt, "return increments") {
		c.ReturnColumns = []string{}
		for _, op := range c.Ops {
			if op.Kind == Increment && !slices.Contains(c.ReturnColumns, op.Name) && rapid.Bool().Draw(rt, "return column") {
				c.ReturnColumns = append(c.ReturnColumns, op.Name)
			}
		}
	}
	return c
}

// oddsAgainstPlaceholder is 10 of 30 for a table with placeholders, and 30 for others.
func (m *machine) oddsAgainstPlaceholder(table string) int {
	if t := m.model.Tables[table]; t != nil && t.Key[len(t.Key)-1].Auto {
		return 10
	}
	return 30
}

// shareKey gives the rows of each table the partition key of its first.
func shareKey(changes []Change) {
	first := map[string]any{}
	for i := range changes {
		c := &changes[i]
		if first[c.Table] == nil {
			first[c.Table] = c.Key[0].Value
		}
		c.Key[0].Value = first[c.Table]
	}
}

// drawFilter is a filter of at most that many levels.
func drawFilter(rt *rapid.T, levels int) Filter {
	kind := rapid.IntRange(0, 5).Draw(rt, "filter")
	if levels == 0 || kind < 3 {
		f := &Compare{
			Column:          rapid.SampledFrom(append([]string{"k0", "none"}, columns...)).Draw(rt, "column"),
			Comparator:      Comparator(rapid.IntRange(1, 6).Draw(rt, "comparator")),
			Value:           rapid.SampledFrom(values).Draw(rt, "value"),
			FilterIfMissing: rapid.Bool().Draw(rt, "filter if missing"),
			LatestOnly:      rapid.Bool().Draw(rt, "latest only"),
		}
		if kind == 0 {
			f.Rule = &Rule{
				rapid.SampledFrom([]string{"[0-9]+", "id=([0-9]+)", "x(y?)", "[0-9.]+$"}).Draw(rt, "pattern"),
				rapid.SampledFrom([]any{int64(0), 0.0, ""}).Draw(rt, "as"),
			}
		}
		return f
	}
	of := []Filter{drawFilter(rt, levels-1), drawFilter(rt, levels-1)}
	switch kind {
	case 3:
		return &Not{of[0]}
	case 4:
		return And(of)
	}
	return Or(of)
}

// oneMisshapen leaves at most one row that fails the whole request: with several, the SDK's random order of tables
// decides which is named.
func oneMisshapen(rt *rapid.T, changes []Change) []Change {
	left := rapid.IntRange(0, 9).Draw(rt, "misshapen") / 9
	return slices.DeleteFunc(changes, func(c Change) bool {
		if checkShape(&c, true) == nil {
			return false
		}
		left--
		return left < 0 && len(changes) > 1
	})
}

func (m *machine) drawSelection(rt *rapid.T) *Selection {
	s := &Selection{}
	switch rapid.IntRange(0, 5).Draw(rt, "versions") {
	case 0:
		s.At = m.drawStamp(rt)
	case 1:
		s.From = m.drawStamp(rt)
		s.To = s.From + rapid.Int64Range(1, 5000).Draw(rt, "length")
		s.MaxVersions = rapid.IntRange(0, 2).Draw(rt, "max versions")
	default:
		s.MaxVersions = rapid.IntRange(1, 4).Draw(rt, "max versions")
	}
	if rapid.IntRange(0, 2).Draw(rt, "some columns") == 0 {
		s.Columns = rapid.SliceOfN(rapid.SampledFrom(append([]string{"k0", "none"}, columns...)), 1, 3).Draw(rt, "columns")
	}
	if rapid.IntRange(0, 3).Draw(rt, "column range") == 0 {
		s.Start = rapid.SampledFrom([]string{"", "a", "aa", "b", "z"}).Draw(rt, "from column")
		s.End = rapid.SampledFrom([]string{"", "aa", "b", "d"}).Draw(rt, "to column")
	}
	switch rapid.IntRange(0, 7).Draw(rt, "filtered") {
	case 0, 1:
		s.Filter = drawFilter(rt, 2)
	case 2:
		s.Filter = &Pagination{rapid.IntRange(0, 3).Draw(rt, "offset"), rapid.IntRange(1, 3).Draw(rt, "page")}
	}
	return s
}

// drawBound is a key with infinities in some places.
func (m *machine) drawBound(rt *rapid.T, name string) Key {
	k := m.drawKey(rt, name)
	for i := range k {
		if x := rapid.IntRange(-2, 2).Draw(rt, "infinity"); x == -1 || x == 1 {
			k[i].Value = Infinity(x)
		}
	}
	return k
}

func randomChange(rng *rand.Rand, key Key) Change {
	c := Change{Table: "t", Key: key, Expect: Existence(rng.IntN(5) % 3), Kind: RowKind(1 + rng.IntN(3))}
	name := string(rune('a' + rng.IntN(2)))
	switch c.Kind {
	case PutRow:
		c.Ops = []Op{{Name: name, Value: rng.Int64N(100)}}
	case UpdateRow:
		c.Ops = []Op{{Kind: Increment, Name: name, Value: 1 + rng.Int64N(9)}}
		if rng.IntN(3) == 0 {
			c.Ops = []Op{{Kind: DeleteColumn, Name: name}}
		} else {
			c.ReturnColumns = []string{name}
		}
	}
	return c
}

// explains reports whether an answer is the model's. The SDK drops the key returned by an update.
func explains(want, got Outcome) bool {
	if want.Refusal != nil || got.Refusal != nil {
		return want.Refusal != nil && got.Refusal != nil && want.Refusal.Code == got.Refusal.Code
	}
	if want.Row != nil && got.Row != nil && got.Row.Key == nil {
		got.Row.Key = want.Row.Key
	}
	return want.Read == got.Read && want.Write == got.Write && fmt.Sprint(rowText(want.Row)) == fmt.Sprint(rowText(got.Row))
}

func rowText(r *Row) string {
	if r == nil {
		return "none"
	}
	return fmt.Sprint(r.Key, r.Cells)
}

// event is one request of a history with the time span in which it can have taken effect.
type event struct {
	change   *Change // nil is a read
	got      Outcome
	from, to int64 // to is math.MaxInt64 if nobody knows whether it has taken effect: it need not be in the order
	asked    *asked
}

// linear tries every order that respects time: any event that began before the first end of the rest may come next. run
// applies an event to the model, and reports whether the engine's answer is then possible; then reports whether the
// final state is.
func linear(m *Model, history []event, done []bool, run func(*Model, *event) bool, then func(*Model) bool) bool {
	firstEnd := int64(math.MaxInt64)
	for i, ev := range history {
		if !done[i] {
			firstEnd = min(firstEnd, ev.to)
		}
	}
	if firstEnd == math.MaxInt64 && then(m) {
		return true
	}
	for i := range history {
		ev := &history[i]
		if done[i] || ev.from > firstEnd {
			continue
		}
		c := m.clone()
		if !run(c, ev) {
			continue
		}
		done[i] = true
		if linear(c, history, done, run, then) {
			return true
		}
		done[i] = false
	}
	return false
}
