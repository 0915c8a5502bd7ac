package ratelimit

import (
	"math"
	"slices"
	"time"
)

// inFlightLimit limits the units in flight, for a partition that limits those rather than a rate: while it serves that
// many requests, or rows, it refuses any more at once. Accepted rows take time, so refusals arrive much sooner, which
// gives the limit away: a bucket answers both equally fast. If requests are refused in part, always above the same
// level, one more row is sent to find out.
//
// Once the limit is known, as much is kept in flight as was served together, without a rate. Occasionally a probe sends
// one row more, then two, and so on. If rows that should fit are refused, the limit is a rate after all.
type inFlightLimit struct {
	flying []visit
	last   time.Time // when the last request was sent
	signs  signs

	on    bool
	most  int       // requests served together
	room  float64   // units served together
	more  float64   // units of the next probe, beyond both
	asks  time.Time // when the probe may be sent
	begun time.Time // when that much was first in flight
	since int       // answers since the last refusal
	wrong int       // refusals although there should be room
	until time.Time // the limit proved to be a rate: do not look for another before this time
	again time.Duration
}

// signs is the evidence for such a limit.
type signs struct {
	clear  int        // requests being served when one was refused
	alike  int        // refusals in a row that arrived much sooner than other answers
	served [2]float64 // seconds of the fastest answer to accepted rows, in this and the last period
	heard  int        // answers in this period
	way    float64    // seconds that a refusal took
	level  float64    // units served together when part of a request was refused
	same   int        // number of times in a row that level was the same
}

// visit is a request in flight.
type visit struct {
	at    time.Time
	units float64
	with  float64 // units being served when it arrives, as far as the lane knows
	and   int     // requests being served then
	probe bool
}

const (
	inFlightAlike  = 3                // refusals that show a limit of requests in flight
	inFlightWrong  = 4                // refusals that disprove it
	inFlightWay    = 0.02             // minimum seconds between a request and a probe
	inFlightProbe  = 2 * time.Second  // time until a refused probe is repeated
	inFlightAgain  = 20 * time.Second // time until a disproved limit is first looked for again
	inFlightLonger = 10 * time.Minute // maximum of inFlightAgain
	inFlightSlow   = 1.5              // a request was served if its answer takes this many times as long as a refusal
	inFlightLeast  = 0.02             // minimum seconds beyond a refusal's time
	inFlightForget = 20               // answers after which refusals are forgotten
)

func (c *inFlightLimit) units() (sum float64) {
	for i := range c.flying {
		sum += c.flying[i].units
	}
	return sum
}

func (c *inFlightLimit) left(now time.Time, units float64) {
	with, n := c.units(), len(c.flying)
	c.flying = append(c.flying, visit{now, units, with, n, c.on && (n >= c.most || with+units > c.room*(1+1e-9))})
	c.last = now
}

// forget drops requests without an answer beyond the number in flight.
func (c *inFlightLimit) forget(inFlight int) {
	if n := len(c.flying) - inFlight; n > 0 {
		c.flying = slices.Delete(c.flying, 0, n)
	}
}

// back removes a request that is no longer in flight. Requests sent after it was served did not arrive during it.
func (c *inFlightLimit) back(sent, now time.Time, units, way float64) visit {
	v := visit{at: sent}
	i := slices.IndexFunc(c.flying, func(v visit) bool { return v.at.Equal(sent) && v.units == units })
	if i < 0 { // not all of its rows are in the report
		i = slices.IndexFunc(c.flying, func(v visit) bool { return v.at.Equal(sent) })
	}
	if i >= 0 {
		v = c.flying[i]
		c.flying = slices.Delete(c.flying, i, i+1)
	}
	v.units = units
	met := now.Add(-duration(way))
	for i := range c.flying {
		if f := &c.flying[i]; f.at.After(met) && f.at.After(sent) {
			f.with, f.and = max(0, f.with-units), max(0, f.and-1)
		}
	}
	return v
}

// hears looks for a limit of the units in flight, and reports whether there is one. A wholly refused request is not
// served, so its answer arrives much sooner. One such answer suffices if the service takes long for rows.
func (c *inFlightLimit) hears(v visit, now time.Time, accepted, perRow float64, slow bool) bool {
	took := now.Sub(v.at).Seconds()
	if c.signs.same >= inFlightAlike && v.units <= perRow && accepted > 0 {
		c.signs.same = 0
	}
	if accepted > 0 {
		c.serve(took)
	}
	if accepted >= v.units*(1-1e-9) {
		return false
	}
	if accepted == 0 && v.and > 0 {
		if serves := c.serves(); serves == 0 || took*inFlightSlow+inFlightLeast > serves {
			c.signs.alike, c.signs.same = 0, 0
			return false
		}
		c.signs.alike++
		c.signs.way = took
		c.signs.clear = c.serving(now)
	}
	if level := v.with + accepted; accepted >= leastOdd*perRow {
		if c.signs.same++; math.Abs(level-c.signs.level) > perRow/2 {
			c.signs.level, c.signs.same = level, 1
		}
	}
	if c.signs.same >= inFlightAlike && c.signs.alike > 0 && !now.Before(c.until) {
		c.signs.clear = max(1, v.and)
		return true
	}
	return (c.signs.alike >= inFlightAlike || slow && c.signs.alike > 0) && !now.Before(c.until)
}

// serving is the number of requests being served: they have been in flight for longer than a refusal takes.
func (c *inFlightLimit) serving(now time.Time) (n int) {
	for i := range c.flying {
		if now.Sub(c.flying[i].at).Seconds() > inFlightSlow*c.signs.way {
			n++
		}
	}
	return n
}

func (c *inFlightLimit) serve(took float64) {
	if c.signs.heard++; c.signs.heard > inFlightForget || c.signs.served[0] == 0 {
		c.signs.served, c.signs.heard = [2]float64{took, c.signs.served[0]}, 0
	}
	c.signs.served[0] = min(c.signs.served[0], took)
}

// serves returns the seconds of the fastest recent answer to accepted rows.
func (c *inFlightLimit) serves() float64 {
	if c.signs.served[1] == 0 {
		return c.signs.served[0]
	}
	return min(c.signs.served[0], c.signs.served[1])
}

// asking returns when to send one more row while a request is served; ok reports whether that would reveal a limit.
func (c *inFlightLimit) asking(now time.Time) (at time.Time, ok bool) {
	return c.last.Add(duration(inFlightWay)), c.signs.same >= inFlightAlike && c.signs.alike == 0 && len(c.flying) == 1 &&
		!now.Before(c.until)
}

// begin starts to keep as much in flight as was served together.
func (c *inFlightLimit) begin(now time.Time, perRow float64) {
	c.on, c.most, c.room, c.more, c.asks, c.wrong, c.signs.alike = true, max(1, c.signs.clear), math.Inf(1), perRow,
		now.Add(inFlightProbe/4), 0, 0
	if c.signs.same >= inFlightAlike {
		c.room = c.signs.level
	}
	c.signs.same, c.begun = 0, now
}

// next returns how many units may be sent and when, 0 if none may be sent before an answer.
func (c *inFlightLimit) next(now time.Time, perRow, queued float64) (units float64, at time.Time) {
	batch := min(queued, max(perRow, min(maxRows, math.Floor(c.room/float64(c.most)/perRow+1e-9))*perRow))
	flying := c.units()
	switch {
	case len(c.flying) < c.most && flying+batch <= c.room*(1+1e-9):
		return batch, now
	case slices.ContainsFunc(c.flying, func(v visit) bool { return v.probe }):
		return 0, now
	}
	return min(queued, c.more), later(c.asks, c.last.Add(duration(inFlightSlow*max(c.signs.way, inFlightWay))))
}

// answered takes an answer and reports whether it disproves the limit.
func (c *inFlightLimit) answered(v visit, now time.Time, accepted, perRow float64) bool {
	whole := accepted >= v.units*(1-1e-9)
	switch {
	case v.probe && whole:
		c.most = max(c.most, v.and+1)
		c.room = max(c.room, v.with+v.units)
		c.more = min(2*c.more, maxRows*perRow)
		return false
	case v.probe:
		if accepted == 0 {
			c.signs.way = now.Sub(v.at).Seconds()
		}
		c.more, c.asks = perRow, now.Add(inFlightProbe)
		return false
	case whole:
		if c.since++; c.since >= inFlightForget {
			c.wrong = 0
		}
		c.serve(now.Sub(v.at).Seconds())
		return c.serves() < max(inFlightSlow*c.signs.way, inFlightWay)
	}
	if v.at.Before(c.begun) { // it was sent before the limit was known
		c.most = max(c.most, c.serving(now))
		return false
	}
	c.since, c.begun = 0, now
	if accepted == 0 {
		c.signs.way = now.Sub(v.at).Seconds()
	}
	if accepted > 0 {
		c.room = min(c.room, v.with+accepted)
	} else if n := c.serving(now); n < c.most {
		c.most = max(1, n)
	}
	c.wrong++
	return c.wrong >= inFlightWrong
}

// end drops the limit: the partition limits a rate.
func (c *inFlightLimit) end(now time.Time) {
	c.again = min(max(inFlightAgain, 2*c.again), inFlightLonger)
	c.on, c.signs.clear, c.until = false, 0, now.Add(c.again)
}

// takesInFlightLimit takes an answer and reports whether the units in flight are limited.
func (p *Pacer) takesInFlightLimit(v visit, now, met time.Time, accepted float64) bool {
	c := &p.others.inFlight
	switch {
	case !c.on && (!p.evidence.queue || p.line.lateness.late == 0) &&
		c.hears(v, now, accepted, p.perRow, p.evidence.paced || p.line.lateness.perUnit > 0):
		p.phase = inCruise
		c.begin(now, p.perRow)
	case !c.on:
		return false
	case c.answered(v, now, accepted, p.perRow):
		c.end(now)
		p.line.throttledAt = now
		p.measure(throttle{now: now, met: met, units: v.units, accepted: accepted})
		return true
	}
	if accepted < v.units {
		p.evidence.refused = now
	}
	p.line.blocked, p.line.lateness.late = false, 0
	p.setRate(max(p.evidence.delivery.most(), p.perRow))
	return true
}
