package ratelimit

import (
	"math"
	"time"
)

// The start: an unknown lane sends one small request, then larger ones, then several at once while nothing is refused.
// An answer that is slow because of its rows reveals the rate at once. Tested by TestControlReachesTargets ("unknown",
// "full at the start", "very fast") and TestPartitionWithoutLimitGetsFullWindow.
const (
	firstRows    = 25.0   // rows of the first request; fewer if the rows have many units
	startRows    = 100.0  // rows of later requests, up to maxRows
	maxRows      = 200.0  // the service's limit for a request
	stepRows     = 1000.0 // accepted rows that permit one more request in flight
	slowWindow   = 8      // from this many requests in flight on, each clean answer adds one
	slowAnswer   = 0.2    // seconds; the rows may be the cause if an answer takes longer
	slowerByRows = 0.6    // the rows are the cause if a quarter of them takes at most this share of the time
)

// The measurement: after the first throttle the bucket fills for a moment, then small requests empty it until the next
// throttle. The rate is the units accepted meanwhile, per second. If nothing was accepted for a while, the limit is a
// quota per second, measured over one. See TestControlReachesTargets, TestLaws, TestQuotaIsMeasuredOverOneSecond.
const (
	refill      = 50 * time.Millisecond  // how long the bucket first fills
	maxRefill   = time.Second            // maximum of refill
	measureRows = 25.0                   // rows of a request: few, for a fine measurement
	measureTime = 0.25                   // a request holds the rows of this many seconds, at the approximate rate
	minSample   = 20.0                   // accepted rows needed for a measurement
	longSample  = 3 * time.Second        // a measurement that takes longer needs fewer rows
	metered     = 950 * time.Millisecond // minimum time of a measurement, as the service meters by the second
	pressFor    = time.Second            // how long to repeat small requests, as another load may use all capacity
	pressRows   = 25.0                   // rows of these requests

	idleFor   = 100 * time.Millisecond // time without an accepted row that counts as idle
	mostIdle  = 0.3                    // after this many idle seconds, only a full second gives a rate
	idleRows  = 8.0                    // the rate is not even if this many rows were expected while idle
	burstOf   = 1.3                    // a last second of this many times the rate shows a quota per second
	deadAfter = 3                      // small requests refused in a row; they show a quota too
)

// firstRamp returns the ramp of an unknown lane. The first request has only a few rows if rows are large.
func (p *Pacer) firstRamp(from time.Time) ramp {
	return ramp{from: from, window: 1, rows: max(1, firstRows/max(1, p.perRow))}
}

// unthrottled takes an answer without a throttle. Only start and measure use it.
func (p *Pacer) unthrottled(now time.Time, took, units float64) {
	p.probe.alone = 0
	switch p.phase {
	case inStart:
		if p.ramp.window == 1 && p.slowForRows(now, took, units) {
			return
		}
		if p.line.lateness.doubted { // a small batch will tell whether the guess is right
			p.ramp.window, p.ramp.rows = 1, max(1, p.line.lateness.quick.units/p.perRow)
			return
		}
		p.ramp.clean += units / p.perRow
		p.ramp.rows = max(p.ramp.rows, min(2*p.ramp.rows, max(startRows, min(20000*p.line.rtt, maxRows))))
		if p.ramp.window >= slowWindow || p.line.lateness.perUnit > 0 {
			p.ramp.window = min(p.ramp.window+1, p.max)
		} else if p.ramp.clean >= stepRows {
			p.ramp.clean = 0
			p.ramp.window = min(p.ramp.window+1, p.max)
			if p.ramp.window > 2 {
				p.ramp.rows = maxRows
			}
		}
	case inMeasure:
		// The partition is fast or far away: one small batch at a time would never empty the bucket.
		if p.ramp.clean++; p.ramp.clean < 4 {
			return
		}
		p.ramp.clean = 0
		if p.ramp.rows >= maxRows {
			p.ramp.window = min(2*p.ramp.window, p.max)
		}
		p.ramp.rows = min(2*p.ramp.rows, maxRows)
	}
}

func (p *Pacer) measure(t throttle) {
	p.phase = inMeasure
	p.gauge.reset(t.met)
	pause := time.Duration(float64(refill) * (1 + 0.2*p.random()))
	p.ramp = ramp{
		from:   t.now.Add(pause),
		pause:  pause,
		window: 1,
		rows:   max(1, min(max(measureRows, 5000*p.line.rtt), maxRows)/max(1, p.perRow)),
	}
	if p.rate > 0 {
		p.ramp.rows = max(1, min(p.ramp.rows, measureTime*p.rate/p.perRow))
	}
}

// throttled notes that the bucket was empty at t.met.
func (p *Pacer) throttled(t throttle) {
	e := &p.evidence
	first := e.refused.IsZero()
	e.refused, e.queue, p.line.lateness.perUnit = t.now, false, 0
	if t.accepted > 0 {
		e.partly = true
	} else if idle := t.met.Sub(later(p.gauge.from, p.gauge.took)); idle >= idleFor {
		p.gauge.idle = max(p.gauge.idle, idle.Seconds())
	}
	if first && p.phase == inCruise && e.paced {
		p.measure(t) // a rate derived from late answers does not predict refusals
		return
	}
	t.since = t.met.Sub(p.gauge.from)
	t.first = t.first || p.line.young && p.probe.gain < guessGain
	p.line.young = false
	few := p.gauge.accepted < minSample*p.perRow
	switch p.phase {
	case inStart:
		p.measure(t)
	case inMeasure:
		if t.since < refill*7/10 || few && t.since < longSample || p.gauge.idle >= mostIdle && t.since < metered {
			p.wait(t)
			return
		}
		p.sample(t)
		if few { // a slow lane should begin too fast rather than too slowly, as throttles correct that at once
			p.setRate(p.rate + 0.5*p.perRow/t.since.Seconds())
		}
		p.cruise(t)
	case inCruise:
		p.refused(t, few)
	}
}

// slowForRows finds out, with one request in flight, whether an answer is slow because of its rows. If so, a quarter of
// the rows is answered sooner, and the full number is as slow again, which rules out chance. The difference gives the
// rate of a service that writes rows one by one. It reports whether the lane waits for such an answer or has the rate.
func (p *Pacer) slowForRows(now time.Time, took, units float64) bool {
	r := &p.ramp
	switch {
	case r.slow == 0: // the first answer
		if took < slowAnswer || units < 4*p.perRow {
			return false
		}
		r.slow, r.slowed, r.rows = took, units, max(1, math.Floor(units/p.perRow/4))
		return true
	case r.slowed == 0: // its rows are not the cause
		return false
	case r.fast == 0 && units < r.slowed && took < slowerByRows*r.slow:
		r.fast, r.fastOf, r.rows = took, units, r.slowed/p.perRow
		return true
	case r.fast > 0 && units > r.fastOf && slowerByRows*took > r.fast:
		slope := (took - r.fast) / (units - r.fastOf)
		if slope*r.fastOf > r.fast {
			break // the rows alone would have taken longer
		}
		p.line.lateness.perUnit, p.line.lateness.guessed, p.line.lateness.doubted = slope, false, false
		p.line.lateness.quick = answer{r.fastOf, r.fast}
		p.line.lateness.way, p.line.lateness.waySince = [2]float64{r.fast - slope*r.fastOf, math.Inf(1)}, now
		p.evidence.queue, p.evidence.paced = true, true
		p.setRate(1 / p.line.lateness.perUnit)
		p.cruise(throttle{now: now, met: now, units: units, accepted: units})
		p.probe.gain = maxGain
		return true
	}
	r.rows, r.slowed = r.slowed/p.perRow, 0
	return false
}

// queued notes that answers are late while nothing is refused: a queue has grown at the service. It counts as a
// throttle without loss: the service was busy since the last answer on time, so the units accepted since give the rate.
func (p *Pacer) queued(t throttle) {
	p.line.lateness.queue()
	p.evidence.queue = true
	p.evidence.paced = p.evidence.paced || p.phase != inCruise
	t.since = t.met.Sub(p.gauge.from)
	switch {
	case p.phase == inCruise && p.probe.sent < 0.5*p.rate*t.now.Sub(p.probe.since).Seconds() &&
		len(p.others.inFlight.flying)+1 < p.max:
		return // it has sent too little to keep the service busy, and may send more
	case p.phase == inCruise && t.now.Sub(p.line.lateness.freeAt) < leastBusy && p.probe.gain < guessGain:
		p.again(t)
		return
	default:
		p.phase = inCruise
		way := duration(p.line.lateness.shortest() / 2)
		busy := max(t.now.Sub(p.line.lateness.freeAt), time.Millisecond).Seconds()
		lately := p.recent.between(p.line.lateness.freeAt.Add(-way), t.now) / busy
		p.estimate(t.now, max(lately, p.evidence.delivery.most(), mostSlower*p.rate))
	}
	p.cruise(t)
}

func (p *Pacer) refused(t throttle, few bool) {
	switch {
	case t.first: // a partition begins with an empty bucket, so this says nothing about its rate
	case p.trySmallerBatch(t):
	case p.probe.gain >= guessGain: // it accepts more than before; the next throttle shows how much
		p.endTrial(t.now, false)
		if p.probe.gain >= 0.5 && t.accepted > 0 {
			p.measure(t)
			return
		}
		p.further(t)
	case p.probe.held && p.probe.gain > 0: // the rate is just below
		p.endTrial(t.now, true)
		p.regrow(t.now, regrowAfter)
	case p.rate < minSample*p.perRow: // a measurement needs seconds
		p.correctSlow(t, few)
		return
	case !p.gauge.whole:
		p.endTrial(t.now, false)
	case t.since < metered:
		p.endTrial(t.now, t.since >= minCruise)
		p.again(t)
		return
	default:
		p.endTrial(t.now, true)
		p.sample(t)
		p.regrow(t.now, regrowAfter)
	}
	p.cruise(t)
}

// correctSlow corrects a slow lane's rate. The rate at which throttles begin says more than a count of a few rows.
func (p *Pacer) correctSlow(t throttle, few bool) {
	switch {
	case p.probe.gain > usualGain: // the previous gain was too small, this one is too large
		p.setRate(p.rate * (1 + 0.75*p.probe.gain))
	case !few && t.since > 0 && p.gauge.whole:
		p.sample(t)
	case p.probe.alone >= 3: // refused although it waited half a row's time longer
		p.setRate(0.9 * p.rate)
	default:
		p.again(t)
		return
	}
	p.cruise(t)
}

// wait lets a slow partition's bucket fill, longer and longer after pressFor, but keeps counting from the same moment.
func (p *Pacer) wait(t throttle) {
	least := pressRows
	if t.since > pressFor {
		least = 1
		p.ramp.pause = min(2*p.ramp.pause, maxRefill)
	}
	if t.accepted == 0 { // as in a used-up window, where each row may be refused
		p.ramp.rows = 0
	}
	p.ramp.rows = max(least/max(1, p.perRow), min(p.ramp.rows, 2*p.gauge.accepted/p.perRow+2))
	p.ramp.from = t.now.Add(p.ramp.pause)
	p.ramp.window, p.ramp.clean = 1, 0
}

// single reports whether the lane is so slow that it sends row by row.
func (p *Pacer) single() bool { return p.batch() <= p.perRow }

// sample takes the rate from the gauge. The bucket grants whole rows, so half a row is left on average.
func (p *Pacer) sample(t throttle) {
	e := &p.evidence
	left := 0.5 * p.perRow
	if t.accepted == 0 && p.phase == inMeasure { // refused as a whole: on average the bucket held half of the request
		left = max(left, 0.5*min(t.units, p.gauge.accepted))
	}
	rate := (p.gauge.accepted + left) / t.since.Seconds()
	if whole := math.Floor(min(t.since, recentFor).Seconds() + 0.05); whole >= 1 {
		if p.gauge.idle*rate >= idleRows*p.perRow && (e.partly || p.phase == inMeasure) {
			p.gauge.dead = true
		}
		if p.gauge.dead {
			whole = 1
		}
		from := t.met.Add(-time.Duration(whole * float64(time.Second)))
		last := p.recent.between(from, t.now) / whole
		if p.gauge.dead || p.phase == inMeasure && last > burstOf*rate {
			p.others.quota = quota{on: true}
			rate = last
		}
	}
	p.estimate(t.now, rate)
}

// seekFreed makes a lane look for capacity freed by lanes that have ended, and forgives refusals caused by those lanes.
func (p *Pacer) seekFreed(now time.Time) {
	switch {
	case p.phase != inCruise || p.others.inFlight.on:
	case p.others.quota.on:
		p.evidence.debt = 0
		p.hold(now, 0)
		p.others.quota.reach = mostReach
	default:
		p.evidence.debt = 0
		p.probe.gain, p.probe.since, p.probe.sent = max(p.probe.gain, freedGain), now, 0
	}
}

// estimate sets the partition's rate. Refusals that revealed a different rate are forgiven.
func (p *Pacer) estimate(now time.Time, rate float64) {
	if e := &p.evidence; !e.raised.IsZero() && e.raised.Before(now) {
		e.saves = now.Sub(e.raised) < provedAfter && rate < 1.05*e.before
		e.raised = time.Time{}
	}
	if p.evidence.agreed++; math.Abs(rate-p.rate) > agreeing*p.rate {
		p.evidence.agreed, p.evidence.debt = 0, 0
	} else if p.probe.gain < 0 { // just below the rate is not enough
		p.evidence.margin = min(2*max(leastMargin, p.evidence.margin), mostMargin)
	}
	p.setRate(rate)
}

// further raises the rate, after a long reach, to the flow since the last throttle, or the last second's if far higher.
func (p *Pacer) further(t throttle) {
	rate := p.rate
	if t.since >= metered && p.gauge.whole {
		rate = max(rate, p.gauge.accepted/t.since.Seconds())
	}
	e := &p.evidence
	if last := p.recent.between(t.met.Add(-time.Second), t.now); last > 1.25*rate {
		rate = max(rate, last)
	} else if !e.saves { // the next throttle tells whether it accepts more or had saved up capacity
		rate = max(rate, p.rate*(1+p.probe.gain/2))
		e.raised, e.before = t.now, p.rate
	}
	p.estimate(t.now, rate)
}

// again continues in cruise with the same rate, and with the same gauge if that is valid.
func (p *Pacer) again(t throttle) {
	g := p.gauge
	p.cruise(t)
	if g.whole {
		p.gauge = g
	}
}

// trySmallerBatch makes batches smaller if a throttle refused so much that the batch may be too large for the bucket,
// rather than the rate too high, and reports whether it did. The rate is kept; smaller batches will show the cause.
func (p *Pacer) trySmallerBatch(t throttle) bool {
	if p.size.before > 0 || p.gauge.dead || t.now.Before(p.size.notBefore) || p.probe.gain >= guessGain ||
		t.accepted > 0.75*t.units || t.accepted < max(0.25*t.units, 8*p.perRow) {
		return false
	}
	p.size = size{most: max(8, math.Floor(0.75*t.accepted/p.perRow)), before: p.size.most, at: t.now,
		notBefore: p.size.notBefore}
	return true
}

// endTrial ends a trial of smaller batches. Smaller batches are kept if they gave a good measurement.
func (p *Pacer) endTrial(now time.Time, good bool) {
	if p.size.before > 0 && !good {
		p.size.most, p.size.notBefore = p.size.before, now.Add(regrowAfter)
	}
	p.size.before = 0
}

// cruise begins to cruise, counting from the moment the bucket was empty.
func (p *Pacer) cruise(t throttle) {
	p.phase = inCruise
	p.gauge.reset(t.met)
	if p.others.quota.on {
		p.hold(t.now, heldLong)
		p.credit.level -= p.line.sentSince()
		p.line.blocked = p.line.blocked || t.accepted < t.units
		return
	}
	costly := p.probe.costly
	p.probe = probe{gain: usualGain, since: t.now, alone: p.probe.alone}
	p.probe.costly = costly && t.accepted < 0.75*t.units || t.accepted < 0.1*t.units && t.units >= leastOdd*p.perRow
	if p.evidence.debt > 0 {
		p.probe.gain, p.probe.held = -max(leastMargin, p.evidence.margin), true
		p.probe.costly = p.probe.costly || t.accepted < 0.75*t.units
	}
	p.line.calm = t.now.Add(calmFor)
	p.credit = credit{level: t.now.Sub(t.met).Seconds()*p.rate - p.held() - p.line.sentSince(), at: t.now}
	if p.single() && t.accepted == 0 {
		// The bucket lacked part of a row. If it holds no more than one row, it may overflow during a wait for a whole one.
		p.probe.alone++
		p.credit.level += max(0, p.held()+p.perRow*(1-heldOfRow*math.Pow(2, float64(min(p.probe.alone, 6)))))
	}
}

// resumeAfterOutage resumes from the state before an outage. Measurements across the outage are void.
func (p *Pacer) resumeAfterOutage(now time.Time) {
	p.line.probeAt = time.Time{}
	p.overflowed()
	p.credit = credit{level: min(p.credit.level, 0), at: now}
	p.probe.since, p.probe.sent = now, 0
	if p.others.quota.on && p.phase == inCruise {
		p.hold(now, heldLong)
	}
	if p.phase != inMeasure {
		return
	}
	p.phase = inStart
	p.ramp = p.firstRamp(now)
	if p.rate > 0 {
		p.phase = inCruise
	}
}
