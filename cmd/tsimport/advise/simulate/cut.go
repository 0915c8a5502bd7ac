package simulate

import (
	"cmp"
	"slices"
)

// Keys are the partition keys of rows: for row i the numbers Keys[0][i], Keys[1][i], … compare one after the other as
// the service compares the keys.
type Keys [][]uint64

// MaxPartitions is how many partitions a simulated table has at most.
const MaxPartitions = 4096

// maxCutSample is how many rows the bounds are found from; more make no bound visibly better.
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

// Cut divides the rows among n range partitions that hold as equal numbers of rows as whole key values allow. It returns
// the partition of each row and how many partitions there are, fewer than n where the values are too few or one of them
// is too heavy.
func Cut(keys Keys, n int) (of []uint16, partitions int) {
	n = min(n, MaxPartitions)
	sample := make([]int32, 0, min(keys.len(), maxCutSample))
	// Steps of a fraction reach every part of the rows alike; whole ones would leave out the end.
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
	// Numbers that stand together are sorted several times faster than rows that point to theirs.
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

// find counts the bounds at or below a key.
func find[T any](bounds []T, key T, compare func(a, b T) int) uint16 {
	low, high := 0, len(bounds)
	for low < high {
		middle := (low + high) / 2
		if compare(bounds[middle], key) <= 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return uint16(low)
}

// cutSorted finds the keys at which partitions begin, but for the first one. Each takes its even part of what is left, so
// that a heavy value does not cost its neighbours their partitions.
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
