package lanes

import (
	"time"

	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/ratelimit"
)

// tableRates has the rates of tables over all their lanes, by name. For a load into one table, the name is "".
type tableRates map[string]*tableRate

// tableRate is the rate of one table, and whether it limits.
type tableRate struct {
	ratelimit.Table
	found  bool // a trial has shown that the table limits, and no later one has refuted that
	limits bool // found, and the table has recently held a batch back
}

func (t tableRates) of(name string) *tableRate {
	r, ok := t[name]
	if !ok {
		r = new(tableRate)
		t[name] = r
	}
	return r
}

// shared reports whether one rate limits all lanes.
func (t tableRates) shared(now time.Time) bool {
	if len(t) != 1 {
		return false
	}
	for _, r := range t {
		return r.Limits(now) && !r.Trying()
	}
	return false
}

// look notes which tables limit. A lane's own wait shows nothing, as its rate is barely above its share of the table's.
func (t tableRates) look(now time.Time) {
	for _, r := range t {
		r.note(r.Rate() > 0, r.Trying(), r.Limits(now))
	}
}

// note notes whether the table has a rate, whether that is on trial, and whether it has recently held back a batch.
func (r *tableRate) note(on, trying, held bool) {
	if !trying || !on {
		r.found = on
	}
	r.limits = r.found && held
}

// word returns the limit of a lane that waits for its table's rate: the partition, until a trial confirms that rate.
func (r *tableRate) word() bottleneck.Word {
	if r.found {
		return bottleneck.Table
	}
	return bottleneck.Partition
}

// landed takes a lane's answer. It notes in it the units that the table refused, which say nothing about the partition.
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

func (t tableRates) ended(l *lane) {
	if p, ok := l.pacer.(*ratelimit.Pacer); ok {
		t.of(l.table).Ended(p)
	}
}
