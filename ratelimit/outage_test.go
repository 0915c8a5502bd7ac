package ratelimit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

// refusing is a lane, with one request in flight, to a partition that refuses everything for a while.
type refusing struct {
	pacer            *Pacer
	outages          Outages
	out              bool
	now              time.Time
	rate             func(since time.Duration) float64 // the partition's units per second; 0 is an outage
	tokens, accepted float64
	probes           []time.Duration // times between the requests of an outage
}

const way = 5 * time.Millisecond

func (l *refusing) run(from time.Time, until time.Duration) {
	last := l.now
	fill := func(to time.Time) {
		for l.now.Before(to) {
			l.now = l.now.Add(time.Millisecond)
			r := l.rate(l.now.Sub(from))
			l.tokens = min(r, l.tokens+r/1000)
		}
	}
	for l.now.Sub(from) < until {
		units, at, ok := l.pacer.Next(l.now, 0, 1)
		if !ok {
			panic("nothing may be sent, and nothing is in flight")
		}
		fill(at)
		units = float64(int(min(units, maxRows)))
		sent := l.now
		l.pacer.Sent(sent, units)
		fill(sent.Add(way))
		taken := float64(int(min(units, l.tokens)))
		if l.rate(l.now.Sub(from)) == 0 {
			taken = 0
			if l.out {
				l.probes = append(l.probes, sent.Sub(last))
			}
		}
		last = sent
		l.tokens -= taken
		l.accepted += taken
		if taken == 0 {
			if before, outage := l.outages.Refused(l.pacer, sent, l.now); outage {
				l.pacer, l.out = before, true
			}
			if l.out {
				l.pacer.Unavailable(l.now)
				continue
			}
		}
		l.pacer.Answered(sent, l.now, units, taken)
		if taken > 0 {
			l.out = false
			l.outages.Accepted(l.pacer, taken)
		}
	}
}

func TestOutageIsNotMistakenForRate(t *testing.T) {
	for _, lasts := range []time.Duration{5 * time.Second, 15 * time.Second, time.Minute} {
		for _, rate := range []float64{10, 100, 1000, 10000} {
			for _, after := range []float64{1, 0.5} {
				for seed := range uint64(2) {
					begin, end := 20*time.Second, 20*time.Second+lasts
					from := time.Unix(1000, 0)
					l := &refusing{now: from, pacer: NewPacer(PacerOptions{Rand: rand.New(rand.NewPCG(seed, 1))}),
						rate: func(d time.Duration) float64 {
							switch {
							case d < begin:
								return rate
							case d < end:
								return 0
							}
							return rate * after
						}}
					l.run(from, begin)
					l.run(from, end)
					l.accepted = 0
					known := l.pacer.Rate()
					l.run(from, end+2*time.Second)
					conformance.True(t, after != 1 || l.pacer.Rate() >= 0.8*known,
						"%v, %g units/s: %g before, %g two seconds after the outage", lasts, rate, known, l.pacer.Rate())
					l.run(from, end+5*time.Second)
					if got := l.pacer.Rate(); rate >= 100 && after < 1 && (got > 1.2*rate*after || got < 0.8*rate*after) {
						t.Errorf("%v, %g units/s, of which %g are left: %g five seconds later", lasts, rate, after, got)
					}
					l.run(from, end+60*time.Second)
					// The bucket is empty after the outage, and 2 s more may be lost.
					if want := rate * after * (60 - 2); l.accepted < want-1 {
						t.Errorf("%v, %g units/s × %g, seed %d: %g units after it, want %g", lasts, rate, after, seed, l.accepted, want)
					}
					for _, p := range l.probes {
						conformance.True(t, rate < 100 || p <= probeAtMost+2*way, "%v between two probes", p)
					}
					conformance.True(t, rate != 1000 || lasts != time.Minute || len(l.probes) <= 150,
						"%d probes in a minute", len(l.probes))
				}
			}
		}
	}
}

func TestSecondOutageNeedsAcceptedRows(t *testing.T) {
	now := time.Unix(1000, 0)
	p := NewPacer(PacerOptions{Rate: 1000})
	var m Outages
	refuse := func() (outage bool) {
		for range 12 {
			sent := now
			now = now.Add(100 * time.Millisecond)
			if _, outage = m.Refused(p, sent, now); outage {
				return true
			}
		}
		return false
	}
	conformance.MustEqual(t, refuse(), true, "no outage although nothing is accepted for a second")
	m.Accepted(p, 1)
	conformance.Equal(t, refuse(), false, "an outage again although a single unit was accepted: the capacity has changed")
	m.Accepted(p, 600)
	conformance.Equal(t, refuse(), true, "no outage after the partition served at its rate")
}

// A window may be used up for most of a second. A bucket with a known rate is never empty for that long.
func TestShortOutageNeedsKnownBucket(t *testing.T) {
	for name, c := range map[string]struct {
		agreed         int
		window, outage bool
	}{"nothing": {}, "a bucket": {agreed: bucketAgreed, outage: true}, "a window": {agreed: bucketAgreed, window: true}} {
		now := time.Unix(1000, 0)
		p := NewPacer(PacerOptions{Rate: 1000})
		p.evidence.agreed, p.others.quota.on = c.agreed, c.window
		var m Outages
		outage := false
		for range 6 {
			_, outage = m.Refused(p, now, now.Add(100*time.Millisecond))
			now = now.Add(100 * time.Millisecond)
			if outage {
				break
			}
		}
		conformance.Equal(t, outage, c.outage, "%s: an outage after %.1f s", name, float64(now.UnixMilli()-1_000_000)/1000)
	}
}

func TestBackoffGrowsWithinBoundsAndJitter(t *testing.T) {
	b := Backoff{Base: 100 * time.Millisecond, Max: 2 * time.Second}
	for attempt, full := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond,
		5: 1600 * time.Millisecond, 6: 2 * time.Second, 1000: 2 * time.Second} {
		different := map[time.Duration]bool{}
		for range 100 {
			d := b.After(attempt)
			conformance.MustTrue(t, d >= full/2 && d <= full, "attempt %d waits %v, want %v to %v", attempt, d, full/2, full)
			different[d] = true
		}
		conformance.True(t, len(different) >= 10, "attempt %d: %d different times in 100", attempt, len(different))
	}
}

func TestPatienceRunsOutOnlyWithoutProgress(t *testing.T) {
	p := Patience{For: time.Minute}
	now := time.Unix(0, 0)
	look := func(seconds int) (over bool) {
		for range seconds {
			over = p.Over(now)
			now = now.Add(time.Second)
		}
		return over
	}
	conformance.Equal(t, look(61), false, "over too early")
	p.Progress(now)
	conformance.Equal(t, look(61), false, "progress did not count")
	conformance.Equal(t, look(1), true, "not over after a minute without progress")
	for ever := (Patience{}); ever.Over(now) || ever.Over(now.Add(1000*time.Hour)); {
		t.Fatal("no limit ran out")
	}
	shortest := Patience{For: time.Nanosecond}
	for i := range 10 {
		over := shortest.Over(now.Add(time.Duration(i) * time.Second))
		conformance.True(t, i != 9 || over, "a nanosecond is not over after ten seconds")
	}
}

func TestPausedProcessKeepsPatience(t *testing.T) {
	p := Patience{For: time.Minute}
	now := time.Unix(0, 0)
	p.Progress(now)
	for range 3 {
		now = now.Add(1000 * time.Hour)
		conformance.MustTrue(t, !p.Over(now), "a pause was mistaken for time without progress")
	}
	now = now.Add(-2 * time.Hour) // the clock is set back
	conformance.MustEqual(t, p.Over(now), false, "over although the clock went back")
	for range 3 {
		now = now.Add(time.Minute / 4)
		p.Over(now)
	}
	conformance.Equal(t, p.Over(now.Add(time.Second)), true, "attempts without progress do not count")
}

func TestBucketBurstAndDebt(t *testing.T) {
	now := time.Unix(1000, 0)
	b := NewBucket(100, time.Second)
	conformance.MustEqual(t, b.Wait(now), 0, "wait of a new bucket")
	b.Take(now, 250)
	if now := now.Add(2500 * time.Millisecond); b.Wait(now.Add(-time.Second)) != time.Second || b.Wait(now) != 0 {
		t.Errorf("in debt by 250 at 100 a second: %v", b.Wait(now))
	}
	now = now.Add(time.Hour)
	b.Take(now, 150)
	conformance.Equal(t, b.Wait(now), 500*time.Millisecond, "150 of a burst of 100")
	b.Take(now, math.Inf(1))
	b.Take(now, math.NaN())
	b.Take(now, -5)
	conformance.Equal(t, b.Wait(now), 500*time.Millisecond, "nonsense was taken")
	conformance.Equal(t, b.Wait(now.Add(-time.Hour)), 500*time.Millisecond, "a clock that went back")
	b.Take(now, 1e15)
	conformance.Equal(t, b.Wait(now), longest, "a wait without bounds")
}

func TestBucketWithoutRateNeverWaits(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		b := NewBucket(rate, time.Second)
		b.Take(time.Unix(1000, 0), 1e9)
		conformance.True(t, b == nil && b.Wait(time.Unix(1000, 0)) == 0 && b.Rate() == 0, "rate %v gives %+v", rate, b)
	}
}
