package keep

import (
	"cmp"
	"math"
	"time"
)

// The interval of checkpoints, and times that depend on it.
const (
	keepEvery  = time.Second
	keepSoon   = 100 * time.Millisecond // if a lane has used up most of its allowance
	keepAtMost = 5 * time.Second        // maximum, however long it takes to describe a load
	// keepCost is the pause between descriptions of the load, relative to the time that one takes.
	keepCost = 200
	// keptFor is how long after the moment of the last checkpoint requests may be sent.
	keptFor = 10 * time.Second
)

// Schedule decides when to describe the next checkpoint, and until when to send after the last. Nil keeps nothing.
type Schedule struct {
	every   time.Duration // set by the user; 0 means the rule
	keptFor time.Duration
	calm    time.Duration // minimum interval, unless lanes wait

	Busy bool // a checkpoint is on its way to the disk
	soon bool // a lane waits for a checkpoint, or soon will
	now  bool // lanes wait that no checkpoint knows

	built time.Time     // when the load was last described
	cost  time.Duration // time that describing it took
	last  time.Time     // the moment that the newest checkpoint describes
}

// MayWait returns how long sending may have to wait for a checkpoint, because sent rows must soon be known to one.
func (s *Schedule) MayWait(now time.Time) time.Duration {
	if s == nil || !s.last.IsZero() && Elapsed(s.last, now) < s.keptFor {
		return 0
	}
	return keepSoon
}

// SendUntil returns until when a request cut now may be sent; zero means forever. A process can be suspended meanwhile.
func (s *Schedule) SendUntil() time.Time {
	if s == nil || s.last.IsZero() {
		return time.Time{}
	}
	return s.last.Add(s.keptFor)
}

func (s *Schedule) Due(now time.Time) time.Duration {
	if s == nil || s.Busy {
		return math.MaxInt64
	}
	wait := cmp.Or(s.every, min(max(keepEvery, keepCost*s.cost, s.calm), keepAtMost)) // an explicit interval has priority
	if s.soon || s.last.IsZero() {
		wait = min(wait, cmp.Or(s.every, keepSoon))
	}
	if s.built.IsZero() || s.now {
		return 0
	}
	return max(0, wait-now.Sub(s.built))
}

// AwaitsFirst reports whether no checkpoint has been written yet.
func (s *Schedule) AwaitsFirst() bool { return s != nil && s.last.IsZero() }

func (s *Schedule) saving() { s.Busy, s.soon, s.now = true, false, false }

// Elapsed returns the larger of the times by two clocks: one stops while the machine sleeps, the other can be set.
func Elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}
