package simulate

import (
	"math"
	"testing"

	"example.com/tsimport/internal/conformance"
)

func keysOf(rows int, key func(int) uint64) Keys {
	column := make([]uint64, rows)
	for i := range column {
		column[i] = key(i)
	}
	return Keys{column}
}

func scattered(i int) uint64 {
	v := uint64(i+1) * 0x9e3779b97f4a7c15
	v ^= v >> 29
	v *= 0xbf58476d1ce4e5b9
	return v ^ v>>32
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	conformance.True(t, math.Abs(got-want) <= within, "%s is %.4f, want %.4f ± %.4f", what, got, want, within)
}

func TestPartitionsHoldEqualNumbersOfRows(t *testing.T) {
	of, n := Cut(keysOf(32000, scattered), 32)
	count := make([]int, n)
	for _, p := range of {
		count[p]++
	}
	for p, c := range count {
		conformance.Equal(t, c, 1000, "partition %d: rows of 32000", p)
	}
	conformance.Equal(t, n, 32, "partitions")
}

func TestRowsOfOneValueAreInOnePartition(t *testing.T) {
	// Three of four rows have the key 5.
	keys := keysOf(4000, func(i int) uint64 {
		if i%4 != 0 {
			return 5
		}
		return uint64(i)
	})
	of, n := Cut(keys, 8)
	heavy := map[uint16]bool{}
	for i, p := range of {
		if keys[0][i] == 5 {
			heavy[p] = true
		}
	}
	conformance.True(t, len(heavy) == 1 && n >= 2 && n <= 8, "the value 5 is in partitions %v of %d", heavy, n)
	_, n = Cut(keysOf(1000, func(int) uint64 { return 7 }), 8)
	conformance.Equal(t, n, 1, "a single value is cut into")
}

func TestCompoundKeysAreCutInOrder(t *testing.T) {
	// The first number is always the same; the second one decides.
	keys := append(keysOf(1000, func(int) uint64 { return 1 }), keysOf(1000, func(i int) uint64 { return uint64(i) })...)
	of, n := Cut(keys, 4)
	conformance.True(t, n == 4 && of[0] == 0 && of[249] == 0 && of[250] == 1 && of[999] == 3,
		"%d partitions, rows 0, 249, 250 and 999 in %d, %d, %d and %d", n, of[0], of[249], of[250], of[999])
}

func TestEvenKeysUseAllPartitionsAndOneValueUsesOne(t *testing.T) {
	traffic := Traffic{Partitions: 32, Rate: 32000}
	for _, rows := range []int{1000, 30000, 400000} {
		of, _ := Cut(keysOf(rows, scattered), 32)
		share := Live(of, nil, traffic)
		near(t, "even keys' share", share, 1, 0.05)
		share = Live(make([]uint16, rows), nil, traffic)
		near(t, "one value's share", share, 1.0/32, 1e-9)
	}
}

func TestLiveTrafficOfGrowingKeysUsesOnePartition(t *testing.T) {
	const rows = 64000
	of, _ := Cut(keysOf(rows, func(i int) uint64 { return uint64(i) }), 32)
	share := Live(of, nil, Traffic{Partitions: 32, Rate: 32000})
	// 64 windows of 1,000 rows, each within one of 32 partitions of 2,000.
	near(t, "the share", share, 1.0/32, 1e-9)
}

func TestLiveShareDependsOnArrivalOrder(t *testing.T) {
	const rows = 64000
	of, _ := Cut(keysOf(rows, func(i int) uint64 { return uint64(i) }), 32)
	order := make([]int32, rows)
	for i := range order {
		order[i] = int32(i * 7919 % rows)
	}
	share := Live(of, order, Traffic{Partitions: 32, Rate: 32000})
	near(t, "the share of sorted rows that arrive mixed", share, 1, 0.05)
}

func TestTwoOfFourPartitionsGiveHalfTheCapacity(t *testing.T) {
	// Rows alternate between two of four partitions: the busiest gets half of each window, 1/(4 × 1/2) of the capacity.
	of := make([]uint16, 80000)
	for i := range of {
		of[i] = uint16(i % 2)
	}
	share := Live(of, nil, Traffic{Partitions: 4, Rate: 4000})
	near(t, "the share", share, 0.5, 0.02)
}

func TestSinglePartitionLoadRunsAtPartitionRate(t *testing.T) {
	// 100 rows per second, none saved up at the start; the other partition is idle.
	l := Load(make([]uint16, 2000), 2, 100)
	conformance.True(t, l.Rows+l.Lost == 2000 && l.Lost != 0, "%d rows taken, %d given up on of 2000", l.Rows, l.Lost)
	near(t, "the rate", float64(l.Rows)/l.Seconds, 100, 1)
	near(t, "the share", l.Share, 0.5, 0.01)
}

func TestLoadWithinCapacityLosesNoRows(t *testing.T) {
	of := make([]uint16, 6400)
	for i := range of {
		of[i] = uint16(i % 32)
	}
	l := Load(of, 32, 1000)
	conformance.Equal(t, l.Lost, 0, "lost")
	conformance.Equal(t, l.Rows, 6400, "rows")
	// 200 rows for each partition at 1,000 per second.
	conformance.True(t, l.Seconds >= 0.199 && l.Seconds <= 0.5, "taken in %v s", l.Seconds)
}

func TestSortedLoadUsesOnePartitionAtATime(t *testing.T) {
	of, n := Cut(keysOf(400000, func(i int) uint64 { return uint64(i) }), 32)
	l := Load(of, n, 1000)
	conformance.True(t, l.Share >= 1.0/32 && l.Share <= 0.06, "share %v", l.Share)
}

func TestPartitionSavesUpAtMostOneSecond(t *testing.T) {
	l := &load{rate: 1000 / 1e9, buckets: make([]bucket, 1)}
	taken := 0
	for range 5000 {
		if l.take(0, 10_000_000_000) {
			taken++
		}
	}
	conformance.Equal(t, taken, 1000, "rows at once after ten idle seconds")
}

func TestEmptyInputUsesNoCapacity(t *testing.T) {
	conformance.Equal(t, Live(nil, nil, Traffic{Partitions: 4, Rate: 4}), 0, "live share")
	l := Load(nil, 4, 1)
	conformance.True(t, l.Share == 0 && l.Rows == 0, "load %+v", l)
}

func TestSinglePartitionIsFullyUsed(t *testing.T) {
	share := Live(make([]uint16, 1000), nil, Traffic{Partitions: 1, Rate: 1000})
	near(t, "the share", share, 1, 1e-9)
}
