package store

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

var indexRounds = flag.Int("index-rounds", 5, "seeds of each random test of indexes, with losses of power and without")

func whole(n int64) wire.Cell { return wire.Cell{Type: wire.Integer, Value: integer(n)} }

func column(name string, c wire.Cell) wire.Cell {
	c.Name = []byte(name)
	return c
}

func words(s string) wire.Cell { return wire.Cell{Type: wire.String, Value: []byte(s)} }

func indexed(t *testing.T, s *Store, indexes ...wire.IndexMeta) *Table {
	t.Helper()
	r := &wire.CreateTable{Name: []byte("t"), Key: []wire.KeyColumn{{Name: "p", Type: wire.KeyString},
		{Name: "n", Type: wire.KeyInteger}},
		Defined: []wire.DefinedColumn{{Name: "a", Type: 1}, {Name: "b", Type: 4}, {Name: "c", Type: 2}}, Indexes: indexes}
	r.Options.TTL.Value, r.Options.MaxVersions.Value = -1, 1
	must(t, s.CreateTable(ctx, r))
	return s.Table([]byte("t"))
}

var (
	byA  = wire.IndexMeta{Name: "by_a", Key: []string{"a", "p"}, Columns: []string{"b", "c"}}
	byB  = wire.IndexMeta{Name: "by_b", Key: []string{"b"}}
	byNP = wire.IndexMeta{Name: "by_np", Key: []string{"n", "p"}, Columns: []string{"c"}}
)

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

// drawChanges draws changes of different rows: one request for a table with indexes accepts no others.
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

func space(t *testing.T, s *Store, id uint32) map[string]string {
	t.Helper()
	it, err := rowsIter(s, id)
	must(t, err)
	defer it.Close()
	rows := map[string]string{}
	for it.First(); it.Valid(); it.Next() {
		cells, ok := readRow(it.Value(), nil)
		conformance.MustEqual(t, ok, true, "a row is damaged")
		var text bytes.Buffer
		for _, c := range cells {
			fmt.Fprintf(&text, "%s %d %x %d, ", c.Name, c.Type, c.Value, c.Timestamp)
		}
		rows[string(it.Key())] = text.String()
	}
	return rows
}

func computed(t *testing.T, s *Store, m *meta) map[string]map[string]string {
	t.Helper()
	it, err := rowsIter(s, m.ID)
	must(t, err)
	defer it.Close()
	want := map[string]map[string]string{}
	for _, x := range m.Indexes {
		want[x.Name] = map[string]string{}
	}
	for it.First(); it.Valid(); it.Next() {
		key, _ := decodeKey(it.Key(), m.Key)
		cells, _ := readRow(it.Value(), nil)
		for _, x := range m.Indexes {
			// The model: the cells of a row by name, written by hand.
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
			conformance.MustEqual(t, got[k], v, "%s: index %s: of key %q", when, x.Name, k)
		}
		conformance.MustEqual(t, len(got), len(want[x.Name]), "%s: index %s: rows", when, x.Name)
		tab := s.Table([]byte(x.Name))
		conformance.MustTrue(t, tab != nil && tab.meta.Load().Of == "t", "%s: index %s cannot be read", when, x.Name)
	}
}

func TestIndexesMatchTableAfterPowerLoss(t *testing.T) {
	for round := range *indexRounds {
		rng := rand.New(rand.NewPCG(2, uint64(round)))
		fs := vfs.NewCrashableMem()
		for run := range 3 {
			s := reopen(t, "d", Options{FS: fs})
			checkIndexes(t, s, fmt.Sprintf("round %d, run %d", round, run))
			tab := s.Table([]byte("t"))
			if tab == nil {
				tab = indexed(t, s, byA)
			}
			if rng.IntN(2) == 0 {
				must(t, s.Choose(Choices{IndexDelay: time.Duration(1+rng.IntN(3)) * time.Millisecond}))
			}
			fs = indexAndCrash(t, s, tab, fs, rng)
		}
		s := reopen(t, "d", Options{FS: fs})
		checkIndexes(t, s, fmt.Sprintf("round %d, at the end", round))
		must(t, s.Close())
	}
}

// indexAndCrash writes from three clients while indexes come and go, and copies the disk as a loss of power leaves it.
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
				conformance.Equal(t, s.upToDate(ctx, s.Table([]byte("by_a")).meta.Load()), nil, "upToDate")
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
				err := s.Write(ctx, writes(tab, changes...), false)
				conformance.True(t, err == nil, "%v", err)
			}
		})
	}
	all.Wait()
	conformance.Equal(t, s.Close(), nil, "Close")
	return after
}

var schema = []wire.KeyColumn{{Name: "s", Type: wire.KeyString}, {Name: "i", Type: wire.KeyInteger},
	{Name: "b", Type: wire.KeyBinary}}

func integer(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

func TestAPartOfAKeyIsNotAKey(t *testing.T) {
	m := &meta{ID: 7, Key: schema}
	b, err := m.appendKey(nil, []wire.Cell{column("s", words("a\x00")), column("i", whole(-1)),
		{Name: []byte("b"), Type: wire.Binary, Value: []byte{255}}})
	must(t, err)
	for n := range b {
		_, ok := decodeKey(b[:n], schema)
		conformance.True(t, !ok, "%d of %d bytes were mistaken for a key", n, len(b))
	}
}
