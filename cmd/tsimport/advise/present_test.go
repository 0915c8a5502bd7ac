package advise

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

// TestRowsAreCountedByRange compares partitions, and ranges that are joined as they grow, with all rows.
func TestRowsAreCountedByRange(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 9))
		var rows []int64
		for n := 1 + random.IntN(3000); len(rows) < n; {
			rows = append(rows, random.Int64N(1+random.Int64N(int64(n))))
		}
		slices.Sort(rows)
		var bounds []table.Value
		for b := int64(0); seed%2 == 0 && len(bounds) < 300; b += 1 + random.Int64N(20) {
			bounds = append(bounds, table.Value{Type: table.Integer, Int: b})
		}
		l, most := newLies(bounds), map[int64]int64{}
		for _, n := range rows {
			l.add(table.Value{Type: table.Integer, Int: n}, 10*n)
			most[n] += 10 * n
		}
		l.endValue()
		begun := int64(0)
		for i, r := range l.ranges {
			conformance.Equal(t, r.From, strconv.FormatInt(rows[begun], 10), "first value of a range")
			if begun > 0 && rows[begun] == rows[begun-1] {
				t.Fatalf("seed %d: a range begins within the rows of %d", seed, rows[begun])
			}
			size := int64(0)
			for _, n := range rows[begun : begun+r.Rows] {
				size += 10 * n
			}
			conformance.Equal(t, r.Bytes, size, "bytes of a range")
			begun += r.Rows
			conformance.Equal(t, l.ends[i], begun, "rows up to the end of a range")
		}
		conformance.Equal(t, begun, int64(len(rows)), "rows of all ranges")
		conformance.True(t, len(l.ranges) <= mostRanges, "seed %d: %d ranges", seed, len(l.ranges))
		for _, v := range l.top {
			n, _ := strconv.ParseInt(v.Value, 10, 64)
			conformance.Equal(t, v.Bytes, most[n], "bytes of a value")
			delete(most, n)
		}
		for n, size := range most {
			conformance.True(t, size <= l.top[len(l.top)-1].Bytes, "seed %d: %d with %d bytes is not on top", seed, n, size)
		}
	}
}
