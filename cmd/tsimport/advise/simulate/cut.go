package simulate

import (
	"cmp"
	"slices"
	"sort"
)

// Keys are the partition keys of rows. Keys[0][i], Keys[1][i], … sort like the key of row i in the service.
type Keys [][]uint64

// MaxPartitions is the maximum number of partitions of a simulated table.
const MaxPartitions = 4096

// maxCutSample is the number of rows that determine the bounds; more would hardly improve them.
const maxCutSample = 1 << 18

func (k Keys) len() int { return len(k[0]) }

func (k Keys) compare(i, j int32) int {
	for _, column := range k {
		if c := cmp.Compare(column[i], column[j]); c != 0 {
			return c
		}
	}
	return 0
}

// Cut divides the rows among n range partitions with about equal row counts, without dividing a key value. It returns
// the partition of each row and the number of partitions, which is below n if there are few values or some are heavy.
func Cut(keys Keys, n int) (of []uint16, partitions int) {
	n = min(n, MaxPartitions)
	sample := make([]int32, 0, min(keys.len(), maxCutSample))
	// Fractional steps sample all rows evenly; integer steps would miss the end.
	for i := range cap(sample) {
		sample = append(sample, int32(uint64(i)*uint64(keys.len())/uint64(cap(sample))))
	}
	of = make([]uint16, keys.len())
	if len(keys) > 1 {
		slices.SortFunc(sample, keys.compare)
		bounds := cutSorted(sample, keys.compare, n)
		for i := range of {
			of[i] = find(bounds, int32(i), keys.compare)
		}
		return of, len(bounds) + 1
	}
	// Contiguous numbers sort several times faster than indexes.
	values := make([]uint64, len(sample))
	for i, row := range sample {
		values[i] = keys[0][row]
	}
	slices.Sort(values)
	bounds := cutSorted(values, cmp.Compare[uint64], n)
	for i, v := range keys[0] {
		of[i] = find(bounds, v, cmp.Compare[uint64])
	}
	return of, len(bounds) + 1
}

// find returns the number of bounds at or below a key.
func find[T any](bounds []T, key T, compare func(a, b T) int) uint16 {
	return uint16(sort.Search(len(bounds), func(i int) bool { return compare(bounds[i], key) > 0 }))
}

// cutSorted returns the first key of each partition except the first. Each gets an equal share of the remaining rows.
func cutSorted[T any](sorted []T, compare func(a, b T) int, n int) (bounds []T) {
	last := 0
	for left := n; left > 1; left-- {
		ideal := last + (len(sorted)-last)/left
		if ideal >= len(sorted) {
			break
		}
		low, _ := slices.BinarySearchFunc(sorted, sorted[ideal], compare)
		high := low
		for high < len(sorted) && compare(sorted[high], sorted[low]) == 0 {
			high++
		}
		at := low
		if low <= last || ideal-low > high-ideal {
			at = high
		}
		if at >= len(sorted) {
			break
		}
		bounds = append(bounds, sorted[at])
		last = at
	}
	return bounds
}
