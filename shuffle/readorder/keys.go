package readorder

import (
	"bytes"
	"cmp"
	"slices"

	"example.com/tsimport/internal/table"
)

// MaxIntervals limits a section's intervals: one for most of its rows, and some for outliers.
const MaxIntervals = 4

// wideGap decides which gaps separate intervals: those of at least 1/wideGap of the section's key span.
const wideGap = 8

// Cover returns intervals that hold the keys. It sorts keys, but keeps no reference to them.
func Cover(keys [][]byte) []Interval {
	if len(keys) == 0 {
		return nil
	}
	if !slices.IsSortedFunc(keys, bytes.Compare) {
		slices.SortFunc(keys, bytes.Compare)
	}
	m := newMeasure(keys[0], keys[len(keys)-1])
	var cuts []gap
	span := m.of(keys[len(keys)-1]) - m.of(keys[0])
	last := m.of(keys[0])
	for i := 1; i < len(keys); i++ {
		at := m.of(keys[i])
		if wide := at - last; wide > 0 && wide >= span/wideGap {
			cuts = append(cuts, gap{i, wide})
		}
		last = at
	}
	var all []Interval
	from := 0
	for _, at := range append(widest(cuts), len(keys)) {
		all = append(all, interval(keys[from], keys[at-1]))
		from = at
	}
	return all
}

// interval returns the interval from lower to upper, with copies of both.
func interval(lower, upper []byte) Interval {
	if bytes.Equal(lower, upper) {
		one := bytes.Clone(lower)
		return Interval{one, one}
	}
	both := make([]byte, 0, len(lower)+len(upper))
	both = append(append(both, lower...), upper...)
	return Interval{both[:len(lower):len(lower)], both[len(lower):]}
}

// gap is a place where keys are far apart: the index of the key after it, and its width.
type gap struct {
	at   int
	wide uint64
}

// widest returns the places of the widest gaps, at most MaxIntervals-1, in key order.
func widest(gaps []gap) []int {
	slices.SortStableFunc(gaps, func(a, b gap) int { return cmp.Compare(b.wide, a.wide) })
	var at []int
	for _, g := range gaps[:min(len(gaps), MaxIntervals-1)] {
		at = append(at, g.at)
	}
	slices.Sort(at)
	return at
}

// joinKeys returns intervals that hold the keys of both lists.
func joinKeys(a, b []Interval) []Interval {
	all := slices.Concat(a, b)
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(x, y Interval) int { return bytes.Compare(x.Lower, y.Lower) })
	joined := all[:1]
	for _, next := range all[1:] {
		last := &joined[len(joined)-1]
		if bytes.Compare(next.Lower, last.Upper) > 0 {
			joined = append(joined, next)
		} else if bytes.Compare(next.Upper, last.Upper) > 0 {
			last.Upper = next.Upper
		}
	}
	if len(joined) <= 1 {
		return slices.Clone(joined)
	}
	m := newMeasure(joined[0].Lower, joined[len(joined)-1].Upper)
	var cuts []gap
	span := m.of(joined[len(joined)-1].Upper) - m.of(joined[0].Lower)
	for i := 1; i < len(joined); i++ {
		if wide := m.of(joined[i].Lower) - m.of(joined[i-1].Upper); wide >= span/wideGap {
			cuts = append(cuts, gap{i, wide})
		}
	}
	var few []Interval
	from := 0
	for _, at := range append(widest(cuts), len(joined)) {
		few = append(few, Interval{joined[from].Lower, joined[at-1].Upper})
		from = at
	}
	return few
}

// measure measures distances of keys by the eight bytes after their common prefix.
type measure struct{ shared int }

func newMeasure(lowest, highest []byte) measure { return measure{table.SharedPrefix(lowest, highest)} }

func (m measure) of(key []byte) uint64 { return table.Head(key[min(m.shared, len(key)):]) }
