package ratelimit

import (
	"cmp"
	"testing"
	"time"

	"example.com/tsimport/engine/limiter"
	"example.com/tsimport/internal/conformance"
)

// possible is the number of units that a limit beginning at start could take, and answer, until end: the measure of a
// load. The content of a bucket that begins full comes on top.
func possible(o limiter.Options, start, end time.Time) (units float64) {
	steps := append([]limiter.Step{{Factor: 1}}, o.Steps...)
	begins := func(step int) time.Time {
		if step < len(steps) {
			if at := start.Add(steps[step].After); at.Before(end) {
				return at
			}
		}
		return end
	}
	if o.Kind != limiter.FixedWindow && o.Kind != limiter.SlidingWindow {
		for i, s := range steps {
			units += o.Rate * s.Factor * begins(i+1).Sub(begins(i)).Seconds()
		}
		return units
	}
	length, from := cmp.Or(o.Window, time.Second), start
	if o.Kind == limiter.FixedWindow && !o.Unaligned {
		from = from.Add(-time.Duration(from.UnixNano() % int64(length)))
	}
	for ; from.Before(end); from = from.Add(length) {
		most := 0.0 // a window may take what the highest rate gives that it sees
		for i, s := range steps {
			if at := begins(i); at.Before(end) && at.Before(from.Add(length)) && begins(i+1).After(from) {
				most = max(most, o.Rate*s.Factor)
			}
		}
		units += most * length.Seconds()
	}
	return units
}

// TestNoLimitTakesMoreThanIsPossible offers every limit more than its capacity, in small requests, for ten seconds.
func TestNoLimitTakesMoreThanIsPossible(t *testing.T) {
	start := time.Unix(1_000_000_000, 250_000_000)
	for _, o := range []limiter.Options{
		{}, {Kind: limiter.FixedWindow}, {Kind: limiter.FixedWindow, Unaligned: true}, {Kind: limiter.SlidingWindow},
		{Kind: limiter.Queue, MaxDelay: 50 * time.Millisecond}, {Kind: limiter.Concurrency}, {Kind: limiter.Concurrency, Requests: 4},
	} {
		o.Rate, o.Steps = 1000, []limiter.Step{{After: 4 * time.Second, Factor: 0.5}, {After: 6 * time.Second, Factor: 2}}
		l := conformance.Try(limiter.New(o, start)).Must(t)
		taken, last, rows := 0, start, make([]limiter.Row, 10)
		for i := range rows {
			rows[i].Units = 1
		}
		for at := start; at.Before(start.Add(10 * time.Second)); at = at.Add(time.Millisecond) {
			n, delay := limiter.Admit(at, rows, l)
			if taken += n; n > 0 {
				last = at.Add(delay)
			}
		}
		share := float64(taken) / possible(o, start, last)
		conformance.True(t, share <= 1.001 && share >= 0.98, "%+v: %d units in %v, %.4f of what is possible", o, taken, last.Sub(start), share)
	}
}
