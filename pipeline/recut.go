package pipeline

import (
	"bytes"
	"math"
	"time"

	"tsimport/internal/table"
	"tsimport/partitioner"
	"tsimport/pipeline/plan"
)

// recut takes a new partition map: lanes whose range is the same stay, the others are cut anew. A lane that came out of a
// split, or whose bounds were moved, begins with what the one before knew.
func (d *dispatcher) recut(now time.Time, m *partitioner.Map) {
	old, oldLanes := d.partitions, d.lanes
	same := sameRanges(old, m)
	over := overlaps(old, m)
	route := m.Find
	d.queues.Recut(m.Len(), func(i int) int { return same[i] }, func(i int) []int { return over[i] }, route, func(i int) *table.KeyRange {
		keys := m.Range(i)
		return &keys
	})
	d.cutter.Recut(m.Len(), route)
	from := make([][]int, m.Len())
	for i, news := range over {
		for _, n := range news {
			from[n] = append(from[n], i)
		}
	}
	d.lanes = make([]*lane, m.Len())
	for i := range d.lanes {
		queue := d.queues.Lane(i)
		switch {
		case same[i] >= 0:
			d.lanes[i] = oldLanes[same[i]]
			d.lanes[i].index, d.lanes[i].queue, d.lanes[i].stale = i, queue, true
		default:
			if p := heirOf(old, m, i, from[i], oldLanes); p != nil {
				d.lanes[i] = p.child(now, i, queue)
			} else {
				d.lanes[i] = newLane(i, queue, d.hooks.newPacer(&d.cfg.Write, m.Len() == 1), d.cfg.Write.RetryFor)
			}
		}
		d.lanes[i].table, d.lanes[i].gap = m.Table(i), m.Gap(i)
		if same[i] < 0 {
			d.lanes[i].waits(pick(oldLanes, from[i]))
			d.lanes[i].expect(from[i], over, oldLanes, d.cfg.Write.Order == plan.LastWins)
		}
		if l := d.lanes[i]; l.begun.IsZero() && (queue.Ready() > 0 || d.cutter.Held(i) > 0) {
			l.begun = now
		}
	}
	d.partitions = m
	d.queues.SetIdle(m.Gap)
	d.record.recut(d.lanes, m)
	if d.keeper != nil {
		d.keeper.now = true
	}
	d.shareFlights()
	d.survey.current.Store(m)
	d.intake.Recut(m)
	d.report.Recuts++
}

// heirOf returns the lane whose rate a new one begins with: of those that it has keys of, one that begins or ends where it
// does, else the one that sent most. Bounds that are guessed move a little each time. It is nil if nothing was sent there: a
// gap has sent nothing that a table could learn from.
func heirOf(old, m *partitioner.Map, i int, from []int, lanes []*lane) (heir *lane) {
	best := int64(-1)
	for _, j := range from {
		if lanes[j].gap {
			continue
		}
		score := lanes[j].written
		if bytes.Equal(old.Lower(j), m.Lower(i)) || bytes.Equal(upper(old, j), upper(m, i)) {
			score = math.MaxInt64 - 1
		}
		if score > best {
			heir, best = lanes[j], score
		}
	}
	return heir
}

func pick(lanes []*lane, indexes []int) (picked []*lane) {
	for _, i := range indexes {
		picked = append(picked, lanes[i])
	}
	return picked
}

// expect guesses how many rows the new lane will send, by those whose keys it has. It may send none until a checkpoint knows
// it: what the last one lets a lane send are the first rows of that lane's keys, and the first ones of a part of those
// keys stand further back.
func (l *lane) expect(from []int, over [][]int, old []*lane, ordered bool) {
	if !ordered {
		l.left = math.MaxInt64
	}
	for _, i := range from {
		l.taken += old[i].taken / int64(len(over[i]))
	}
}

// sameRanges says for each partition of a new map which of the old one has its range, -1 for none.
func sameRanges(old, m *partitioner.Map) []int {
	same := make([]int, m.Len())
	j := 0
	for i := range same {
		same[i] = -1
		for j < old.Len()-1 && bytes.Compare(old.Lower(j), m.Lower(i)) < 0 {
			j++
		}
		if bytes.Equal(old.Lower(j), m.Lower(i)) && bytes.Equal(upper(old, j), upper(m, i)) {
			same[i] = j
		}
	}
	return same
}

// overlaps says for each partition of the old map which of the new one share keys with it.
func overlaps(old, m *partitioner.Map) [][]int {
	over := make([][]int, old.Len())
	first := 0
	for i := range over {
		for n := first; n < m.Len(); n++ {
			if hi := upper(m, n); hi != nil && bytes.Compare(hi, old.Lower(i)) <= 0 {
				first = n + 1
				continue
			}
			if hi := upper(old, i); hi != nil && bytes.Compare(m.Lower(n), hi) >= 0 {
				break
			}
			over[i] = append(over[i], n)
		}
	}
	return over
}

// upper returns the encoded bound above a partition, nil for the last.
func upper(m *partitioner.Map, i int) []byte {
	if i+1 == m.Len() {
		return nil
	}
	return m.Lower(i + 1)
}
