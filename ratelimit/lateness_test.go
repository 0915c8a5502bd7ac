package ratelimit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestAnswersThatAreLateByChanceSlowNoLane has a service that takes everything, a long way off. Which of the first answers stall is up to chance,
// and may look as if the service took long for the rows: the answers after them refute it.
func TestAnswersThatAreLateByChanceSlowNoLane(t *testing.T) {
	const first = 6
	for stalled := range 1 << first {
		if rows := lastRows(func(n int) bool { return n < first && stalled>>n&1 == 1 }); rows < 4000 {
			t.Errorf("answers %0*b of the first ones stall: a lane takes %.0f rows a second in the last ten seconds of a minute", first, stalled, rows)
		}
	}
}

// lastRows returns the rows a second that a lane takes in the last ten seconds of a minute. Answers to the requests that stalls names come late.
func lastRows(stalls func(n int) bool) float64 {
	p := NewPacer(PacerOptions{Rand: rand.New(rand.NewPCG(1, 2))})
	type request struct {
		sent, back time.Time
		units      float64
	}
	begun := time.Unix(1000, 0)
	now, end, sent := begun, begun.Add(time.Minute), 0
	var flying []request
	accepted := 0.0
	for now.Before(end) {
		units, at, ok := p.Next(now, len(flying), 1)
		next := end
		if ok {
			next = later(now, at)
		}
		i := -1
		for k := range flying {
			if i < 0 || flying[k].back.Before(flying[i].back) {
				i = k
			}
		}
		if i >= 0 && !flying[i].back.After(next) {
			r := flying[i]
			now = later(now, r.back)
			p.Answered(r.sent, now, r.units, r.units)
			if end.Sub(now) <= 10*time.Second {
				accepted += r.units
			}
			flying = slices.Delete(flying, i, i+1)
			continue
		}
		if !ok {
			break
		}
		now = next
		units = math.Floor(units)
		if sent%10 == 9 {
			units = max(units, 100) // a load has reasons of its own to send more at once
		}
		took := 200*time.Millisecond + time.Duration(units)*30*time.Microsecond
		if stalls(sent) {
			took += 400 * time.Millisecond
		}
		sent++
		p.Sent(now, units)
		flying = append(flying, request{now, now.Add(took), units})
	}
	return accepted / 10
}
