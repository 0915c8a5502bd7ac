package keep

import (
	"cmp"
	"math"
	"time"
)

// How often a checkpoint is made, and what depends on it.
const (
	keepEvery  = time.Second
	keepSoon   = 100 * time.Millisecond // when a lane has sent nearly all that it may
	keepAtMost = 5 * time.Second        // however long it takes to describe a load
	// keepCost is how many times as long as describing the load took goes by before it is described again.
	keepCost = 200
	// keptFor is for how long requests may be sent since the moment that the last checkpoint describes.
	keptFor = 10 * time.Second
)

// Schedule says when the load is described for the next checkpoint, and until when may be sent after the last. A nil schedule
// is that of a load that keeps nothing.
type Schedule struct {
	every   time.Duration // as the user says; 0 is the rule
	keptFor time.Duration
	calm    time.Duration // between two at least, unless lanes wait

	Busy bool // a checkpoint is on its way to the disk
	soon bool // a lane waits, or soon will
	now  bool // lanes wait that no checkpoint knows

	built time.Time     // when the load was described last
	cost  time.Duration // of that
	last  time.Time     // the moment that the newest checkpoint describes
}

// MayWait returns how long sending has to wait for a checkpoint: a row that is sent must not be unknown to it for long.
func (s *Schedule) MayWait(now time.Time) time.Duration {
	if s == nil || !s.last.IsZero() && Elapsed(s.last, now) < s.keptFor {
		return 0
	}
	return keepSoon
}

// SendUntil returns until when a request that is cut now may be sent; zero is forever. A process can be stopped between the
// two for hours, and the attempt that resumes relies on it that nothing was sent so late.
func (s *Schedule) SendUntil() time.Time {
	if s == nil || s.last.IsZero() {
		return time.Time{}
	}
	return s.last.Add(s.keptFor)
}

// Due returns the time until the load is to be described.
func (s *Schedule) Due(now time.Time) time.Duration {
	if s == nil || s.Busy {
		return math.MaxInt64
	}
	wait := cmp.Or(s.every, min(max(keepEvery, keepCost*s.cost, s.calm), keepAtMost)) // who gives one means it
	if s.soon || s.last.IsZero() {
		wait = min(wait, cmp.Or(s.every, keepSoon))
	}
	if s.built.IsZero() || s.now {
		return 0
	}
	return max(0, wait-now.Sub(s.built))
}

// AwaitsFirst reports whether the first checkpoint is still to come.
func (s *Schedule) AwaitsFirst() bool { return s != nil && s.last.IsZero() }

// saving notes that a checkpoint is on its way to the disk.
func (s *Schedule) saving() { s.Busy, s.soon, s.now = true, false, false }

// Elapsed returns how much time has passed by this machine's clocks, the one that says most: the monotonic one stands still
// while a machine sleeps, the other one can be set.
func Elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}
