package readorder

import (
	"bytes"
	"cmp"
	"container/heap"
	"math"
	"math/bits"
	"slices"
)

// Order returns the places of the sections, which are given in the order of the input, in the order in which they are to be read. A
// section comes after every earlier one that has an interval which meets one of its own. Of those that may come, the one comes
// first whose lowest key is farthest from those that were before it, by the rows between them: so rows are read evenly from all
// keys. The first head sections stay where they are: they were read already.
func Order(sections []Section, head int) []int32 {
	o := &ordering{waits: make([]int32, len(sections))}
	o.bind(sections)
	o.rank(sections)
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

// ordering is what Order works with.
type ordering struct {
	waits []int32  // earlier sections that must come first, by section
	edges []int32  // sections that wait for one, by
	first []int32  // where the edges of a section begin
	turn  []uint64 // by section: whichever is least comes first
	low   []int32  // by section, the place of its lowest key among all ends of intervals; -1 without keys
	free  freeSections
}

// bind finds which sections wait for which. It paints the keys with the sections in their order: a section waits for those whose
// paint it covers. What they had covered before waits for it by them.
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

// ends numbers the ends of all intervals in key order, equal ones alike. It returns the numbers of the lower and the upper end of each
// interval, and how many there are.
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

// rank gives every section its turn: the rows before its lowest key, with their bits reversed.
func (o *ordering) rank(sections []Section) {
	byKey := make([]int32, len(sections))
	total := int64(0)
	for i := range byKey {
		byKey[i] = int32(i)
		total += sections[i].Records
	}
	slices.SortStableFunc(byKey, func(a, b int32) int { return cmp.Compare(o.low[a], o.low[b]) })
	o.turn = make([]uint64, len(sections))
	// No more bits than the sections can fill: the lowest ones count most.
	steps := math.Exp2(float64(bits.Len(uint(len(sections)))))
	before := int64(0)
	for _, i := range byKey {
		o.turn[i] = bits.Reverse64(uint64(float64(before) / float64(max(total, 1)) * steps))
		before += sections[i].Records
	}
}

// freeSections are a heap of sections by their turns.
type freeSections struct {
	list []int32
	turn []uint64
}

func (f *freeSections) Len() int { return len(f.list) }

func (f *freeSections) Less(i, j int) bool {
	a, b := f.list[i], f.list[j]
	return f.turn[a] < f.turn[b] || f.turn[a] == f.turn[b] && a < b
}

func (f *freeSections) Swap(i, j int) { f.list[i], f.list[j] = f.list[j], f.list[i] }

func (f *freeSections) Push(x any) { f.list = append(f.list, x.(int32)) }

func (f *freeSections) Pop() any {
	last := len(f.list) - 1
	x := f.list[last]
	f.list = f.list[:last]
	return x
}
