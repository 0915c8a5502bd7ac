package ratelimit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"tsimport/internal/limiter"
)

func TestASharedRateLimitsNothingUntilSomethingIsRefused(t *testing.T) {
	s := NewShared(nil)
	now := time.Unix(1000, 0)
	for range 100 {
		if at := s.Next(now, 200); !at.Equal(now) {
			t.Fatalf("waits %v", at.Sub(now))
		}
		s.Sent(now, 200)
		s.Answered(now, now.Add(ms), 200, 200)
		now = now.Add(ms)
	}
	if s.Rate() != 0 || s.Limits(now) {
		t.Errorf("limits at %v", s.Rate())
	}
}

// sharedLaw is a rate of an instance as the law of a lane.
type sharedLaw struct{ *Shared }

func (l sharedLaw) next(now time.Time, _ int, _ float64) (float64, time.Time, bool) {
	units := max(1, math.Floor(min(maxRows, l.Most())))
	return units, l.Next(now, units), true
}
func (l sharedLaw) sent(now time.Time, units float64) { l.Sent(now, units) }
func (l sharedLaw) answered(sent, now time.Time, units, accepted float64) {
	l.Answered(sent, now, units, accepted)
}

// newSharedSim is a simulation of lanes that have no limit of their own, with the rate that they share.
func newSharedSim(c lawScene) (*lawSim, *Shared) {
	shared := NewShared(rand.New(rand.NewPCG(1, 2)))
	c.lanes, c.perRow, c.even, c.rtt = 1, 1, true, 5*ms
	return newLawSim(&c, func(*rand.Rand, *lawScene) func(int) controller {
		return func(int) controller { return sharedLaw{shared} }
	}, 1), shared
}

func TestLanesThatShareARateUseItAndAreHardlyRefused(t *testing.T) {
	s, shared := newSharedSim(lawScene{length: 30 * time.Second, slots: 8, lane: &limiter.Options{Kind: limiter.TokenBucket, Rate: 8000, Burst: time.Second}})
	r := s.run()
	t.Logf("share %.4f, refused %.4f, rate %.0f", r.share, r.refused, shared.Rate())
	if r.share < 0.97 || r.refused > 0.01 {
		t.Errorf("share %.4f, refused %.4f", r.share, r.refused)
	}
	if !shared.Limits(s.base.Add(30 * time.Second)) {
		t.Error("does not limit")
	}
}

// TestARateThatWasMeasuredTooLowIsFoundSoon is about a service that refuses whole requests: what they would have left of its capacity
// nobody knows.
func TestARateThatWasMeasuredTooLowIsFoundSoon(t *testing.T) {
	const rate = 1000.0
	s, shared := newSharedSim(lawScene{length: 6 * time.Second, slots: 1, lane: &limiter.Options{Kind: limiter.TokenBucket, Rate: rate, Burst: 100 * ms, Whole: true}})
	taken, lowered := 0.0, false
	s.trace = func(_ int, now time.Time, r *lawRequest) {
		if at := now.Sub(s.base); at > 2*time.Second && !lowered {
			lowered = true
			shared.p.setRate(rate / 2)
		} else if at > 4*time.Second {
			taken += float64(r.taken)
		}
	}
	s.run()
	if share := taken / (2 * rate); share < 0.85 {
		t.Errorf("%.3f of the capacity two seconds after half of it was measured", share)
	}
}
