package model

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
)

var must = conformance.Must

// machine does the same to the engine and to the model.
type machine struct {
	engine *engine
	model  *Model
	clock  *clock
	names  []string         // of the tables there are, and one that is not
	last   map[string]int64 // the last number given, by partition key

	indexed bool // tables have predefined columns and indexes

	transactional bool // tables may have transactions
	started       []started
}

// checks sets how many sequences a test runs, unless the flag -rapid.checks does.
func checks(t *testing.T, n int) {
	t.Helper()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if given {
		return
	}
	set := func(n string) { must(t, flag.Lookup("rapid.checks").Value.Set(n)) }
	before := flag.Lookup("rapid.checks").Value.String()
	set(strconv.Itoa(n))
	t.Cleanup(func() { set(before) })
}

func TestEngineMatchesModel(t *testing.T) {
	checks(t, 60)
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(rt, "", "")
		defer m.engine.close(rt)
		rt.Repeat(m.actions())
	})
}

// The same with predefined columns, secondary indexes, and tables that forbid updates: an index is read like a table.
func TestIndexesMatchModel(t *testing.T) {
	checks(t, 60)
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(rt, "", "indexes")
		defer m.engine.close(rt)
		rt.Repeat(m.actions())
	})
}

func TestEngineMatchesModelAcrossRestarts(t *testing.T) { acrossRestarts(t, "") }

func TestIndexesMatchModelAcrossRestarts(t *testing.T) { acrossRestarts(t, "indexes") }

func acrossRestarts(t *testing.T, with string) {
	checks(t, 6)
	rapid.Check(t, func(rt *rapid.T) {
		dir := conformance.Try(os.MkdirTemp(t.TempDir(), "")).Must(rt)
		m := newMachine(rt, dir, with)
		defer func() { m.engine.close(rt) }()
		actions := m.actions()
		actions["restart"] = func(rt *rapid.T) {
			m.engine.close(rt)
			m.engine.open(rt)
			clear(m.model.sessions)
		}
		rt.Repeat(actions)
	})
}

// newMachine begins with tables: ordinary ones, or those with "indexes", with "transactions" or with both.
func newMachine(rt *rapid.T, dir string, with string) *machine {
	indexed := strings.Contains(with, "indexes")
	clock := newClock()
	m := &machine{engine: &engine{dir: dir, clock: clock}, model: New(), clock: clock, last: map[string]int64{}, names: []string{"missing"}, indexed: indexed, transactional: strings.Contains(with, "transactions")}
	m.engine.open(rt)
	for i := range rapid.IntRange(1, 2).Draw(rt, "tables") {
		name := fmt.Sprintf("t%d", i)
		m.names = append(m.names, name)
		m.create(rt, name)
	}
	if indexed {
		m.names = append(m.names, indexNames...)
	}
	return m
}

func (m *machine) actions() map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){
		"write":      m.write,
		"write more": m.write,
		"batch":      m.batch,
		"batch more": m.batch,
		"get":        m.get,
		"get batch":  m.getBatch,
		"range":      m.getRange,
		"range more": m.getRange,
		"paging":     m.page,
		"table":      m.table,
		"time":       m.time,
	}
	if m.indexed {
		actions["index"] = m.index
	}
	if m.transactional {
		actions["transaction"], actions["transaction more"] = m.transaction, m.transaction
	}
	return actions
}

func (m *machine) now() int64 { return m.clock.millis.Load() }

// same fails the test if the engine's answer is not the model's. A refusal without a message means any message.
func same(rt *rapid.T, what string, got, want any) {
	anyMessage := cmp.Comparer(func(a, b *Refusal) bool {
		if a == nil || b == nil {
			return a == b
		}
		return a.Status == b.Status && a.Code == b.Code && (a.Message == b.Message || a.Message == "" || b.Message == "")
	})
	conformance.MustEqual(rt, cmp.Diff(want, got, anyMessage, cmpopts.EquateEmpty()), "", "%s (-model +engine)", what)
}

func (m *machine) create(rt *rapid.T, name string) {
	types := rapid.SliceOfN(rapid.SampledFrom([]Type{Integer, String, Binary}), 1, 4).Draw(rt, "key types")
	key := make([]KeyColumn, len(types))
	for i, typ := range types {
		key[i] = KeyColumn{Name: fmt.Sprintf("k%d", i), Type: typ}
	}
	if n := len(key) - 1; n > 0 && key[n].Type == Integer {
		key[n].Auto = rapid.Bool().Draw(rt, "auto-increment")
	}
	defer m.enable(rt, name, key)()
	if m.indexed {
		m.createIndexed(rt, name, key)
		return
	}
	o := drawOptions(rt)
	same(rt, "CreateTable", m.engine.createTable(name, key, o, nil, nil), m.model.CreateTable(name, key, o))
}

// table changes tables.
func (m *machine) table(rt *rapid.T) {
	name := rapid.SampledFrom(m.names).Draw(rt, "table")
	switch rapid.SampledFrom([]string{"update", "update", "describe", "list", "delete", "create"}).Draw(rt, "operation") {
	case "update":
		m.update(rt, name)
	case "list":
		r := conformance.Try(m.engine.ListTable()).Must(rt)
		same(rt, "ListTable", r.TableNames, m.model.TableNames())
	case "delete":
		same(rt, "DeleteTable", m.engine.deleteTable(name), m.model.DeleteTable(name))
	case "create":
		if name != "missing" {
			m.create(rt, name)
		}
	case "describe":
		got, r := m.engine.describe(name)
		if t := m.model.look(name, m.now()); t != nil {
			same(rt, "DescribeTable", got, description{t.Key, t.Options})
		} else {
			same(rt, "DescribeTable", r, noTable())
		}
	}
}

func (m *machine) update(rt *rapid.T, name string) {
	m.abortAll(rt) // for what they have read may show again
	o := drawOptions(rt)
	if m.indexed {
		o = m.drawIndexedOptions(rt, name)
	}
	got, r := m.engine.updateTable(name, o)
	same(rt, "UpdateTable", r, m.model.UpdateTable(name, o))
	if r != nil {
		return
	}
	got.NoUpdate = o.NoUpdate // the SDK does not read it
	same(rt, "UpdateTable", got, o)
	if m.indexed {
		return // tables keep one version: nothing shows again that is not in the model
	}
	t := m.model.Tables[name]
	all, r := m.engine.getRange(name, bound(t, Min), bound(t, Max), false, 0, &Selection{MaxVersions: 1000})
	conformance.MustTrue(rt, r == nil, "%v", r)
	must(rt, m.model.Resync(name, all.Rows, m.now()))
}

func bound(t *Table, i Infinity) (k Key) {
	for _, c := range t.Key {
		k = append(k, KeyCell{c.Name, i})
	}
	return k
}

func (m *machine) time(rt *rapid.T) {
	m.clock.millis.Add(rapid.SampledFrom([]int64{1, 1, 999, 1000, 5000, 61_000}).Draw(rt, "milliseconds"))
}

// number gives the model's change the engine's number, which must be above all earlier ones.
func (m *machine) number(rt *rapid.T, c *Change, got *Outcome) {
	last := len(c.Key) - 1
	if !isPlaceholder(c.Key[last].Value) || got.Refusal != nil || got.Row == nil || len(got.Row.Key) != last+1 {
		return
	}
	n, ok := got.Row.Key[last].Value.(int64)
	partition := fmt.Sprintf("%s %T %v", c.Table, c.Key[0].Value, c.Key[0].Value)
	if before, given := m.last[partition]; !ok || given && n <= before {
		rt.Fatalf("number %v was given after %d", got.Row.Key[last].Value, before)
	}
	m.last[partition] = n
	c.Key = slices.Clone(c.Key)
	c.Key[last].Value, c.Numbered = n, true
}

func (m *machine) write(rt *rapid.T) {
	c := m.drawChange(rt)
	m.drawTransaction(rt, c.Table, c.Key).set(&c.Txn)
	got := m.engine.writeRow(&c)
	m.number(rt, &c, &got)
	want := m.model.WriteRow(c, m.now())
	dropKey(&c, &want)
	same(rt, "a row", got, want)
}

func (m *machine) batch(rt *rapid.T) {
	changes := rapid.SliceOfN(rapid.Custom(m.drawChange), 1, 12).Draw(rt, "changes")
	if rapid.IntRange(0, 2).Draw(rt, "blind") > 0 { // what may be repeated
		for i := range changes {
			c := &changes[i]
			c.Expect, c.Condition = Ignore, nil
			c.Ops = slices.DeleteFunc(c.Ops, func(op Op) bool { return op.Kind == Increment })
			c.ReturnColumns = nil
			if c.Kind == UpdateRow && len(c.Ops) == 0 {
				c.Kind = PutRow
			}
		}
	}
	changes = oneMisshapen(rt, changes)
	atomic := rapid.IntRange(0, 3).Draw(rt, "atomic") == 0
	if atomic && rapid.IntRange(0, 4).Draw(rt, "one partition key") > 0 {
		shareKey(changes)
	}
	if x := m.drawTransaction(rt, "", nil); x != nil && len(changes) > 0 {
		x.set(&changes[0].Txn)
		for i := range changes {
			if c := &changes[i]; c.Table == x.table && rapid.IntRange(0, 9).Draw(rt, "of the transaction") > 0 {
				c.Key[0].Value = x.partition
			}
		}
	}
	got, gotRefusal := m.engine.writeBatch(changes, atomic)
	for i := range got {
		m.number(rt, &changes[i], &got[i])
	}
	want, wantRefusal := m.model.WriteBatch(changes, atomic, m.now())
	same(rt, "the batch", gotRefusal, wantRefusal)
	for i := range want {
		perRow(&want[i])
		dropKey(&changes[i], &want[i])
	}
	same(rt, "rows of a batch", got, want)
}

// dropKey changes the model's answer to an update like the SDK.
func dropKey(c *Change, want *Outcome) {
	if c.ReturnColumns == nil || want.Row == nil {
		return
	}
	if want.Row.Key = nil; len(want.Row.Cells) == 0 {
		want.Row = nil
	}
}

// perRow removes what an answer to one row of a batch lacks.
func perRow(o *Outcome) {
	if o.Refusal != nil {
		r := *o.Refusal
		r.Status = 0
		o.Refusal = &r
	}
}

func (m *machine) get(rt *rapid.T) {
	name := rapid.SampledFrom(m.names).Draw(rt, "table")
	key, s := m.drawKey(rt, name), m.drawSelection(rt)
	m.drawTransaction(rt, name, key).set(&s.Txn)
	same(rt, "GetRow", m.engine.getRow(name, key, s), m.model.GetRow(name, key, s, m.now()))
}

func (m *machine) getBatch(rt *rapid.T) {
	n := rapid.IntRange(1, 6).Draw(rt, "keys")
	s := m.drawSelection(rt)
	var tables []string
	var keys []Key
	var want []Outcome
	for range n {
		name := rapid.SampledFrom(m.names).Draw(rt, "table")
		key := m.drawKey(rt, name)
		o := m.model.GetRow(name, key, s, m.now())
		perRow(&o)
		tables, keys, want = append(tables, name), append(keys, key), append(want, o)
	}
	got, r := m.engine.getBatch(tables, keys, s)
	conformance.MustTrue(rt, r == nil, "%v", r)
	same(rt, "BatchGetRow", got, want)
}

func (m *machine) getRange(rt *rapid.T) {
	name := rapid.SampledFrom(m.names).Draw(rt, "table")
	start, end := m.drawBound(rt, name), m.drawBound(rt, name)
	backward := rapid.Bool().Draw(rt, "backward")
	limit := rapid.IntRange(0, 4).Draw(rt, "limit")
	s := m.drawSelection(rt)
	if x := m.drawTransaction(rt, name, start); x != nil {
		x.set(&s.Txn)
		end[0].Value = start[0].Value
	}
	want, wantRefusal := m.model.GetRange(name, start, end, backward, limit, s, m.now())
	got, gotRefusal := m.engine.getRange(name, start, end, backward, limit, s)
	same(rt, "the range", gotRefusal, wantRefusal)
	same(rt, "GetRange", got, want)
}

// page reads a whole table page by page.
func (m *machine) page(rt *rapid.T) {
	name := rapid.SampledFrom(m.names[1:]).Draw(rt, "table")
	t := m.model.look(name, m.now())
	if t == nil {
		rt.Skip("there is no table")
	}
	backward := rapid.Bool().Draw(rt, "backward")
	limit := rapid.IntRange(0, 3).Draw(rt, "limit")
	s := m.drawSelection(rt)
	start, end := bound(t, Min), bound(t, Max)
	if backward {
		start, end = end, start
	}
	for start != nil {
		want, r := m.model.GetRange(name, start, end, backward, limit, s, m.now())
		conformance.MustTrue(rt, r == nil, "%v", r)
		got, r := m.engine.getRange(name, start, end, backward, limit, s)
		conformance.MustTrue(rt, r == nil, "%v", r)
		same(rt, "a page", got, want)
		start = want.Next
	}
}
