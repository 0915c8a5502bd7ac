package lanes

import (
	"strings"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/ratelimit"
	"example.com/tsimport/shuffle"
)

// Pacer is a *ratelimit.Pacer, or a replacement in tests.
type Pacer interface {
	Next(now time.Time, inFlight int, perRow float64) (units float64, at time.Time, ok bool)
	NextOf(now time.Time, inFlight int, perRow, queued float64) (units float64, at time.Time, ok bool)
	Sent(now time.Time, units float64)
	Answered(sent, now time.Time, units, accepted float64)
	Unavailable(now time.Time)
	SetMaxInFlight(n int)
	Rate() float64
	State() string
}

// lane is what the load knows of a partition, besides its rows.
type lane struct {
	index  int
	table  string // name of the table, if the load has several
	gap    bool   // its rows wait for their table, so nothing can be sent
	slot   int    // number that identifies it in landings
	queue  *shuffle.Queue
	pacer  Pacer
	away   away
	perRow float64 // mean units of its rows

	turn      turn
	health    health
	trouble   trouble
	tally     tally
	backlog   backlog
	allowance allowance
}

type away struct {
	requests, rows int
	fresh          int // rows that the last batch took from the queue; its other rows had waited for one of their key
}

// turn says when the lane may send next, and how much, as far as is known.
type turn struct {
	begun       time.Time // when the lane's first row arrived
	ended       bool      // the lane's last row is final
	lastSend    time.Time
	stale       bool // something has changed since this was determined
	asks        bool // only the time at keeps the lane from sending
	at          time.Time
	paced       time.Time // what at would be by the pacer alone
	tableLimits bool      // at is when the table accepts more from all of its lanes together
	units       float64
}

func (t *turn) begin(now time.Time) {
	t.stale = true
	if t.begun.IsZero() {
		t.begun, t.lastSend = now, now // the first batch also waits for more rows
	}
}

// health is the state of the partition, judging by its recent answers.
type health struct {
	notBefore    time.Time
	down         bool // it did not serve the last answered request
	failures     int  // consecutive requests without any answer
	refusing     bool // the partition refuses everything because of an outage, not its capacity
	outages      ratelimit.Outages
	unknown      unknown
	hung         bool      // there has been no answer since an unanswered request was sent
	probing      int       // number of probes in flight
	lastAnswered time.Time // when the last answered request was sent
	took         float64   // mean seconds that answers take
}

// unknown describes a partition that has not accepted any row yet, which its pacer would take for a rate of zero.
type unknown struct {
	known   bool // it has accepted a row
	since   time.Time
	answers int
	fresh   func() Pacer // returns a Pacer without measurements; may be nil
}

const (
	unknownFor     = 2 * time.Second // a used-up bucket or window recovers sooner
	unknownAnswers = 3
)

// refused takes an answer that accepted nothing, and reports whether there is an outage.
func (u *unknown) refused(sent, now time.Time) (outage bool) {
	if u.known || u.fresh == nil {
		return false
	}
	if u.answers++; u.answers == 1 {
		u.since = sent
	}
	return u.answers >= unknownAnswers && now.Sub(u.since) >= unknownFor
}

// trouble tracks the time since a row was accepted.
type trouble struct {
	patience  ratelimit.Patience
	stuck     bool // a row has been refused since one became final
	tries     int  // number of answers since a row became final
	lastError string
}

// tally counts the final rows, and rows refused at any attempt.
type tally struct{ written, throttled, unavailable int64 }

func newLane(index int, queue *shuffle.Queue, pacer Pacer, retryFor time.Duration) *lane {
	return &lane{index: index, queue: queue, pacer: pacer, perRow: 1, away: away{fresh: table.MaxBatchRows},
		turn: turn{stale: true}, trouble: trouble{patience: ratelimit.Patience{For: retryFor}}}
}

// child returns the lane of a partition that was split from this one or has its keys, and inherits this lane's state.
func (l *lane) child(now time.Time, index int, queue *shuffle.Queue, split bool) *lane {
	pacer := l.pacer
	if own, ok := pacer.(*ratelimit.Pacer); ok && split {
		pacer = own.Child(now)
	}
	c := newLane(index, queue, pacer, l.trouble.patience.For)
	c.perRow, c.turn.lastSend, c.health.notBefore, c.health.down, c.health.hung, c.health.took = l.perRow, l.turn.lastSend,
		l.health.notBefore, l.health.down, l.health.hung, l.health.took
	c.health.unknown = unknown{known: l.health.unknown.known, fresh: l.health.unknown.fresh}
	if !split {
		c.health.outages, c.health.refusing = l.health.outages, l.health.refusing
	}
	return c
}

// takeOver takes over the former lanes' time without an accepted row: a change of the map must not extend patience.
func (l *lane) takeOver(from []*lane) {
	var best *lane
	for _, p := range from {
		if p.gap {
			continue
		}
		if !p.trouble.stuck {
			return
		}
		if best == nil || p.trouble.patience.Spent() < best.trouble.patience.Spent() {
			best = p
		}
	}
	if best != nil {
		l.trouble.stuck, l.trouble.tries, l.trouble.lastError = true, min(best.trouble.tries, leastTries-1),
			best.trouble.lastError
		l.trouble.patience.Inherit(&best.trouble.patience)
	}
}

// Answer sums up a flight's answer for its lane.
type Answer struct {
	units, Accepted     float64 // units of rows that were accepted or that their partition throttled; of the accepted ones
	flow                float64 // units of rows that the whole instance throttled
	byTable             float64 // units that the table refused, not the partition, as far as is known
	Rows                int
	Throttled           int // rows refused for capacity
	Unavailable, failed int // rows refused because the partition is not served; rows without an answer
	Final               int
	code                string // code of a row that was not accepted
}

func sum(f *partitioner.Flight) (a Answer) {
	a.Rows = len(f.Rows)
	if f.AllWritten {
		a.units, a.Accepted, a.Final = float64(f.Units), float64(f.Units), a.Rows
		return a
	}
	for i := range f.Outcomes {
		o := &f.Outcomes[i]
		units := float64(f.Rows[i].Row().Units())
		switch {
		case o.Fate == table.Written:
			a.units, a.Accepted = a.units+units, a.Accepted+units
			a.Final++
		case o.Fate == table.Refused:
			a.Final++
		case o.Throttled && client.InstanceThrottled(o.Code):
			a.flow += units
			a.Throttled++
		case o.Throttled:
			a.units += units
			a.Throttled++
		case o.Unavailable:
			a.Unavailable++
		default:
			a.failed++
		}
		if o.Fate == table.Again || o.Fate == table.Unknown {
			a.code = strings.TrimSpace(o.Code + " " + o.Message)
		}
	}
	return a
}

// hear tells the pacer what an answer says about the partition's capacity. An outage does not change the pacer's state.
func (l *lane) hear(sent, now time.Time, a Answer) {
	own, real := l.pacer.(*ratelimit.Pacer)
	if real && a.Accepted == 0 {
		if before, outage := l.health.outages.Refused(own, sent, now); outage {
			l.pacer, l.health.refusing = before, true
		} else if !l.health.refusing && l.health.unknown.refused(sent, now) {
			l.pacer, l.health.refusing = l.health.unknown.fresh(), true
		}
	}
	if l.health.refusing && a.Accepted == 0 {
		l.pacer.Unavailable(now)
		return
	}
	l.pacer.Answered(sent, now, a.units, a.Accepted+a.byTable)
	if real && a.Accepted > 0 {
		l.health.refusing, l.health.unknown.known = false, true
		l.health.outages.Accepted(own, a.Accepted)
	}
}

// stalled reports whether no row of the lane was accepted for RetryFor, although enough attempts were made.
func (l *lane) stalled(now time.Time) bool {
	return l.trouble.stuck && l.trouble.patience.Over(now) && l.trouble.tries >= leastTries
}

// leastTries is the number of answers without a final row that a lane needs before the load gives up.
const leastTries = 3

// cautious returns how many of rows to send in a request: few if whole requests fail, as one row may be the cause.
func (l *lane) cautious(rows int) int {
	return max(1, rows>>max(0, l.health.failures-leastTries))
}

// longestProbe is how long a lane waits at most before it probes a failed partition again.
const longestProbe = 2 * time.Second

func (l *lane) unserved() bool { return l.health.down || l.health.failures > 1 }

// retry probes a failed partition at once, because another one serves again.
func (l *lane) retry(now time.Time) {
	if l.health.notBefore.After(now) {
		l.health.notBefore, l.turn.stale = now, true
	}
	if p, ok := l.pacer.(*ratelimit.Pacer); ok {
		p.Probe(now)
		l.turn.stale = true
	}
}

// landed takes an answer into account, and reports whether the partitions may have changed.
func (l *lane) landed(sent, now time.Time, a Answer, backoff ratelimit.Backoff) (changed bool) {
	l.away.requests--
	l.away.rows -= a.Rows
	l.turn.stale = true
	l.tally.throttled += int64(a.Throttled)
	l.tally.unavailable += int64(a.Unavailable)
	if a.units > 0 {
		l.hear(sent, now, a)
	}
	switch {
	case a.Unavailable > 0:
		changed, l.health.down = true, true
		l.pacer.Unavailable(now)
	case a.units > 0 || a.Final > 0:
		changed = l.health.down
		l.health.down, l.health.failures = l.health.refusing, 0
	case a.failed == a.Rows:
		// There was no answer. The first time may be chance; the second means that the service is down.
		if l.health.failures++; l.health.failures > 1 {
			l.health.notBefore = now.Add(min(backoff.After(l.health.failures-1), longestProbe))
		}
	}
	l.tried(now, a)
	return changed
}

func (l *lane) tried(now time.Time, a Answer) {
	if a.Final > 0 {
		l.trouble.stuck = false
		return
	}
	if a.code != "" {
		l.trouble.lastError = a.code
		if !l.trouble.stuck {
			l.trouble.stuck, l.trouble.tries = true, 0
			l.trouble.patience.Progress(now)
		}
		l.trouble.tries++
	}
}
