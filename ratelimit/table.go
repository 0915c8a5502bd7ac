package ratelimit

import (
	"math"
	"time"
)

// Table is the common rate of a table's lanes, for a table that is limited itself, not only in its partitions. Refusals
// do not tell which of the two limits was exceeded. If each lane seeks its rate by itself, one of them always reaches
// too far, and any lane may be refused for it. If most lanes are refused many rows all the time, all lanes together
// hold just below the accepted rate. If that is the table's rate, nothing more is refused. Lanes refused in a hold have
// met their own limits, if they are few. After several useless holds, a trial decides if the table's rate is given up.
//
// From then on holds and pushes alternate. A push raises the pace above the rate until something is refused: the rate
// is the units accepted in the second before, whether the table has a bucket or a quota per second. A hold lasts until
// accepted rows have paid off the refused ones, at half a percent.
//
// Calls must be in the order of the events, from one goroutine at a time.
type Table struct {
	watching tableWatch
	pace     tablePace
	on       bool
	ways     ways
}

// tablePace is the pace of a table that limits its lanes.
type tablePace struct {
	rate float64 // units per second
	best float64 // highest rate so far
	gain float64 // share of the rate by which a push exceeds it; negative in a hold

	since    time.Time // when this gain began
	sent     float64   // units since then
	refusals tally     // counts from the first refusal in this hold or at this gain
	hold     holding
	margin   float64 // share of the rate by which a hold stays below it
	debt     float64 // refused units not paid off yet
	recent   lately

	gate   gate
	doubts doubts
	active active
}

// holding is the current or the last hold.
type holding struct {
	began          time.Time
	units, refused float64 // units of requests sent during the hold
}

// gate lets batches through at the table's pace.
type gate struct {
	level float64 // units that may be sent
	at    time.Time
	none  bool      // next to nothing was accepted: the second's quota is used up
	askAt time.Time // when the next few rows are tried if none is set
	held  time.Time // when a batch was last held back
}

// doubts collects the evidence against a limit of the table.
type doubts struct {
	before  float64   // share refused before lanes were held to a rate
	high    float64   // the highest rate without refusals since it fell
	fell    int       // number of times that the rate fell
	useless int       // consecutive holds with many refusals
	cleared time.Time // when knowledge of lanes' own limits was last dropped
	trial   trial
}

const (
	tableFell    = 0.75                  // a rate below this share of the highest starts another trial
	tableFalls   = 2                     // number of falls after which the lanes are left to themselves
	tableHold    = time.Second           // minimum duration of a hold
	tableSettles = 50 * time.Millisecond // wait for answers to requests sent before a hold, beyond the round trip
	tableOwn     = 10 * time.Second      // time for which a refused lane counts as having its own limit
	tableStep    = 500 * time.Millisecond
	tableMost    = 0.5              // maximum gain of a push
	tableLeast   = 0.01             // a refused share means something after the units of this many seconds
	tableBurst   = 0.03             // the units of this many seconds may be sent at once
	tableBound   = 0.95             // share of the allowed rate that is sent if the table limits
	tableUseless = 0.01             // a hold is useless if more than this share of its units is refused
	tableLess    = 4                // or, if more, the share refused earlier, divided by this
	tableDoubts  = 3                // number of consecutive useless holds that start another trial
	tableUnused  = 5 * time.Second  // time until a rate that holds nothing back is dropped
	tableAgain   = 20 * time.Second // time until a limit is first sought again
	tableLongest = 10 * time.Minute // maximum time until a limit is sought again
)

// Next returns when a batch of units may be sent, which is now while the table does not limit it.
func (t *Table) Next(now time.Time, units float64) time.Time {
	if !t.on {
		return now
	}
	t.pace.advance(now)
	at := now
	if missing := min(units, t.pace.most()) - t.pace.gate.level; missing > units*1e-9 {
		at = now.Add(duration(missing / t.pace.speed()))
	}
	if t.pace.gate.none {
		at = later(at, t.pace.gate.askAt)
	}
	if at.After(now) {
		t.pace.gate.held = now
	}
	return at
}

// Most returns the largest batch in units. It is infinite while the table does not limit.
func (t *Table) Most() float64 {
	if !t.on {
		return math.Inf(1)
	}
	return t.pace.most()
}

func (p *tablePace) most() float64 { return max(1, sharedBatch*p.rate) }

func (p *tablePace) speed() float64 { return p.rate * (1 + p.gain) }

func (p *tablePace) setRate(v float64) {
	p.rate = min(max(v, 1), maxRate)
	p.best = max(p.best, p.rate)
}

func (p *tablePace) advance(now time.Time) {
	p.gate.level = min(p.gate.level+max(0, now.Sub(p.gate.at).Seconds())*p.speed(), max(tableBurst*p.rate, 1.5*p.most()))
	p.gate.at = now
}

// Sent notes that a batch was sent.
func (t *Table) Sent(now time.Time, units float64) {
	if !t.on {
		return
	}
	t.pace.advance(now)
	t.pace.gate.level -= units
	t.pace.sent += units
	t.pace.gate.askAt = now.Add(askEvery)
}

// Answered takes the answer to a lane's batch. It returns, for the lane's pacer, the units that the lane's partition
// did not refuse, as far as is known.
func (t *Table) Answered(p *Pacer, sent, now time.Time, units, accepted float64) (byLane float64) {
	if t.watching.began.IsZero() {
		t.watching.began = now
	}
	t.ways.tell(p, sent, now)
	t.seekFreed(p, now)
	if accepted >= units*(1-1e-9) {
		accepted = units
	}
	if !t.on {
		t.watch(p, now, units, accepted)
		return accepted
	}
	met := sent.Add(now.Sub(sent) / 2)
	t.pace.recent.add(met, accepted)
	t.lift(p, now)
	t.pace.debt = max(0, t.pace.debt-t.pace.earned()*accepted)
	t.pace.gate.none = t.pace.gate.none && accepted < 0.1*units
	byLane = units
	switch m := &p.others.member; {
	case t.pace.gain >= 0 && !sent.Before(t.pace.since):
		if t.pace.own(m, now) || !t.exceeded(p, met, now, units, accepted) {
			byLane = accepted
		}
	case t.pace.gain < 0 && sent.After(t.pace.hold.began.Add(tableSettles)):
		byLane = t.inHold(p, met, now, units, accepted)
	}
	if refused := units - accepted; byLane == units && refused > 0 {
		t.pace.debt = min(t.pace.debt+refused, mostDebt*allowed*t.pace.rate)
		if accepted < 0.1*units {
			t.pace.gate.none, t.pace.gate.askAt = true, now.Add(askEvery)
		}
	}
	if !t.pace.doubts.trial.until.IsZero() && t.tried(p, sent, now, units, accepted) {
		t.end(now)
		t.watching.again = min(max(tableAgain, 2*t.watching.again), tableLongest)
		t.watching.until = now.Add(t.watching.again)
		return accepted
	}
	t.turn(now)
	switch {
	case now.Sub(later(t.pace.gate.held, t.pace.since)) > tableUnused:
		t.end(now)
	case t.pace.rate < tableFell*t.pace.doubts.high:
		if t.pace.doubts.fell++; t.pace.doubts.fell >= tableFalls {
			t.end(now)
			t.watching.until = now.Add(tableAgain)
			break
		}
		t.pace.doubts.high = 0
		t.try(now)
	case t.pace.doubts.useless >= tableDoubts && t.pace.doubts.trial.until.IsZero():
		t.try(now)
	}
	return byLane
}

// own reports whether a lane has recently met its own limit.
func (p *tablePace) own(m *member, now time.Time) bool {
	return m.own.After(p.doubts.cleared) && now.Sub(m.own) < tableOwn
}

// exceeded takes an answer to a request sent in a push, and reports whether the push exceeded the table's rate. The
// table refuses the excess in any lane; refusals by the lanes' own limits do not grow with the pace.
func (t *Table) exceeded(p *Pacer, met, now time.Time, units, accepted float64) bool {
	r := &t.pace.refusals
	if r.round == 0 {
		if accepted == units {
			return false
		}
		*r = t.tally(now)
	}
	r.add(&p.others.member.refusals, units, accepted, p.evidence.noise)
	if r.refusing < 2 || r.refused-r.most/2-r.noise < t.pace.gain/(1+t.pace.gain)/2*r.units ||
		r.units < tableLeast*t.pace.rate {
		return false
	}
	t.pace.setRate(max(t.pace.rate, t.pace.recent.between(met.Add(-time.Second), met)))
	t.begin(now)
	return true
}

// inHold takes an answer to a request sent in a hold. It returns the units that the lane's partition did not refuse.
func (t *Table) inHold(p *Pacer, met, now time.Time, units, accepted float64) (byLane float64) {
	r, refused := &t.pace.refusals, units-accepted
	if refused > 0 && (r.round == 0 || now.Sub(r.since) > tableHold) {
		*r = t.tally(now)
	}
	if r.round != 0 {
		r.add(&p.others.member.refusals, units, accepted, p.evidence.noise)
	}
	t.pace.hold.units += units
	t.pace.hold.refused += max(0, refused-p.evidence.noise*units)
	switch {
	case refused == 0:
		return units
	case !r.everywhere():
		p.others.member.own = now
		return accepted
	}
	t.pace.doubts.cleared = now
	took := min(met.Sub(t.pace.hold.began), latelyFor)
	if took < tableHold/2 {
		return units
	}
	t.pace.doubts.useless++
	if got := t.pace.recent.between(met.Add(-took), met) / took.Seconds(); got < t.pace.rate*(1-t.pace.margin/2) {
		t.pace.setRate(got)
	} else {
		t.pace.margin = min(2*t.pace.margin, mostMargin)
	}
	t.begin(now)
	return units
}

func (t *Table) begin(now time.Time) {
	t.pace.margin = max(leastMargin, t.pace.margin)
	t.pace.gain, t.pace.since, t.pace.sent, t.pace.refusals = -t.pace.margin, now, 0, tally{}
	t.pace.hold = holding{began: now}
	t.pace.gate.level, t.pace.gate.at = min(t.pace.gate.level, -reserve*t.pace.rate), now
}

// turn ends a hold, or raises the gain of a push.
func (t *Table) turn(now time.Time) {
	d := now.Sub(t.pace.since)
	if t.pace.gain < 0 {
		if d < tableHold || t.pace.debt > 0 || t.pace.gate.none || !t.pace.doubts.trial.until.IsZero() {
			return
		}
		if t.pace.doubts.useless++; t.pace.hold.refused <= max(tableUseless,
			t.pace.doubts.before/tableLess)*t.pace.hold.units {
			t.pace.doubts.useless = 0
			t.pace.doubts.high = max(t.pace.doubts.high, t.pace.rate)
		}
		t.pace.margin = max(leastMargin, 0.9*t.pace.margin)
		t.pace.gain = min(usualGain*math.Pow(t.pace.best/t.pace.rate, 2), tableMost)
	} else {
		if d < tableStep {
			return
		}
		if t.pace.sent >= tableBound*t.pace.speed()*d.Seconds() {
			if t.pace.gain >= guessGain {
				t.pace.setRate(t.pace.speed())
			}
			t.pace.gain = min(2*t.pace.gain, tableMost)
		}
	}
	t.pace.since, t.pace.sent, t.pace.refusals = now, 0, tally{}
}

// earned returns the share of the accepted units that may be refused, more if the load once had a higher rate.
func (p *tablePace) earned() float64 {
	return min(allowed*math.Sqrt(p.best/p.rate), 4*allowed)
}

// end leaves the lanes to themselves.
func (t *Table) end(now time.Time) {
	t.on, t.watching.usual, t.watching.seen, t.watching.watched = false, t.pace.rate, 0, tally{}
}

// Unserved notes that partitions do not serve: until they do, refusals say nothing about a rate.
func (t *Table) Unserved(now time.Time) {
	if t.on {
		t.end(now)
	}
	t.watching.watched, t.watching.seen = tally{}, 0
}

// Trying reports whether a trial is running, to find out whether the table, not its partitions, limits the rate.
func (t *Table) Trying() bool { return t.on && !t.pace.doubts.trial.until.IsZero() }

// Rate returns the table's estimated rate in units per second, or 0 while the table does not limit.
func (t *Table) Rate() float64 {
	if !t.on {
		return 0
	}
	return t.pace.rate
}

// Limits reports whether batches have been held back lately.
func (t *Table) Limits(now time.Time) bool {
	return t.on && !t.pace.gate.held.IsZero() && now.Sub(t.pace.gate.held) < limitsFor
}

// lately holds the units accepted in each of the last milliseconds, regardless of the number of answers.
type lately struct {
	units []float64
	last  int64 // the newest millisecond
}

const latelyFor = 4 * time.Second

func (l *lately) add(met time.Time, units float64) {
	n := latelyFor.Milliseconds()
	if l.units == nil {
		l.units = make([]float64, n)
	}
	at := met.UnixMilli()
	if at > l.last {
		for i := max(l.last+1, at-n+1); i <= at; i++ {
			l.units[i%n] = 0
		}
		l.last = at
	}
	if at > l.last-n {
		l.units[at%n] += units
	}
}

func (l *lately) between(from, to time.Time) (units float64) {
	n := latelyFor.Milliseconds()
	for i := max(from.UnixMilli()+1, l.last-n+1); i <= min(to.UnixMilli(), l.last); i++ {
		units += l.units[i%n]
	}
	return units
}
