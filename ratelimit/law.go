package ratelimit

import (
	"math"
	"slices"
	"time"
)

// The numbers of the law, found by simulation (TestLaws). Rows are rows of the lane's mean size.
const (
	spread     = 200 * time.Millisecond // lanes begin within it at random, so that they do not throttle in step
	probeEvery = 100 * time.Millisecond // mean time between probes of a partition that does not serve

	maxRows     = 200.0
	startRows   = 100.0
	stepRows    = 1000.0 // accepted rows per request more in flight while starting
	slowWindow  = 8      // above it each clean answer adds a request
	measureRows = 25.0   // a measurement is the finer the smaller the batch that ends it
	minSample   = 20.0   // accepted rows that make a measurement

	refill      = 50 * time.Millisecond // how long a measurement lets the bucket fill
	maxRefill   = time.Second
	longSample  = 2 * time.Second // long enough for a measurement however few rows it has
	minCruise   = 300 * time.Millisecond
	minLong     = time.Second
	maxLong     = 5 * time.Second
	remeasure   = 3 * time.Second // between two measurements; longer when they do not hold
	maxTrust    = time.Minute
	regrowAfter = time.Minute // batches that were found too large
	cut         = 0.75

	usualGain      = 0.02 // how far above the rate cruise paces
	knownFirstGain = 0.04 // a known rate, until the first throttle: uses up what the bucket had saved
	knownGain      = 0.002
	maxGain        = 1.0
	guessGain      = 0.1 // from here on a throttle says more about the reach than about the rate
	reserve        = 0.04
	addRows        = 2.0 // rows a second that cruise paces above the rate beside the gain, but
	maxAdd         = 0.01
	heldOfRow      = 0.0125 // of a row, times two for each refusal in a row of it
	heldRows       = 0.1    // of a row, that a slow lane leaves
	heldOfBatch    = 0.2    // of the largest batch, at most, when the bucket is known to be small

	batchTime = 0.2  // seconds of the rate in a batch
	fewRows   = 50.0 // a slow lane's batch, unless that is more than half a second's
	maxDebt   = 60.0 // seconds that one batch may hold up a lane
	minPerSec = 0.25 // rows a second: a partition is asked at least every few seconds
	maxRate   = 1e9
)

// line is what is known of the way to the server.
type line struct {
	rtt         float64 // seconds, smoothed; 0 before the first answer
	throttledAt time.Time
	measuredAt  time.Time
	trust       time.Duration // from one measurement to the next
	sends       []send        // those that the server has not looked at yet, as far as answers tell
	out         bool          // the partition does not serve
	young       bool          // came out of a split and has not been throttled yet
	probeAt     time.Time
}

type send struct {
	at    time.Time
	units float64
}

func (l *line) answered(sent, now time.Time) {
	d := now.Sub(sent).Seconds()
	if l.rtt == 0 {
		l.rtt = d
	}
	l.rtt += (d - l.rtt) / 8
	l.sends = slices.DeleteFunc(l.sends, func(s send) bool { return !s.at.After(sent) })
}

// behind is the units sent after the request that was answered last.
func (l *line) behind() float64 {
	sum := 0.0
	for _, s := range l.sends {
		sum += s.units
	}
	return sum
}

// ramp is how start and measure send: without a rate, by the clean answers.
type ramp struct {
	from   time.Time // nothing before
	window int       // requests in flight
	rows   float64   // of a batch
	clean  float64   // answers, or accepted rows, since the last step
	pause  time.Duration
}

// gauge counts what the partition accepted since a moment at which its bucket was empty.
type gauge struct {
	from     time.Time
	accepted float64
	whole    bool // the bucket cannot have overflowed since
}

func (g *gauge) reset(at time.Time) { *g = gauge{from: at, whole: true} }

func (g *gauge) add(met time.Time, accepted float64) {
	if met.After(g.from) {
		g.accepted += accepted
	}
}

// credit is what cruise may send, in units; it grows with time.
type credit struct {
	level float64
	at    time.Time
}

// probe is how far above the rate cruise reaches.
type probe struct {
	gain  float64
	since time.Time
	sent  float64 // units
	quick int     // throttles that a known rate did not expect
	alone int     // single rows refused in a row
}

// size is what is known of the batches that the server's bucket can hold.
type size struct {
	most   float64 // rows
	before float64 // most before the trial; 0 is no trial
	at     time.Time
}

// throttle is an answer that refused rows.
type throttle struct {
	now, met        time.Time
	units, accepted float64
	first           bool          // the first answer after an outage or a split
	since           time.Duration // the gauge began
}

func (p *Pacer) baseGain() float64 {
	if p.phase == inKnown {
		return knownGain
	}
	return usualGain
}

// speed is the units a second at which credit grows.
func (p *Pacer) speed() float64 {
	v := p.rate * (1 + p.probe.gain)
	if p.phase != inKnown && !p.single() {
		v += min(addRows*p.perRow, maxAdd*p.rate)
	}
	return v
}

// batch is the size of a batch in cruise, in units. Small batches cost requests; large ones come in lumps that a small
// bucket refuses.
func (p *Pacer) batch() float64 {
	perSecond := p.rate / p.perRow // rows
	rows := math.Ceil(max(batchTime*perSecond, min(fewRows, perSecond/2)))
	return max(1, min(rows, p.size.most)) * p.perRow
}

// held is how much cruise leaves in the server's bucket after a throttle, in units: room for the jitter of the way. What
// is left and a batch together must fit into the bucket, else it overflows before every batch.
func (p *Pacer) held() float64 {
	held := max(reserve*p.rate, heldRows*p.perRow)
	if p.size.most < maxRows {
		held = min(held, heldOfBatch*p.size.most*p.perRow)
	}
	return held
}

// spoil notes that the bucket may have overflowed.
func (p *Pacer) spoil() { p.gauge.whole, p.long.whole = false, false }

func (p *Pacer) setRate(v float64) {
	if math.IsNaN(v) {
		return
	}
	p.rate = min(max(v, minPerSec*p.perRow), maxRate)
}

func (p *Pacer) advance(now time.Time) {
	d := now.Sub(p.credit.at)
	if d <= 0 {
		return
	}
	p.credit.at = now
	if p.line.out {
		return
	}
	p.credit.level += d.Seconds() * p.speed()
	if most := 1.5*p.batch() + p.held(); p.credit.level > most {
		// No rows, no worker: the server's bucket may have overflowed.
		p.credit.level = most
		p.spoil()
	}
}

// reach reaches further up when nothing was throttled for a while. Only time in which the lane sent what it might counts:
// a starved lane learns nothing, and must not come back with a rate that it dreamt up.
func (p *Pacer) reach(now time.Time) {
	hold := max(0.5, 1.5*max(reserve, p.held()/p.rate)/p.probe.gain, 2*p.batch()/p.speed())
	d := now.Sub(p.probe.since).Seconds()
	if p.phase == inKnown || d < hold {
		return
	}
	full := p.probe.sent >= 0.8*p.rate*d
	p.probe.since, p.probe.sent = now, 0
	if !full {
		return
	}
	if p.probe.gain >= 0.25 {
		p.setRate(p.rate * (1 + p.probe.gain))
		p.spoil()
		p.regrow(now, 0)
	}
	p.probe.gain = min(2*p.probe.gain, maxGain)
}

// regrow allows larger batches again, now and then: a small bucket is found out anew, a mistaken one is not for ever.
func (p *Pacer) regrow(now time.Time, after time.Duration) {
	if p.size.before == 0 && p.size.most < maxRows && now.Sub(p.size.at) >= after {
		p.size.most, p.size.at = min(1.25*p.size.most, maxRows), now
	}
}

// clean takes an answer without a throttle. Only start and measure go by it.
func (p *Pacer) clean(units float64) {
	p.probe.alone = 0
	switch p.phase {
	case inStart:
		p.ramp.clean += units / p.perRow
		p.ramp.rows = max(p.ramp.rows, min(2*p.ramp.rows, max(startRows, min(20000*p.line.rtt, maxRows))))
		if p.ramp.window >= slowWindow {
			p.ramp.window = min(p.ramp.window+1, p.max)
		} else if p.ramp.clean >= stepRows {
			p.ramp.clean = 0
			p.ramp.window = min(p.ramp.window+1, p.max)
			if p.ramp.window > 2 {
				p.ramp.rows = maxRows
			}
		}
	case inMeasure:
		// A fast partition or a long way: one small batch at a time would never empty the bucket.
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
	p.line.measuredAt = t.now
	pause := time.Duration(float64(refill) * (1 + 0.2*p.random()))
	p.ramp = ramp{
		from:   t.now.Add(pause),
		pause:  pause,
		window: 1,
		rows:   max(1, min(max(measureRows, 5000*p.line.rtt), maxRows)/max(1, p.perRow)),
	}
}

// throttled takes the news that the bucket was empty at t.met.
func (p *Pacer) throttled(t throttle) {
	t.since = t.met.Sub(p.gauge.from)
	t.first = t.first || p.line.young
	p.line.young = false
	few := p.gauge.accepted < minSample*p.perRow
	switch p.phase {
	case inStart:
		p.measure(t)
	case inMeasure:
		if t.since < refill*7/10 || few && t.since < longSample {
			p.wait(t)
			return
		}
		p.sample(t)
		if few { // a slow lane is better begun too fast: throttles show that at once
			p.setRate(p.rate + 0.5*p.perRow/t.since.Seconds())
		}
		p.cruise(t)
	case inKnown:
		switch {
		case t.first || p.tries(t):
			p.cruise(t)
		case few && p.slow():
			p.again(t)
		case p.unexpected(t):
			p.measure(t)
		default:
			p.tried(t.since >= minCruise)
			p.cruise(t)
		}
	case inCruise:
		p.refused(t, few)
	}
}

// refused is throttled in cruise.
func (p *Pacer) refused(t throttle, few bool) {
	usual := p.probe.gain < guessGain
	enough := t.since >= minCruise && p.gauge.whole && t.accepted+8*p.perRow >= 0.5*t.units
	switch {
	case t.first: // an empty bucket is what a partition begins with: no news of its rate
	case p.tries(t):
	case usual && enough && !few:
		p.tried(true)
		p.sample(t)
		p.long.whole, p.line.trust = false, 0
		p.regrow(t.now, regrowAfter)
	case p.slow():
		p.settle(t, few)
		return
	case t.now.Sub(p.line.measuredAt) >= max(remeasure, p.line.trust):
		p.tried(false)
		p.measure(t)
		return
	default:
		p.tried(false)
		p.correct(t)
	}
	p.cruise(t)
}

// slow reports whether a lane takes so few rows that a measurement needs seconds.
func (p *Pacer) slow() bool { return p.rate < minSample*p.perRow }

// settle corrects the rate of a slow lane. Counting a handful of rows says less than where the throttles begin.
func (p *Pacer) settle(t throttle, few bool) {
	switch {
	case p.probe.gain > usualGain: // the gain before this one was too little, this one is too much
		p.setRate(p.rate * (1 + 0.75*p.probe.gain))
	case !few && t.since > 0 && p.gauge.whole:
		p.sample(t)
	case p.probe.alone >= 3: // even half a row's time later
		p.setRate(0.9 * p.rate)
	default:
		p.again(t)
		return
	}
	p.cruise(t)
}

// wait lets a slow partition's bucket fill for longer, and goes on counting from the same moment.
func (p *Pacer) wait(t throttle) {
	p.ramp.pause = min(2*p.ramp.pause, maxRefill)
	p.ramp.from = t.now.Add(p.ramp.pause)
	p.ramp.rows = max(1, min(p.ramp.rows, 2*p.gauge.accepted/p.perRow+2))
	p.ramp.window, p.ramp.clean = 1, 0
}

// correct lowers the rate after a throttle that came too early to measure by. What was accepted over a longer time, with
// throttles in between, is a fair rate even where a throttle does not mean that this partition's bucket is empty: a ceiling
// for the whole table, or a quota for each second of the clock. There measurements do not hold, and become rare.
func (p *Pacer) correct(t throttle) {
	if t.now.Sub(p.line.measuredAt) < time.Second {
		p.line.trust = min(2*max(p.line.trust, remeasure), maxTrust)
	}
	v := cut * p.rate
	if d := t.met.Sub(p.long.from); p.long.whole && d >= minLong {
		v = min(max(0.5*p.rate, p.long.accepted/d.Seconds()), p.rate)
		p.long.whole = d < maxLong
	}
	p.setRate(v)
}

// single reports whether the lane is so slow that it sends row by row.
func (p *Pacer) single() bool { return p.batch() <= p.perRow }

// sample takes the rate from the gauge. The bucket gives whole rows only, so at the end half a row is left in it on average.
func (p *Pacer) sample(t throttle) {
	p.setRate((p.gauge.accepted + 0.5*p.perRow) / t.since.Seconds())
}

// again goes on in cruise without touching the rate or the gauge's beginning.
func (p *Pacer) again(t throttle) {
	g := p.gauge
	p.cruise(t)
	p.gauge = g
}

// unexpected reports whether a known rate has been refused so often that it is wrong.
func (p *Pacer) unexpected(t throttle) bool {
	low := p.gauge.whole && p.gauge.accepted+0.5*p.perRow < 0.97*p.rate*t.since.Seconds()
	switch {
	case low || t.since < time.Second:
		p.probe.quick++
	case p.gauge.whole:
		p.probe.quick = 0
	}
	return p.probe.quick >= 3
}

// tries reports whether a throttle refused so much that the batch, not the rate, may be too large for the bucket: the rate
// stays and smaller batches show which it was.
func (p *Pacer) tries(t throttle) bool {
	if p.size.before > 0 || p.probe.gain >= guessGain || t.accepted > 0.75*t.units || t.accepted < max(0.25*t.units, 8*p.perRow) {
		return false
	}
	p.size = size{most: max(8, math.Floor(0.75*t.accepted/p.perRow)), before: p.size.most, at: t.now}
	return true
}

// tried ends a trial of smaller batches. They stay if they gave a good measurement.
func (p *Pacer) tried(good bool) {
	if p.size.before > 0 && !good {
		p.size.most = p.size.before
	}
	p.size.before = 0
}

// cruise begins anew at the moment the bucket was empty.
func (p *Pacer) cruise(t throttle) {
	if p.phase != inKnown {
		p.phase = inCruise
	}
	p.gauge.reset(t.met)
	if !p.long.whole {
		p.long.reset(t.met)
	}
	p.probe = probe{gain: p.baseGain(), since: t.now, quick: p.probe.quick, alone: p.probe.alone}
	p.credit = credit{level: t.now.Sub(t.met).Seconds()*p.rate - p.held() - p.line.behind(), at: t.now}
	if p.single() && t.accepted == 0 {
		// The bucket lacked a part of a row only, and may not hold more than a row: to wait for a whole one would let it
		// overflow.
		p.probe.alone++
		p.credit.level += max(0, p.held()+p.perRow*(1-heldOfRow*math.Pow(2, float64(min(p.probe.alone, 6)))))
	}
}

// back takes up where an outage began. What was measured across it is void.
func (p *Pacer) back(now time.Time) {
	p.line.probeAt = time.Time{}
	p.spoil()
	p.credit = credit{level: min(p.credit.level, 0), at: now}
	p.probe.since, p.probe.sent = now, 0
	if p.phase != inMeasure {
		return
	}
	p.phase = inStart
	p.ramp = ramp{window: 1, rows: startRows}
	if p.rate > 0 {
		p.phase = inCruise
	}
}
