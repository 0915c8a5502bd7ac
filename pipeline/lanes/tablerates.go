package lanes

import (
	"time"

	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/ratelimit"
)

// tableRates are what tables take from all their lanes together, by name. A load into one table has one, of no name.
type tableRates map[string]*tableRate

// tableRate is what one table takes, and what is said of that.
type tableRate struct {
	ratelimit.Table
	found  bool // a trial has shown that it is the table that limits, and no later one that it is not
	limits bool // the same, and it has held a batch back lately
}

func (t tableRates) of(name string) *tableRate {
	r, ok := t[name]
	if !ok {
		r = new(tableRate)
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

// look notes which tables limit. Lanes of one keep to rates of their own as well, and hardly above their share of the table's, so that
// which of both a lane waits for changes all the time, and says nothing.
func (t tableRates) look(now time.Time) {
	for _, r := range t {
		r.note(r.Rate() > 0, r.Trying(), r.Limits(now))
	}
}

// note takes whether there is a rate of the table, whether it is on trial, and whether it has held a batch back lately.
func (r *tableRate) note(on, trying, held bool) {
	if !trying || !on {
		r.found = on
	}
	r.limits = r.found && held
}

// word is for a lane that waits for the rate of its table: until a trial has shown that there is one it is the lane's own.
func (r *tableRate) word() bottleneck.Word {
	if r.found {
		return bottleneck.Table
	}
	return bottleneck.Partition
}

// landed takes an answer to a lane, and notes in it what its table refused: that says nothing of its partition.
func (t tableRates) landed(l *lane, sent, now time.Time, a *Answer) {
	p, ok := l.pacer.(*ratelimit.Pacer)
	switch {
	case !ok || a.units == 0:
	case l.health.refusing || l.unserved() || a.Unavailable > 0:
		t.of(l.table).Unserved(now)
	default:
		a.byTable = t.of(l.table).Answered(p, sent, now, a.units, a.Accepted) - a.Accepted
	}
}

// ended notes that a lane has no more rows.
func (t tableRates) ended(l *lane) {
	if p, ok := l.pacer.(*ratelimit.Pacer); ok {
		t.of(l.table).Ended(p)
	}
}
