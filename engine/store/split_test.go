package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

// fillForSplits writes rows of some 280 bytes in random order, the n-th with the partition key of keyOf.
func fillForSplits(t *testing.T, s *Store, column wire.KeyType, rows int, keyOf func(n int) []byte) *Table {
	t.Helper()
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
	const rows = 12_000 // some 3 MB
	number := func(n int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n-rows/2)) }
	for name, c := range map[string]struct {
		column  wire.KeyType
		keyOf   func(n int) []byte
		largest int64 // of a partition key, bytes
		least   int64 // of a part
	}{
		"texts that begin alike": {wire.KeyString,
			func(n int) []byte { return fmt.Appendf(nil, "customers-of-the-north-%08d", n) }, 300, 1 << 19},
		"integers of both signs":  {wire.KeyInteger, number, 300, 1 << 19},
		"integers, most in a few": {wire.KeyInteger, func(n int) []byte { return number(n * n / rows) }, 120_000, 1 << 19},
		"binaries with zero bytes": {wire.KeyBinary,
			func(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)<<24) }, 300, 1 << 19},
		// which take little in a file where they are long
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

// splitsOf returns where the parts of 1 MiB begin, except the first, as keys of the store; a limit of 0 means none.
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

// checkParts fails unless points are increasing partition keys that cut off about 1 MiB each, or a larger key's end.
func checkParts(t *testing.T, s *Store, tab *Table, points [][]byte, least, largest int64) {
	t.Helper()
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

// seen is the expected content of a table's indexes at a moment.
type seen struct {
	at   int64
	rows map[string]map[string]string
}

// An index always shows its table of one delay ago, by a clock that jumps.
func TestDelayedIndexShowsFormerTable(t *testing.T) {
	for seed := range uint64(*indexRounds) {
		rng := rand.New(rand.NewPCG(seed, 4))
		clock := time.UnixMilli(1_700_000_000_000)
		s := reopen(t, "", Options{InMemory: true, Now: func() time.Time { return clock }})
		tab := indexed(t, s, byA, byB)
		delay := time.Duration(1+rng.IntN(20)) * time.Millisecond
		must(t, s.Choose(Choices{IndexDelay: delay}))
		history := []seen{{s.millis(), computed(t, s, tab.meta.Load())}}
		since := map[string]int64{} // when an index was brought up to date regardless of the delay
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
				continue // nobody reads
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
		if err := s.Choose(Choices{}); err != nil { // all at once
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

func TestIndexDelayBounds(t *testing.T) {
	s := reopen(t, "", Options{InMemory: true})
	defer s.Close()
	for _, d := range []time.Duration{-1, 367 * 24 * time.Hour} {
		conformance.Refused(t, s.Choose(Choices{IndexDelay: d}), "", "%s is taken", d)
	}
}
