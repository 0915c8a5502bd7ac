package ratelimit

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// The constants of the rate controller, found by simulation (TestLaws). Rows are rows of the lane's mean size.
const (
	spread     = 200 * time.Millisecond // lanes begin within it at random, so that they do not throttle in step
	probeEvery = 100 * time.Millisecond // mean time between probes of a partition that does not serve

	maxRows     = 200.0
	firstRows   = 25.0
	startRows   = 100.0
	stepRows    = 1000.0 // accepted rows per request more in flight while starting
	slowWindow  = 8      // above it each clean answer adds a request
	measureRows = 25.0   // a measurement is the finer the smaller the batch that ends it
	minSample   = 20.0   // accepted rows that make a measurement

	refill      = 50 * time.Millisecond // how long a measurement lets the bucket fill
	maxRefill   = time.Second
	pressFor    = time.Second            // that a measurement keeps asking: another load may have all that there is
	pressRows   = 25.0                   // of a batch meanwhile
	longSample  = 3 * time.Second        // long enough for a measurement however few rows it has
	metered     = 950 * time.Millisecond // the service meters by the second: what was accepted in less says little
	minCruise   = 300 * time.Millisecond
	regrowAfter = 20 * time.Second // batches that were found too large

	mostDelay     = 0.1                    // seconds that answers may be late, beside
	delayOfWay    = 0.5                    // of the shortest way
	othersDelay   = 0.05                   // seconds that a lane's way may be longer than that of others that meet the same queue
	patientRows   = 200.0                  // a second, with which a lane waits for as long as that
	lessPatience  = 0.2                    // for each e-fold of rows a second more
	leastPatience = 0.6                    // at least
	lateFor       = 150 * time.Millisecond // at least
	refusesFor    = time.Minute            // what has refused does not queue
	mostSlower    = 0.5                    // times the rate, at once, because answers come late
	ownQueue      = 2                      // answers on time to requests that were alone show that a queue is the lane's own
	queueHold     = 0.5                    // seconds until cruise reaches further where answers come late instead of refusals
	deliveryFor   = 5 * time.Second
	leastBusy     = 300 * time.Millisecond
	slowAnswer    = 0.2         // seconds: an answer that takes longer may do so because of its rows
	slowerByRows  = 0.6         // times as long, for a quarter of the rows: it does
	lateAnswers   = 2           // in a row that show a queue
	fewRefused    = 0.05        // of a batch: may be without a cause
	noiseOver     = 2000.0      // rows over which the share refused without a cause is taken
	calmFor       = time.Second // after a throttle nothing should be refused
	oddAfter      = 10          // clean answers, a batch that is refused as a whole may be so without a cause
	leastOdd      = 16.0        // rows of such a batch
	wayFor        = 20 * time.Second
	deadAfter     = 3                      // thin batches refused in a row
	idleFor       = 100 * time.Millisecond // at least
	mostIdle      = 0.3                    // seconds in which nothing was accepted: less than a second tells no rate
	idleRows      = 8.0                    // that the rate gives in the time in which nothing was accepted: then it is not given evenly
	measureTime   = 0.25                   // seconds of a rate that is known about in a batch that measures
	provedAfter   = 5 * time.Second        // a rate that was raised is right
	burstOf       = 1.3                    // times the rate in a second say that it is given by the second
	cutHeard      = 10 * time.Second       // a load hears of a cut by then
	muchLess      = 0.75                   // of a rate: what it was at times
	agreeing      = 0.1                    // two estimates that differ by less agree
	thinTime      = 0.02                   // seconds of the rate in a batch that asks whether anything is accepted at all
	thinEvery     = 40 * time.Millisecond
	mostOwed      = 15.0  // seconds that cruise holds back at most
	finerTime     = 0.1   // seconds of the rate in a batch where refusals are dear
	finestTime    = 0.05  // and while they are to be expected
	allowed       = 0.005 // of the accepted units may be refused before cruise holds back
	hair          = 0.01  // how far below the rate it holds, at first
	mostHair      = 0.06
	usualGain     = 0.02 // how far above the rate cruise paces
	reliefGain    = 0.25 // where others have ended
	maxGain       = 1.0
	guessGain     = 0.1 // from here on a throttle says more about the reach than about the rate
	reserve       = 0.04
	addRows       = 2.0 // rows a second that cruise paces above the rate beside the gain, but
	maxAdd        = 0.01
	heldOfRow     = 0.008 // of a row, times two for each refusal in a row of it
	heldRows      = 0.1   // of a row, that a slow lane leaves
	heldOfBatch   = 0.2   // of the largest batch, at most, when the bucket is known to be small

	batchTime = 0.2  // seconds of the rate in a batch
	leastTime = 0.07 // and at the least, even if throttles suggest a smaller bucket
	fewRows   = 50.0 // a slow lane's batch, unless that is more than half a second's
	maxDebt   = 60.0 // seconds that one batch may hold up a lane
	minPerSec = 0.25 // rows a second: a partition is asked at least every few seconds
	maxRate   = 1e9
	maxUnits  = 1e9 // of a row and of a batch
	minPerRow = 0.001
)

// line is what is known of the way to the server.
type line struct {
	lateness    lateness
	rtt         float64 // seconds, smoothed; 0 before the first answer
	throttledAt time.Time
	sends       []send    // those that the server has not looked at yet, as far as answers tell
	out         bool      // the partition does not serve
	thin        bool      // nothing of the last batch was accepted
	thinFrom    time.Time // when the next thin batch may leave
	odd         bool      // a whole batch was refused after many clean answers: forgiven if the next one is taken
	clean       int       // answers in a row of which nothing was refused
	calm        time.Time // until then nothing should be refused
	young       bool      // came out of a split and has not been throttled yet
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

// sentSince returns the units sent after the request that was answered last.
func (l *line) sentSince() float64 {
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
	slow   float64   // seconds that the answer to more rows than now took
	slowed float64   // units of these
	fast   float64   // the same of a quarter of the rows
	fastOf float64
	pause  time.Duration
}

// gauge counts what the partition accepted since a moment at which its bucket was empty.
type gauge struct {
	from     time.Time
	accepted float64
	whole    bool      // the bucket cannot have overflowed since
	took     time.Time // when anything was accepted last
	idle     float64   // seconds after which nothing at all was accepted
	refusals int       // of thin batches in a row
	dead     bool      // there was a time in which nothing at all was accepted
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

// recent is what was accepted in the last seconds.
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

// between is what was accepted after a moment, until another.
func (r *recent) between(from, to time.Time) (units float64) {
	for i := len(r.accepted) - 1; i >= 0 && r.accepted[i].met.After(from); i-- {
		if !r.accepted[i].met.After(to) {
			units += r.accepted[i].units
		}
	}
	return units
}

// causeless reports whether so few rows were refused that it was not for want of capacity, as far as is known. What is refused
// just after a throttle, when there is room, says how many to expect.
func (p *Pacer) causeless(sent time.Time, units, accepted float64) bool {
	refused := units - accepted
	few := refused <= max(fewRefused*units, 1.5*p.perRow)
	if p.phase == inStart || p.phase == inMeasure {
		return refused > 0 && (few && units >= 4*p.perRow || refused <= 2.5*p.perRow && units >= leastOdd*p.perRow)
	}
	e := &p.evidence
	if units < leastOdd*p.perRow { // one row of a few says nothing
		return false
	}
	expected := e.noise * units
	ok := refused > 0 && expected > 0 && refused <= expected+3*math.Sqrt(expected*p.perRow)+0.5*p.perRow
	if few && (sent.Before(p.line.calm) || p.probe.gain < 0) {
		p.hear(refused, units)
	}
	return ok
}

// hear learns what share is refused without a cause.
func (p *Pacer) hear(refused, units float64) {
	e := &p.evidence
	e.noise += (refused/units - e.noise) * min(1, units/(noiseOver*p.perRow))
	if e.noise < 1e-4 {
		e.noise = 0
	}
}

// isOdd reports whether the refusal of a whole batch is put down to chance, unless the next one is refused too. A lane that paces
// just above its rate is refused the end of a batch.
func (p *Pacer) isOdd(units, accepted float64) bool {
	return p.phase == inCruise && accepted == 0 && units >= leastOdd*p.perRow && p.line.clean >= oddAfter
}

// delivery is the most that came back in a second, of the last five to ten.
type delivery struct {
	began, turned time.Time
	units         float64 // since it began
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

// evidence is what refusals have told of how the partition limits.
type evidence struct {
	owed     float64   // units refused that the accepted ones have not earned yet
	agreed   int       // estimates in a row that agreed
	refused  time.Time // when anything was refused for want of capacity
	delivery delivery
	queue    bool // answers came late
	paced    bool // the rate is from late answers
	saves    bool // what is not used is there later, as in a bucket
	raised   time.Time
	before   float64 // the rate before it was raised
	lowest   lowest
	partly   bool    // refused a part of a batch once
	hair     float64 // how far below the rate cruise holds
	noise    float64 // share of rows that is refused without a cause
}

// lowest is the lowest rate of the last ten to twenty seconds.
type lowest struct {
	turned time.Time
	rates  [2]float64 // units a second; 0 is none
}

func (l *lowest) add(now time.Time, rate float64) {
	if now.Sub(l.turned) >= cutHeard {
		l.rates, l.turned = [2]float64{0, l.rates[0]}, now
	}
	if l.rates[0] == 0 || rate < l.rates[0] {
		l.rates[0] = rate
	}
}

// ofOne is what one partition takes for sure of a rate that may be that of several: a table is cut before its load hears of it.
func (l *lowest) ofOne(rate float64) float64 {
	for _, low := range l.rates {
		if low > 0 && low < muchLess*rate {
			rate = low
		}
	}
	return rate
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
	alone int     // single rows refused in a row
	held  bool    // cruise held back since the last throttle
	dear  bool    // the last throttle refused much of a batch
}

// size is what is known of the batches that the server's bucket can hold.
type size struct {
	most   float64 // rows
	before float64 // most before the trial; 0 means no trial
	at     time.Time

	notBefore time.Time // the next trial
}

// throttle is an answer that refused rows.
type throttle struct {
	now, met        time.Time
	units, accepted float64
	first           bool          // the first answer after an outage or a split
	since           time.Duration // the gauge began
}

// speed is the units a second at which credit grows.
func (p *Pacer) speed() float64 {
	v := p.rate * (1 + p.probe.gain)
	if !p.others.quota.on && !p.single() {
		v += min(addRows*p.perRow, maxAdd*p.rate)
	}
	return v
}

// batch is the size of a batch in cruise, in units. Small batches cost requests; large ones come in lumps that a small
// bucket refuses.
func (p *Pacer) batch() float64 {
	perSecond := p.rate / p.perRow // rows
	rows := math.Ceil(max(batchTime*perSecond, min(fewRows, perSecond/2)))
	if p.probe.dear || p.others.quota.on || p.evidence.queue {
		seconds := finerTime
		if p.probe.gain > 0 {
			seconds = finestTime
			if p.others.quota.on {
				seconds = pushTime
			}
		}
		rows = math.Ceil(seconds * perSecond)
		if p.others.quota.on {
			rows = max(rows, min(pushRows, math.Ceil(finestTime*perSecond)), math.Ceil(perSecond*p.line.rtt/(0.6*float64(p.max))))
		}
	}
	return max(1, min(rows, maxRows, max(p.size.most, leastTime*perSecond))) * p.perRow
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
func (p *Pacer) spoil() { p.gauge.whole = false }

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
	if p.others.quota.on && p.line.thin {
		p.credit.level = min(p.credit.level, p.batch())
	} else if p.credit.level > most {
		// No rows, no worker: the server's bucket may have overflowed.
		p.credit.level = most
		p.spoil()
	}
}

// reach reaches further up when nothing was throttled for a while. Only time in which the lane sent what it might counts:
// a starved lane learns nothing, and must not come back with a rate that it dreamt up.
func (p *Pacer) reach(now time.Time) {
	hold := max(0.5, 1.5*max(reserve, p.held()/p.rate)/p.probe.gain, 2*p.batch()/p.speed())
	if p.evidence.queue {
		hold = queueHold
	}
	d := now.Sub(p.probe.since).Seconds()
	if p.probe.gain < 0 {
		if p.evidence.owed > 0 {
			return
		}
		p.evidence.hair = max(hair, 0.9*p.evidence.hair)
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
		p.spoil()
		p.regrow(now, 0)
	}
	p.probe.gain = min(2*p.probe.gain, maxGain)
}

// regrow allows larger batches again, now and then: a small bucket is found out again, a mistaken one is not forever.
func (p *Pacer) regrow(now time.Time, after time.Duration) {
	if p.size.before == 0 && p.size.most < maxRows && now.Sub(p.size.at) >= after {
		p.size.most, p.size.at = min(1.25*p.size.most, maxRows), now
	}
}
