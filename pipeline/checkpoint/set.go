package checkpoint

import (
	"cmp"
	"slices"
	"sort"
)

// Position is a record's place in the whole input: its source's ordinal, and its number in the source from 0.
type Position uint64

const recordBits = 40

func At(source int, record int64) Position { return Position(source)<<recordBits | Position(record) }

func (p Position) Source() int { return int(p >> recordBits) }

func (p Position) Record() int64 { return int64(p & (1<<recordBits - 1)) }

// Interval holds the positions from From to To, excluding To.
type Interval struct{ From, To Position }

// Set is a set of positions: sorted intervals that neither overlap nor touch.
type Set []Interval

// after returns the index of the first interval that ends after p.
func (s Set) after(p Position) int {
	return sort.Search(len(s), func(i int) bool { return s[i].To > p })
}

func (s Set) Has(p Position) bool {
	i := s.after(p)
	return i < len(s) && s[i].From <= p
}

// Next returns the first position of the set at or after p.
func (s Set) Next(p Position) (Position, bool) {
	i := s.after(p)
	if i == len(s) {
		return 0, false
	}
	return max(p, s[i].From), true
}

// Count returns how many positions of the interval are in the set. The interval must lie in one source.
func (s Set) Count(from, to Position) (n int64) {
	for i := s.after(from); i < len(s) && s[i].From < to; i++ {
		n += int64(min(to, s[i].To) - max(from, s[i].From))
	}
	return n
}

// End returns the position after the set's last one.
func (s Set) End() Position {
	if len(s) == 0 {
		return 0
	}
	return s[len(s)-1].To
}

// Add returns the set with one more interval. It may reuse the memory of s.
func (s Set) Add(from, to Position) Set {
	if from >= to {
		return s
	}
	// Intervals from first on end at or after from; intervals from last on begin after to.
	first := sort.Search(len(s), func(i int) bool { return s[i].To >= from })
	last := first + sort.Search(len(s)-first, func(i int) bool { return s[first+i].From > to })
	if first < last {
		from, to = min(from, s[first].From), max(to, s[last-1].To)
	}
	return slices.Replace(s, first, last, Interval{from, to})
}

// Of returns the set of the given intervals, which may overlap and be in any order. It reuses their memory.
func Of(all []Interval) Set {
	slices.SortFunc(all, func(a, b Interval) int { return cmp.Compare(a.From, b.From) })
	s := Set(all[:0])
	for _, i := range all {
		switch n := len(s) - 1; {
		case i.From >= i.To:
		case n >= 0 && i.From <= s[n].To:
			s[n].To = max(s[n].To, i.To)
		default:
			s = append(s, i)
		}
	}
	return s
}

// OfPositions returns the set of the given positions, in any order. It sorts them in place.
func OfPositions(all []Position) (s Set) {
	slices.Sort(all)
	for _, p := range all {
		switch n := len(s) - 1; {
		case n >= 0 && p < s[n].To: // repeated
		case n >= 0 && p == s[n].To:
			s[n].To++
		default:
			s = append(s, Interval{p, p + 1})
		}
	}
	return s
}

// Union returns the positions in a or b.
func Union(a, b Set) Set {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	return Of(slices.Concat(a, b))
}

// Intersect returns the positions in both a and b.
func Intersect(a, b Set) (both Set) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if from, to := max(a[i].From, b[j].From), min(a[i].To, b[j].To); from < to {
			both = append(both, Interval{from, to})
		}
		if a[i].To < b[j].To {
			i++
		} else {
			j++
		}
	}
	return both
}

// Subtract returns the positions in a and not in b.
func Subtract(a, b Set) (rest Set) {
	j := 0
	for _, i := range a {
		for j < len(b) && b[j].To <= i.From {
			j++
		}
		for k := j; k < len(b) && b[k].From < i.To && i.From < i.To; k++ {
			if b[k].From > i.From {
				rest = append(rest, Interval{i.From, b[k].From})
			}
			i.From = max(i.From, b[k].To)
		}
		if i.From < i.To {
			rest = append(rest, i)
		}
	}
	return rest
}
