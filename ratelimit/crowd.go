package ratelimit

import (
	"math"
	"slices"
	"time"
)

// crowd limits the units in flight for a partition that limits those and not a rate: while it serves that many
// requests, or rows, it refuses more at once. Accepted rows take time, so refusals come much sooner. That shows the
// limit: a bucket answers both equally fast. If parts of requests are refused, always above a level, one more row asks.
//
// Then as much is kept in flight as was served together, without any pace; occasionally one more row asks whether there
// is room for it, then two, and so on. Refusals of rows for which there is room show that it was a rate after all.
type crowd struct {
	flying []visit
	last   time.Time // when a request left
	signs  signs

	on    bool
	most  int       // requests that are served together
	room  float64   // units that are
	more  float64   // units that the next probe asks for beyond both
	asks  time.Time // when it may leave
	begun time.Time // when so much was in flight for the first time
	since int       // answers since the last refusal
	wrong int       // refusals although there was room
	until time.Time // not again before, after it turned out to be a rate
	again time.Duration
}

// signs are the evidence for such a limit.
type signs struct {
	clear  int        // requests that were served when one was refused
	alike  int        // refusals in a row that came much sooner than other answers
	served [2]float64 // seconds that the fastest answer took to rows that were taken, in this and the last few answers
	heard  int        // of these, in this
	way    float64    // seconds that a refusal took
	level  float64    // units that were served together when a part of a request was refused
	same   int        // times in a row with the same number
}

// visit is a request in flight.
type visit struct {
	at    time.Time
	units float64
	with  float64 // units that are served when it arrives, as far as is known
	and   int     // requests with these
	probe bool
}

const (
	crowdAlike  = 3                // refusals that show a limit of requests in flight
	crowdWrong  = 4                // refusals that disprove it
	crowdWay    = 0.02             // seconds at least between a request and the row that asks for room
	crowdProbe  = 2 * time.Second  // until a probe that was refused is made again
	crowdAgain  = 20 * time.Second // until a disproved limit is looked for again, at first
	crowdLonger = 10 * time.Minute // at most
	crowdSlow   = 1.5              // times as long as a refusal takes an answer at least that is served for a time
	crowdLeast  = 0.02             // seconds, besides
	crowdCalm   = 20               // answers after which refusals are forgotten
)

func (c *crowd) units() (sum float64) {
	for i := range c.flying {
		sum += c.flying[i].units
	}
	return sum
}

func (c *crowd) left(now time.Time, units float64) {
	with, n := c.units(), len(c.flying)
	c.flying = append(c.flying, visit{now, units, with, n, c.on && (n >= c.most || with+units > c.room*(1+1e-9))})
	c.last = now
}

// forget drops requests without an answer beyond the number in flight.
func (c *crowd) forget(inFlight int) {
	if n := len(c.flying) - inFlight; n > 0 {
		c.flying = slices.Delete(c.flying, 0, n)
	}
}

// back removes a request that is no longer in flight. Requests sent within one way after it was served never met it.
func (c *crowd) back(sent, now time.Time, units, way float64) visit {
	v := visit{at: sent}
	i := slices.IndexFunc(c.flying, func(v visit) bool { return v.at.Equal(sent) && v.units == units })
	if i < 0 { // not all of its rows are told
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

// hears looks for a limit of the units in flight, and reports whether there is one. A request refused as a whole is not
// served: its answer comes much sooner. Once is enough if the service takes long for rows.
func (c *crowd) hears(v visit, now time.Time, accepted, perRow float64, slow bool) bool {
	took := now.Sub(v.at).Seconds()
	if c.signs.same >= crowdAlike && v.units <= perRow && accepted > 0 {
		c.signs.same = 0
	}
	if accepted > 0 {
		c.serve(took)
	}
	if accepted >= v.units*(1-1e-9) {
		return false
	}
	if accepted == 0 && v.and > 0 {
		if serves := c.serves(); serves == 0 || took*crowdSlow+crowdLeast > serves {
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
	if c.signs.same >= crowdAlike && c.signs.alike > 0 && !now.Before(c.until) {
		c.signs.clear = max(1, v.and)
		return true
	}
	return (c.signs.alike >= crowdAlike || slow && c.signs.alike > 0) && !now.Before(c.until)
}

// serving is the number of requests being served: their answers come later than a refusal would.
func (c *crowd) serving(now time.Time) (n int) {
	for i := range c.flying {
		if now.Sub(c.flying[i].at).Seconds() > crowdSlow*c.signs.way {
			n++
		}
	}
	return n
}

// serve notes the seconds until the answer to accepted rows.
func (c *crowd) serve(took float64) {
	if c.signs.heard++; c.signs.heard > crowdCalm || c.signs.served[0] == 0 {
		c.signs.served, c.signs.heard = [2]float64{took, c.signs.served[0]}, 0
	}
	c.signs.served[0] = min(c.signs.served[0], took)
}

// serves is the seconds of the fastest such answer lately.
func (c *crowd) serves() float64 {
	if c.signs.served[1] == 0 {
		return c.signs.served[0]
	}
	return min(c.signs.served[0], c.signs.served[1])
}

// asking reports whether one more row, sent while a request is served, would tell whether units in flight are limited.
func (c *crowd) asking(now time.Time) (at time.Time, ok bool) {
	return c.last.Add(duration(crowdWay)), c.signs.same >= crowdAlike && c.signs.alike == 0 && len(c.flying) == 1 &&
		!now.Before(c.until)
}

// begin begins to keep as much in flight as was served together.
func (c *crowd) begin(now time.Time, perRow float64) {
	c.on, c.most, c.room, c.more, c.asks, c.wrong, c.signs.alike = true, max(1, c.signs.clear), math.Inf(1), perRow,
		now.Add(crowdProbe/4), 0, 0
	if c.signs.same >= crowdAlike {
		c.room = c.signs.level
	}
	c.signs.same, c.begun = 0, now
}

// next returns the units that may leave, 0 if none before an answer, and when.
func (c *crowd) next(now time.Time, perRow, queued float64) (units float64, at time.Time) {
	batch := min(queued, max(perRow, min(maxRows, math.Floor(c.room/float64(c.most)/perRow+1e-9))*perRow))
	flying := c.units()
	switch {
	case len(c.flying) < c.most && flying+batch <= c.room*(1+1e-9):
		return batch, now
	case slices.ContainsFunc(c.flying, func(v visit) bool { return v.probe }):
		return 0, now
	}
	return min(queued, c.more), later(c.asks, c.last.Add(duration(crowdSlow*max(c.signs.way, crowdWay))))
}

// answered takes an answer, and reports whether there is no such limit.
func (c *crowd) answered(v visit, now time.Time, accepted, perRow float64) bool {
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
		c.more, c.asks = perRow, now.Add(crowdProbe)
		return false
	case whole:
		if c.since++; c.since >= crowdCalm {
			c.wrong = 0
		}
		c.serve(now.Sub(v.at).Seconds())
		return c.serves() < max(crowdSlow*c.signs.way, crowdWay)
	}
	if v.at.Before(c.begun) { // it left before so much was known
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
	return c.wrong >= crowdWrong
}

// end ends it: the partition limits a rate.
func (c *crowd) end(now time.Time) {
	c.again = min(max(crowdAgain, 2*c.again), crowdLonger)
	c.on, c.signs.clear, c.until = false, 0, now.Add(c.again)
}

// crowded takes an answer, and reports whether the units in flight are limited.
func (p *Pacer) crowded(v visit, now, met time.Time, accepted float64) bool {
	c := &p.others.crowd
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
	p.line.thin, p.line.lateness.late = false, 0
	p.setRate(max(p.evidence.delivery.most(), p.perRow))
	return true
}
