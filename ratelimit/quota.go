package ratelimit

import (
	"math"
	"time"
)

// quota is cruise for a partition that grants units per second, in fixed or sliding windows: nothing is saved up, and a
// used-up window refuses everything. The rate is the units of the second before a refusal.
//
// Cruise holds slightly below the rate. Now and then it pushes above it, for a second after the first refusal. The cost
// of a push is a debt, and the next hold lasts until it is paid off. A load alone gains nothing from pushes; among
// others, it gains part of theirs. After a push that got over half of its excess, the next one is sooner and larger.
//
// Pushes alone are too expensive to even out two loads within a minute. So a lane that loses part of its former share
// to another yields once: it halves its rate, and waits some seconds before it pushes again. If no other lane takes
// the rest, its pushes are not refused, and it is back at its rate within seconds.
type quota struct {
	on      bool
	reach   float64   // share of the rate by which the next push exceeds it
	best    float64   // the lane's rate when it was alone
	until   time.Time // a hold lasts at least until this time
	from    time.Time // when the push began
	first   time.Time // first refusal in this push or hold
	last    time.Time // last refusal in this push or hold
	cost    float64   // units refused in this push or hold
	none    int       // consecutive answers that accepted next to nothing
	yieldAt time.Time // it does not yield before this time
}

const (
	pushTime       = 0.015 // a batch of a push holds the rows of this many seconds
	pushRows       = 5.0   // minimum rows of such a batch
	leastReach     = 0.05
	reachedRows    = 1.5 // minimum reach of a push, in rows per second
	mostReach      = 0.5 // with a larger reach, a used-up window would look like an outage
	unthrottledFor = 1100 * time.Millisecond
	heldLong       = 2 * time.Second
	heldShort      = time.Second // after a push that got more than half of its excess

	notable         = 0.005 // a hold is too close to the rate if this share of a second's units is refused
	lower           = 0.02  // the rate is lower if this share of a second's units is refused in a hold
	mostQuotaMargin = 0.03
	usedUp          = 1 // number of answers accepting next to nothing that show a used-up window

	yieldBelow = 0.95 // share of its rate when alone
	yieldTo    = 0.5
	yieldFor   = 8 * time.Second
	yieldAgain = time.Minute
)

// bySecond takes an answer in cruise; answered is the time when the server answered.
func (p *Pacer) bySecond(now, answered time.Time, units, accepted float64) {
	q := &p.others.quota
	refused := units - accepted
	pushing := p.probe.gain > 0
	if q.none++; accepted >= 0.1*units {
		q.none = 0
	}
	p.line.blocked = q.none >= usedUp && (p.line.blocked || units > 4*p.perRow)
	p.line.askFrom = now.Add(askEvery)
	if p.line.blocked {
		p.credit.level = max(p.credit.level, 0)
	}
	refused = p.forCapacity(units, refused, pushing)
	if refused > 0 && (pushing || now.Sub(p.probe.since) > time.Second) { // at first, the push has used up a hold's window
		if q.first.IsZero() {
			q.first = answered
		}
		q.last, p.evidence.refused = answered, now
		q.cost += max(0, refused-p.evidence.noise*units)
	}
	switch {
	case q.first.IsZero():
		if pushing && answered.Sub(q.from) > unthrottledFor {
			p.pushed(now)
		}
	case answered.Sub(q.first) < time.Second:
	case pushing:
		p.pushed(now)
	default:
		p.refusedInHold(now)
	}
}

// forCapacity returns the units of a batch that were refused for lack of capacity.
func (p *Pacer) forCapacity(units, refused float64, pushing bool) float64 {
	e := &p.evidence
	if units < 4*p.perRow || refused > max(fewRefused*units, 1.5*p.perRow) {
		return refused
	}
	if !pushing {
		p.hear(refused, units)
	}
	if e.noise == 0 {
		return refused
	}
	noise := min(refused, 2*e.noise*units+p.perRow)
	p.credit.level += noise
	return refused - noise
}

// opened takes the first answer that accepts rows after a time without any, and reports whether a used-up window was
// the cause. If so, the rate is the units accepted in the second before.
func (p *Pacer) opened(now, answered time.Time, accepted float64) bool {
	if p.phase != inCruise || !p.gauge.dead {
		return false
	}
	rate := p.recent.between(p.line.throttledAt.Add(-time.Second), answered) - accepted
	if rate < idleRows*p.perRow {
		return false
	}
	p.others.quota = quota{on: true}
	p.line.blocked = false
	p.estimate(now, rate)
	p.hold(now, heldLong)
	return true
}

func (p *Pacer) turn(now time.Time) {
	q := &p.others.quota
	if p.probe.gain > 0 || now.Before(q.until) || !q.first.IsZero() || p.evidence.debt > 0 {
		return
	}
	p.evidence.margin = max(leastMargin, 0.9*p.evidence.margin)
	p.push(now)
}

// push begins to pace above the rate. The reach of a lane that once had a higher rate is a share of that rate.
func (p *Pacer) push(now time.Time) {
	q := &p.others.quota
	q.best = max(q.best, p.rate)
	q.reach = max(q.reach, min(leastReach*q.best/p.rate, mostReach), reachedRows*p.perRow/p.rate)
	p.probe = probe{gain: q.reach, since: now}
	p.gauge.reset(now)
	q.from, q.first, q.cost = now, time.Time{}, 0
}

func (p *Pacer) pushed(now time.Time) {
	q := &p.others.quota
	if !p.gauge.whole { // too little was sent to reach the pace
		p.hold(now, heldLong)
		return
	}
	further, more := min(2*q.reach, mostReach), p.rate*(1+0.5*p.probe.gain)
	if q.first.IsZero() {
		flowed := p.recent.between(q.from, now) / now.Sub(q.from).Seconds()
		if flowed < more { // a busy machine sends late
			p.hold(now, heldLong)
			return
		}
		q.reach = further
		p.setRate(min(flowed, p.rate*(1+p.probe.gain)))
		p.push(now)
		return
	}
	got := p.acceptedUntil(q.last)
	if got > more {
		q.reach = further
		p.setRate(got)
		p.hold(now, heldShort)
		return
	}
	q.reach = 0
	p.owe(q.cost)
	p.setRate(got)
	p.hold(now, heldLong)
}

// hold begins to pace just below the rate. It leaves room for units in flight, which count in the next second.
func (p *Pacer) hold(now time.Time, atLeast time.Duration) {
	q := &p.others.quota
	q.until, q.first, q.cost = now.Add(atLeast), time.Time{}, 0
	p.gauge.reset(now)
	p.evidence.margin = max(leastMargin, p.evidence.margin)
	p.probe = probe{gain: -p.evidence.margin, since: now}
	p.credit = credit{level: min(p.credit.level, -p.held()), at: now}
}

// refusedInHold handles refusals in a hold, when the rate was not exceeded.
func (p *Pacer) refusedInHold(now time.Time) {
	q, e := &p.others.quota, &p.evidence
	got := p.acceptedUntil(q.last)
	if got < (1-agreeing)*p.rate { // the refusals revealed a different rate
		e.debt = 0
	} else {
		p.owe(q.cost)
	}
	full := e.margin >= mostQuotaMargin
	lasts := heldLong
	switch {
	case q.cost < notable*p.rate:
	case p.gauge.whole && (q.cost > lower*p.rate || full) && got < yieldBelow*q.best && got > yieldTo*q.best &&
		now.After(q.yieldAt):
		p.setRate(yieldTo * q.best)
		q.best, q.yieldAt, e.debt = (q.best+p.rate)/2, now.Add(yieldAgain), 0
		lasts = yieldFor
	case p.gauge.whole && (got < (1-lower)*p.rate || full):
		p.setRate(min(got, p.rate))
	default:
		e.margin = min(2*max(leastMargin, e.margin), mostQuotaMargin)
	}
	p.hold(now, lasts)
}

// acceptedUntil returns the units accepted in the second before a refusal, including those just before that second.
func (p *Pacer) acceptedUntil(refused time.Time) float64 {
	blur := 2*time.Millisecond + duration(p.line.lateness.shortest()/8)
	return p.recent.between(refused.Add(-time.Second-blur), refused)
}

func (p *Pacer) owe(units float64) {
	p.evidence.debt = min(p.evidence.debt+units, mostDebt*allowed*p.rate)
}

// earned returns the share of the accepted units that may be refused, more if the lane once had a higher rate.
func (p *Pacer) earned() float64 {
	if !p.others.quota.on || p.others.quota.best <= p.rate {
		return allowed
	}
	return min(allowed*math.Sqrt(p.others.quota.best/p.rate), 4*allowed)
}
