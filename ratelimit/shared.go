package ratelimit

import (
	"math"
	"math/rand/v2"
	"time"
)

// Shared is the common rate of the lanes of a table or of an instance. It limits nothing until a request is refused
// that the partitions would have accepted. Then it finds the rate as a Pacer does, and grants it in order of request.
//
// Refusals reported to a Shared are not reported to the lane's Pacer.
//
// Calls must be in the order of the events, from one goroutine at a time.
type Shared struct {
	p      *Pacer // nil until something was refused
	rand   *rand.Rand
	flying int
	raised time.Time // when the rate was last raised or a row was last refused
	step   float64   // share of the rate by which the next raise exceeds it
	held   time.Time // when a batch was last held back
	whole  float64   // largest batch while the rate is sought, as larger ones are wholly refused; 0 means no limit
}

// NewShared returns a rate that limits nothing yet. A nil r uses the process's source of randomness.
func NewShared(r *rand.Rand) *Shared { return &Shared{rand: r} }

const (
	limitsFor  = 500 * time.Millisecond // time for which a rate that held back a batch counts as the limit
	askAgain   = 10 * time.Millisecond  // wait when nothing may be sent before an answer arrives
	mostFlying = 1 << 20
)

// Next returns when a batch of units may be sent, which is now while nothing limits it.
func (s *Shared) Next(now time.Time, units float64) time.Time {
	if s.p == nil {
		return now
	}
	_, at, ok := s.p.NextOf(now, s.flying, s.p.perRow, units)
	if !ok {
		at = now.Add(askAgain)
	}
	if !at.After(now) {
		return now
	}
	s.held = now
	return at
}

// Sent notes that a batch was sent.
func (s *Shared) Sent(now time.Time, units float64) {
	s.flying++
	if s.p != nil {
		s.p.Sent(now, units)
	}
}

// Silent notes that a sent batch is no longer in flight although it has no answer. A later answer must not be reported.
func (s *Shared) Silent() { s.flying = max(0, s.flying-1) }

// Answered takes the answer to a batch not reported to Silent. accepted counts the units that this rate did not refuse.
func (s *Shared) Answered(sent, now time.Time, units, accepted float64) {
	s.flying = max(0, s.flying-1)
	if s.p == nil {
		if accepted >= units*(1-1e-9) {
			return
		}
		s.p = NewPacer(PacerOptions{MaxInFlight: mostFlying, Rand: s.rand, Alone: true})
		s.p.size.notBefore = now.Add(longest) // its batches are sized by the lanes
		s.p.open(now, 1)
	}
	switch {
	case accepted == 0 && units > 1:
		s.whole = max(1, units/2)
	case s.whole > 0 && accepted >= math.Floor(s.whole):
		s.whole = max(1.25*s.whole, math.Floor(s.whole)+1)
	}
	s.p.Answered(sent, now, units, accepted)
	if !s.p.others.quota.on {
		s.p.line.blocked = false
	}
	s.p.line.clean = 0 // one lane's answers say little about another's
	s.raise(now, accepted < units*(1-1e-9))
}

// Steps by which the rate is raised while nothing is refused.
const (
	raiseEvery = 500 * time.Millisecond
	firstRaise = 0.05 // share of the rate; each further raise is twice the last
	lastRaise  = 0.4
)

// raise raises the rate after a while without refusals, sooner than a Pacer does: the first measurement of a service
// that refuses whole requests is often too low, and a refusal costs only one of many small batches.
func (s *Shared) raise(now time.Time, refused bool) {
	switch {
	case refused || s.p.phase != inCruise || s.p.others.quota.on || s.p.probe.gain < 0 || !s.Limits(now):
		s.raised, s.step = now, firstRaise
	case now.Sub(s.raised) >= raiseEvery:
		s.p.setRate((1 + s.step) * s.p.rate)
		s.raised, s.step = now, min(2*s.step, lastRaise)
	}
}

// Rate returns the estimated rate in units per second, or 0 while nothing limits the lanes.
func (s *Shared) Rate() float64 {
	if s.p == nil {
		return 0
	}
	return s.p.Rate()
}

// Most returns the largest batch in units. It is small while the rate is being found, because a service that refuses
// whole requests leaves capacity unused when it refuses a large one. It is infinite while nothing limits the lanes.
func (s *Shared) Most() float64 {
	switch {
	case s.p == nil:
		return math.Inf(1)
	case s.p.phase == inStart || s.p.phase == inMeasure:
		if most := s.p.ramp.rows * s.p.perRow; s.whole == 0 || most < s.whole {
			return most
		}
		return s.whole
	}
	return max(1, s.p.rate*sharedBatch)
}

// sharedBatch is the largest batch, in seconds of the rate. It is small, as the batches of several lanes may coincide.
const sharedBatch = 0.02

// Limits reports whether batches have been held back lately.
func (s *Shared) Limits(now time.Time) bool {
	return !s.held.IsZero() && now.Sub(s.held) < limitsFor
}
