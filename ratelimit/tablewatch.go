package ratelimit

import (
	"math"
	"time"
)

// tableWatch looks for a limit of the table.
type tableWatch struct {
	began   time.Time // the first answer
	watched tally
	seen    float64   // refusals beyond what a lane causes alone, in most lanes
	usual   float64   // maximum units a second accepted lately
	last    float64   // the same, in the tally before
	until   time.Time // not again before
	again   time.Duration
	round   uint64  // of tallies
	freed   float64 // units a second of lanes without rows
	told    int     // times that others were told of it
}

// tally counts the units sent, and the lanes that were refused something.
type tally struct {
	round                    uint64 // 0 is none
	since                    time.Time
	units, accepted, refused float64
	lanes, refusing          int
	most                     float64 // refused of one lane
	noise                    float64 // refused, as far as lanes know
	far                      float64 // units from lanes that are far away
}

// member is a Table's entry of a lane.
type member struct {
	watched, refusals inTally
	trial             inTrial
	told              int       // the last that it was told of
	active            uint64    // the last round in which it was sent to
	own               time.Time // when a limit of its own refused it
}

// inTally is a lane's units in a tally.
type inTally struct {
	round   uint64
	refused float64
}

const (
	tableStart   = 4 * time.Second // until lanes know their rates
	tableLooks   = 2 * time.Second
	tableCounts  = 1000 // rows at least
	tableRefused = 0.02 // of the rows: more than of lanes that keep to their own rates
	tableLanes   = 0.5  // of the lanes are refused
	tableSeen    = 0.04 // excess in all
	tableUsual   = 0.9  // of the usual rate is accepted, or the table does not refuse
	tableFades   = 0.995
	tableSteady  = 0.07 // the accepted rate changes less if the table limits
	tableFar     = 0.08 // seconds: from further away refusals come too late
	tableFreed   = 0.1  // of the usual rate is free: others may take it
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

// Ended notes that a lane has no more rows. Under a limit of the table, or a shared one, others may have its share.
func (t *Table) Ended(p *Pacer) {
	if t.watching.freed += max(p.rate, p.evidence.delivery.most()); t.watching.freed >= tableFreed*t.watching.usual {
		t.watching.freed = 0
		t.watching.told++
	}
}

// seekFreed tells a lane once that others have ended.
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
		accepted = units // the lane knows
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
