package partitioner

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

func integer(v int64) table.Value { return table.Value{Type: table.Integer, Int: v} }
func text(s string) table.Value   { return table.Value{Type: table.String, Bytes: []byte(s)} }

// compare orders two key values of one type as the service does.
func compare(a, b table.Value) int {
	return cmp.Or(cmp.Compare(a.Int, b.Int), bytes.Compare(a.Bytes, b.Bytes))
}

func TestFindReturnsLaneOfKey(t *testing.T) {
	integers := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-3, 3),
		rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64}))
	// A small alphabet makes shared prefixes and equal heads frequent.
	letters := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 'a', 0xff}), 0, 12)
	prefix := rapid.SampledFrom([]string{"", "user-0", "a-prefix-longer-than-eight-bytes\x00"})
	rapid.Check(t, func(t *rapid.T) {
		kind, common := rapid.SampledFrom([]table.Type{table.Integer, table.String, table.Binary}).Draw(t, "type"),
			prefix.Draw(t, "common")
		draw := func(label string) table.Value {
			if kind == table.Integer {
				return integer(integers.Draw(t, label))
			}
			b := letters.Draw(t, label)
			if rapid.Bool().Draw(t, label+" has the prefix") {
				b = append([]byte(common), b...)
			}
			return table.Value{Type: kind, Bytes: b}
		}
		bounds := make([]table.Value, rapid.IntRange(0, 40).Draw(t, "bounds"))
		for i := range bounds {
			bounds[i] = draw("bound")
		}
		m := NewMap(bounds)
		for i := range 20 {
			v := draw("value")
			if i%3 == 0 && len(bounds) > 0 {
				v = bounds[i%len(bounds)]
			}
			key := table.AppendKey(nil, v)
			if rapid.Bool().Draw(t, "second column") {
				key = table.AppendKey(key, keyColumn.Draw(t, "second"))
			}
			lane := m.Find(key)
			lower, ok := m.LowerValue(lane)
			conformance.MustTrue(t, !ok || compare(v, lower) >= 0, "%v is in lane %d, which begins at %v", v, lane, lower)
			if lane+1 < m.Len() {
				upper, _ := m.LowerValue(lane + 1)
				conformance.MustTrue(t, compare(v, upper) < 0, "%v is in lane %d, which ends before %v", v, lane, upper)
			}
		}
	})
}

var keyColumn = rapid.OneOf(rapid.Map(rapid.Int64(), integer),
	rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 4),
		func(b []byte) table.Value { return table.Value{Type: table.Binary, Bytes: b} }))

func TestMapSortsAndDeduplicatesBounds(t *testing.T) {
	m := NewMap([]table.Value{integer(7), integer(-7), {}, integer(7), integer(0), {Type: table.Double, Double: 1}})
	conformance.MustEqual(t, m.Len(), 4, "lanes")
	for i, want := range []int64{-7, 0, 7} {
		v, ok := m.LowerValue(i + 1)
		conformance.True(t, ok && v.Int == want && bytes.Equal(m.Lower(i+1), table.AppendKey(nil, integer(want))),
			"lane %d begins at %v, %x; want %d", i+1, v, m.Lower(i+1), want)
	}
	v, ok := m.LowerValue(0)
	conformance.True(t, !ok && m.Lower(0) == nil, "the first lane begins at %v", v)
}

func TestMapWithoutBoundsHasOneLane(t *testing.T) {
	for _, m := range []*Map{NewMap(nil), NewMap([]table.Value{})} {
		conformance.True(t, m.Len() == 1 && m.Find(table.AppendKey(nil, text("x"))) == 0 && m.Find(nil) == 0,
			"%d lanes", m.Len())
	}
}

func TestMapsWithSameBoundsAreEqual(t *testing.T) {
	a, b := NewMap([]table.Value{text("a"), text("b")}), NewMap([]table.Value{text("b"), text("a"), text("b")})
	conformance.True(t, a.Equal(b) && NewMap(nil).Equal(NewMap(nil)), "maps of the same bounds differ")
	conformance.True(t, !a.Equal(NewMap([]table.Value{text("a")})) &&
		!a.Equal(NewMap([]table.Value{text("a"), text("c")})) && !a.Equal(NewMap(nil)), "maps of different bounds are equal")
}

func TestBoundsOfOtherTypesAreIgnored(t *testing.T) {
	m := NewMap([]table.Value{integer(5), text(""), text("int?"), integer(-5), {Type: table.Binary, Bytes: []byte{0x80}}})
	rapid.Check(t, func(t *rapid.T) {
		key := table.AppendKey(nil, keyColumn.Draw(t, "key"))
		key = key[:rapid.IntRange(0, len(key)).Draw(t, "cut")]
		lane := m.Find(key)
		conformance.MustTrue(t, lane >= 0 && lane < m.Len(), "%x is in lane %d of %d", key, lane, m.Len())
	})
}

func TestMapCopiesBounds(t *testing.T) {
	v := text("m")
	m := NewMap([]table.Value{v})
	v.Bytes[0] = 'a'
	got, _ := m.LowerValue(1)
	conformance.True(t, string(got.Bytes) == "m" && m.Find(table.AppendKey(nil, text("b"))) == 0, "it is %s", got.Bytes)
}

func TestKeyTableBehavesLikeMap(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		hashes := 1 + rnd.Uint64N(3000)
		scale := uint64(1) << rnd.IntN(60) // hashes that differ in only some bits
		var table keyTable
		want := map[uint64]*key{}
		for range 20_000 {
			hash := rnd.Uint64N(hashes) * scale
			switch {
			case table.get(hash) != want[hash]:
				t.Fatalf("seed %d: hash %d: got %v, want %v", seed, hash, table.get(hash), want[hash])
			case rnd.IntN(2) == 0:
				table.remove(hash)
				delete(want, hash)
			case want[hash] == nil:
				want[hash] = &key{hash: hash}
				table.put(want[hash])
			}
		}
		seen := 0
		table.each(func(k *key) {
			conformance.Equal(t, want[k.hash], k, "seed %d: key %d is there and should not be", seed, k.hash)
			seen++
		})
		conformance.Equal(t, seen, len(want), "seed %d: seen", seed)
		conformance.Equal(t, table.count, len(want), "seed %d: counted", seed)
	}
}

func tableKey(name string, n int64) []byte {
	return table.AppendKey(table.AppendTable(nil, name), table.Value{Type: table.Integer, Int: n})
}

func TestRowsOfUnknownTablesWaitInGaps(t *testing.T) {
	m := NewTablesMap([]TableBounds{{Table: "a", Bounds: []table.Value{{Type: table.Integer, Int: 10}}}, {Table: "aa"},
		{Table: "c", Bounds: []table.Value{{Type: table.Integer, Int: 5}, {Type: table.Integer, Int: -5}}}})
	for _, tt := range []struct {
		name string
		key  int64
		lane int
		of   string
	}{{"A", 99, 0, ""}, {"a", 9, 1, "a"}, {"a", 10, 2, "a"}, {"a0", 1, 3, ""}, {"a_", 1, 3, ""}, {"aa", -1 << 62, 4, "aa"},
		{"aa", 1 << 62, 4, "aa"}, {"aaa", 0, 5, ""}, {"b", 0, 5, ""}, {"c", -6, 6, "c"}, {"c", -5, 7, "c"}, {"c", 5, 8, "c"},
		{"c0", 5, 9, ""}, {"z", 0, 9, ""}} {
		lane := m.Find(tableKey(tt.name, tt.key))
		conformance.True(t, lane == tt.lane && m.Table(lane) == tt.of && m.Gap(lane) == (tt.of == ""),
			"key %d of %s: lane %d of %q, want %d of %q", tt.key, tt.name, lane, m.Table(lane), tt.lane, tt.of)
	}
	conformance.Equal(t, m.Len(), 10, "lanes")
	for lane, want := range map[int]string{1: "none", 2: "10", 4: "none", 7: "-5", 9: "none"} {
		got := "none"
		if v, ok := m.LowerValue(lane); ok {
			got = fmt.Sprint(v.Int)
		}
		conformance.Equal(t, got, want, "lane %d begins", lane)
	}
}

func TestMapWithoutTablesIsOneGap(t *testing.T) {
	m := NewTablesMap(nil)
	conformance.True(t, m.Len() == 1 && m.Gap(0) && m.Several() && !m.Equal(NewMap(nil)),
		"%d lanes, gap %v, several %v", m.Len(), m.Gap(0), m.Several())
	one := NewMap(nil)
	conformance.True(t, !one.Gap(0) && !one.Several() && one.Table(0) == "", "a map of one table has gaps")
}

// Keys of two tables may have the same hash, but a request holds rows of only one table.
func TestEqualHashesOfTwoTablesAreNotSentTogether(t *testing.T) {
	m := NewTablesMap([]TableBounds{{Table: "a"}, {Table: "b"}})
	first, second := tableKey("a", 1), tableKey("b", 2)
	blocks := rowsOf([]string{string(first), string(second)}, 1)
	blocks[1].Rows[0].Hash = blocks[0].Rows[0].Hash
	final := 0
	c := New(Options{Supersede: true, Lanes: m.Len(), Route: m.Find, Backoff: func(int) time.Duration { return 0 },
		Final: func(table.Ref, End, table.Outcome) { final++ }})
	now := time.Unix(0, 0)
	var f, g Flight
	conformance.MustEqual(t, c.Cut(now, 1, &oneRow{ref: table.Ref{Block: blocks[0]}}, &f, 100), true, "the first is sent")
	conformance.MustTrue(t, !c.Cut(now, 3, &oneRow{ref: table.Ref{Block: blocks[1]}}, &g, 100), "the same hash is sent")
	f.Outcomes[0].Fate = table.Written
	c.Done(now, &f)
	conformance.MustTrue(t, c.Ready(1) == 0 && c.Ready(3) == 1 && c.Held(1) == 0 && c.Held(3) == 1,
		"ready %d and %d, held %d and %d", c.Ready(1), c.Ready(3), c.Held(1), c.Held(3))
	conformance.MustTrue(t, c.Cut(now, 3, &oneRow{sent: true}, &g, 100) && string(g.Rows[0].Key()) == string(second),
		"the second row is not sent in its lane")
	g.Outcomes[0].Fate = table.Written
	c.Done(now, &g)
	conformance.True(t, final == 2 && c.Remaining() == 0 && !c.Stalled(1) && !c.Stalled(3), "%d rows final", final)
}

type oneRow struct {
	ref  table.Ref
	sent bool
}

func (q *oneRow) Front() (table.Ref, bool) { return q.ref, !q.sent }
func (q *oneRow) Advance()                 { q.sent = true }

// feed adds rows with the partition keys that pick returns. Each row has a different second key column.
func feed(h *HotKeys, rows int, pick func(i int) table.Value) {
	var key []byte
	for i := range rows {
		key = table.AppendKey(key[:0], pick(i))
		h.Add(table.AppendKey(key, integer(int64(i))), 100)
	}
}

func TestHotValuesAreFoundWithTheirShares(t *testing.T) {
	for _, rows := range []int{2_000, 20_000, 300_000} {
		for _, order := range []string{"shuffled", "hot first", "hot last", "periodic"} {
			r := rand.New(rand.NewPCG(uint64(rows), 7))
			h := NewHotKeys(table.String)
			feed(h, rows, func(i int) table.Value {
				place := (float64(i) + 0.5) / float64(rows)
				switch order {
				case "shuffled":
					place = r.Float64()
				case "hot last":
					place = 1 - place
				case "periodic":
					place = (float64(i%64) + 0.5) / 64
				}
				switch {
				case place < 0.25:
					return text("hot")
				case place < 0.375:
					return text("warm\x00") // ends with a zero byte
				}
				return text(fmt.Sprint("cold ", r.IntN(1_000_000)))
			})
			hot := h.Report(32)
			if len(hot) != 2 || string(hot[0].Value.Bytes) != "hot" || string(hot[1].Value.Bytes) != "warm\x00" {
				t.Errorf("%d rows, %s: %v", rows, order, hot)
				continue
			}
			for i, want := range []float64{0.25, 0.125} {
				conformance.True(t, math.Abs(hot[i].Share-want) <= 0.03,
					"%d rows, %s: %s has share %.3f, want %.3f", rows, order, hot[i].Value.Bytes, hot[i].Share, want)
			}
		}
	}
}

func TestAddAllEqualsAdd(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 7))
	keys := make([][]byte, 60_000)
	for i := range keys {
		keys[i] = table.AppendKey(nil, integer(int64(r.ExpFloat64()*3)))
	}
	one, all := NewHotKeys(table.Integer), NewHotKeys(table.Integer)
	for rest := keys; len(rest) > 0; {
		some := rest[:min(len(rest), r.IntN(300))]
		rest = rest[len(some):]
		for _, key := range some {
			one.Add(key, len(key))
		}
		all.AddAll(len(some), func(i int) ([]byte, int) { return some[i], len(some[i]) })
		conformance.MustTrue(t, one.rows == all.rows && one.skip == all.skip,
			"with %d rows left: the samples stand for %d and %d rows, and %d and %d are passed over", len(rest), one.rows,
			all.rows, one.skip, all.skip)
	}
	got, want := all.Report(32), one.Report(32)
	conformance.True(t, len(want) != 0 && reflect.DeepEqual(got, want), "together %v, one by one %v", got, want)
}

func TestEvenKeysAreNotHot(t *testing.T) {
	for _, values := range []int{40, 300, 100_000, math.MaxInt} {
		r := rand.New(rand.NewPCG(1, 7))
		h := NewHotKeys(table.Integer)
		feed(h, 200_000, func(int) table.Value { return integer(int64(r.IntN(values)) - 20) })
		for _, lanes := range []int{0, 1, 2, 10} {
			hot := h.Report(lanes)
			conformance.True(t, len(hot) == 0, "%d values, %d lanes: %v", values, lanes, hot)
		}
	}
}

func TestHotKeysDependOnLaneCount(t *testing.T) {
	h := NewHotKeys(table.Integer)
	feed(h, 100_000, func(i int) table.Value { // a quarter −1, the rest 25 values of 3 % each
		if i%4 == 0 {
			return integer(-1)
		}
		return integer(int64(i % 25))
	})
	for lanes, want := range map[int]int{1: 1, 2: 0, 4: 0, 7: 1, 32: 1, 75: 10, 1000: 10} {
		hot := h.Report(lanes)
		conformance.Equal(t, len(hot), want, "%d lanes: hot values", lanes)
		conformance.True(t, len(hot) == 0 || hot[0].Value.Int == -1, "%d lanes: the hottest is %v", lanes, hot)
		for i := 1; i < len(hot); i++ {
			conformance.True(t, hot[i].Share <= hot[i-1].Share, "%d lanes: not the most first: %v", lanes, hot)
		}
	}
}

func TestFewRowsGiveNoHotKeys(t *testing.T) {
	h := NewHotKeys(table.Integer)
	feed(h, minRows-1, func(int) table.Value { return integer(1) })
	got := h.Report(1)
	conformance.True(t, got == nil, "%d rows: %v", minRows-1, got)
	feed(h, 1, func(int) table.Value { return integer(1) })
	hot := h.Report(1)
	conformance.True(t, len(hot) == 1 && hot[0].Share == 1, "%d rows of one value: %v", minRows, hot)
}

func TestInvalidKeysAreNotCounted(t *testing.T) {
	for _, kind := range []table.Type{table.Integer, table.String} {
		h := NewHotKeys(kind)
		for range 2 * minRows {
			h.Add(nil, 0)
			h.Add([]byte{'a', 0}, 9)
		}
		got := h.Report(1)
		conformance.True(t, got == nil, "report: %v", got)
	}
}

func TestSmallInputOfOneValueIsReported(t *testing.T) {
	for _, tt := range []struct{ rows, values, want int }{{199, 1, 0}, {200, 1, 1}, {999, 1, 1}, {2000, 1, 1}, {500, 2, 0},
		{2000, 2, 2}} {
		h := NewHotKeys(table.Integer)
		feed(h, tt.rows, func(i int) table.Value { return integer(int64(i % tt.values)) })
		hot := h.ReportWhole()
		conformance.True(t, len(hot) == tt.want && (tt.values != 1 || tt.want != 1 || hot[0].Share == 1), "%+v: %v", tt, hot)
	}
}

// Largest returns the value with the most bytes, even if it has only one row in fifty.
func TestLargestIsByBytes(t *testing.T) {
	h, r := NewHotKeys(table.Integer), rand.New(rand.NewPCG(2, 7))
	_, ok := h.Largest()
	conformance.True(t, !ok, "nothing has come, and a value is the largest")
	for range 500_000 {
		n, size := r.Int64N(1000), 100
		if r.IntN(100) == 0 {
			n, size = 7777, 4<<20
		}
		h.Add(table.AppendKey(nil, integer(n)), size)
	}
	got, ok := h.Largest()
	want := int64(5000 * 4 << 20)
	conformance.True(t, ok && got.Value.Int == 7777 && math.Abs(float64(got.Bytes-want)) <= .2*float64(want) &&
		got.Share >= .99 && got.Share <= 1, "found %+v, want about %d bytes", got, want)
	hot := h.Report(1)
	conformance.True(t, len(hot) == 1 && hot[0].Value.Int == 7777 && hot[0].Bytes == got.Bytes, "reported %+v", hot)
}
