package lanes

import (
	"bytes"
	"math"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/plan"
)

// Recut sets a new partition map. Lanes with unchanged ranges remain; the others inherit what their former lanes knew.
func (s *Set) Recut(now time.Time, m *partitioner.Map) {
	old, oldLanes := s.Partitions, s.all
	same, over := sameRanges(old, m), overlaps(old, m)
	s.Queues.Recut(m.Len(), func(i int) int { return same[i] }, func(i int) []int { return over[i] }, m.Find,
		func(i int) *table.KeyRange { return new(m.Range(i)) })
	s.Cutter.Recut(m.Len(), m.Find)
	from := make([][]int, m.Len())
	for i, news := range over {
		for _, n := range news {
			from[n] = append(from[n], i)
		}
	}
	before, successors := make([]*lane, m.Len()), map[*lane]int{}
	for i := range before {
		if same[i] < 0 {
			before[i] = predecessorOf(old, m, i, from[i], oldLanes)
			successors[before[i]]++
		}
	}
	s.all = make([]*lane, m.Len())
	for i := range s.all {
		queue := s.Queues.Lane(i)
		var l *lane
		if same[i] >= 0 {
			l = oldLanes[same[i]]
			l.index, l.queue, l.turn.stale = i, queue, true
		} else if p := before[i]; p != nil {
			l = p.child(now, i, queue, successors[p] > 1)
		} else {
			l = s.add(i, m)
		}
		s.all[i] = l
		l.table, l.gap = m.Table(i), m.Gap(i)
		if same[i] < 0 {
			owners, parts := make([]*lane, len(from[i])), make([]int, len(from[i]))
			for n, j := range from[i] {
				owners[n], parts[n] = oldLanes[j], len(over[j])
			}
			l.takeOver(owners)
			l.allowance.inherit(owners, parts, s.options.Checkpointer != nil && s.options.Order == plan.LastWins)
		}
		if l.turn.begun.IsZero() && (queue.Ready() > 0 || s.Cutter.Held(i) > 0) {
			l.turn.begun = now
		}
	}
	s.Partitions = m
	s.Queues.SetIdle(m.Gap)
	s.countHung()
	s.share()
}

// predecessorOf returns the lane with whose rate a new lane begins. Of the lanes that share keys with it, that is one
// with a common bound, or else the one that has sent the most. It returns nil if all of these are gaps.
func predecessorOf(old, m *partitioner.Map, i int, from []int, lanes []*lane) (found *lane) {
	best := int64(-1)
	for _, j := range from {
		if lanes[j].gap {
			continue
		}
		score := lanes[j].tally.written
		if bytes.Equal(old.Lower(j), m.Lower(i)) || bytes.Equal(old.Range(j).Upper, m.Range(i).Upper) {
			score = math.MaxInt64 - 1
		}
		if score > best {
			found, best = lanes[j], score
		}
	}
	return found
}

// sameRanges returns, for each partition of a new map, the old partition with the same range, or -1.
func sameRanges(old, m *partitioner.Map) []int {
	same := make([]int, m.Len())
	j := 0
	for i := range same {
		same[i] = -1
		for j < old.Len()-1 && bytes.Compare(old.Lower(j), m.Lower(i)) < 0 {
			j++
		}
		if bytes.Equal(old.Lower(j), m.Lower(i)) && bytes.Equal(old.Range(j).Upper, m.Range(i).Upper) {
			same[i] = j
		}
	}
	return same
}

// overlaps returns, for each partition of the old map, the new partitions that share keys with it.
func overlaps(old, m *partitioner.Map) [][]int {
	over := make([][]int, old.Len())
	first := 0
	for i := range over {
		for n := first; n < m.Len(); n++ {
			if hi := m.Range(n).Upper; hi != nil && bytes.Compare(hi, old.Lower(i)) <= 0 {
				first = n + 1
				continue
			}
			if hi := old.Range(i).Upper; hi != nil && bytes.Compare(m.Lower(n), hi) >= 0 {
				break
			}
			over[i] = append(over[i], n)
		}
	}
	return over
}
