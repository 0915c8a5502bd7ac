package sketch

import (
	"bytes"
	"cmp"
	"slices"
)

// Limits for the n counters of a Top, which finds values with over 1/n of the rows and undercounts by at most 1/n.
const (
	minCounters = 64
	maxCounters = 1024
)

// Top finds the most frequent values by the Space-Saving method, in constant memory. Equal hashes count as one value.
type Top struct {
	counters int
	slots    []slot
	at       map[uint64]int32
	seen     uint64
	hand     int    // slot where the search for the smallest count continues
	least    uint64 // lower bound of all counts
}

type slot struct {
	hash  uint64
	count uint64 // too high by at most over
	over  uint64 // the slot's count when the value replaced another
	value []byte
}

// Counted is a value and a lower bound of its count.
type Counted struct {
	Value []byte
	Count uint64
}

// NewTop returns an empty Top with this number of counters, within limits.
func NewTop(counters int) *Top {
	return &Top{counters: min(max(counters, minCounters), maxCounters), at: map[uint64]int32{}}
}

// Seen returns how many values were counted, including repeats.
func (t *Top) Seen() uint64 { return t.seen }

// Known counts a value that already has a counter. If it returns false, call Add with the value itself.
func (t *Top) Known(hash uint64) bool {
	i, ok := t.at[hash]
	if ok {
		t.seen++
		t.slots[i].count++
	}
	return ok
}

// Add counts a value, which it copies if it is new.
func (t *Top) Add(hash uint64, value []byte) {
	if t.Known(hash) {
		return
	}
	t.seen++
	if len(t.slots) < t.counters {
		t.at[hash] = int32(len(t.slots))
		t.slots = append(t.slots, slot{hash: hash, count: 1, value: bytes.Clone(value)})
		return
	}
	i := t.smallest()
	s := &t.slots[i]
	delete(t.at, s.hash)
	t.at[hash] = int32(i)
	*s = slot{hash: hash, count: s.count + 1, over: s.count, value: append(s.value[:0], value...)}
}

// smallest returns a slot with the smallest count. As counts only grow, it scans once per smallest count.
func (t *Top) smallest() int {
	for range t.slots {
		i := t.hand
		t.hand = (t.hand + 1) % len(t.slots)
		if t.slots[i].count == t.least {
			return i
		}
	}
	low := slices.MinFunc(t.slots, func(a, b slot) int { return cmp.Compare(a.count, b.count) }).count
	t.least = low
	i := slices.IndexFunc(t.slots, func(s slot) bool { return s.count == low })
	t.hand = (i + 1) % len(t.slots)
	return i
}

// Values returns the n most frequent values in descending order, with lower bounds of their counts.
func (t *Top) Values(n int) []Counted {
	var all []Counted
	for _, s := range t.slots {
		all = append(all, Counted{s.value, s.count - s.over})
	}
	slices.SortFunc(all, func(a, b Counted) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), bytes.Compare(a.Value, b.Value))
	})
	return all[:min(n, len(all))]
}
