package ratelimit

import (
	"math"
	"slices"
	"time"
)

// The constants of the rate controller, found by simulation (TestRateControllers). Rows are rows of the lane's mean size.
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
	longSample  = 2 * time.Second        // long enough for a measurement however few rows it has
	metered     = 950 * time.Millisecond // the service meters by the second: what was accepted in less says little
	minCruise   = 300 * time.Millisecond
	regrowAfter = 20 * time.Second // batches that were found too large

	mostDelay      = 0.1 // seconds that answers may be late, beside
	delayOfWay     = 0.5 // of the shortest way
	lateAnswers    = 2   // in a row that show a queue
	wayFor         = 10 * time.Second
	agreeing       = 0.1  // two estimates that differ by less agree
	thinTime       = 0.02 // seconds of the rate in a batch that asks whether anything is accepted at all
	thinEvery      = 40 * time.Millisecond
	mostOwed       = 15.0  // seconds that cruise holds back at most
	finerTime      = 0.1   // seconds of the rate in a batch where refusals are dear
	allowed        = 0.005 // of the accepted units may be refused before cruise holds back
	holdGain       = -0.01 // how far below the rate it holds
	usualGain      = 0.02  // how far above the rate cruise paces
	knownFirstGain = 0.04  // a known rate, until the first throttle: uses up what the bucket had saved
	knownGain      = 0.002
	maxGain        = 1.0
	guessGain      = 0.1 // from here on a throttle says more about the reach than about the rate
	reserve        = 0.04
	addRows        = 2.0 // rows a second that cruise paces above the rate beside the gain, but
	maxAdd         = 0.01
	heldOfRow      = 0.008 // of a row, times two for each refusal in a row of it
	heldRows       = 0.1   // of a row, that a slow lane leaves
	heldOfBatch    = 0.2   // of the largest batch, at most, when the bucket is known to be small

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
	rtt         float64 // seconds, smoothed; 0 before the first answer
	throttledAt time.Time
	sends       []send     // those that the server has not looked at yet, as far as answers tell
	out         bool       // the partition does not serve
	thin        bool       // nothing of the last batch was accepted
	thinFrom    time.Time  // when the next thin batch may leave
	way         [2]float64 // seconds of the fastest answer, in this and the last period
	waySince    time.Time
	late        int  // answers in a row that came late
	young       bool // came out of a split and has not been throttled yet
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

// onTime notes an answer and reports whether it shows that requests wait in a queue.
func (l *line) queues(sent, now time.Time) bool {
	d := now.Sub(sent).Seconds()
	if l.waySince.IsZero() || now.Sub(l.waySince) > wayFor {
		l.way[1] = l.way[0]
		if l.waySince.IsZero() {
			l.way[1] = d
		}
		l.way[0], l.waySince = d, now
	}
	l.way[0] = min(l.way[0], d)
	if d <= l.shortest()*(1+delayOfWay)+mostDelay {
		l.late = 0
		return false
	}
	l.late++
	return l.late >= lateAnswers
}

// shortest is the way without a queue, in seconds.
func (l *line) shortest() float64 { return min(l.way[0], l.way[1]) }

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
	pause  time.Duration
}

// gauge counts what the partition accepted since a moment at which its bucket was empty.
type gauge struct {
	from     time.Time
	accepted float64
	whole    bool // the bucket cannot have overflowed since
	dead     bool // there was a time in which nothing at all was accepted
}

func (g *gauge) reset(at time.Time) { *g = gauge{from: at, whole: true} }

func (g *gauge) add(met time.Time, accepted float64) {
	if met.After(g.from) {
		g.accepted += accepted
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
		r.accepted = slices.Delete(r.accepted, 0, len(r.accepted)/2)
	}
	r.accepted = append(r.accepted, accepted{met, units})
}

// since is what was accepted after a moment.
func (r *recent) since(from time.Time) (units float64) {
	for i := len(r.accepted) - 1; i >= 0 && r.accepted[i].met.After(from); i-- {
		units += r.accepted[i].units
	}
	return units
}

// evidence is what refusals have told of how the partition limits.
type evidence struct {
	owed    float64 // units refused that the accepted ones have not earned yet
	agreed  int     // estimates in a row that agreed
	windows bool    // nothing was accepted for a while, and then much
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
	seconds := batchTime
	if p.probe.held && p.probe.dear {
		seconds = finerTime
	}
	rows := math.Ceil(max(seconds*perSecond, min(fewRows, perSecond/2)))
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
	if p.probe.gain < 0 {
		if p.evidence.owed > 0 {
			return
		}
		p.probe.gain, p.probe.since, p.probe.sent = usualGain, now, 0
		return
	}
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

// regrow allows larger batches again, now and then: a small bucket is found out again, a mistaken one is not forever.
func (p *Pacer) regrow(now time.Time, after time.Duration) {
	if p.size.before == 0 && p.size.most < maxRows && now.Sub(p.size.at) >= after {
		p.size.most, p.size.at = min(1.25*p.size.most, maxRows), now
	}
}
