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

// bench drives one Pacer directly, request by request, with a round trip of 10 ms.
type bench struct {
	*testing.T
	p   *Pacer
	now time.Time
}

func newBench(t *testing.T, o PacerOptions) *bench {
	o.Rand = rand.New(rand.NewPCG(1, 2))
	return &bench{T: t, p: NewPacer(o), now: time.Unix(1000, 0)}
}

// send sends the next batch and lets the server accept at most room units of it.
func (b *bench) send(room float64) (units float64) {
	b.Helper()
	units, at, ok := b.p.Next(b.now, 0, 1)
	if !ok {
		b.Fatalf("%s: nothing may be sent with nothing in flight", b.p.State())
	}
	if units > maxRows {
		b.Fatalf("%s at %v: a batch of %v rows", b.p.State(), b.p.Rate(), units)
	}
	sent := later(b.now, at)
	b.p.Sent(sent, units)
	b.now = sent.Add(10 * time.Millisecond)
	b.p.Answered(sent, b.now, units, min(units, room))
	return units
}

// serve sends n batches to a bucket that holds one second's units and is empty at first.
func (b *bench) serve(rate float64, n int) {
	tokens, at := 0.0, b.now
	for range n {
		_, next, _ := b.p.Next(b.now, 0, 1)
		met := later(b.now, next).Add(5 * time.Millisecond)
		tokens = min(rate, tokens+met.Sub(at).Seconds()*rate)
		at = met
		tokens -= min(math.Floor(tokens), b.send(math.Floor(tokens)))
	}
}

func (b *bench) want(state string, rate, within float64) {
	b.Helper()
	if b.p.State() != state || math.Abs(b.p.Rate()-rate) > within {
		b.Fatalf("%s at %.1f units/s, want %s at %.1f", b.p.State(), b.p.Rate(), state, rate)
	}
}

func TestMaxInFlightIsKept(t *testing.T) {
	b := newBench(t, PacerOptions{Rate: 1e6})
	_, _, ok := b.p.Next(b.now, 7, 1)
	conformance.True(t, ok, "the eighth request may not be sent")
	_, _, ok = b.p.Next(b.now, 8, 1)
	conformance.True(t, !ok, "a ninth request")
	b.p.SetMaxInFlight(2)
	_, _, ok = b.p.Next(b.now, 2, 1)
	conformance.True(t, !ok, "a third request")
}

func TestThrottleOfEarlierRequestIsIgnored(t *testing.T) {
	b := newBench(t, PacerOptions{})
	b.serve(1000, 100)
	b.send(0) // the first refusal may be chance
	sent := b.now
	b.send(0)
	before := *b.p
	b.p.Answered(sent, b.now, 200, 0)
	conformance.True(t, b.p.rate == before.rate && b.p.phase == before.phase && b.p.gauge == before.gauge,
		"%s at %v became %s at %v", before.State(), before.rate, b.p.State(), b.p.rate)
}

func TestChildStartsAtFullRateAndForgivesFirstThrottle(t *testing.T) {
	b := newBench(t, PacerOptions{MaxInFlight: 5})
	c := b.p.Child(b.now)
	conformance.True(t, c.State() == "start" && c.max == 5, "child without a rate: %s, %d in flight", c.State(), c.max)
	b.serve(1000, 100)
	rate := b.p.Rate()
	b.p = b.p.Child(b.now)
	b.want("cruise", rate, 0)
	b.send(0)
	b.want("cruise", rate, 0)
}

func TestRateIsFiniteAndPositive(t *testing.T) {
	odd := []float64{0, -1, 0.5, 1, 200, 1e6, 1e300, math.NaN(), math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		one := func() float64 { return odd[r.IntN(len(odd))] }
		p := NewPacer(PacerOptions{Rate: one(), MaxInFlight: r.IntN(20) - 2, Rand: r})
		now := time.Unix(1000, 0)
		for range 400 {
			now = now.Add([]time.Duration{0, 0, 1, time.Millisecond, time.Second, -time.Second, time.Hour}[r.IntN(7)])
			switch r.IntN(12) {
			case 0:
				p.Unavailable(now)
			case 1:
				p = p.Child(now)
			case 2, 3:
				p.Sent(now, one())
			case 4, 5, 6, 7:
				p.Answered(now.Add(-time.Duration(r.IntN(2)*(r.IntN(1e9)-1000))), now, one(), one()) // or as soon as it is sent
			default:
				units, at, ok := p.Next(now, r.IntN(10), one())
				conformance.MustTrue(t, !ok || units >= 1 && !math.IsInf(units, 0) && !at.Before(now) && at.Sub(now) <= longest,
					"seed %d: %v units after %v", seed, units, at.Sub(now))
			}
			v := p.Rate()
			conformance.MustTrue(t, !math.IsNaN(v) && !math.IsInf(v, 0) && v >= 0 &&
				(v != 0 || p.State() == "start" || p.State() == "measure"), "seed %d: %s at a rate of %v", seed, p.State(), v)
		}
	}
}

// At the lane's rate, a batch would take longer than its whole round trip; the shortest one must not seem to be zero.
func TestLowRateDoesNotShortenRoundTrip(t *testing.T) {
	p := NewPacer(PacerOptions{Alone: true})
	now := time.Unix(1e9, 0)
	p.open(now, 1)
	p.evidence.queue, p.rate = true, 100
	const way = 200 * time.Millisecond
	for range 50 {
		p.line.lateness.queues(now, now.Add(way), 50, p.occupied(50), 1)
		now = now.Add(way)
	}
	got := p.line.lateness.shortest()
	conformance.True(t, got >= way.Seconds()/2-0.001, "a round trip of %v seems to take %.3f s", way, got)
	conformance.Equal(t, p.line.lateness.queues(now, now.Add(way), 1, p.occupied(1), 1), false, "one row seems late")
}

func TestChildContinuesParentsReach(t *testing.T) {
	p := NewPacer(PacerOptions{Alone: true})
	p.open(time.Unix(0, 0), 1)
	p.phase, p.rate, p.probe.gain, p.others.quota.on = inCruise, 1000, 0.16, true
	c := p.Child(time.Unix(1, 0))
	conformance.True(t, c.probe.gain == 0.16 && c.Rate() == 1000 && c.others.quota.on,
		"gain %g, rate %g, quota %v", c.probe.gain, c.Rate(), c.others.quota.on)
	p.probe.gain = -0.01
	conformance.Equal(t, p.Child(time.Unix(1, 0)).probe.gain, usualGain, "a child of a parent that holds back: gain")
}

// recut is a table that is split. Its load learns of the split late: until then its only lane sends to all parts.
type recut struct {
	parts   int
	rate    float64       // units per second of each part, and of the original partition
	cut     time.Duration // time of the split, after the load began
	heard   time.Duration // time after the split at which the load learns of it
	away    time.Duration // time after the split in which nothing is served
	grown   float64       // factor by which each part's rate grows after the split
	apart   bool          // each batch goes to one part, as with a sorted file
	rtt     time.Duration
	most    int
	refused [2]float64 // rows: until the load learns of the split, and in the five seconds after that
	taken   [2]float64
}

type recutPart struct {
	tokens, burst, rate float64
	at                  time.Time
}

func (s *recutPart) take(now time.Time, units float64) (taken float64) {
	s.tokens = min(s.burst, s.tokens+now.Sub(s.at).Seconds()*s.rate)
	s.at = now
	taken = min(units, float64(int(s.tokens)))
	s.tokens -= taken
	return taken
}

type recutSend struct {
	sent, back   time.Time
	lane         int
	units, taken float64
	away         bool
}

func (c *recut) run(seed uint64) {
	random := rand.New(rand.NewPCG(seed, 5))
	began := time.Unix(1_000_000, 0)
	parts := []*recutPart{{rate: c.rate, burst: c.rate, at: began}}
	lanes := []*Pacer{NewPacer(PacerOptions{MaxInFlight: c.most, Rand: random})}
	var flying []recutSend
	inFlight := []int{0}
	heardAt := began.Add(c.cut + c.heard)
	end := heardAt.Add(5 * time.Second)
	for now := began; now.Before(end); now = now.Add(time.Millisecond) {
		if len(parts) == 1 && !now.Before(began.Add(c.cut)) {
			parts = nil
			for range c.parts {
				parts = append(parts, &recutPart{rate: c.rate * c.grown, burst: c.rate * c.grown, at: now})
			}
		}
		if len(lanes) == 1 && c.parts > 1 && !now.Before(heardAt) {
			parent := lanes[0]
			lanes, inFlight = nil, nil
			for range c.parts {
				lanes, inFlight = append(lanes, parent.Child(now)), append(inFlight, 0)
			}
		}
		kept := flying[:0]
		for _, s := range flying {
			if s.back.After(now) {
				kept = append(kept, s)
				continue
			}
			lane := s.lane
			if lane >= len(lanes) || lane == 0 && s.sent.Before(heardAt) && !now.Before(heardAt) {
				continue
			}
			inFlight[lane]--
			if s.away {
				lanes[lane].Unavailable(now)
				continue
			}
			lanes[lane].Answered(s.sent, now, s.units, s.taken)
		}
		flying = kept
		for i, l := range lanes {
			for {
				units, at, ok := l.Next(now, inFlight[i], 1)
				if !ok || at.After(now) {
					break
				}
				units = float64(int(units))
				s := recutSend{sent: now, back: now.Add(time.Duration(float64(c.rtt) * (0.8 + 0.4*random.Float64()))), lane: i,
					units: units}
				switch {
				case !now.Before(began.Add(c.cut)) && now.Before(began.Add(c.cut+c.away)):
					s.away = true
				case len(lanes) > 1 || len(parts) == 1:
					s.taken = parts[i].take(now, units)
				case c.apart:
					s.taken = parts[random.IntN(len(parts))].take(now, units)
				default:
					for j := range int(units) {
						s.taken += parts[j%len(parts)].take(now, 1)
					}
				}
				l.Sent(now, units)
				inFlight[i]++
				flying = append(flying, s)
				of := 0
				if !now.Before(heardAt) {
					of = 1
				}
				if !now.Before(began.Add(c.cut)) && !s.away {
					c.refused[of] += units - s.taken
					c.taken[of] += s.taken
				}
			}
		}
	}
}

// TestLateNoticeOfSplit checks that no part gets the parts' total rate, unless each accepts more than their parent.
func TestLateNoticeOfSplit(t *testing.T) {
	for _, c := range []recut{{parts: 4, rate: 300, grown: 1},
		{parts: 2, rate: 1000, away: time.Second, heard: time.Second, grown: 1},
		{parts: 4, rate: 300, heard: 10 * time.Second, grown: 1}, {parts: 4, rate: 1000, heard: 10 * time.Second, grown: 1},
		{parts: 10, rate: 1000, heard: 10 * time.Second, grown: 1, apart: true},
		{parts: 2, rate: 1000, heard: 10 * time.Second, grown: 4},
		{parts: 2, rate: 1000, heard: 10 * time.Second, grown: 4, apart: true}} {
		c.cut, c.rtt, c.most = 10*time.Second, 5*time.Millisecond, 8
		const seeds = 2
		for seed := range uint64(seeds) {
			c.run(seed)
		}
		possible := c.rate * float64(c.parts) * c.grown * 5 * seeds
		share, refused := c.taken[1]/possible, c.refused[1]/(c.refused[1]+c.taken[1])
		t.Logf("%+v: %.3f of what the parts take in the five seconds after, %.1f %% refused", c, share, 100*refused)
		conformance.True(t, share >= 0.93 && refused <= 0.03,
			"%+v: %.3f of what the parts take in the five seconds after, %.1f %% refused: want 0.93 and 3 %%", c, share,
			100*refused)
	}
}

func TestLanesOfLimitedTableAreRarelyRefused(t *testing.T) {
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
			continue // only in make laws, as it takes four fifths of the time
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
				table.watching.until = s.base.Add(time.Hour) // no trial starts by itself
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

// lanesTake returns the units per second that all lanes may send.
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

// lately returns the same sums as a list of all additions.
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

// sharedLaw is a controller that follows only the shared rate of an instance.
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

// The service refuses whole requests, so the first measurement misses the capacity that is left when it refuses one.
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
