package pipeline

import (
	"time"

	"tsimport/ratelimit"
)

// tableRates are what tables take from all their lanes together, by name. A load into one table has one, of no name.
type tableRates map[string]*ratelimit.Table

func (t tableRates) of(name string) *ratelimit.Table {
	r, ok := t[name]
	if !ok {
		r = new(ratelimit.Table)
		t[name] = r
	}
	return r
}

// shared reports whether all lanes are held to one rate.
func (t tableRates) shared(now time.Time) bool {
	if len(t) != 1 {
		return false
	}
	for _, r := range t {
		return r.Limits(now) && !r.Trying()
	}
	return false
}

// wait returns the time until a lane's table takes a batch of so many units.
func (t tableRates) wait(l *lane, now time.Time, units float64) time.Duration {
	return t.of(l.table).Next(now, units).Sub(now)
}

// landed takes an answer to a lane, and notes in it what its table refused: that says nothing of its partition.
func (t tableRates) landed(l *lane, sent, now time.Time, a *answer) {
	p, ok := l.pacer.(*ratelimit.Pacer)
	switch {
	case !ok || a.units == 0:
	case l.refusing || l.unserved() || a.unavailable > 0:
		t.of(l.table).Unserved(now)
	default:
		a.byTable = t.of(l.table).Answered(p, sent, now, a.units, a.accepted) - a.accepted
	}
}

// ended notes that a lane has no more rows.
func (t tableRates) ended(l *lane) {
	if p, ok := l.pacer.(*ratelimit.Pacer); ok {
		t.of(l.table).Ended(p)
	}
}
