package store

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"tsimport/engine/wire"
)

var indexRounds = flag.Int("index-rounds", 5, "seeds of each random test of indexes, with losses of power and without")

func whole(n int64) wire.Cell { return wire.Cell{Type: wire.Integer, Value: integer(n)} }

func column(name string, c wire.Cell) wire.Cell {
	c.Name = []byte(name)
	return c
}

func words(s string) wire.Cell { return wire.Cell{Type: wire.String, Value: []byte(s)} }

// indexed makes a table with columns for indexes, and some of the indexes.
func indexed(t *testing.T, s *Store, indexes ...wire.IndexMeta) *Table {
	t.Helper()
	r := &wire.CreateTable{Name: []byte("t"), Key: []wire.KeyColumn{{Name: "p", Type: wire.KeyString}, {Name: "n", Type: wire.KeyInteger}},
		Defined: []wire.DefinedColumn{{Name: "a", Type: 1}, {Name: "b", Type: 4}, {Name: "c", Type: 2}}, Indexes: indexes}
	r.Options.TTL.Value, r.Options.MaxVersions.Value = -1, 1
	if err := s.CreateTable(ctx, r); err != nil {
		t.Fatal(err)
	}
	return s.Table([]byte("t"))
}

var (
	byA  = wire.IndexMeta{Name: "by_a", Key: []string{"a", "p"}, Columns: []string{"b", "c"}}
	byB  = wire.IndexMeta{Name: "by_b", Key: []string{"b"}}
	byNP = wire.IndexMeta{Name: "by_np", Key: []string{"n", "p"}, Columns: []string{"c"}}
)

// drawChange draws a change of one of few rows.
func drawChange(rng *rand.Rand) wire.Change {
	c := wire.Change{Op: wire.RowOp(1 + rng.IntN(3))}
	c.Row.Key = []wire.Cell{column("p", words(fmt.Sprint("p", rng.IntN(3)))), column("n", whole(int64(rng.IntN(5))))}
	if c.Op == wire.DeleteRow {
		c.Row.Delete = true
		return c
	}
	for _, name := range []string{"a", "b", "c", "other"} {
		cell := column(name, whole(int64(rng.IntN(4))))
		switch name {
		case "b":
			cell = column(name, words([]string{"", "x", "y\x00", "long"}[rng.IntN(4)]))
		case "c":
			cell = column(name, wire.Cell{Type: wire.Double, Value: integer(int64(rng.IntN(3)))})
		}
		switch {
		case rng.IntN(3) == 0:
		case c.Op == wire.UpdateRow && rng.IntN(4) == 0:
			c.Row.Cells = append(c.Row.Cells, wire.Cell{Name: []byte(name), Op: wire.DeleteColumn})
		case c.Op == wire.UpdateRow && name == "a" && rng.IntN(3) == 0:
			cell.Op = wire.Increment
			c.Row.Cells = append(c.Row.Cells, cell)
		default:
			c.Row.Cells = append(c.Row.Cells, cell)
		}
	}
	if c.Op == wire.UpdateRow && len(c.Row.Cells) == 0 {
		c.Row.Cells = []wire.Cell{column("other", whole(1))}
	}
	return c
}

// drawChanges draws changes of different rows: a table with indexes takes no others in one request.
func drawChanges(rng *rand.Rand, n int) (changes []wire.Change) {
	has := map[string]bool{}
	for range n {
		c := drawChange(rng)
		if key := fmt.Sprintf("%s %x", c.Row.Key[0].Value, c.Row.Key[1].Value); !has[key] {
			has[key] = true
			changes = append(changes, c)
		}
	}
	return changes
}

// space is what the store has of a table: its rows by their keys.
func space(t *testing.T, s *Store, id uint32) map[string]string {
	t.Helper()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: appendRowPrefix(nil, id), UpperBound: appendRowPrefix(nil, id+1)})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	rows := map[string]string{}
	for it.First(); it.Valid(); it.Next() {
		cells, ok := readRow(it.Value(), nil)
		if !ok {
			t.Fatal("a row is damaged")
		}
		var text bytes.Buffer
		for _, c := range cells {
			fmt.Fprintf(&text, "%s %d %x %d, ", c.Name, c.Type, c.Value, c.Timestamp)
		}
		rows[string(it.Key())] = text.String()
	}
	return rows
}

// computed is what each index has by the rows of its table, by its name.
func computed(t *testing.T, s *Store, m *meta) map[string]map[string]string {
	t.Helper()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: appendRowPrefix(nil, m.ID), UpperBound: appendRowPrefix(nil, m.ID+1)})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	want := map[string]map[string]string{}
	for _, x := range m.Indexes {
		want[x.Name] = map[string]string{}
	}
	for it.First(); it.Valid(); it.Next() {
		key, _ := decodeKey(it.Key(), m.Key)
		cells, _ := readRow(it.Value(), nil)
		for _, x := range m.Indexes {
			// The model: what a row has by name, written down by hand.
			has := map[string]wire.Cell{}
			for _, c := range append(key, cells...) {
				has[string(c.Name)] = c
			}
			entry, in := appendRowPrefix(nil, x.ID), true
			for _, k := range x.Key {
				c, ok := has[k.Name]
				if in = in && ok; in {
					entry = appendColumn(entry, &c)
				}
			}
			if !in {
				continue
			}
			lines := map[string]string{}
			newest := int64(-1)
			for _, c := range cells {
				newest = max(newest, c.Timestamp)
				if slices.ContainsFunc(x.Key, func(k wire.KeyColumn) bool { return k.Name == string(c.Name) }) {
					lines[string(c.Name)] = fmt.Sprintf("%s 2 01 %d, ", c.Name, c.Timestamp)
				} else if slices.Contains(x.Columns, string(c.Name)) {
					lines[string(c.Name)] = fmt.Sprintf("%s %d %x %d, ", c.Name, c.Type, c.Value, c.Timestamp)
				}
			}
			if newest >= 0 {
				lines[""] = fmt.Sprintf(" 2 01 %d, ", newest)
			}
			text := ""
			for _, name := range slices.Sorted(maps.Keys(lines)) {
				text += lines[name]
			}
			want[x.Name][string(entry)] = text
		}
	}
	return want
}

// checkIndexes computes the indexes again from the rows of their table.
func checkIndexes(t *testing.T, s *Store, when string) {
	t.Helper()
	tab := s.Table([]byte("t"))
	if tab == nil {
		return
	}
	m := tab.meta.Load()
	compareIndexes(t, s, m, computed(t, s, m), when)
}

func compareIndexes(t *testing.T, s *Store, m *meta, want map[string]map[string]string, when string) {
	t.Helper()
	for _, x := range m.Indexes {
		got := space(t, s, x.ID)
		for k, v := range want[x.Name] {
			if got[k] != v {
				t.Fatalf("%s: index %s has %q of key %q, want %q", when, x.Name, got[k], k, v)
			}
		}
		if len(got) != len(want[x.Name]) {
			t.Fatalf("%s: index %s has %d rows, want %d", when, x.Name, len(got), len(want[x.Name]))
		}
		if tab := s.Table([]byte(x.Name)); tab == nil || tab.meta.Load().Of != "t" {
			t.Fatalf("%s: index %s cannot be read", when, x.Name)
		}
	}
}

func TestIndexesAreThoseOfTheirTable(t *testing.T) {
	for seed := range uint64(*indexRounds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s, err := Open("", Options{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		tab := indexed(t, s, byA, byB)
		late := 20 + rng.IntN(40)
		for step := range 120 {
			changes := drawChanges(rng, 1+rng.IntN(6))
			atomic := rng.IntN(4) == 0
			if atomic {
				first := changes[0].Row.Key[0].Value
				changes = slices.DeleteFunc(changes, func(c wire.Change) bool { return !bytes.Equal(c.Row.Key[0].Value, first) })
			}
			out := make([]wire.Outcome, len(changes))
			if err := s.write(ctx, []TableWrite{{Table: tab, Changes: changes, Outcomes: out}}, atomic); err != nil {
				t.Fatal(err)
			}
			switch step {
			case late:
				if err := s.CreateIndex(ctx, &wire.CreateIndex{Table: []byte("t"), Index: byNP, BaseData: true}); err != nil {
					t.Fatal(err)
				}
			case late + 30:
				if err := s.DropIndex(ctx, &wire.DropIndex{Table: []byte("t"), Index: []byte("by_b")}); err != nil {
					t.Fatal(err)
				}
			}
			checkIndexes(t, s, fmt.Sprintf("seed %d, step %d", seed, step))
		}
		if n := tab.Indexes(); n != 2 {
			t.Errorf("%d indexes", n)
		}
		if err := s.DeleteTable(ctx, []byte("t")); err != nil || s.Table([]byte("by_a")) != nil || len(s.Tables()) > 0 {
			t.Errorf("after the table: %v, %q", err, s.Tables())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// An index without base data has the rows that were written after it, and no others.
func TestAnIndexWithoutBaseDataBeginsEmpty(t *testing.T) {
	s, err := Open("", Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tab := indexed(t, s)
	put := func(n int64, b string) {
		c := wire.Change{Op: wire.PutRow}
		c.Row.Key = []wire.Cell{column("p", words("p")), column("n", whole(n))}
		c.Row.Cells = []wire.Cell{column("b", words(b))}
		out := make([]wire.Outcome, 1)
		if err := s.Write(ctx, []TableWrite{{Table: tab, Changes: []wire.Change{c}, Outcomes: out}}); err != nil || out[0].Err != nil {
			t.Fatal(err, out[0].Err)
		}
	}
	put(1, "old")
	if err := s.CreateIndex(ctx, &wire.CreateIndex{Table: []byte("t"), Index: byB}); err != nil {
		t.Fatal(err)
	}
	put(2, "new")
	put(1, "changed")
	x := tab.meta.Load().Indexes[0]
	if got := space(t, s, x.ID); len(got) != 2 {
		t.Errorf("%q", got)
	}
	if err := s.DropIndex(ctx, &wire.DropIndex{Table: []byte("t"), Index: []byte("by_b")}); err != nil {
		t.Fatal(err)
	}
	if got := space(t, s, x.ID); len(got) != 0 || s.Table([]byte("by_b")) != nil {
		t.Errorf("of a dropped index there is %q", got)
	}
}

func TestIndexesAreThoseOfTheirTableAfterALossOfPower(t *testing.T) {
	for round := range *indexRounds {
		rng := rand.New(rand.NewPCG(2, uint64(round)))
		fs := vfs.NewCrashableMem()
		for run := range 3 {
			s, err := Open("d", Options{FS: fs})
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			checkIndexes(t, s, fmt.Sprintf("round %d, run %d", round, run))
			tab := s.Table([]byte("t"))
			if tab == nil {
				tab = indexed(t, s, byA)
			}
			if rng.IntN(2) == 0 {
				if err := s.Choose(Choices{IndexDelay: time.Duration(1+rng.IntN(3)) * time.Millisecond}); err != nil {
					t.Fatal(err)
				}
			}
			fs = indexAndCrash(t, s, tab, fs, rng)
		}
		s, err := Open("d", Options{FS: fs})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		checkIndexes(t, s, fmt.Sprintf("round %d, at the end", round))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// indexAndCrash writes from three clients, while indexes come and go, and takes a copy of the disk as a loss of power leaves it.
func indexAndCrash(t *testing.T, s *Store, tab *Table, fs *vfs.MemFS, rng *rand.Rand) *vfs.MemFS {
	t.Helper()
	var mu sync.Mutex
	var after *vfs.MemFS
	left := 10 + rng.IntN(60)
	cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(4) * 33, RNG: rng}
	next := func() bool {
		mu.Lock()
		defer mu.Unlock()
		if left--; left == 0 {
			after = fs.CrashClone(cfg)
		}
		return left > 0
	}
	var all sync.WaitGroup
	seeds := []uint64{rng.Uint64(), rng.Uint64(), rng.Uint64()} // the clone draws, too
	for client, seed := range seeds {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 3))
			for n := 0; next(); n++ {
				if err := s.upToDate(ctx, s.Table([]byte("by_a")).meta.Load()); err != nil {
					t.Error(err)
				}
				if client == 0 && n%7 == 3 {
					switch x := []wire.IndexMeta{byB, byNP}[rng.IntN(2)]; rng.IntN(2) {
					case 0: // it may be there, or not
						_ = s.CreateIndex(ctx, &wire.CreateIndex{Table: []byte("t"), Index: x, BaseData: true})
					default:
						_ = s.DropIndex(ctx, &wire.DropIndex{Table: []byte("t"), Index: []byte(x.Name)})
					}
					continue
				}
				changes := drawChanges(rng, 3)
				if err := s.Write(ctx, []TableWrite{{Table: tab, Changes: changes, Outcomes: make([]wire.Outcome, len(changes))}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return after
}

// Of a table whose data expire an index has a row for as long as the row and all columns of the index's key can be read.
func TestAnIndexExpiresWithItsTable(t *testing.T) {
	for seed := range uint64(*indexRounds) {
		rng := rand.New(rand.NewPCG(seed, 3))
		now := time.UnixMilli(1_700_000_000_500)
		s, err := Open("", Options{InMemory: true, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		r := &wire.CreateTable{Name: []byte("t"), Key: []wire.KeyColumn{{Name: "p", Type: wire.KeyString}, {Name: "n", Type: wire.KeyInteger}},
			Defined: []wire.DefinedColumn{{Name: "a", Type: 1}, {Name: "b", Type: 4}, {Name: "c", Type: 2}}, Indexes: []wire.IndexMeta{byA, byNP}}
		r.Options.TTL.Value, r.Options.MaxVersions.Value = 20, 1
		r.Options.AllowUpdate = wire.Optional[bool]{Set: true}
		if err := s.CreateTable(ctx, r); err != nil {
			t.Fatal(err)
		}
		tab := s.Table([]byte("t"))
		hidden := 0
		for step := range 60 {
			c := drawStamped(rng, now)
			out := make([]wire.Outcome, 1)
			if err := s.write(ctx, []TableWrite{{Table: tab, Changes: []wire.Change{c}, Outcomes: out}}, false); err != nil || out[0].Err != nil {
				t.Fatal(err, out[0].Err)
			}
			if step == 30 {
				if err := s.CreateIndex(ctx, &wire.CreateIndex{Table: []byte("t"), Index: byB, BaseData: true}); err != nil {
					t.Fatal(err)
				}
			}
			now = now.Add(time.Duration(rng.IntN(4000)) * time.Millisecond)
			rows := shown(t, s, tab)
			hidden += len(space(t, s, tab.id)) - len(rows)
			for _, x := range tab.meta.Load().Indexes {
				want := map[string]bool{}
				for _, row := range rows {
					if line, in := projected(row, &x); in {
						want[line] = true
					}
				}
				got := map[string]bool{}
				for _, row := range shown(t, s, s.Table([]byte(x.Name))) {
					line, _ := projected(row, &x)
					got[line] = true
				}
				if !maps.Equal(got, want) {
					t.Fatalf("seed %d, step %d: index %s shows %v, want %v", seed, step, x.Name, got, want)
				}
			}
		}
		if hidden == 0 {
			t.Error("no row expired")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// drawStamped draws a put, often of cells that are some seconds old, or a deletion.
func drawStamped(rng *rand.Rand, now time.Time) wire.Change {
	c := drawChange(rng)
	if c.Op == wire.UpdateRow {
		c.Op = wire.DeleteRow
		c.Row.Delete, c.Row.Cells = true, nil
	}
	for i := range c.Row.Cells {
		if rng.IntN(2) == 0 {
			c.Row.Cells[i].Stamped, c.Row.Cells[i].Timestamp = true, now.UnixMilli()-int64(rng.IntN(19_000))
		}
	}
	return c
}

// shown is the rows that reads of a table or an index answer: of each its key and cells by name.
func shown(t *testing.T, s *Store, tab *Table) (rows []map[string]wire.Cell) {
	t.Helper()
	m := tab.meta.Load()
	sel := &wire.Selection{MaxVersions: wire.Optional[int32]{Value: 1, Set: true}}
	for stored := range space(t, s, m.ID) {
		key, _ := decodeKey([]byte(stored), m.Key)
		o := s.Get(tab, key, sel, nil)
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		if len(o.Row) == 0 {
			continue
		}
		var d wire.Decoder
		row, err := d.Row(o.Row)
		if err != nil {
			t.Fatal(err)
		}
		has := map[string]wire.Cell{}
		for _, c := range append(row.Key, row.Cells...) {
			has[string(c.Name)] = c
		}
		rows = append(rows, has)
	}
	return rows
}

// projected is what an index has of a row, if it has it.
func projected(row map[string]wire.Cell, x *index) (line string, in bool) {
	for _, k := range x.Key {
		c, ok := row[k.Name]
		if !ok {
			return "", false
		}
		line += fmt.Sprintf("%s=%x ", k.Name, c.Value)
	}
	for _, name := range x.Columns {
		if c, ok := row[name]; ok {
			line += fmt.Sprintf("%s=%x@%d ", name, c.Value, c.Timestamp)
		}
	}
	return line, true
}

// A client that goes away while an index is made leaves no rows of it.
func TestAnIndexThatIsGivenUpLeavesNothing(t *testing.T) {
	s, err := Open("", Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tab := indexed(t, s)
	for n := range int64(3 * fillRows) {
		apply(t, s, tab, wire.Change{Op: wire.PutRow, Row: wire.Row{Key: []wire.Cell{column("p", words("p")), column("n", whole(n))}, Cells: []wire.Cell{column("a", whole(n))}}})
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	given := 0
	for range 40 { // a commit may still go through
		id := s.nextID
		if s.CreateIndex(gone, &wire.CreateIndex{Table: []byte("t"), Index: byA, BaseData: true}) == nil {
			if err := s.DropIndex(ctx, &wire.DropIndex{Table: []byte("t"), Index: []byte(byA.Name)}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		given++
		if rows := space(t, s, id); len(rows) > 0 {
			t.Fatalf("%d rows are left of an index that was not made", len(rows))
		}
	}
	if given == 0 {
		t.Error("no index was given up")
	}
}
