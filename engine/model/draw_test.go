package model

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
)

func drawOptions(rt *rapid.T) Options {
	return Options{
		TTL:         rapid.SampledFrom([]int{-1, -1, 5, 60}).Draw(rt, "TTL"),
		MaxVersions: rapid.IntRange(1, 3).Draw(rt, "max versions"),
		Deviation:   rapid.SampledFrom([]int64{1, 10, 86400, 1e10}).Draw(rt, "deviation"),
	}
}

// Few values each, so that rows, columns and versions meet.
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

// drawKey is a key of the table, seldom one that does not fit.
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

// drawStamp is a time near the clock, seldom beyond the deviation; 0 is none.
func (m *machine) drawStamp(rt *rapid.T) int64 {
	off := rapid.SampledFrom([]int64{0, 0, -1, 1, -999, 999, -1000, 1000, -1500, -5000, -6000, -60_000, 9000, -86_400_000}).Draw(rt, "stamp")
	return m.now() + off
}

// drawCell is a value of a column, seldom one of another type than a predefined column has.
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

// oddsAgainstPlaceholder is 10 of 30 for a table that takes them, and 30 for others.
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

// oneMisshapen leaves at most one row that fails the whole request: of several, the SDK's order of tables, which is
// random, decides which is named.
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

var histories = flag.Int("histories", 150, "short concurrent histories that are checked for an order that explains them")

var lone = []KeyColumn{{Name: "k", Type: Integer}}

func loneKey(k int64) Key { return Key{{"k", k}} }

func openConcurrent(t *testing.T, dir string) *engine {
	t.Helper()
	e := &engine{dir: dir, clock: newClock()}
	e.open(t)
	t.Cleanup(func() { e.close(t) })
	conformance.MustEqual(t, e.createTable("t", lone, Options{TTL: -1, MaxVersions: 2, Deviation: 86400}, nil, nil), nil, "refusal")
	return e
}

// TestConcurrentClientsSeeTheirOwnRowsAsTheModelDoes gives each client rows of its own, among those of others.
func TestConcurrentClientsSeeTheirOwnRowsAsTheModelDoes(t *testing.T) {
	e := openConcurrent(t, t.TempDir())
	const clients, steps = 6, 150
	now := e.clock.millis.Load()
	var all sync.WaitGroup
	for client := range int64(clients) {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(client)))
			m := New()
			m.CreateTable("t", lone, Options{TTL: -1, MaxVersions: 2, Deviation: 86400})
			for range steps {
				key := loneKey(client + clients*rng.Int64N(3)) // neighbours belong to others
				c := randomChange(rng, key)
				got, want := e.writeRow(&c), m.WriteRow(c, now)
				conformance.Equal(t, explains(want, got), true, "client %d, %+v: got %+v, want %+v", client, c, got, want)
				s := &Selection{MaxVersions: 2}
				got, want = e.getRow("t", key, s), m.GetRow("t", key, s, now)
				conformance.True(t, explains(want, got), "client %d: got %+v, want %+v", client, got, want)
			}
		})
	}
	all.Wait()
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

// explains says whether an answer is the model's. The SDK drops the key of what an update returns.
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

// event is one request of a history with the span of time in which it can have taken effect.
type event struct {
	change   *Change // nil is a read
	got      Outcome
	from, to int64 // to is math.MaxInt64 if nobody knows whether it has taken effect: it need not be in the order
	asked    *asked
}

// TestShortHistoriesOfOneRowAreLinear lets three clients work on one row at the same time, and looks for an order of
// their requests, each within the time between its sending and its answer, in which the model gives the same answers.
func TestShortHistoriesOfOneRowAreLinear(t *testing.T) {
	e := openConcurrent(t, "")
	now := e.clock.millis.Load()
	overlapping := 0
	for h := range int64(*histories) {
		history := runHistory(e, loneKey(h), uint64(h), h%2 == 0)
		for i, a := range history {
			for _, b := range history[:i] {
				if a.from < b.to && b.from < a.to {
					overlapping++
				}
			}
		}
		if !linearOf(history, loneKey(h), now) {
			for _, ev := range history {
				t.Logf("%d…%d %+v: %+v", ev.from, ev.to, ev.change, ev.got)
			}
			t.Fatalf("history %d has no order that explains it", h)
		}
	}
	conformance.True(t, overlapping != 0, "no two requests overlapped: the test has tried nothing")
}

func TestAHistoryThatHasNoOrderIsNoticed(t *testing.T) {
	key := loneKey(1)
	put := func(v int64) *Change {
		return &Change{Table: "t", Kind: PutRow, Key: key, Ops: []Op{{Name: "a", Value: v}}}
	}
	read := func(v int64) Outcome { return Outcome{Read: 1, Row: &Row{key, []Cell{{"a", v, 5}}}} }
	wrote := Outcome{Write: 1}
	for name, h := range map[string]struct {
		history []event
		want    bool
	}{
		"one after the other":       {[]event{{put(1), wrote, 1, 2, nil}, {nil, read(1), 3, 4, nil}}, true},
		"a read before its write":   {[]event{{nil, read(1), 1, 2, nil}, {put(1), wrote, 3, 4, nil}}, false},
		"a read during its write":   {[]event{{nil, read(1), 1, 3, nil}, {put(1), wrote, 2, 4, nil}}, true},
		"a read of what is past":    {[]event{{put(1), wrote, 1, 2, nil}, {put(2), wrote, 3, 4, nil}, {nil, read(1), 5, 6, nil}}, false},
		"two reads in wrong orders": {[]event{{put(1), wrote, 1, 2, nil}, {put(2), wrote, 3, 10, nil}, {nil, read(2), 4, 5, nil}, {nil, read(1), 6, 7, nil}}, false},
	} {
		conformance.Equal(t, linearOf(h.history, key, 5), h.want, "%s", name)
	}
}

// runHistory lets the clients send their requests as fast as they can, or together: each waits until all have begun one.
// With one processor, requests overlap only by chance if nobody waits.
func runHistory(e *engine, key Key, seed uint64, together bool) []event {
	const clients, each = 3, 3
	var begun [each]sync.WaitGroup
	for i := range begun {
		begun[i].Add(clients)
	}
	history := make([]event, clients*each)
	var tick atomic.Int64
	var all sync.WaitGroup
	start := make(chan struct{})
	for client := range clients {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(client)))
			<-start
			for i := range each {
				ev := &history[client*each+i]
				if rng.IntN(3) > 0 {
					c := randomChange(rng, key)
					ev.change = &c
				}
				ev.from = tick.Add(1)
				begun[i].Done()
				if together {
					begun[i].Wait()
				}
				if ev.change == nil {
					ev.got = e.getRow("t", key, &Selection{MaxVersions: 2})
				} else {
					ev.got = e.writeRow(ev.change)
				}
				ev.to = tick.Add(1)
			}
		})
	}
	close(start)
	all.Wait()
	return history
}

// linear tries every order that respects time: next may come anything that began before the first end of those left. run carries an event
// out in the model, and says whether the engine's answer is possible then; what is possible in the end, then says.
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

// linearOf is linear of a history of one row.
func linearOf(history []event, key Key, now int64) bool {
	m := New()
	m.CreateTable("t", lone, Options{TTL: -1, MaxVersions: 2, Deviation: 86400})
	run := func(m *Model, ev *event) bool {
		if ev.change == nil {
			return explains(m.GetRow("t", key, &Selection{MaxVersions: 2}, now), ev.got)
		}
		return explains(m.WriteRow(*ev.change, now), ev.got)
	}
	return linear(m, history, make([]bool, len(history)), run, func(*Model) bool { return true })
}
