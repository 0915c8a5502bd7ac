package lanes

import (
	"cmp"
	"math"
)

// allowance limits the rows that may leave a lane's queue between two checkpoints.
type allowance struct {
	left    int64 // rows that may leave now
	next    int64 // rows that may leave from the moment described by the checkpoint being written
	taken   int64 // rows that left since the last described moment
	pending bool  // next becomes valid once the checkpoint is written
}

const (
	// leastAllowance is how many rows a lane may send before the next checkpoint is written, in addition to twice the
	// number sent since the last one. A few lanes share fewAllowance instead.
	leastAllowance = 2000
	fewAllowance   = 16_000
)

func (a *allowance) following(lanes int) int64 {
	return 2*a.taken + max(leastAllowance, fewAllowance/int64(lanes))
}

// described notes that a checkpoint of this moment grants the next allowance. It may be on disk before saved is called.
func (a *allowance) described(next int64) {
	a.next, a.taken, a.pending = next, 0, true
	a.left = min(a.left, next)
}

func (a *allowance) saved() {
	if a.pending {
		a.left, a.pending = max(0, a.next-a.taken), false
	}
}

// spend counts a row that leaves the queue. It reports whether a new checkpoint is needed soon.
func (a *allowance) spend() (low bool) {
	a.left--
	a.taken++
	return a.left < a.taken/4
}

// inherit guesses how many rows a new lane will send from what the old lanes of its keys sent. parts[i] lanes share the
// keys of from[i]. If order is kept, the new lane sends nothing until it is in a checkpoint, as the last one allows
// only the old lane's first rows.
func (a *allowance) inherit(from []*lane, parts []int, ordered bool) {
	if !ordered {
		a.left = math.MaxInt64
	}
	for i, l := range from {
		a.taken += l.allowance.taken / int64(parts[i])
	}
}

// allowanceOf returns how many rows the lane may send from now until the next checkpoint.
func (s *Set) allowanceOf(l *lane) int64 {
	if !s.options.Checkpointer.Ordered {
		return math.MaxInt64
	}
	return cmp.Or(s.options.Tuning.Allowance, l.allowance.following(len(s.all)))
}

// Described notes that a checkpoint describes this moment.
func (s *Set) Described() {
	for _, l := range s.all {
		l.allowance.described(s.allowanceOf(l))
	}
}

// Saved notes that the checkpoint was written.
func (s *Set) Saved() {
	for _, l := range s.all {
		l.allowance.saved()
	}
	s.Change()
}

// Withhold keeps all rows in their queues until a checkpoint describes the load as it is now.
func (s *Set) Withhold() {
	for _, l := range s.all {
		l.allowance.left, l.allowance.next = 0, 0
	}
}
