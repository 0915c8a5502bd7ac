package ratelimit

import (
	"math"
	"time"
)

// tableWatch holds the evidence for a limit of the table.
type tableWatch struct {
	began   time.Time // time of the first answer
	watched tally
	seen    float64   // sum of refused shares beyond those that lanes at their own rates cause
	usual   float64   // recent maximum of accepted units per second
	last    float64   // accepted units per second in the previous tally
	until   time.Time // no new search before this time
	again   time.Duration
	round   uint64  // number of the latest tally
	freed   float64 // units per second freed by ended lanes, of which the others have not been told
	told    int     // number of times that the others were told of freed capacity
}

// tally counts the units sent, and the lanes that sent and that were refused rows.
type tally struct {
	round                    uint64 // 0 means none
	since                    time.Time
	units, accepted, refused float64
	lanes, refusing          int
	most                     float64 // units refused in the lane with the most refusals
	noise                    float64 // expected refusals without cause
	far                      float64 // units from lanes that are far away
}

// member is a Table's entry for a lane.
type member struct {
	watched, refusals inTally
	trial             inTrial
	told              int       // value of tableWatch.told when the lane last sought freed capacity
	active            uint64    // the last round in which the lane sent
	own               time.Time // when its own limit last refused it
}

// inTally counts a lane's refused units in a tally.
type inTally struct {
	round   uint64
	refused float64
}

const (
	tableStart   = 4 * time.Second // time for lanes to find their rates
	tableLooks   = 2 * time.Second
	tableCounts  = 1000 // minimum rows of a tally
	tableRefused = 0.02 // share of rows refused that lanes at their own rates do not reach
	tableLanes   = 0.5  // share of lanes that must be refused
	tableSeen    = 0.04 // summed excess over tableRefused that shows a limit
	tableUsual   = 0.9  // at least this share of the usual rate is accepted if the table limits
	tableFades   = 0.995
	tableSteady  = 0.07 // the accepted rate changes by at most this share if the table limits
	tableFar     = 0.08 // refusals arrive too late if the round trip takes more seconds than this
	tableFreed   = 0.1  // others are told of freed capacity from this share of the usual rate on
)

func (t *tally) add(m *inTally, units, accepted, noise float64) {
	if m.round != t.round {
		*m = inTally{round: t.round}
		t.lanes++
	}
	t.units += units
	t.accepted += accepted
	t.noise += noise * units
	if refused := units - accepted; refused > 0 {
		if m.refused == 0 {
			t.refusing++
		}
		m.refused += refused
		t.refused += refused
		t.most = max(t.most, m.refused)
	}
}

// everywhere reports whether most lanes were refused.
func (t *tally) everywhere() bool {
	return t.lanes > 1 && t.refusing >= min(3, t.lanes) && float64(t.refusing) >= tableLanes*float64(t.lanes) &&
		t.refused-t.most-t.noise > tableRefused/2*t.units
}

func (t *Table) tally(now time.Time) tally {
	t.watching.round++
	return tally{round: t.watching.round, since: now}
}

// Ended notes that a lane has no more rows. Under a limit of the table or a shared limit, others may take its share.
func (t *Table) Ended(p *Pacer) {
	if t.watching.freed += max(p.rate, p.evidence.delivery.most()); t.watching.freed >= tableFreed*t.watching.usual {
		t.watching.freed = 0
		t.watching.told++
	}
}

// seekFreed tells a lane once that other lanes have freed capacity.
func (t *Table) seekFreed(p *Pacer, now time.Time) {
	if m := &p.others.member; m.told != t.watching.told {
		m.told = t.watching.told
		p.seekFreed(now)
	}
}

func (t *Table) watch(p *Pacer, now time.Time, units, accepted float64) {
	if now.Before(t.watching.until) || now.Sub(t.watching.began) < tableStart {
		return
	}
	if p.others.inFlight.on {
		accepted = units // the lane knows the cause
	}
	w := &t.watching.watched
	if w.round == 0 {
		*w = t.tally(now)
	}
	w.add(&p.others.member.watched, units, accepted, p.evidence.noise)
	if p.line.rtt > tableFar {
		w.far += units
	}
	took := now.Sub(w.since)
	if took < tableLooks || w.units < tableCounts*p.perRow {
		return
	}
	much := (w.refused - w.most - w.noise) / w.units
	if w.everywhere() || much < tableRefused {
		t.watching.seen = min(max(0, t.watching.seen+much-tableRefused), 2*tableSeen)
	}
	rate := w.accepted / took.Seconds()
	steady := math.Abs(rate-t.watching.last) <= tableSteady*rate
	t.watching.usual, t.watching.last = max(tableFades*t.watching.usual, rate), rate
	if steady && t.watching.seen >= tableSeen && much >= tableRefused && rate >= tableUsual*t.watching.usual &&
		w.far < w.units/2 {
		t.on, t.watching.seen = true, 0
		t.pace = tablePace{gate: gate{held: now}, doubts: doubts{before: (w.refused - w.noise) / w.units}}
		t.pace.setRate(rate)
		t.try(now)
	}
	*w = tally{}
}
