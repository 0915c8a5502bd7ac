package tsimport

import (
	"slices"
	"sort"

	"example.com/tsimport/internal/table"
)

// rowOutcomes tracks every accepted row without an outcome, and counts outcomes. Its methods need the Loader's lock.
type rowOutcomes struct {
	counts Counts
	live   []*batch // in the order of their rows
	ended  int      // approximate number of batches whose rows all have outcomes
	ends   []ending // outcomes not delivered yet
	out    int      // endings being delivered

	unreported, unreportedSinceFlush        int64 // rejected rows without a Done
	firstUnreported, firstUnreportedOfFlush Outcome
}

type batch struct {
	first int64
	rows  int
	left  int                     // rows without an outcome
	done  []func(Outcome)         // by row; nil if no row has one yet
	few   map[int64]func(Outcome) // replaces done when few rows are left
	whole bool                    // no more rows will be added
}

// take returns the Done of a row and forgets it.
func (b *batch) take(row int64) (done func(Outcome)) {
	if b.few != nil {
		done = b.few[row]
		delete(b.few, row)
	} else if b.done != nil {
		done, b.done[row] = b.done[row], nil
	}
	return done
}

// shrink moves the Dones of the last few rows to a map: these rows may wait long, and must not retain the whole slice.
func (b *batch) shrink() {
	if b.done == nil || !b.whole || b.left > len(b.done)/16 {
		return
	}
	b.few = map[int64]func(Outcome){}
	for i, done := range b.done {
		if done != nil {
			b.few[int64(i)] = done
		}
	}
	b.done = nil
}

// ending is the outcome of a row, to be delivered.
type ending struct {
	record int64
	end    End
	why    *table.Reason // reason of a rejection
	batch  *batch
	done   func(Outcome)
}

func (g *rowOutcomes) accept(done func(Outcome)) {
	b := g.live[len(g.live)-1]
	if done != nil && b.done == nil {
		b.done = make([]func(Outcome), b.rows, b.rows+1)
	}
	if b.done != nil {
		b.done = append(b.done, done)
	}
	b.rows++
	b.left++
	g.counts.Accepted++
}

// take returns the endings to be delivered, with their Dones. It uses spare as the buffer for new ones.
func (g *rowOutcomes) take(spare []ending) []ending {
	ends := g.ends
	g.ends, g.out = spare[:0], len(ends)
	var b *batch
	for i := range ends {
		e := &ends[i]
		if b == nil || e.record < b.first || e.record >= b.first+int64(b.rows) {
			b = g.live[sort.Search(len(g.live), func(i int) bool { return g.live[i].first > e.record })-1]
		}
		e.batch = b
		e.done = b.take(e.record - b.first)
	}
	return ends
}

func (g *rowOutcomes) delivered(ends []ending) {
	g.out = 0
	for i := range ends {
		e := &ends[i]
		switch e.end {
		case Written:
			g.counts.Written++
		case Superseded:
			g.counts.Superseded++
		case Rejected:
			g.counts.Rejected++
			if e.why.MaybeApplied {
				g.counts.MaybeApplied++
			}
			if e.done == nil {
				g.hide(e.outcome())
			}
		}
		e.batch.left--
		e.batch.shrink()
		if e.batch.final() {
			g.ended++
		}
	}
	if g.ended > len(g.live)/2 {
		g.live, g.ended = slices.DeleteFunc(g.live, (*batch).final), 0
	}
}

// final reports whether every row of the batch has an outcome.
func (b *batch) final() bool { return b.whole && b.left == 0 }

// hide records a rejected row without a Done.
func (g *rowOutcomes) hide(o Outcome) {
	if g.unreported++; g.unreported == 1 {
		g.firstUnreported = o
	}
	if g.unreportedSinceFlush++; g.unreportedSinceFlush == 1 {
		g.firstUnreportedOfFlush = o
	}
}

// rejectedSinceFlush returns an error if rows without a Done were rejected since the last Flush.
func (g *rowOutcomes) rejectedSinceFlush() error {
	n := g.unreportedSinceFlush
	if g.unreportedSinceFlush = 0; n == 0 {
		return nil
	}
	return &RejectedError{Rows: n, First: g.firstUnreportedOfFlush}
}

// rejected is like rejectedSinceFlush, but covers all rows of the Loader.
func (g *rowOutcomes) rejected() error {
	if g.unreported == 0 {
		return nil
	}
	return &RejectedError{Rows: g.unreported, First: g.firstUnreported}
}

// final reports whether each of the first n rows has an outcome.
func (g *rowOutcomes) final(n int64) bool {
	for _, b := range g.live {
		if b.first >= n {
			break
		}
		if b.left > 0 {
			return false
		}
	}
	return true
}

// abandon returns Unfinished endings for the rows with a Done but no outcome, and forgets all rows.
func (g *rowOutcomes) abandon() (ends []ending) {
	for _, b := range g.live {
		for i := range int64(b.rows) {
			if done := b.take(i); done != nil {
				ends = append(ends, ending{record: b.first + i, end: Unfinished, done: done})
			}
		}
	}
	g.live = nil
	return ends
}

func (g *rowOutcomes) now() Counts {
	c := g.counts
	c.Unfinished = c.Accepted - c.Written - c.Superseded - c.Rejected
	return c
}

func (e *ending) outcome() Outcome {
	o := Outcome{Number: e.record + 1, End: e.end}
	if e.why != nil {
		o.Code, o.Column, o.Message, o.Value, o.MaybeApplied = e.why.Code, e.why.Column, e.why.Message, e.why.Value,
			e.why.MaybeApplied
	}
	return o
}
