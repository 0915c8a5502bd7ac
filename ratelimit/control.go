package ratelimit

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// line describes the path to the server.
type line struct {
	lateness    lateness
	rtt         float64 // seconds, smoothed; 0 before the first answer
	throttledAt time.Time
	sends       []send    // not yet processed by the server, judging by the answers
	out         bool      // the partition does not serve
	blocked     bool      // none of the last batch was accepted
	askFrom     time.Time // when the next small probe may be sent
	odd         bool      // a whole batch was refused after many clean answers; forgiven if the next one is accepted
	clean       int       // clean answers in a row
	calm        time.Time // nothing should be refused before this time
	young       bool      // split from another lane and not throttled yet
	outSince    time.Time
	probeAt     time.Time
}

type send struct {
	at    time.Time
	units float64
}

func (l *line) answered(sent, now time.Time) {
	d := now.Sub(sent).Seconds()
	l.rtt = cmp.Or(l.rtt, d)
	l.rtt += (d - l.rtt) / 8
	l.sends = slices.DeleteFunc(l.sends, func(s send) bool { return !s.at.After(sent) })
}

// sentSince returns the units sent after the last answered request.
func (l *line) sentSince() float64 {
	sum := 0.0
	for _, s := range l.sends {
		sum += s.units
	}
	return sum
}

// ramp paces the start and measure phases, in which the rate is unknown, by clean answers.
type ramp struct {
	from   time.Time // nothing is sent before this time
	window int       // requests in flight
	rows   float64   // rows of a batch
	clean  float64   // clean answers, or accepted rows, since the last step
	slow   float64   // seconds that the slow answer took
	slowed float64   // units of its request
	fast   float64   // seconds that the answer to a quarter of its rows took
	fastOf float64
	pause  time.Duration
}

// gauge counts the units accepted since a moment when the bucket was empty.
type gauge struct {
	from     time.Time
	accepted float64
	whole    bool      // the bucket cannot have overflowed since
	took     time.Time // when anything was last accepted
	idle     float64   // seconds in which nothing was accepted
	refusals int       // wholly refused batches in a row
	dead     bool      // nothing was accepted for some time
}

func (g *gauge) reset(at time.Time) { *g = gauge{from: at, whole: true} }

func (g *gauge) add(met time.Time, accepted float64) {
	if met.After(g.from) {
		g.accepted += accepted
		if accepted > 0 {
			g.took = met
		}
	}
}

// recent holds the units accepted in the last seconds.
type recent struct{ accepted []accepted }

type accepted struct {
	met   time.Time
	units float64
}

const (
	recentFor  = 3 * time.Second
	recentMost = 1024 // answers
)

func (r *recent) add(met time.Time, units float64) {
	if units == 0 {
		return
	}
	if len(r.accepted) == recentMost || len(r.accepted) > 16 && met.Sub(r.accepted[0].met) > 2*recentFor {
		old := len(r.accepted) / 8
		for old < len(r.accepted)/2 && met.Sub(r.accepted[old].met) > recentFor {
			old++
		}
		r.accepted = slices.Delete(r.accepted, 0, old)
	}
	r.accepted = append(r.accepted, accepted{met, units})
}

func (r *recent) between(from, to time.Time) (units float64) {
	for i := len(r.accepted) - 1; i >= 0 && r.accepted[i].met.After(from); i-- {
		if !r.accepted[i].met.After(to) {
			units += r.accepted[i].units
		}
	}
	return units
}

// Refused units are a debt that accepted units pay off; in debt, cruise holds slightly below the rate. A few refusals
// just after a throttle are noise and do not count. Tested by the refused shares in TestControlReachesTargets and by
// the cells of TestLaws in which 1 % of rows or requests fail.
const (
	allowed     = 0.005       // share of the accepted units that may be refused
	mostDebt    = 15.0        // longest hold, in seconds
	leastMargin = 0.01        // share of the rate by which cruise first holds below it
	mostMargin  = 0.06        // largest such share
	fewRefused  = 0.05        // share of a request that may be refused without cause
	noiseOver   = 2000.0      // number of rows over which the share refused as noise is averaged
	calmFor     = time.Second // time after a throttle in which nothing should be refused
	oddAfter    = 10          // after this many clean answers, a wholly refused request may be chance
	leastOdd    = 16.0        // minimum rows of such a request
)

// isNoise reports whether so few rows were refused that lack of capacity is probably not the cause. The refusals just
// after a throttle, when there is room, show how many such refusals to expect.
func (p *Pacer) isNoise(sent time.Time, units, accepted float64) bool {
	refused := units - accepted
	few := refused <= max(fewRefused*units, 1.5*p.perRow)
	if p.phase == inStart || p.phase == inMeasure {
		return refused > 0 && (few && units >= 4*p.perRow || refused <= 2.5*p.perRow && units >= leastOdd*p.perRow)
	}
	e := &p.evidence
	if units < leastOdd*p.perRow { // too few rows to tell
		return false
	}
	expected := e.noise * units
	ok := refused > 0 && expected > 0 && refused <= expected+3*math.Sqrt(expected*p.perRow)+0.5*p.perRow
	if few && (sent.Before(p.line.calm) || p.probe.gain < 0) {
		p.hear(refused, units)
	}
	return ok
}

func (p *Pacer) hear(refused, units float64) {
	e := &p.evidence
	e.noise += (refused/units - e.noise) * min(1, units/(noiseOver*p.perRow))
	if e.noise < 1e-4 {
		e.noise = 0
	}
}

// isOdd reports whether the refusal of a whole batch counts as chance: a lane that is only too fast is refused just the
// end of a batch.
func (p *Pacer) isOdd(units, accepted float64) bool {
	return p.phase == inCruise && accepted == 0 && units >= leastOdd*p.perRow && p.line.clean >= oddAfter
}

// delivery is the highest rate of accepted units in any second of the last five to ten.
type delivery struct {
	began, turned time.Time
	units         float64 // units accepted in the current second
	best          [2]float64
}

func (d *delivery) add(now time.Time, units float64) {
	if d.began.IsZero() {
		d.began, d.turned = now, now
	}
	d.units += units
	if over := now.Sub(d.began); over >= time.Second {
		d.best[0] = max(d.best[0], d.units/over.Seconds())
		d.began, d.units = now, 0
	}
	if now.Sub(d.turned) >= deliveryFor {
		d.best, d.turned = [2]float64{0, d.best[0]}, now
	}
}

func (d *delivery) most() float64 { return max(d.best[0], d.best[1]) }

// evidence collects from refusals and late answers what they show about the partition's limit.
type evidence struct {
	debt     float64   // refused units that accepted units have not paid off yet
	agreed   int       // consecutive estimates that agreed
	refused  time.Time // when anything was last refused for lack of capacity
	delivery delivery
	queue    bool // answers came late
	paced    bool // the rate is derived from late answers
	saves    bool // unused capacity is saved up, as in a bucket
	raised   time.Time
	before   float64 // the rate before it was raised
	lowest   lowest
	partly   bool    // part of a batch was refused once
	margin   float64 // how far below the rate cruise holds
	noise    float64 // share of rows refused as noise
}

// lowest is the lowest rate of the last ten to twenty seconds.
type lowest struct {
	turned time.Time
	rates  [2]float64 // units per second, in this and the last period; 0 means none
}

func (l *lowest) add(now time.Time, rate float64) {
	if now.Sub(l.turned) >= cutHeard {
		l.rates, l.turned = [2]float64{0, l.rates[0]}, now
	}
	if l.rates[0] == 0 || rate < l.rates[0] {
		l.rates[0] = rate
	}
}

// ofOne returns the part of a rate that certainly belongs to one partition: a load learns of splits late.
func (l *lowest) ofOne(rate float64) float64 {
	for _, low := range l.rates {
		if low > 0 && low < muchLess*rate {
			rate = low
		}
	}
	return rate
}

// Cruise: a lane paces slightly above the rate, so that an occasional throttle measures it again; without a throttle it
// reaches further. After a throttle it leaves room in the bucket for jitter. Tested by TestControlReachesTargets
// ("eight times", "0.4 for a while") and TestLaws.
const (
	usualGain   = 0.02                   // share of the rate by which cruise paces above it
	addRows     = 2.0                    // additional rows per second
	maxAdd      = 0.01                   // limit of addRows, as a share of the rate
	guessGain   = 0.1                    // at this gain, a throttle says more about the reach than about the rate
	maxGain     = 1.0                    // limit of the gain
	freedGain   = 0.25                   // gain after other lanes have ended or the partition was split
	minCruise   = 300 * time.Millisecond // shortest cruise that ends a trial of smaller requests
	provedAfter = 5 * time.Second        // a raised rate counts as right after this time
	agreeing    = 0.1                    // share of a rate; measurements that differ by less agree
	cutHeard    = 10 * time.Second       // until a load has learned of a split: before, a rate may be several partitions'
	muchLess    = 0.75                   // a recent rate below this share of the current one is one partition's

	reserve     = 0.04  // seconds' worth of the rate left in the bucket after a throttle
	heldRows    = 0.1   // minimum rows left there
	heldOfBatch = 0.2   // maximum left there if the bucket is small, as a share of the largest request
	heldOfRow   = 0.008 // share of a row, for a lane that sends single rows; doubles with each consecutive refusal
)

// Requests in cruise: small ones cost CPU, large ones are bursts that a small bucket refuses. Tested by
// TestControlReachesTargets ("small", "tiny", "rows of 100", requests as a multiple of the least).
const (
	batchTime   = 0.2                   // a request holds the rows of this many seconds
	leastTime   = 0.07                  // its minimum, even if throttles suggest a smaller bucket
	fewRows     = 50.0                  // minimum rows of a request, unless they take more than half a second
	finerTime   = 0.1                   // batchTime if refusals are costly
	finestTime  = 0.05                  // batchTime while refusals are expected
	askTime     = 0.02                  // batchTime of a request that tests whether anything is accepted
	askEvery    = 40 * time.Millisecond // time between two rows that test whether anything is accepted
	regrowAfter = 20 * time.Second      // time until larger requests are tried again
)

// credit is the number of units that cruise may send, which grows with time.
type credit struct {
	level float64
	at    time.Time
}

// probe tells how far above the rate cruise paces, and since when.
type probe struct {
	gain   float64
	since  time.Time
	sent   float64 // units
	alone  int     // single rows refused in a row
	held   bool    // cruise held back since the last throttle
	costly bool    // the last throttle refused much of a batch
}

// size holds the known limits of batches that fit the server's bucket.
type size struct {
	most   float64 // maximum rows of a batch
	before float64 // most before the trial; 0 means no trial
	at     time.Time

	notBefore time.Time // earliest time of the next trial
}

// throttle is an answer that refused rows.
type throttle struct {
	now, met        time.Time
	units, accepted float64
	first           bool          // the first answer after an outage or a split
	since           time.Duration // since the gauge began
}

// speed is the growth of credit, in units per second.
func (p *Pacer) speed() float64 {
	v := p.rate * (1 + p.probe.gain)
	if !p.others.quota.on && !p.single() {
		v += min(addRows*p.perRow, maxAdd*p.rate)
	}
	return v
}

// batch returns the units of a batch in cruise. Small batches need more requests; large ones overflow small buckets.
func (p *Pacer) batch() float64 {
	perSecond := p.rate / p.perRow // rows
	rows := math.Ceil(max(batchTime*perSecond, min(fewRows, perSecond/2)))
	if p.probe.costly || p.others.quota.on || p.evidence.queue {
		seconds := finerTime
		if p.probe.gain > 0 {
			seconds = finestTime
			if p.others.quota.on {
				seconds = pushTime
			}
		}
		rows = math.Ceil(seconds * perSecond)
		if p.others.quota.on {
			rows = max(rows, min(pushRows, math.Ceil(finestTime*perSecond)),
				math.Ceil(perSecond*p.line.rtt/(0.6*float64(p.max))))
		}
	}
	return max(1, min(rows, maxRows, max(p.size.most, leastTime*perSecond))) * p.perRow
}

// held returns the units that cruise leaves in the server's bucket after a throttle, as room for network jitter. With a
// batch, they must fit in the bucket, or it overflows before every batch.
func (p *Pacer) held() float64 {
	held := max(reserve*p.rate, heldRows*p.perRow)
	if p.size.most < maxRows {
		held = min(held, heldOfBatch*p.size.most*p.perRow)
	}
	return held
}

func (p *Pacer) overflowed() { p.gauge.whole = false }

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
	most := 1.5*p.batch() + p.held()
	if p.others.quota.on && p.line.blocked {
		p.credit.level = min(p.credit.level, p.batch())
	} else if p.credit.level > most {
		// The lane had no rows or no worker: the server's bucket may have overflowed.
		p.credit.level = most
		p.overflowed()
	}
}

// reach raises the gain if nothing was throttled for a while. Only time in which the lane sent at its limit counts: a
// lane that lacks rows learns nothing, and must not come back with a fictitious rate.
func (p *Pacer) reach(now time.Time) {
	hold := max(0.5, 1.5*max(reserve, p.held()/p.rate)/p.probe.gain, 2*p.batch()/p.speed())
	if p.evidence.queue {
		hold = queueHold
	}
	d := now.Sub(p.probe.since).Seconds()
	if p.probe.gain < 0 {
		if p.evidence.debt > 0 {
			return
		}
		p.evidence.margin = max(leastMargin, 0.9*p.evidence.margin)
		p.probe.gain, p.probe.since, p.probe.sent = usualGain, now, 0
		return
	}
	if d < hold {
		return
	}
	full := p.probe.sent >= 0.8*p.rate*d
	p.probe.since, p.probe.sent = now, 0
	if !full {
		return
	}
	if p.probe.gain >= 0.25 {
		p.setRate(p.rate * (1 + p.probe.gain))
		p.overflowed()
		p.regrow(now, 0)
	}
	p.probe.gain = min(2*p.probe.gain, maxGain)
}

// regrow occasionally allows larger batches again, so that a mistake is not permanent; a small bucket is found again.
func (p *Pacer) regrow(now time.Time, after time.Duration) {
	if p.size.before == 0 && p.size.most < maxRows && now.Sub(p.size.at) >= after {
		p.size.most, p.size.at = min(1.25*p.size.most, maxRows), now
	}
}
