package sim

import (
	"cmp"
	"math"
	"slices"
)

// schedule holds a table's automatic changes. The table's methods that depend on the time first make the changes due by
// then.
type schedule struct {
	begun bool
	due   int64 // earliest of the times below, or never
	round int64 // time of the next round of splits
	move  int64
	split []dueSplit // of the current rounds, by time

	mark int64 // numbers the calls of Latency
}

type dueSplit struct {
	at int64
	id int
}

const never = math.MaxInt64

// begin starts the schedule at the first write request after Configure.
func (t *Table) begin(at int64) {
	if t.clock.begun {
		return
	}
	t.clock.begun, t.clock.round, t.clock.move = true, never, never
	if t.config.Splits.on() {
		t.clock.round = after(at, int64(t.config.Splits.Start))
	}
	t.drawMove(at)
	t.plan()
}

// after returns at + d, or never if that overflows, because durations come from users.
func after(at, d int64) int64 {
	if d > never-at {
		return never
	}
	return at + d
}

func (t *Table) drawMove(at int64) {
	if t.config.Moves.PerMinute > 0 {
		t.clock.move = after(at, int64(t.rng.ExpFloat64()*60e9/t.config.Moves.PerMinute))
	}
}

func (t *Table) plan() {
	t.clock.due = min(t.clock.round, t.clock.move)
	if len(t.clock.split) > 0 {
		t.clock.due = min(t.clock.due, t.clock.split[0].at)
	}
}

// maxCatchUp limits the changes made in one call after a long time without calls.
const maxCatchUp = 10_000

// advance makes the changes that are due by now.
func (t *Table) advance(now int64) {
	if !t.clock.begun {
		return
	}
	for n := 0; t.clock.due <= now; n++ {
		if n == maxCatchUp { // for example, thousands of moves in an idle hour; the rest does not matter
			t.skip(now)
			return
		}
		t.happen(t.clock.due)
		t.plan()
	}
}

func (t *Table) happen(at int64) {
	c := &t.clock
	switch {
	case len(c.split) > 0 && c.split[0].at == at:
		id := c.split[0].id
		c.split = c.split[1:]
		t.splitDue(id, at)
	case c.round == at:
		t.startRound(at)
	default:
		t.parts[t.rng.IntN(len(t.parts))].stop(at, after(at, int64(t.config.Moves.Unavailable)))
		t.drawMove(at)
	}
}

func (t *Table) skip(now int64) {
	t.clock.split = nil
	if t.clock.round <= now {
		t.clock.round = after(now, int64(t.config.Splits.Every))
	}
	t.drawMove(now)
	t.plan()
}

// startRound schedules a split of every partition, up to the limit.
func (t *Table) startRound(at int64) {
	s := &t.config.Splits
	c := &t.clock
	room := s.MaxPartitions - len(t.parts) - len(c.split)
	for i, p := range t.parts {
		if i >= room {
			break
		}
		c.split = append(c.split, dueSplit{after(at, int64(i)*int64(s.Stagger)), p.id})
	}
	slices.SortStableFunc(c.split, func(a, b dueSplit) int { return cmp.Compare(a.at, b.at) })
	c.round = never
	if s.Every > 0 && len(t.parts) < s.MaxPartitions {
		c.round = after(at, int64(s.Every))
	}
}

// splitDue halves the partition with this id, if it still exists and at least two of its keys are known.
func (t *Table) splitDue(id int, at int64) {
	for _, p := range t.parts {
		if p.id == id {
			t.halve(p, at, t.config.Splits.Unavailable)
			return
		}
	}
}
