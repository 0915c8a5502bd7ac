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

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
	"github.com/cockroachdb/pebble/v2/vfs"
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

// drawChanges draws changes of different rows, because a table with indexes refuses repeated ones.
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
			// has is the model of a row: its cells by name.
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

// indexAndCrash writes from three clients while indexes are created and dropped. It returns the disk after a power cut.
func indexAndCrash(t *testing.T, s *Store, tab *Table, fs *vfs.MemFS, rng *rand.Rand) *vfs.MemFS {
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
	seeds := []uint64{rng.Uint64(), rng.Uint64(), rng.Uint64()} // drawn now, because the clone also draws from rng
	for client, seed := range seeds {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 3))
			for n := 0; next(); n++ {
				conformance.Equal(t, s.upToDate(ctx, s.Table([]byte("by_a")).meta.Load()), nil, "upToDate")
				if client == 0 && n%7 == 3 {
					switch x := []wire.IndexMeta{byB, byNP}[rng.IntN(2)]; rng.IntN(2) {
					case 0: // the index may exist, or not
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

func TestPartialKeyIsInvalid(t *testing.T) {
	m := &meta{ID: 7, Key: schema}
	b, err := m.appendKey(nil, []wire.Cell{column("s", words("a\x00")), column("i", whole(-1)),
		{Name: []byte("b"), Type: wire.Binary, Value: []byte{255}}})
	must(t, err)
	for n := range b {
		_, ok := decodeKey(b[:n], schema)
		conformance.True(t, !ok, "%d of %d bytes were mistaken for a key", n, len(b))
	}
}

// fillForSplits writes rows of about 280 bytes in random order. Row n has the partition key keyOf(n).
func fillForSplits(t *testing.T, s *Store, column wire.KeyType, rows int, keyOf func(n int) []byte) *Table {
	r := tableRequest("t", -1, 1)
	r.Key = []wire.KeyColumn{{Name: "p", Type: column}, {Name: "n", Type: wire.KeyInteger}}
	must(t, s.CreateTable(ctx, r))
	tab := s.Table(r.Name)
	rng := rand.New(rand.NewPCG(1, uint64(rows)))
	var changes []wire.Change
	for i, n := range rng.Perm(rows) {
		value := make([]byte, 240)
		for j := range value {
			value[j] = byte(rng.Uint32())
		}
		if n%3 == 0 {
			value = bytes.Repeat([]byte{'x'}, 240) // compresses well
		}
		changes = append(changes, wire.Change{Op: wire.PutRow, Row: wire.Row{
			Key: []wire.Cell{
				{Name: []byte("p"), Type: column.ValueType(), Value: keyOf(n)},
				{Name: []byte("n"), Type: wire.Integer, Value: integer(int64(n))},
			},
			Cells: []wire.Cell{{Name: []byte("v"), Type: wire.Binary, Value: value}},
		}})
		if len(changes) == 200 || i == rows-1 {
			conformance.Must(t, conformance.ErrorOf(write(s, tab, changes...)))
			changes = changes[:0]
		}
	}
	return tab
}

func TestSplitPointsOfLargeTableFollowFileSizes(t *testing.T) {
	const rows = 12_000 // about 3 MB
	number := func(n int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n-rows/2)) }
	for name, c := range map[string]struct {
		column  wire.KeyType
		keyOf   func(n int) []byte
		largest int64 // bytes of one partition key
		least   int64 // bytes of a part
	}{
		"texts that begin alike": {wire.KeyString,
			func(n int) []byte { return fmt.Appendf(nil, "customers-of-the-north-%08d", n) }, 300, 1 << 19},
		"integers of both signs":  {wire.KeyInteger, number, 300, 1 << 19},
		"integers, most in a few": {wire.KeyInteger, func(n int) []byte { return number(n * n / rows) }, 120_000, 1 << 19},
		"binaries with zero bytes": {wire.KeyBinary,
			func(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)<<24) }, 300, 1 << 19},
		// long keys that compress well
		"nested keys": {wire.KeyString, func(n int) []byte { return bytes.Repeat([]byte{'a'}, 1+n%900) }, 30_000, 1 << 17},
		"one key has half": {wire.KeyString, func(n int) []byte { return fmt.Appendf(nil, "%05d", max(n, rows/2)) },
			9 << 20, 1 << 19},
		"one key": {wire.KeyString, func(n int) []byte { return []byte("one") }, 18 << 20, 1 << 19},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, Options{})
			tab := fillForSplits(t, s, c.column, rows, c.keyOf)
			must(t, s.db.Flush())
			byRows := splitsOf(t, s, tab, 0)
			s.readForSplits = 0
			bySizes := splitsOf(t, s, tab, 0)
			conformance.True(t, c.least != 1<<19 || len(byRows) <= 3*len(bySizes)/2+1 && len(bySizes) <= 3*len(byRows)/2+1,
				"%d points by the sizes of files, %d by those of rows", len(bySizes), len(byRows))
			checkParts(t, s, tab, bySizes, c.least, c.largest)
			if len(bySizes) > 2 {
				if first := splitsOf(t, s, tab, 2); !slices.EqualFunc(first, bySizes[:2], bytes.Equal) {
					t.Error("with a limit of 2, other points than the first 2")
				}
			}
		})
	}
}

// splitsOf returns the store's keys at which parts of 1 MiB begin, except the first. A limit of 0 means no limit.
func splitsOf(t *testing.T, s *Store, tab *Table, limit int32) (points [][]byte) {
	t.Helper()
	rows, e := s.SplitPoints(ctx, tab, &wire.SplitPoints{
		Size: wire.Optional[int64]{Value: 1, Set: true}, UnitBytes: wire.Optional[int64]{Value: 1 << 20, Set: true},
		Limit: wire.Optional[int32]{Value: limit, Set: limit > 0},
	})
	conformance.MustEqual(t, e, nil, "error")
	for _, b := range rows {
		var d wire.Decoder
		row, err := d.Row(b)
		conformance.MustTrue(t, err == nil && len(row.Key) == 1, "point %q: %v", b, err)
		points = append(points, appendColumn(appendRowPrefix(nil, tab.id), &row.Key[0]))
	}
	return points
}

// checkParts fails the test unless points are increasing partition keys that each cut off about 1 MiB or a larger key.
func checkParts(t *testing.T, s *Store, tab *Table, points [][]byte, least, largest int64) {
	it := conformance.Try(s.db.NewIter(nil)).Must(t)
	defer it.Close()
	size, part := int64(0), 0
	for ok := it.SeekGE(appendRowPrefix(nil, tab.id)); ok &&
		bytes.Compare(it.Key(), appendRowPrefix(nil, tab.id+1)) < 0; ok = it.Next() {
		if part < len(points) && bytes.Compare(it.Key(), points[part]) >= 0 {
			conformance.MustTrue(t, bytes.HasPrefix(it.Key(), points[part]),
				"point %d, %q, is no partition key of the table", part, points[part])
			conformance.True(t, size >= least && size <= 2<<20+largest, "part %d has %d bytes", part, size)
			size, part = 0, part+1
		}
		size += int64(len(it.Key()) + len(it.Value()))
	}
	conformance.True(t, part == len(points) && slices.IsSortedFunc(points, bytes.Compare),
		"%d of %d points begin a part", part, len(points))
	conformance.True(t, size <= 2<<20+largest, "the last part has %d bytes", size)
}

// seen is the expected content of a table's indexes at one time.
type seen struct {
	at   int64
	rows map[string]map[string]string
}

// An index always shows its table as of one delay ago, by a clock that jumps.
func TestDelayedIndexShowsFormerTable(t *testing.T) {
	for seed := range uint64(*indexRounds) {
		rng := rand.New(rand.NewPCG(seed, 4))
		clock := time.UnixMilli(1_700_000_000_000)
		s := reopen(t, "", Options{InMemory: true, Now: func() time.Time { return clock }})
		tab := indexed(t, s, byA, byB)
		delay := time.Duration(1+rng.IntN(20)) * time.Millisecond
		must(t, s.Choose(Choices{IndexDelay: delay}))
		history := []seen{{s.millis(), computed(t, s, tab.meta.Load())}}
		since := map[string]int64{} // time when an index was last brought up to date despite the delay
		for step := range 150 {
			changes := drawChanges(rng, 1+rng.IntN(4))
			out := make([]wire.Outcome, len(changes))
			must(t, s.Write(ctx, []TableWrite{{Table: tab, Changes: changes, Outcomes: out}}, false))
			switch step {
			case 50:
				must(t, s.CreateIndex(ctx, &wire.CreateIndex{Table: []byte("t"), Index: byNP, BaseData: true}))
				since["by_np"] = s.millis()
			case 90:
				dropped := s.Table([]byte("by_b")).id
				must(t, s.DropIndex(ctx, &wire.DropIndex{Table: []byte("t"), Index: []byte("by_b")}))
				rows := space(t, s, dropped)
				conformance.True(t, len(rows) == 0, "of a dropped index there is %q", rows)
				since["by_a"], since["by_np"] = s.millis(), s.millis()
			}
			m := tab.meta.Load()
			history = append(history, seen{s.millis(), computed(t, s, m)})
			clock = clock.Add(time.Duration(1+rng.IntN(8)) * time.Millisecond)
			if rng.IntN(3) > 0 {
				continue // no index is read
			}
			want := map[string]map[string]string{}
			for _, x := range m.Indexes {
				must(t, s.upToDate(ctx, s.Table([]byte(x.Name)).meta.Load()))
				upTo := max(s.millis()-delay.Milliseconds(), since[x.Name])
				for _, h := range history {
					if h.at <= upTo {
						want[x.Name] = h.rows[x.Name]
					}
				}
			}
			compareIndexes(t, s, m, want, fmt.Sprintf("seed %d, step %d", seed, step))
		}
		if err := s.Choose(Choices{}); err != nil { // brings all indexes up to date at once
			t.Fatal(err)
		}
		checkIndexes(t, s, fmt.Sprintf("seed %d, without a delay", seed))
		must(t, s.Choose(Choices{IndexDelay: time.Hour}))
		c := drawChange(rng)
		must(t, s.Write(ctx, writes(tab, c), false))
		must(t, s.DeleteTable(ctx, []byte("t")))
		it := conformance.Try(s.db.NewIter(nil)).Must(t)
		for it.First(); it.Valid(); it.Next() {
			if k := it.Key()[0]; k == spaceLate || k == spaceRows {
				t.Fatalf("seed %d: of a table that was deleted there is %x", seed, it.Key())
			}
		}
		must(t, it.Close())
		must(t, s.Close())
	}
}

func TestIndexDelayMustBeWithinBounds(t *testing.T) {
	s := reopen(t, "", Options{InMemory: true})
	defer s.Close()
	for _, d := range []time.Duration{-1, 367 * 24 * time.Hour} {
		conformance.Refused(t, s.Choose(Choices{IndexDelay: d}), "", "%s is taken", d)
	}
}
