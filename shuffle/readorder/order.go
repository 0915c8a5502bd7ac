package readorder

import (
	"bytes"
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// Order returns the indices of the sections in reading order. A section follows every earlier one with an overlapping
// interval; otherwise sections spread over the keys (rank). The first head sections keep their places.
func Order(sections []Section, head int) []int32 {
	o := &ordering{waits: make([]int32, len(sections))}
	o.bind(sections)
	o.rank(sections, head)
	order := make([]int32, 0, len(sections))
	take := func(i int32) {
		order = append(order, i)
		for _, e := range o.edges[o.first[i]:o.first[i+1]] {
			if o.waits[e]--; o.waits[e] == 0 && int(e) >= head {
				heap.Push(&o.free, e)
			}
		}
	}
	o.free.turn = o.turn
	for i := head; i < len(sections); i++ {
		if o.waits[i] == 0 {
			o.free.list = append(o.free.list, int32(i))
		}
	}
	heap.Init(&o.free)
	for i := range head {
		take(int32(i))
	}
	for len(o.free.list) > 0 {
		take(heap.Pop(&o.free).(int32))
	}
	return order
}

// Spread is Order for sections that need not wait for each other.
func Spread(sections []Section, head int) []int32 {
	o := &ordering{low: make([]int32, len(sections))}
	places, _ := ends(sections)
	order := make([]int32, len(sections))
	for i, at := 0, 0; i < len(sections); i++ {
		order[i], o.low[i] = int32(i), -1
		if n := len(sections[i].Keys); n > 0 {
			o.low[i] = places[at]
			at += 2 * n
		}
	}
	o.rank(sections, head)
	slices.SortFunc(order[head:], func(a, b int32) int { return cmp.Compare(o.turn[a], o.turn[b]) })
	return order
}

type ordering struct {
	waits []int32 // number of earlier sections that must come first, by section
	edges []int32 // sections that wait for another one, grouped by the latter
	first []int32 // where a section's edges begin
	turn  []int32 // by section; the free section with the lowest turn is next
	low   []int32 // by section, the place of its lowest key among all interval ends; -1 without keys
	free  freeSections
}

// bind finds which sections wait for which. If sections are painted in order, one waits for all whose paint it covers.
func (o *ordering) bind(sections []Section) {
	places, n := ends(sections)
	o.low = make([]int32, len(sections))
	paint := newPaint(n)
	var from, to []int32
	at := 0
	var under []int32
	for i := range sections {
		o.low[i] = -1
		under = under[:0]
		for range sections[i].Keys {
			lower, upper := places[at], places[at+1]
			at += 2
			if o.low[i] < 0 {
				o.low[i] = lower
			}
			under = paint.cover(lower, upper, int32(i), under)
		}
		slices.Sort(under)
		for _, u := range slices.Compact(under) {
			from, to = append(from, u), append(to, int32(i))
			o.waits[i]++
		}
	}
	o.first = make([]int32, len(sections)+1)
	for _, f := range from {
		o.first[f+1]++
	}
	for i := range sections {
		o.first[i+1] += o.first[i]
	}
	o.edges = make([]int32, len(from))
	next := slices.Clone(o.first)
	for k, f := range from {
		o.edges[next[f]] = to[k]
		next[f]++
	}
}

// ends numbers all interval ends in key order, equal ones alike. It returns each interval's two, and their count.
func ends(sections []Section) (places []int32, n int) {
	var keys [][]byte
	for i := range sections {
		for _, k := range sections[i].Keys {
			keys = append(keys, k.Lower, k.Upper)
		}
	}
	sorted := make([]int32, len(keys))
	for i := range sorted {
		sorted[i] = int32(i)
	}
	slices.SortFunc(sorted, func(a, b int32) int { return bytes.Compare(keys[a], keys[b]) })
	places = make([]int32, len(keys))
	for i, k := range sorted {
		if i > 0 && !bytes.Equal(keys[k], keys[sorted[i-1]]) {
			n++
		}
		places[k] = int32(n)
	}
	return places, n + 1
}

// golden is the golden ratio modulo 1. For any n, its first n multiples, modulo 1, divide an interval evenly.
const golden = 0.6180339887498949

// tablesTogether is the number of tables read in turns. More tables would have more partitions, but soon more than a
// load can keep busy; and each table needs lanes and polling.
const tablesTogether = 16

// rank gives every section its turn. On a line of keys every section has a stretch as long as its number of rows. The
// first multiple of the golden ratio that hits the stretch sets its turn. Short sections precede the others, so that
// many key ranges have rows early. Groups of tables follow in input order. The first head sections have no turns.
func (o *ordering) rank(sections []Section, head int) {
	byKey := make([]int32, len(sections)-head)
	for i := range byKey {
		byKey[i] = int32(head + i)
	}
	group := func(i int32) int32 { return sections[i].Table / tablesTogether }
	slices.SortStableFunc(byKey, func(a, b int32) int {
		return cmp.Or(cmp.Compare(group(a), group(b)), cmp.Compare(o.low[a], o.low[b]))
	})
	o.turn = make([]int32, len(sections))
	turn := int32(0)
	for from := 0; from < len(byKey); {
		to := from + 1
		for to < len(byKey) && group(byKey[to]) == group(byKey[from]) {
			to++
		}
		turn = o.rankTables(sections, byKey[from:to], turn)
		from = to
	}
}

// rankTables gives a group's sections, in key order, the turns from the given one on, and returns the next turn.
func (o *ordering) rankTables(sections []Section, byKey []int32, turn int32) int32 {
	total := int64(0)
	for _, i := range byKey {
		total += sections[i].Records
	}
	var short, long []int32
	usual := usualOfShort(sections, byKey)
	for _, i := range byKey {
		if n := sections[i].Records; n <= 2*usual && 2*n*int64(len(byKey)) < total {
			short = append(short, i)
		} else {
			long = append(long, i)
		}
	}
	return o.takeTurns(sections, long, o.takeTurns(sections, short, turn))
}

// usualOfShort returns the usual number of records of a short section, if half of the sections are short. The remainder
// of a split may be shorter than a long section and still be too long to come early.
func usualOfShort(sections []Section, some []int32) int64 {
	records := make([]int64, len(some))
	for i, s := range some {
		records[i] = sections[s].Records
	}
	slices.Sort(records)
	return records[len(records)/4]
}

// takeTurns gives the sections, in key order, the turns from the given one on, and returns the next turn.
func (o *ordering) takeTurns(sections []Section, byKey []int32, turn int32) int32 {
	if len(byKey) == 0 {
		return turn
	}
	rows := int64(0)
	for _, i := range byKey {
		rows += sections[i].Records
	}
	least := rows/int64(4*len(byKey)) + 1 // so that no section waits long for a hit
	ends := make([]int64, len(byKey))
	end := int64(0)
	for k, i := range byKey {
		end += max(sections[i].Records, least)
		ends[k] = end
	}
	taken := make([]bool, len(byKey))
	for at, left := golden, len(byKey); left > 0; at = math.Mod(at+golden, 1) {
		k, _ := slices.BinarySearch(ends, int64(at*float64(end))+1)
		if !taken[k] {
			taken[k] = true
			o.turn[byKey[k]] = turn
			turn++
			left--
		}
	}
	return turn
}

// freeSections is a heap of sections by turn.
type freeSections struct {
	list []int32
	turn []int32
}

func (f *freeSections) Len() int { return len(f.list) }

func (f *freeSections) Less(i, j int) bool { return f.turn[f.list[i]] < f.turn[f.list[j]] }

func (f *freeSections) Swap(i, j int) { f.list[i], f.list[j] = f.list[j], f.list[i] }

func (f *freeSections) Push(x any) { f.list = append(f.list, x.(int32)) }

func (f *freeSections) Pop() any {
	last := len(f.list) - 1
	x := f.list[last]
	f.list = f.list[:last]
	return x
}
