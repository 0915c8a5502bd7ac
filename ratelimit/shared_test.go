package ratelimit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
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

// TestLanesThatShareARateUseItAndAreHardlyRefused drives eight lanes with no limit of their own against one of 8,000 units a second.
func TestLanesThatShareARateUseItAndAreHardlyRefused(t *testing.T) {
	const rate, way = 8000.0, 5 * ms
	type request struct {
		sent, back time.Time
		taken      float64
	}
	s := NewShared(rand.New(rand.NewPCG(1, 2)))
	began := time.Unix(1000, 0)
	now, tokens, filled := began, 0.0, began
	var flying []request
	sent, refused, taken := 0.0, 0.0, 0.0
	for now.Sub(began) < 30*time.Second {
		for len(flying) > 0 && !flying[0].back.After(now) {
			s.Answered(flying[0].sent, now, 200, flying[0].taken)
			flying = flying[1:]
		}
		if at := s.Next(now, 200); len(flying) < 8 && !at.After(now) {
			s.Sent(now, 200)
			tokens, filled = min(rate, tokens+now.Sub(filled).Seconds()*rate), now
			n := math.Floor(min(200, tokens))
			tokens -= n
			if now.Sub(began) > 5*time.Second {
				sent, refused, taken = sent+200, refused+200-n, taken+n
			}
			flying = append(flying, request{now, now.Add(way), n})
			continue
		}
		now = now.Add(ms / 4)
	}
	share := taken / (25 * rate)
	t.Logf("share %.4f, refused %.4f, rate %.0f", share, refused/sent, s.Rate())
	if share < 0.97 || refused/sent > 0.01 {
		t.Errorf("share %.4f, refused %.4f", share, refused/sent)
	}
	if !s.Limits(now) {
		t.Error("does not limit")
	}
}

// TestARateThatWasMeasuredTooLowIsFoundSoon is about a service that refuses whole requests: what they would have left of its capacity
// nobody knows.
func TestARateThatWasMeasuredTooLowIsFoundSoon(t *testing.T) {
	const rate, way = 1000.0, 5 * ms
	s := NewShared(rand.New(rand.NewPCG(3, 4)))
	began := time.Unix(1000, 0)
	now, tokens, filled := began, 0.0, began
	taken, lowered := 0.0, false
	for now.Sub(began) < 6*time.Second {
		if now.Sub(began) > 2*time.Second && !lowered {
			s.p.setRate(rate / 2)
			lowered = true
		}
		units := math.Floor(min(200, s.Most()))
		if at := s.Next(now, units); at.After(now) {
			now = at
			continue
		}
		s.Sent(now, units)
		met := now.Add(way / 2)
		tokens, filled = min(rate/10, tokens+met.Sub(filled).Seconds()*rate), met
		accepted := 0.0
		if tokens >= min(units, rate/10) {
			tokens, accepted = tokens-units, units
		}
		if now.Sub(began) > 4*time.Second {
			taken += accepted
		}
		s.Answered(now, now.Add(way), units, accepted)
		now = now.Add(way)
	}
	if share := taken / (2 * rate); share < 0.85 {
		t.Errorf("%.3f of the capacity two seconds after half of it was measured", share)
	}
}
