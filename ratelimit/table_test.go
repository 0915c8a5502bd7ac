package ratelimit

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/engine/limiter"
	"example.com/tsimport/internal/conformance"
)

func TestLanesOfALimitedTableAreHardlyRefused(t *testing.T) {
	t.Parallel()
	alone := func(r *rand.Rand, c *lawScene) func(int) controller {
		lane := theLaw(r, c)
		return func(i int) controller { return lane(i).(inTable).paced }
	}
	for _, c := range lawCells() {
		if c.group != "table" || !strings.HasPrefix(c.name, "bucket") || c.loads > 1 {
			continue
		}
		if c.lanes > 64 && *lawSeeds == 0 {
			continue // make laws; it takes four fifths of the time
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			with, without := newLawSim(&c.lawScene, theLaw, 1).run(), newLawSim(&c.lawScene, alone, 1).run()
			t.Logf("share %.3f, refused %.4f; without it %.3f, %.4f", with.share, with.refused, without.share, without.refused)
			conformance.True(t, with.share >= 0.95 && with.refused <= 0.6*without.refused,
				"share %.3f, refused %.4f; without it %.3f, %.4f", with.share, with.refused, without.share, without.refused)
		})
	}
}

func TestTrialDistinguishesTableFromPartitions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]limiter.Options{"bucket": {Kind: limiter.TokenBucket, Burst: time.Second},
		"fixed window": {Kind: limiter.FixedWindow}, "sliding window": {Kind: limiter.SlidingWindow}} {
		for _, c := range []lawCell{partition("", "partitions", at{8, 1000, 5 * ms}, o),
			overTable("", "table", at{8, 1000, 5 * ms}, o)} {
			t.Run(name+", "+c.name, func(t *testing.T) {
				t.Parallel()
				c.length = 30 * time.Second
				s := newLawSim(&c.lawScene, theLaw, 1)
				table := s.lanes[0].law.(inTable).table
				table.watching.until = s.base.Add(time.Hour) // not by itself
				began, ended := false, false
				s.trace = func(_ int, now time.Time, _ *lawRequest) {
					switch at := now.Sub(s.base); {
					case !began && at > 15*time.Second:
						began = true
						table.on, table.pace = true, tablePace{gate: gate{held: now}}
						table.pace.setRate(c.lawScene.lanesTake())
						table.try(now)
					case began && !ended && !table.on:
						ended = true
					}
				}
				s.run()
				conformance.Equal(t, ended, c.table == nil, "was given up")
			})
		}
	}
}

// lanesTake is the units a second that all lanes may send.
func (c *lawScene) lanesTake() float64 {
	if c.table != nil {
		return c.table.Rate
	}
	return float64(c.lanes) * c.lane.Rate
}

func TestTableWithoutRefusalsLimitsNothing(t *testing.T) {
	t.Parallel()
	c := at{8, 1000, 5 * ms}.scene()
	c.lane = &limiter.Options{Kind: limiter.TokenBucket, Rate: 1000, Burst: time.Second}
	s := newLawSim(&c, theLaw, 1)
	table := s.lanes[0].law.(inTable).table
	s.trace = func(_ int, now time.Time, _ *lawRequest) {
		conformance.MustTrue(t, table.Rate() == 0 && !table.Limits(now), "limits after %v", now.Sub(s.base))
	}
	s.run()
}

func TestOutageDoesNotChangeTableRate(t *testing.T) {
	t.Parallel()
	table, now := new(Table), time.Unix(1000, 0)
	lanes := []*Pacer{NewPacer(PacerOptions{}), NewPacer(PacerOptions{}), NewPacer(PacerOptions{}),
		NewPacer(PacerOptions{})}
	send := func(d time.Duration, accepted float64) {
		for end := now.Add(d); now.Before(end); now = now.Add(10 * ms) {
			for _, p := range lanes {
				table.Sent(now, 10)
				table.Answered(p, now, now.Add(ms), 10, accepted)
			}
		}
	}
	send(10*time.Second, 10)
	send(30*time.Second, 0)
	conformance.Equal(t, table.on, false, "a rate of nothing was found")
	send(4*time.Second, 10)
	conformance.Equal(t, table.on, false, "limits after an outage, though nothing is refused")
	table.on, table.pace = true, tablePace{gate: gate{held: now}}
	table.pace.setRate(4000)
	table.try(now)
	table.Unserved(now)
	conformance.Equal(t, table.on, false, "limits while nobody serves")
}

// TestLatelyCountsAcceptedUnits compares with a list of all additions.
func TestLatelyCountsAcceptedUnits(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	type added struct{ at, units int64 }
	var l lately
	var all []added
	newest := int64(1_000_000)
	for range 5000 {
		at := newest + r.Int64N(60) - 20
		if r.IntN(500) == 0 {
			at += 10_000
		}
		newest = max(newest, at)
		units := r.Int64N(10)
		l.add(time.UnixMilli(at), float64(units))
		if at > newest-latelyFor.Milliseconds() {
			all = append(all, added{at, units})
		}
		from := newest - r.Int64N(2*latelyFor.Milliseconds())
		to := from + r.Int64N(2000)
		want := int64(0)
		for _, a := range all {
			if a.at > max(from, newest-latelyFor.Milliseconds()) && a.at <= to {
				want += a.units
			}
		}
		got := l.between(time.UnixMilli(from), time.UnixMilli(to))
		conformance.MustTrue(t, got == float64(want), "%v from %d to %d of %d, want %d", got, from, to, newest, want)
	}
}

func TestSharedRateStartsUnlimited(t *testing.T) {
	s := NewShared(nil)
	now := time.Unix(1000, 0)
	for range 100 {
		at := s.Next(now, 200)
		conformance.MustTrue(t, at.Equal(now), "waits %v", at.Sub(now))
		s.Sent(now, 200)
		s.Answered(now, now.Add(ms), 200, 200)
		now = now.Add(ms)
	}
	conformance.True(t, s.Rate() == 0 && !s.Limits(now), "limits at %v", s.Rate())
}

// sharedLaw is the rate of an instance as the law of a lane.
type sharedLaw struct{ *Shared }

func (l sharedLaw) next(now time.Time, _ int, _ float64) (float64, time.Time, bool) {
	units := max(1, math.Floor(min(maxRows, l.Most())))
	return units, l.Next(now, units), true
}
func (l sharedLaw) sent(now time.Time, units float64) { l.Sent(now, units) }
func (l sharedLaw) answered(sent, now time.Time, units, accepted float64) {
	l.Answered(sent, now, units, accepted)
}

func newSharedSim(c lawScene) (*lawSim, *Shared) {
	shared := NewShared(rand.New(rand.NewPCG(1, 2)))
	c.lanes, c.perRow, c.even, c.rtt = 1, 1, true, 5*ms
	return newLawSim(&c, func(*rand.Rand, *lawScene) func(int) controller {
		return func(int) controller { return sharedLaw{shared} }
	}, 1), shared
}

func TestSharedRateIsUsedWithFewRefusals(t *testing.T) {
	s, shared := newSharedSim(lawScene{length: 30 * time.Second, slots: 8,
		lane: &limiter.Options{Kind: limiter.TokenBucket, Rate: 8000, Burst: time.Second}})
	r := s.run()
	t.Logf("share %.4f, refused %.4f, rate %.0f", r.share, r.refused, shared.Rate())
	conformance.True(t, r.share >= 0.97 && r.refused <= 0.01, "share %.4f, refused %.4f", r.share, r.refused)
	conformance.Equal(t, shared.Limits(s.base.Add(30*time.Second)), true, "does not limit")
}

// TestRateMeasuredTooLowRisesSoon has whole requests refused, so the capacity left by them is unknown.
func TestRateMeasuredTooLowRisesSoon(t *testing.T) {
	const rate = 1000.0
	s, shared := newSharedSim(lawScene{length: 6 * time.Second, slots: 1, lane: &limiter.Options{Kind: limiter.TokenBucket,
		Rate: rate, Burst: 100 * ms, Whole: true}})
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
	share := taken / (2 * rate)
	conformance.True(t, share >= 0.85, "%.3f of the capacity two seconds after half of it was measured", share)
}
