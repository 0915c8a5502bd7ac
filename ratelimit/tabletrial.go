package ratelimit

import "time"

// trial finds out whether the table limits: every other lane may send more, while all lanes together send less.
type trial struct {
	until    time.Time // zero if no trial is running
	round    uint64
	favoured group
	others   group
}

// group counts the lanes favoured by a trial, or the others, and how many of them met their own limits.
type group struct{ lanes, refused int }

// inTrial counts a lane's units in a trial.
type inTrial struct {
	round          uint64
	favoured       bool
	units, refused float64
}

// met reports whether the lane has reached its own limit.
func (l *inTrial) met() bool { return l.refused > tableRefutes*l.units }

const (
	tableTrial   = 2 * time.Second
	tableFavour  = 1.3   // factor of a favoured lane's rate
	tableRefutes = 0.004 // a lane has met its own limit if more than this share of its units is refused
	tableActive  = 3 * time.Second
	leastShare   = 1.25 // a lane is raised to at least this many even shares
	mostShare    = 2.0  // and to at most this many, as large batches leave nothing for the others
)

func (t *Table) try(now time.Time) {
	t.pace.doubts.useless = 0
	t.begin(now)
	t.watching.round++
	t.pace.doubts.trial = trial{until: now.Add(tableTrial), round: t.watching.round}
}

// tried takes a lane's answer in a trial, and reports whether the trial has shown that the table does not limit.
func (t *Table) tried(p *Pacer, sent, now time.Time, units, accepted float64) bool {
	r, l := &t.pace.doubts.trial, &p.others.member.trial
	g := &r.others
	if l.round != r.round {
		*l = inTrial{round: r.round, favoured: r.favoured.lanes <= r.others.lanes}
		if l.favoured {
			g = &r.favoured
			if p.phase == inCruise {
				p.setRate(tableFavour * p.rate)
			}
		}
		g.lanes++
		return false
	}
	if l.favoured {
		g = &r.favoured
	}
	if sent.After(t.pace.hold.began.Add(tableSettles)) {
		before := l.met()
		l.units += units
		l.refused += max(0, units-accepted-p.evidence.noise*units)
		switch after := l.met(); {
		case after && !before:
			g.refused++
		case before && !after:
			g.refused--
		}
	}
	if now.Before(r.until) {
		return false
	}
	refuted := r.favoured.most() || r.others.most()
	t.pace.doubts.trial = trial{}
	return refuted
}

// most reports whether most of its lanes have met their own limits.
func (g *group) most() bool {
	return g.refused > 0 && float64(g.refused) >= tableLanes*float64(g.lanes)
}

// active counts the lanes that sent in this period of tableActive, and in the last.
type active struct {
	round     uint64
	began     time.Time
	now, last int
}

// lift raises a lane to somewhat more than its share of the rate: refusals before the limit was known were not its own.
func (t *Table) lift(p *Pacer, now time.Time) {
	a, m := &t.pace.active, &p.others.member
	if now.Sub(a.began) >= tableActive {
		*a = active{round: a.round + 1, began: now, last: a.now}
	}
	if m.active != a.round {
		m.active = a.round
		a.now++
	}
	if a.last == 0 || !t.pace.doubts.trial.until.IsZero() || p.phase != inCruise || t.pace.own(m, now) {
		return
	}
	share := t.pace.rate / float64(max(a.last, a.now))
	p.setRate(min(max(p.rate, leastShare*share), mostShare*share))
}
