package ratelimit

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// The law as it was while token buckets were the only limiters that it knew, kept to compare with.

// oldPacerOptions says what is known of a lane before its first request.
type oldPacerOptions struct {
	Known       float64    // units a second the partition is known to take; 0 is unknown
	MaxInFlight int        // requests of the lane in flight at most; 0 takes 8
	Alone       bool       // there are no other lanes to keep out of step with: it begins at once
	Rand        *rand.Rand // nil uses the process's source
}

// oldPacer finds the rate of a lane: the capacity units a second that its partition accepts. Nobody tells that rate and it
// changes, so the pacer lets the partition throttle now and then and reads off what was accepted between two such
// moments. At both the partition's token bucket is empty, so what went in between is what flowed in between: a
// measurement, where shrinking and growing by fixed factors only ever guesses.
//
//  1. start: one request in flight at first, more as answers come back clean. The first throttle begins 2.
//  2. measure: let the bucket oldRefill for a moment, then empty it with small batches until it throttles. That gives the rate.
//  3. cruise: pace a little above that rate. So a throttle comes every few seconds, costs a few rows, and gives a fresh
//     measurement over a long time. Without one for a while the pacer reaches further up.
//
// A known rate starts in cruise and reaches hardly above it; it is forgotten when the partition keeps refusing it.
//
// Time in which the lane had no rows, no worker, or a partition that did not serve is not a sample: credit is capped and a
// measurement across it is thrown away. Rows that are still on the way count where the server met them, taken to be the
// middle between send and answer.
//
// Calls come in the order in which things happened, from one goroutine at a time.
type oldPacer struct {
	rand   *rand.Rand // nil is the process's source
	max    int        // in flight
	phase  oldPhase
	rate   float64 // units a second; 0 is unknown
	perRow float64 // units
	alone  bool

	line   oldLine
	ramp   oldRamp
	gauge  oldGauge // since the last throttle that counted
	long   oldGauge // over several throttles
	credit oldCredit
	probe  oldProbe
	size   oldSize
}

type oldPhase int

const (
	oldInStart oldPhase = iota
	oldInMeasure
	oldInCruise
	oldInKnown
)

// oldNewPacer returns the pacer of a lane that has sent nothing yet.
func oldNewPacer(o oldPacerOptions) *oldPacer {
	p := &oldPacer{rand: o.Rand, perRow: 1, alone: o.Alone, size: oldSize{most: oldMaxRows}}
	p.SetMaxInFlight(o.MaxInFlight)
	p.probe.gain = oldUsualGain
	if o.Known > 0 && !math.IsInf(o.Known, 1) {
		p.phase, p.rate = oldInKnown, min(o.Known, oldMaxRate)
		p.probe.gain = oldKnownFirstGain
	}
	return p
}

// Next says how many capacity units the next batch may hold (at least 1) and from when on it may be sent; ok is false when
// nothing may be sent before an answer comes in. inFlight is the number of the lane's requests in flight, perRow the mean units of its
// rows: batches are sized in rows, since that is what requests are limited by.
func (p *oldPacer) Next(now time.Time, inFlight int, perRow float64) (units float64, at time.Time, ok bool) {
	return p.NextOf(now, inFlight, perRow, math.Inf(1))
}

// NextOf is Next for a lane that holds only queued units and expects no more soon: a batch that cannot be full need not
// wait for the credit of a full one.
func (p *oldPacer) NextOf(now time.Time, inFlight int, perRow, queued float64) (units float64, at time.Time, ok bool) {
	p.open(now, perRow)
	units, at, ok = p.next(now, inFlight, queued)
	return max(1, units), at, ok
}

func (p *oldPacer) next(now time.Time, inFlight int, queued float64) (units float64, at time.Time, ok bool) {
	at = later(now, p.line.probeAt)
	if p.line.out { // a probe is one row: most of them come too early
		return p.perRow, at, inFlight == 0
	}
	if p.phase == oldInStart || p.phase == oldInMeasure {
		return min(queued, p.ramp.rows*p.perRow), later(at, p.ramp.from), inFlight < min(p.ramp.window, p.max)
	}
	if inFlight >= p.max {
		return 0, now, false
	}
	units = min(queued, p.batch())
	p.advance(now)
	p.reach(now)
	if missing := units - p.credit.level; missing > units*1e-9 {
		at = later(at, now.Add(duration(missing/p.speed())))
	}
	return units, at, true
}

// Sent notes that a batch has left. It may hold more than Next allowed: the pacer then waits for longer.
func (p *oldPacer) Sent(now time.Time, units float64) {
	p.open(now, p.perRow)
	if !(units > 0) || math.IsInf(units, 1) {
		return
	}
	units = min(units, oldMaxUnits)
	p.probe.sent += units
	if len(p.line.sends) > 2*p.max { // requests of which no answer told, after time-outs
		p.line.sends = slices.Delete(p.line.sends, 0, p.max)
	}
	p.line.sends = append(p.line.sends, oldSend{now, units})
	if p.phase == oldInCruise || p.phase == oldInKnown {
		p.advance(now)
		p.credit.level = max(p.credit.level-units, -oldMaxDebt*p.speed())
	}
}

// Answered takes an answer: units sent, units accepted. sent is when the request left. Fewer accepted than sent means that
// the rest was throttled (rows refused for other reasons are counted in neither).
func (p *oldPacer) Answered(sent, now time.Time, units, accepted float64) {
	p.open(now, p.perRow)
	if !(units > 0) || !(accepted >= 0) || math.IsInf(units, 1) {
		return
	}
	units = min(units, oldMaxUnits)
	accepted = min(accepted, units)
	sent = earlier(sent, now)
	met := sent.Add(now.Sub(sent) / 2) // when the server looked at it
	p.line.answered(sent, now)
	returned := p.line.out
	p.line.out = false
	if returned {
		p.resumeAfterOutage(now)
	}
	p.gauge.add(met, accepted)
	p.long.add(met, accepted)
	if accepted >= units*(1-1e-9) {
		p.unthrottled(units)
		return
	}
	if sent.Before(p.line.throttledAt) {
		return // refused by the bucket that the last throttle already told of
	}
	p.line.throttledAt = now
	p.throttled(oldThrottle{now: now, met: met, units: units, accepted: accepted, first: returned})
}

// Unavailable says that the partition did not serve: the time until the next accepted answer is not a sample. Until then Next
// allows one request at a time, every 50 to 150 ms.
func (p *oldPacer) Unavailable(now time.Time) {
	p.open(now, p.perRow)
	p.spoil()
	p.line.out = true
	p.line.probeAt = now.Add(oldProbeEvery/2 + time.Duration(p.random()*float64(oldProbeEvery)))
}

// Child is the pacer of a partition that came out of a split of this one: it begins at the parent's full rate, because a
// partition can take as much as the one that it was a half of.
func (p *oldPacer) Child(now time.Time) *oldPacer {
	p.open(now, p.perRow)
	c := oldNewPacer(oldPacerOptions{MaxInFlight: p.max, Rand: p.rand})
	c.perRow = p.perRow
	c.line.rtt = p.line.rtt
	if p.rate == 0 {
		return c
	}
	c.phase, c.rate, c.size = oldInCruise, p.rate, oldSize{most: p.size.most}
	if p.phase == oldInKnown {
		c.phase = oldInKnown
	}
	c.probe.gain = c.baseGain()
	c.line.young = true
	return c
}

// SetMaxInFlight changes how many requests of the lane may be in flight; 0 or less takes 8.
func (p *oldPacer) SetMaxInFlight(n int) {
	if n <= 0 {
		n = 8
	}
	p.max = n
}

// Rate is the units a second that the partition is taken to accept, 0 while unknown.
func (p *oldPacer) Rate() float64 { return p.rate }

// State is the phase, for progress displays: "start", "measure", "cruise" or "known".
func (p *oldPacer) State() string {
	return [...]string{"start", "measure", "cruise", "known"}[p.phase]
}

// open begins the clock at the first call of any kind, and takes the mean row.
func (p *oldPacer) open(now time.Time, perRow float64) {
	if perRow > 0 && !math.IsInf(perRow, 1) {
		p.perRow = min(max(perRow, oldMinPerRow), oldMaxUnits)
	}
	if !p.credit.at.IsZero() {
		return
	}
	p.credit.at, p.probe.since = now, now
	step := time.Duration(p.random() * float64(oldSpread))
	if p.alone {
		step = 0
	}
	if p.rate == 0 {
		p.ramp = p.firstRamp(now.Add(step))
	} else if !p.line.young {
		p.credit.level = -step.Seconds() * p.rate
	}
}

func (p *oldPacer) random() float64 {
	if p.rand != nil {
		return p.rand.Float64()
	}
	return rand.Float64()
}

// The constants of the rate controller, found by simulation (TestRateControllers). Rows are rows of the lane's mean size.
const (
	oldSpread     = 200 * time.Millisecond // lanes begin within it at random, so that they do not throttle in step
	oldProbeEvery = 100 * time.Millisecond // mean time between probes of a partition that does not serve

	oldMaxRows     = 200.0
	oldStartRows   = 100.0
	oldStepRows    = 1000.0 // accepted rows per request more in flight while starting
	oldSlowWindow  = 8      // above it each clean answer adds a request
	oldMeasureRows = 25.0   // a measurement is the finer the smaller the batch that ends it
	oldMinSample   = 20.0   // accepted rows that make a measurement

	oldRefill      = 50 * time.Millisecond // how long a measurement lets the bucket fill
	oldMaxRefill   = time.Second
	oldLongSample  = 2 * time.Second // long enough for a measurement however few rows it has
	oldMinCruise   = 300 * time.Millisecond
	oldMinLong     = time.Second
	oldMaxLong     = 5 * time.Second
	oldRemeasure   = 3 * time.Second // between two measurements; longer when they do not hold
	oldMaxTrust    = time.Minute
	oldRegrowAfter = 20 * time.Second // batches that were found too large
	oldCut         = 0.75

	oldUsualGain      = 0.02 // how far above the rate cruise paces
	oldKnownFirstGain = 0.04 // a known rate, until the first throttle: uses up what the bucket had saved
	oldKnownGain      = 0.002
	oldMaxGain        = 1.0
	oldGuessGain      = 0.1 // from here on a throttle says more about the reach than about the rate
	oldReserve        = 0.04
	oldAddRows        = 2.0 // rows a second that cruise paces above the rate beside the gain, but
	oldMaxAdd         = 0.01
	oldHeldOfRow      = 0.008 // of a row, times two for each refusal in a row of it
	oldHeldRows       = 0.1   // of a row, that a slow lane leaves
	oldHeldOfBatch    = 0.2   // of the largest batch, at most, when the bucket is known to be small

	oldBatchTime = 0.2  // seconds of the rate in a batch
	oldLeastTime = 0.07 // and at the least, even if throttles suggest a smaller bucket
	oldFewRows   = 50.0 // a slow lane's batch, unless that is more than half a second's
	oldMaxDebt   = 60.0 // seconds that one batch may hold up a lane
	oldMinPerSec = 0.25 // rows a second: a partition is asked at least every few seconds
	oldMaxRate   = 1e9
	oldMaxUnits  = 1e9 // of a row and of a batch
	oldMinPerRow = 0.001
)

// line is what is known of the way to the server.
type oldLine struct {
	rtt         float64 // seconds, smoothed; 0 before the first answer
	throttledAt time.Time
	measuredAt  time.Time
	trust       time.Duration // from one measurement to the next
	sends       []oldSend     // those that the server has not looked at yet, as far as answers tell
	out         bool          // the partition does not serve
	young       bool          // came out of a split and has not been throttled yet
	probeAt     time.Time
}

type oldSend struct {
	at    time.Time
	units float64
}

func (l *oldLine) answered(sent, now time.Time) {
	d := now.Sub(sent).Seconds()
	if l.rtt == 0 {
		l.rtt = d
	}
	l.rtt += (d - l.rtt) / 8
	l.sends = slices.DeleteFunc(l.sends, func(s oldSend) bool { return !s.at.After(sent) })
}

// sentSince returns the units sent after the request that was answered last.
func (l *oldLine) sentSince() float64 {
	sum := 0.0
	for _, s := range l.sends {
		sum += s.units
	}
	return sum
}

// ramp is how start and measure send: without a rate, by the clean answers.
type oldRamp struct {
	from   time.Time // nothing before
	window int       // requests in flight
	rows   float64   // of a batch
	clean  float64   // answers, or accepted rows, since the last step
	pause  time.Duration
}

// gauge counts what the partition accepted since a moment at which its bucket was empty.
type oldGauge struct {
	from     time.Time
	accepted float64
	whole    bool // the bucket cannot have overflowed since
}

func (g *oldGauge) reset(at time.Time) { *g = oldGauge{from: at, whole: true} }

func (g *oldGauge) add(met time.Time, accepted float64) {
	if met.After(g.from) {
		g.accepted += accepted
	}
}

// credit is what cruise may send, in units; it grows with time.
type oldCredit struct {
	level float64
	at    time.Time
}

// probe is how far above the rate cruise reaches.
type oldProbe struct {
	gain  float64
	since time.Time
	sent  float64 // units
	quick int     // throttles that a known rate did not expect
	alone int     // single rows refused in a row
}

// size is what is known of the batches that the server's bucket can hold.
type oldSize struct {
	most   float64 // rows
	before float64 // most before the trial; 0 means no trial
	at     time.Time
}

// throttle is an answer that refused rows.
type oldThrottle struct {
	now, met        time.Time
	units, accepted float64
	first           bool          // the first answer after an outage or a split
	since           time.Duration // the gauge began
}

func (p *oldPacer) baseGain() float64 {
	if p.phase == oldInKnown {
		return oldKnownGain
	}
	return oldUsualGain
}

// speed is the units a second at which credit grows.
func (p *oldPacer) speed() float64 {
	v := p.rate * (1 + p.probe.gain)
	if p.phase != oldInKnown && !p.single() {
		v += min(oldAddRows*p.perRow, oldMaxAdd*p.rate)
	}
	return v
}

// batch is the size of a batch in cruise, in units. Small batches cost requests; large ones come in lumps that a small
// bucket refuses.
func (p *oldPacer) batch() float64 {
	perSecond := p.rate / p.perRow // rows
	rows := math.Ceil(max(oldBatchTime*perSecond, min(oldFewRows, perSecond/2)))
	return max(1, min(rows, oldMaxRows, max(p.size.most, oldLeastTime*perSecond))) * p.perRow
}

// held is how much cruise leaves in the server's bucket after a throttle, in units: room for the jitter of the way. What
// is left and a batch together must fit into the bucket, else it overflows before every batch.
func (p *oldPacer) held() float64 {
	held := max(oldReserve*p.rate, oldHeldRows*p.perRow)
	if p.size.most < oldMaxRows {
		held = min(held, oldHeldOfBatch*p.size.most*p.perRow)
	}
	return held
}

// spoil notes that the bucket may have overflowed.
func (p *oldPacer) spoil() { p.gauge.whole, p.long.whole = false, false }

func (p *oldPacer) setRate(v float64) {
	if math.IsNaN(v) {
		return
	}
	p.rate = min(max(v, oldMinPerSec*p.perRow), oldMaxRate)
}

func (p *oldPacer) advance(now time.Time) {
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
func (p *oldPacer) reach(now time.Time) {
	hold := max(0.5, 1.5*max(oldReserve, p.held()/p.rate)/p.probe.gain, 2*p.batch()/p.speed())
	d := now.Sub(p.probe.since).Seconds()
	if p.phase == oldInKnown || d < hold {
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
	p.probe.gain = min(2*p.probe.gain, oldMaxGain)
}

// regrow allows larger batches again, now and then: a small bucket is found out again, a mistaken one is not forever.
func (p *oldPacer) regrow(now time.Time, after time.Duration) {
	if p.size.before == 0 && p.size.most < oldMaxRows && now.Sub(p.size.at) >= after {
		p.size.most, p.size.at = min(1.25*p.size.most, oldMaxRows), now
	}
}

// firstRamp is how a lane of which nothing is known begins. What a partition takes is counted in units, so large rows come
// few at a time until they prove welcome.
func (p *oldPacer) firstRamp(from time.Time) oldRamp {
	return oldRamp{from: from, window: 1, rows: max(1, oldStartRows/max(1, p.perRow))}
}

// unthrottled takes an answer without a throttle. Only start and measure go by it.
func (p *oldPacer) unthrottled(units float64) {
	p.probe.alone = 0
	switch p.phase {
	case oldInStart:
		p.ramp.clean += units / p.perRow
		p.ramp.rows = max(p.ramp.rows, min(2*p.ramp.rows, max(oldStartRows, min(20000*p.line.rtt, oldMaxRows))))
		if p.ramp.window >= oldSlowWindow {
			p.ramp.window = min(p.ramp.window+1, p.max)
		} else if p.ramp.clean >= oldStepRows {
			p.ramp.clean = 0
			p.ramp.window = min(p.ramp.window+1, p.max)
			if p.ramp.window > 2 {
				p.ramp.rows = oldMaxRows
			}
		}
	case oldInMeasure:
		// A fast partition or a long way: one small batch at a time would never empty the bucket.
		if p.ramp.clean++; p.ramp.clean < 4 {
			return
		}
		p.ramp.clean = 0
		if p.ramp.rows >= oldMaxRows {
			p.ramp.window = min(2*p.ramp.window, p.max)
		}
		p.ramp.rows = min(2*p.ramp.rows, oldMaxRows)
	}
}

func (p *oldPacer) measure(t oldThrottle) {
	p.phase = oldInMeasure
	p.gauge.reset(t.met)
	p.line.measuredAt = t.now
	pause := time.Duration(float64(oldRefill) * (1 + 0.2*p.random()))
	p.ramp = oldRamp{
		from:   t.now.Add(pause),
		pause:  pause,
		window: 1,
		rows:   max(1, min(max(oldMeasureRows, 5000*p.line.rtt), oldMaxRows)/max(1, p.perRow)),
	}
}

// throttled takes the news that the bucket was empty at t.met.
func (p *oldPacer) throttled(t oldThrottle) {
	t.since = t.met.Sub(p.gauge.from)
	t.first = t.first || p.line.young
	p.line.young = false
	few := p.gauge.accepted < oldMinSample*p.perRow
	switch p.phase {
	case oldInStart:
		p.measure(t)
	case oldInMeasure:
		if t.since < oldRefill*7/10 || few && t.since < oldLongSample {
			p.wait(t)
			return
		}
		p.sample(t)
		if few { // a slow lane is better begun too fast: throttles show that at once
			p.setRate(p.rate + 0.5*p.perRow/t.since.Seconds())
		}
		p.cruise(t)
	case oldInKnown:
		switch {
		case t.first || p.trySmallerBatch(t):
			p.cruise(t)
		case few && p.slow():
			p.again(t)
		case p.unexpected(t):
			p.measure(t)
		default:
			p.endTrial(t.since >= oldMinCruise)
			p.cruise(t)
		}
	case oldInCruise:
		p.refused(t, few)
	}
}

// refused is throttled in cruise.
func (p *oldPacer) refused(t oldThrottle, few bool) {
	usual := p.probe.gain < oldGuessGain
	enough := t.since >= oldMinCruise && p.gauge.whole && t.accepted+8*p.perRow >= 0.5*t.units
	switch {
	case t.first: // an empty bucket is what a partition begins with: no news of its rate
	case p.trySmallerBatch(t):
	case usual && enough && !few:
		p.endTrial(true)
		p.sample(t)
		p.long.whole, p.line.trust = false, 0
		p.regrow(t.now, oldRegrowAfter)
	case p.slow():
		p.correctSlow(t, few)
		return
	case t.now.Sub(p.line.measuredAt) >= max(oldRemeasure, p.line.trust):
		p.endTrial(false)
		p.measure(t)
		return
	default:
		p.endTrial(false)
		p.correct(t)
	}
	p.cruise(t)
}

// slow reports whether a lane takes so few rows that a measurement needs seconds.
func (p *oldPacer) slow() bool { return p.rate < oldMinSample*p.perRow }

// correctSlow corrects the rate of a slow lane. Counting a handful of rows says less than where the throttles begin.
func (p *oldPacer) correctSlow(t oldThrottle, few bool) {
	switch {
	case p.probe.gain > oldUsualGain: // the gain before this one was too little, this one is too much
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

// wait lets a slow partition's bucket fill for longer, and continues counting from the same moment.
func (p *oldPacer) wait(t oldThrottle) {
	p.ramp.pause = min(2*p.ramp.pause, oldMaxRefill)
	p.ramp.from = t.now.Add(p.ramp.pause)
	p.ramp.rows = max(1, min(p.ramp.rows, 2*p.gauge.accepted/p.perRow+2))
	p.ramp.window, p.ramp.clean = 1, 0
}

// correct lowers the rate after a throttle that came too early to measure by. What was accepted over a longer time, with
// throttles in between, is a fair rate even where a throttle does not mean that this partition's bucket is empty: a ceiling
// for the whole table, or a quota for each second of the clock. There measurements do not hold, and become rare.
func (p *oldPacer) correct(t oldThrottle) {
	if t.now.Sub(p.line.measuredAt) < time.Second {
		p.line.trust = min(2*max(p.line.trust, oldRemeasure), oldMaxTrust)
	}
	v := oldCut * p.rate
	if d := t.met.Sub(p.long.from); p.long.whole && d >= oldMinLong {
		v = min(max(0.5*p.rate, p.long.accepted/d.Seconds()), p.rate)
		p.long.whole = d < oldMaxLong
	}
	p.setRate(v)
}

// single reports whether the lane is so slow that it sends row by row.
func (p *oldPacer) single() bool { return p.batch() <= p.perRow }

// sample takes the rate from the gauge. The bucket gives whole rows only, so at the end half a row is left in it on average.
func (p *oldPacer) sample(t oldThrottle) {
	p.setRate((p.gauge.accepted + 0.5*p.perRow) / t.since.Seconds())
}

// again continues in cruise without touching the rate, nor the gauge's beginning if it may be measured from.
func (p *oldPacer) again(t oldThrottle) {
	g := p.gauge
	p.cruise(t)
	if g.whole {
		p.gauge = g
	}
}

// unexpected reports whether a known rate has been refused so often that it is wrong.
func (p *oldPacer) unexpected(t oldThrottle) bool {
	low := p.gauge.whole && p.gauge.accepted+0.5*p.perRow < 0.97*p.rate*t.since.Seconds()
	switch {
	case low || t.since < time.Second:
		p.probe.quick++
	case p.gauge.whole:
		p.probe.quick = 0
	}
	return p.probe.quick >= 3
}

// trySmallerBatch makes batches smaller if a throttle refused so much that the batch, not the rate, may be too large for the
// bucket, and reports whether it did: the rate stays, and smaller batches show which it was.
func (p *oldPacer) trySmallerBatch(t oldThrottle) bool {
	if p.size.before > 0 || p.line.trust > 0 || p.probe.gain >= oldGuessGain || t.accepted > 0.75*t.units || t.accepted < max(0.25*t.units, 8*p.perRow) {
		return false
	}
	p.size = oldSize{most: max(8, math.Floor(0.75*t.accepted/p.perRow)), before: p.size.most, at: t.now}
	return true
}

// endTrial ends a trial of smaller batches. They stay if they gave a good measurement.
func (p *oldPacer) endTrial(good bool) {
	if p.size.before > 0 && !good {
		p.size.most = p.size.before
	}
	p.size.before = 0
}

// cruise begins again at the moment the bucket was empty.
func (p *oldPacer) cruise(t oldThrottle) {
	if p.phase != oldInKnown {
		p.phase = oldInCruise
	}
	p.gauge.reset(t.met)
	if !p.long.whole {
		p.long.reset(t.met)
	}
	p.probe = oldProbe{gain: p.baseGain(), since: t.now, quick: p.probe.quick, alone: p.probe.alone}
	p.credit = oldCredit{level: t.now.Sub(t.met).Seconds()*p.rate - p.held() - p.line.sentSince(), at: t.now}
	if p.single() && t.accepted == 0 {
		// The bucket lacked a part of a row only, and may not hold more than a row: to wait for a whole one would let it
		// overflow.
		p.probe.alone++
		p.credit.level += max(0, p.held()+p.perRow*(1-oldHeldOfRow*math.Pow(2, float64(min(p.probe.alone, 6)))))
	}
}

// resumeAfterOutage takes up where an outage began. What was measured across it is void.
func (p *oldPacer) resumeAfterOutage(now time.Time) {
	p.line.probeAt = time.Time{}
	p.spoil()
	p.credit = oldCredit{level: min(p.credit.level, 0), at: now}
	p.probe.since, p.probe.sent = now, 0
	if p.phase != oldInMeasure {
		return
	}
	p.phase = oldInStart
	p.ramp = p.firstRamp(now)
	if p.rate > 0 {
		p.phase = oldInCruise
	}
}

// oldPaced is the old law as a controller, with what the pipeline kept from it: the first refusal of a whole batch in cruise.
type oldPaced struct {
	p      *oldPacer
	perRow float64
	odd    bool
}

func oldLaw(r *rand.Rand, c *lawScene) func(int) controller {
	return func(int) controller {
		return &oldPaced{p: oldNewPacer(oldPacerOptions{MaxInFlight: c.maxInFlight(), Rand: r, Alone: c.lanes == 1}), perRow: c.perRow}
	}
}

func (l *oldPaced) next(now time.Time, inFlight int, queued float64) (float64, time.Time, bool) {
	return l.p.NextOf(now, inFlight, l.perRow, queued)
}
func (l *oldPaced) sent(now time.Time, units float64) { l.p.Sent(now, units) }
func (l *oldPaced) answered(sent, now time.Time, units, taken float64) {
	cruising := l.p.State() == "cruise" || l.p.State() == "known"
	odd := cruising && taken == 0 && units >= 16*l.perRow && !l.odd
	if l.odd = taken == 0; !odd {
		l.p.Answered(sent, now, units, taken)
	}
}
func (l *oldPaced) unavailable(now time.Time) { l.p.Unavailable(now) }
func (l *oldPaced) child(now time.Time) controller {
	return &oldPaced{p: l.p.Child(now), perRow: l.perRow}
}
