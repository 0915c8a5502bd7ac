package ratelimit

import (
	"math"
	"math/rand/v2"
	"time"
)

// paced is the Pacer as a controller.
type paced struct {
	p      *Pacer
	perRow float64
}

func meteredPacing(r *rand.Rand, c *scenario, _ float64) controller {
	return paced{NewPacer(PacerOptions{MaxInFlight: c.maxInFlight, Rand: r}), c.perRow}
}

func knownRate(factor float64) maker {
	return func(r *rand.Rand, c *scenario, rate float64) controller {
		return paced{NewPacer(PacerOptions{Known: factor * rate, MaxInFlight: c.maxInFlight, Rand: r}), c.perRow}
	}
}

func (l paced) next(now time.Time, inFlight int, queued float64) (float64, time.Time, bool) {
	return l.p.NextOf(now, inFlight, l.perRow, queued)
}
func (l paced) sent(now time.Time, units float64) { l.p.Sent(now, units) }
func (l paced) answered(sent, now time.Time, units, taken float64) {
	l.p.Answered(sent, now, units, taken)
}
func (l paced) unavailable(now time.Time)      { l.p.Unavailable(now) }
func (l paced) child(now time.Time) controller { return paced{l.p.Child(now), l.perRow} }

// bare is what the controllers below share: an outage is waited out for 0.1 s at a time.
type bare struct {
	notBefore time.Time
}

func (b *bare) sent(time.Time, float64)               {}
func (b *bare) answered(_, _ time.Time, _, _ float64) {}
func (b *bare) unavailable(now time.Time)             { b.notBefore = now.Add(100 * time.Millisecond) }
func (b *bare) from(now time.Time) time.Time          { return later(now, b.notBefore) }
func (b *bare) wait(now time.Time, seconds float64)   { b.notBefore = now.Add(duration(seconds)) }

// atOnce sends what was throttled again at once.
type atOnce struct{ bare }

func retryAtOnce(*rand.Rand, *scenario, float64) controller { return &atOnce{} }

func (l *atOnce) next(now time.Time, inFlight int, _ float64) (float64, time.Time, bool) {
	return maxRows, l.from(now), inFlight == 0
}
func (l *atOnce) child(time.Time) controller { return &atOnce{} }

// backoffController waits at random up to twice as long after every request in a row of which nothing was accepted.
type backoffController struct {
	bare
	random    *rand.Rand
	base, max float64 // seconds
	failures  int
}

func exponentialBackoff(r *rand.Rand, _ *scenario, _ float64) controller {
	return &backoffController{random: r, base: 0.2, max: 5}
}

func (l *backoffController) next(now time.Time, inFlight int, _ float64) (float64, time.Time, bool) {
	return maxRows, l.from(now), inFlight == 0
}

func (l *backoffController) answered(_, now time.Time, units, accepted float64) {
	if accepted == units {
		l.failures = 0
		return
	}
	l.wait(now, min(l.max, l.base*math.Pow(2, float64(l.failures)))*l.random.Float64())
	if l.failures++; accepted > 0 {
		l.failures = 0
	}
}

func (l *backoffController) child(time.Time) controller {
	return &backoffController{random: l.random, base: l.base, max: l.max}
}

// windowController is AIMD on the rows in flight.
type windowController struct {
	bare
	window, flying float64
	cutAt          time.Time
}

func aimdOnWindow(*rand.Rand, *scenario, float64) controller { return &windowController{window: 200} }

func (l *windowController) next(now time.Time, _ int, _ float64) (float64, time.Time, bool) {
	room := math.Floor(l.window - l.flying)
	return min(room, maxRows), l.from(now), room >= 1
}
func (l *windowController) sent(_ time.Time, units float64) { l.flying += units }
func (l *windowController) answered(sent, now time.Time, units, accepted float64) {
	l.flying -= units
	switch {
	case accepted == units:
		l.window = min(4000, l.window+units/l.window)
	case !sent.Before(l.cutAt):
		l.window, l.cutAt = max(1, l.window/2), now
	}
}
func (l *windowController) child(time.Time) controller {
	return &windowController{window: max(1, l.window/2)}
}

// flow is a rate with the credit that it earns; the controllers below steer the rate.
type flow struct {
	bare
	rate, credit float64
	at           time.Time
}

func (f *flow) earn(now time.Time) {
	if !f.at.IsZero() {
		f.credit = min(max(maxRows, f.rate*0.2), f.credit+now.Sub(f.at).Seconds()*f.rate)
	}
	f.at = now
}

func (f *flow) next(now time.Time, inFlight int, queued float64) (float64, time.Time, bool) {
	f.earn(now)
	n := min(maxRows, max(1, math.Ceil(f.rate*0.2)), queued)
	at := f.from(now)
	if f.credit < n-1e-6 {
		at = later(at, now.Add(duration((n-f.credit)/f.rate)))
	}
	return n, at, inFlight < 8
}
func (f *flow) sent(now time.Time, units float64) { f.earn(now); f.credit -= units }

// rateController is AIMD on the rate: it doubles until the first throttle, then grows by 100 rows/s a second and is cut to 0.7.
type rateController struct {
	flow
	started       bool
	cutAt, raised time.Time
}

func aimdOnRate(*rand.Rand, *scenario, float64) controller {
	return &rateController{flow: flow{rate: 100}}
}

func (l *rateController) next(now time.Time, inFlight int, queued float64) (float64, time.Time, bool) {
	if l.raised.IsZero() {
		l.raised = now
	}
	if d := now.Sub(l.raised).Seconds(); d >= 0.2 {
		l.earn(now)
		if l.rate += 100 * d; !l.started {
			l.rate = 2 * (l.rate - 100*d)
		}
		l.rate, l.raised = min(l.rate, 1e5), now
	}
	return l.flow.next(now, inFlight, queued)
}

func (l *rateController) answered(sent, now time.Time, units, accepted float64) {
	if accepted == units || sent.Before(l.cutAt) {
		return
	}
	l.earn(now)
	l.rate, l.credit = max(1, 0.7*l.rate), min(l.credit, 0)
	l.started, l.cutAt, l.raised = true, now, now
}

func (l *rateController) child(now time.Time) controller {
	return &rateController{flow: flow{rate: l.rate, at: now}, started: true, raised: now}
}

// bbrController follows the largest delivery rate of the last ten rounds of 0.2 s and cycles around it, in the manner of BBR.
type bbrController struct {
	flow
	best      []float64 // of the rounds
	round     time.Time
	accepted  float64
	throttled bool
	started   bool
	flat      int
	before    float64
	turn      int
}

func bbrLike(r *rand.Rand, _ *scenario, _ float64) controller {
	return &bbrController{flow: flow{rate: 400}, best: []float64{200}, turn: r.IntN(8)}
}

func (l *bbrController) bottleneck() float64 {
	most := 1.0
	for _, v := range l.best[max(0, len(l.best)-10):] {
		most = max(most, v)
	}
	return most
}

func (l *bbrController) next(now time.Time, inFlight int, queued float64) (float64, time.Time, bool) {
	l.steer(now)
	return l.flow.next(now, inFlight, queued)
}

func (l *bbrController) steer(now time.Time) {
	if l.round.IsZero() {
		l.round = now
	}
	d := now.Sub(l.round).Seconds()
	if d < 0.2 {
		return
	}
	l.earn(now)
	l.best = append(l.best, l.accepted/d)
	l.accepted, l.round = 0, now
	gain := 2.0
	if !l.started {
		l.flat++
		if b := l.bottleneck(); b >= 1.25*l.before && !l.throttled {
			l.flat, l.before = 0, b
		}
		if l.flat >= 3 || l.throttled && l.flat >= 1 {
			l.started, l.best = true, l.best[len(l.best)-1:]
		}
	}
	if l.started {
		l.turn = (l.turn + 1) % 8
		gain = [8]float64{1.25, 0.75, 1, 1, 1, 1, 1, 1}[l.turn]
	}
	l.throttled = false
	l.rate = gain * l.bottleneck()
}

func (l *bbrController) answered(_, now time.Time, units, accepted float64) {
	l.steer(now)
	l.accepted += accepted
	if accepted < units {
		l.throttled, l.credit = true, min(l.credit, 0)
	}
}

func (l *bbrController) child(now time.Time) controller {
	return &bbrController{flow: flow{rate: l.bottleneck(), at: now}, best: []float64{l.bottleneck()}, round: now, started: true, turn: l.turn}
}
