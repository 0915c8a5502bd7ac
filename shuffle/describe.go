package shuffle

import (
	"bytes"

	"example.com/tsimport/internal/table"
)

// Part is part of a lane's queue: all rows of a split's records [From, To) with keys in Keys. Nil Keys means all keys.
type Part struct {
	Lane     int
	Keys     *table.KeyRange
	Split    *table.Split
	From, To uint32
}

func (s *Lanes) SetKeys(lane int, keys *table.KeyRange) { s.lanes[lane].keys = keys }

// narrow cuts the item's keys to the lane's: items with equal key ranges are in order only if all are of the same lane.
func (l *Queue) narrow(i *item) *item {
	if i.block == nil || l.keys == nil || i.keys == l.keys {
		return i // a frame is queued in every lane that has its keys
	}
	if i.keys == nil {
		i.keys = l.keys
		return i
	}
	if known := l.narrowed[i.keys]; known != nil {
		i.keys = known
		return i
	}
	within, _ := i.keys.Within(*l.keys) // never empty: the item has rows
	if !bytes.Equal(within.Lower, i.keys.Lower) || !bytes.Equal(within.Upper, i.keys.Upper) {
		if l.narrowed == nil {
			l.narrowed = map[*table.KeyRange]*table.KeyRange{}
		}
		l.narrowed[i.keys] = &within
		i.keys = &within
	}
	return i
}

// Describe calls each with every queued part, in memory and on disk. If rows are ordered, it omits all but the first
// part of each key range in each lane, since later rows of those keys wait. A recut lane has several ranges, because
// earlier rows keep the order of their former lane, but have no order among the other rows of the new one.
func (s *Lanes) Describe(each func(Part)) {
	for n, l := range s.lanes {
		l.describe(n, s.o.Unordered, each)
	}
}

func (l *Queue) describe(n int, every bool, each func(Part)) {
	seen := map[*table.KeyRange]bool{}
	give := func(p Part) {
		if every || !seen[p.Keys] {
			seen[p.Keys] = true
			each(p)
		}
	}
	for _, i := range l.items {
		if !every && seen[l.keys] {
			return // the last part has the lane's own keys
		}
		if i.block != nil {
			give(Part{n, i.keys, i.block.Split, i.start(), i.to})
			continue
		}
		for _, p := range i.frame.parts {
			give(Part{n, p.keys, p.split, p.from, p.to})
		}
	}
}
