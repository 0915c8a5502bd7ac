package ratelimit

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// PacerOptions holds what is known of a lane before its first request.
type PacerOptions struct {
	Rate        float64    // initial units per second, for tests; 0 means that the rate is measured
	MaxInFlight int        // maximum requests of the lane in flight; 0 means 8
	Alone       bool       // there are no other lanes, so it need not begin after a random wait
	Rand        *rand.Rand // nil uses the process's source
}

// Pacer finds the rate of a lane: the capacity units per second that its partition accepts. That rate is not published
// and changes, so the pacer makes the partition throttle now and then. At each throttle its token bucket is empty, so
// the units accepted between two throttles measure the inflow, which fixed factors would only guess.
//
//  1. start: one request in flight at first, and more as answers come back clean. The first throttle begins 2.
//  2. measure: let the bucket refill for a moment, then empty it with small batches. The next throttle gives the rate.
//  3. cruise: pace slightly above that rate. So a throttle occurs every few seconds, costs a few rows, and gives a new
//     measurement over a long time. If none occurs for a while, the pacer raises its pace further.
//
// The limit need not be a token bucket. Its refusals show what it is:
//
//   - Refused units are a debt, which accepted units pay off at half a percent. A bucket paced just above its rate
//     refuses a few rows now and then. If a refusal costs a whole batch, cruise holds slightly below the rate until the
//     debt is paid off, and tries more in small batches.
//   - A throttle less than a second after the last changes nothing: the service meters by the second. If nothing is
//     accepted for a while and then much, the limit is a quota per second (a window). Then cruise holds slightly below
//     the units accepted in the last second, pushes above them now and then, and probes with a few rows in between.
//   - Answers that come later and later while nothing is refused reveal a queue, which counts like a throttle. Since
//     latency also grows on busy processors, the rate is never set below the units accepted in the best second of the
//     last five to ten.
//   - A refusal that arrives much sooner than answers to accepted rows shows a limit of the units in flight.
//   - The share of rows refused just after a throttle, when there is room, is noise, not a throttle. So is the refusal
//     of a whole batch after many clean answers, if the next batch is accepted.
//
// Time in which the lane has no rows or no worker, or the partition does not serve, is no sample: credit is capped, and
// a measurement across it is discarded. A request counts halfway between its sending and its answer.
//
// Calls must be in the order of the events, from one goroutine at a time.
type Pacer struct {
	rand   *rand.Rand // nil is the process's source
	max    int        // maximum requests in flight
	phase  phase
	rate   float64 // units per second; 0 means unknown
	perRow float64 // mean units of a row
	alone  bool

	line     line
	ramp     ramp
	gauge    gauge // begins at the last throttle that counted
	credit   credit
	probe    probe
	size     size
	recent   recent
	evidence evidence
	others   otherLimits
}

// otherLimits holds the limits of a lane besides a bucket, or instead of one.
type otherLimits struct {
	inFlight inFlightLimit
	quota    quota
	member   member // entry for the table, which may be limited
}

type phase int

const (
	inStart phase = iota
	inMeasure
	inCruise
)

// Limits of a lane.
const (
	spread    = 200 * time.Millisecond // lanes begin at random times within it, so that they do not throttle in step
	maxDebt   = 60.0                   // maximum seconds for which one request holds up a lane
	minPerSec = 0.25                   // minimum rows per second, so that a partition is tried every few seconds
	maxRate   = 1e9                    // maximum units per second
	maxUnits  = 1e9                    // maximum units of a row or a request
	minPerRow = 0.001                  // minimum units of a row
)

// NewPacer returns the pacer of a lane that has sent nothing yet.
func NewPacer(o PacerOptions) *Pacer {
	p := &Pacer{rand: o.Rand, perRow: 1, alone: o.Alone, size: size{most: maxRows}}
	p.SetMaxInFlight(o.MaxInFlight)
	p.probe.gain = usualGain
	if o.Rate > 0 && !math.IsInf(o.Rate, 1) {
		p.phase, p.rate = inCruise, min(o.Rate, maxRate)
	}
	return p
}

// Next returns the capacity units that the next batch may hold (at least 1) and when it may be sent; ok is false if
// nothing may be sent before an answer. inFlight is the number of the lane's requests in flight. perRow is the mean
// units of its rows: batches are sized in rows, because requests are limited in rows.
func (p *Pacer) Next(now time.Time, inFlight int, perRow float64) (units float64, at time.Time, ok bool) {
	return p.NextOf(now, inFlight, perRow, math.Inf(1))
}

// NextOf is Next for a lane with only queued units and no more soon: a partial batch need not wait for full credit.
func (p *Pacer) NextOf(now time.Time, inFlight int, perRow, queued float64) (units float64, at time.Time, ok bool) {
	p.open(now, perRow)
	units, at, ok = p.next(now, inFlight, queued)
	return max(1, units), at, ok
}

func (p *Pacer) next(now time.Time, inFlight int, queued float64) (units float64, at time.Time, ok bool) {
	at = later(now, p.line.probeAt)
	p.others.inFlight.forget(inFlight)
	if p.line.out { // a probe is only one row, as it is usually too early
		return p.perRow, at, inFlight == 0
	}
	if p.phase == inStart || p.phase == inMeasure {
		return min(queued, p.ramp.rows*p.perRow), later(at, p.ramp.from), inFlight < min(p.ramp.window, p.max)
	}
	if inFlight >= p.max {
		return 0, now, false
	}
	if p.others.inFlight.on {
		units, free := p.others.inFlight.next(now, p.perRow, queued)
		return units, later(at, free), units > 0
	}
	if from, ok := p.others.inFlight.asking(now); ok && p.phase == inCruise {
		return p.perRow, later(at, from), true
	}
	units = min(queued, p.batch())
	if p.line.blocked {
		asks := askTime * p.rate
		if !p.others.quota.on && p.gauge.refusals > 0 { // as in a used-up window, where each row may be refused
			asks = p.perRow
		}
		return max(p.perRow, min(units, asks)), later(at, p.line.askFrom), inFlight == 0
	}
	p.advance(now)
	if p.others.quota.on {
		p.turn(now)
	} else {
		p.reach(now)
	}
	if missing := units - p.credit.level; missing > units*1e-9 {
		at = later(at, now.Add(duration(missing/p.speed())))
	}
	return units, at, true
}

// Sent notes that a batch was sent. It may hold more than Next allowed: the pacer then waits longer.
func (p *Pacer) Sent(now time.Time, units float64) {
	p.open(now, p.perRow)
	if !(units > 0) || math.IsInf(units, 1) {
		return
	}
	units = min(units, maxUnits)
	p.probe.sent += units
	if len(p.line.sends) > 2*p.max { // requests without an answer, after time-outs
		p.line.sends = slices.Delete(p.line.sends, 0, p.max)
	}
	p.line.sends = append(p.line.sends, send{now, units})
	p.others.inFlight.left(now, units)
	if p.phase == inCruise && !p.line.out { // probes use no credit, as most are refused
		p.advance(now)
		p.credit.level = max(p.credit.level-units, -maxDebt*p.speed())
	}
}

// Answered takes the answer to a request sent at the time sent. The units not accepted were throttled: rows refused for
// other reasons are counted neither in units nor in accepted.
func (p *Pacer) Answered(sent, now time.Time, units, accepted float64) {
	p.open(now, p.perRow)
	if !(units > 0) || !(accepted >= 0) || math.IsInf(units, 1) {
		return
	}
	units = min(units, maxUnits)
	accepted = min(accepted, units)
	sent = Earlier(sent, now)
	met := sent.Add(now.Sub(sent) / 2) // when the server processed it
	p.line.answered(sent, now)
	if p.phase == inCruise {
		p.evidence.lowest.add(now, p.rate)
	}
	visit := p.others.inFlight.back(sent, now, units, p.line.lateness.shortest())
	if p.phase == inStart && visit.and == 0 && len(p.others.inFlight.flying) == 0 {
		p.line.lateness.alone(now.Sub(sent).Seconds(), units)
		p.line.lateness.doubted = p.line.lateness.doubted && !p.alone
	}
	queues := p.line.lateness.queues(sent, now, units, p.occupied(units), p.patience())
	if p.line.lateness.late > 0 || p.line.lateness.perUnit > 0 { // the request waited in a queue before it was processed
		met = now.Add(-duration(p.line.lateness.shortest() / 2))
	}
	if visit.and == 0 {
		p.line.lateness.aloneOnTime++
		if p.line.lateness.by > mostDelay/4 {
			p.line.lateness.aloneOnTime = 0
		}
	}
	returned := p.line.out
	p.line.out = false
	if returned {
		p.resumeAfterOutage(now)
	}
	p.gauge.add(met, accepted)
	p.evidence.delivery.add(now, accepted)
	left := now.Add(-duration(p.line.lateness.shortest() / 2)) // when the server answered
	p.recent.add(left, accepted)
	p.evidence.debt = max(0, p.evidence.debt-p.earned()*accepted)
	if p.takesInFlightLimit(visit, now, met, accepted) {
		return
	}
	if p.others.quota.on && p.phase == inCruise {
		p.bySecond(now, left, units, accepted)
		return
	}
	noise := p.isNoise(sent, units, accepted)
	if noise || accepted >= units*(1-1e-9) {
		p.line.odd = false
		if noise { // the refused rows used no capacity
			p.credit.level += units - accepted
		} else {
			p.line.clean++
		}
		if p.line.blocked && p.opened(now, left, accepted) {
			return
		}
		p.line.blocked = false
		if p.evidence.queue && p.line.lateness.aloneOnTime >= ownQueue && len(p.line.sends) == 0 {
			p.credit.level = max(p.credit.level, 0)
		}
		if queues && len(p.line.sends) > 0 && !sent.Before(p.line.throttledAt) && now.Sub(p.evidence.refused) > refusesFor {
			p.line.throttledAt, p.line.lateness.late = now, 0
			p.queued(throttle{now: now, met: met, units: units, accepted: accepted})
			return
		}
		p.unthrottled(now, now.Sub(sent).Seconds(), units)
		return
	}
	if p.phase == inCruise && p.evidence.agreed > 0 {
		p.evidence.debt = min(p.evidence.debt+units-accepted, mostDebt*allowed*p.rate)
	}
	if sent.Before(p.line.throttledAt) {
		return // the same empty bucket refused it as at the last throttle
	}
	if accepted == 0 && p.line.blocked && !p.line.odd && p.phase == inCruise {
		p.gauge.refusals++
		p.gauge.dead = p.gauge.dead || p.gauge.refusals >= deadAfter
	} else {
		p.gauge.refusals = 0
	}
	if p.isOdd(units, accepted) {
		p.line.odd, p.line.clean, p.line.blocked, p.line.askFrom = true, 0, true, now
		p.credit.level += units
		return
	}
	p.line.odd, p.line.clean = false, 0
	p.line.blocked = accepted < 0.1*units && (p.line.blocked || units > 4*p.perRow)
	p.line.askFrom = now.Add(askEvery)
	p.line.throttledAt = now
	p.throttled(throttle{now: now, met: met, units: units, accepted: accepted, first: returned})
}

// Unavailable notes that the partition did not serve. The time until rows are accepted again is not a sample. Until
// then Next allows one request in flight, every 50 to 150 ms, and in a long outage every 1 to 2 s.
func (p *Pacer) Unavailable(now time.Time) {
	p.open(now, p.perRow)
	p.overflowed()
	if !p.line.out {
		p.line.out, p.line.outSince = true, now
	}
	p.line.probeAt = now.Add(probeWait(now.Sub(p.line.outSince), p.random()))
}

// Probe lets a partition that does not serve be probed at once, because others serve again.
func (p *Pacer) Probe(now time.Time) {
	if p.line.out {
		p.line.probeAt = Earlier(p.line.probeAt, now)
	}
}

// Child returns the pacer of a partition split from this one. It begins at the parent's full rate, because each half of
// a split partition can take as much as the whole did. If that rate has grown recently, it begins at an earlier one:
// the full rate may be what all parts reached together.
func (p *Pacer) Child(now time.Time) *Pacer {
	p.open(now, p.perRow)
	c := NewPacer(PacerOptions{MaxInFlight: p.max, Rand: p.rand})
	c.perRow = p.perRow
	c.line.rtt = p.line.rtt
	if p.rate == 0 {
		return c
	}
	c.phase, c.rate, c.size = inCruise, p.evidence.lowest.ofOne(p.rate), size{most: p.size.most}
	c.probe.gain = max(usualGain, p.probe.gain) // the child continues its parent's reach
	if c.rate < p.rate {
		c.probe.gain = freedGain
	}
	c.others.quota.on = p.others.quota.on
	c.line.young = true
	c.evidence.delivery = delivery{began: now, turned: now, best: [2]float64{0, c.rate}}
	return c
}

// SetMaxInFlight limits the lane's requests in flight; 0 or less means 8.
func (p *Pacer) SetMaxInFlight(n int) {
	if n <= 0 {
		n = 8
	}
	p.max = n
}

// Rate returns the partition's estimated rate in units per second, or 0 while it is unknown.
func (p *Pacer) Rate() float64 { return p.rate }

// State returns the phase, for progress displays: "start", "measure" or "cruise".
func (p *Pacer) State() string {
	return [...]string{"start", "measure", "cruise"}[p.phase]
}

// open starts the clock at the first call of any method, and notes the mean units of a row.
func (p *Pacer) open(now time.Time, perRow float64) {
	if perRow > 0 && !math.IsInf(perRow, 1) {
		p.perRow = min(max(perRow, minPerRow), maxUnits)
	}
	if !p.credit.at.IsZero() {
		return
	}
	p.credit.at, p.probe.since = now, now
	step := time.Duration(p.random() * float64(spread))
	if p.alone {
		step = 0
	}
	if p.rate == 0 {
		p.ramp = p.firstRamp(now.Add(step))
	} else if !p.line.young {
		p.credit.level = -step.Seconds() * p.rate
	}
}

func (p *Pacer) random() float64 {
	if p.rand != nil {
		return p.rand.Float64()
	}
	return rand.Float64()
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Earlier returns the earlier of two times.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
