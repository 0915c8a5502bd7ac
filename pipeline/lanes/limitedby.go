package lanes

import (
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
)

// Limits describes circumstances outside the lanes that may hold them up.
type Limits struct {
	Blocked bottleneck.Word // what blocks a batch that could be sent, or None
	Reading bool            // more rows may arrive
	Stopped bool            // no more batches are cut
}

// limitEveryLane limits the cost of examining the lanes: a lane takes 0.1 µs.
const (
	limitEvery     = time.Millisecond
	limitEveryLane = 10 * time.Microsecond
)

// LimitEvery returns the interval at which the load's limit is determined.
func (s *Set) LimitEvery() time.Duration {
	return max(limitEvery, limitEveryLane*time.Duration(len(s.all)))
}

// LimitedBy returns the load's limit, and whether processors may be the cause instead, as late answers slow lanes, too.
func (s *Set) LimitedBy(now time.Time, m Limits) (word bottleneck.Word, unsure bool) {
	if m.Stopped {
		if s.flights.flying() > 0 && !s.flights.silent(now) {
			return bottleneck.Link, false
		}
		return bottleneck.Outage, false // unanswered attempts may still be applied
	}
	s.ceilings.tables.look(now)
	m.Reading = m.Reading && !s.Queues.Saturated()
	word = s.heldBy(now, m)
	if word == bottleneck.Partition || word == bottleneck.Index {
		unsure = s.observed.throttled.IsZero() || now.Sub(s.observed.throttled) > throttledLately
		if unsure && s.ceilings.window.Bound(now) {
			word = bottleneck.Link // a busy link makes answers late, which makes lanes slow
		} else if s.observed.throttled.IsZero() {
			return bottleneck.None, false // partitions that have refused nothing are not known to be full
		}
	}
	if word == bottleneck.Link && s.flights.silent(now) {
		return bottleneck.Outage, false
	}
	return word, unsure
}

// throttledLately is how long after a refusal for capacity the service is certain to limit the load.
const throttledLately = 10 * time.Second

// heldBy returns what most lanes with rows wait for. While rows arrive, only lanes with many rows count.
func (s *Set) heldBy(now time.Time, m Limits) bottleneck.Word {
	var held [bottleneck.Outage + 1]int
	few, used := bottleneck.None, 0
	for i, l := range s.all {
		word, many := s.holds(i, l, now, &m)
		if !l.turn.begun.IsZero() {
			used++
		}
		switch {
		case word == bottleneck.None:
		case many || !m.Reading:
			held[word]++
		default:
			few = word
		}
	}
	if m.Blocked != bottleneck.None && held[m.Blocked] > 0 {
		return m.Blocked // a batch could be sent otherwise
	}
	most := bottleneck.None
	for _, w := range []bottleneck.Word{bottleneck.Outage, bottleneck.Table, bottleneck.Partition, bottleneck.Disk,
		bottleneck.Link, bottleneck.Key} {
		if held[w] > held[most] {
			most = w
		}
	}
	switch {
	case most == bottleneck.Partition && s.options.Indexes > 0 && 2*held[most] >= used:
		return bottleneck.Index // indexes reduce the capacity everywhere, not in one partition
	case most != bottleneck.None:
		return most
	case m.Reading:
		return bottleneck.Reader
	case s.disk.busy > 0:
		return bottleneck.Disk
	case few != bottleneck.None:
		return few
	}
	return bottleneck.Link // only the last answers are missing
}

// holds returns what a lane's rows wait for, or None, and whether the lane has many rows.
func (s *Set) holds(i int, l *lane, now time.Time, m *Limits) (word bottleneck.Word, many bool) {
	memory, again := l.queue.Ready(), s.Cutter.Ready(i)
	rows := again
	if !s.Cutter.Stalled(i) {
		rows += int(min(int64(memory), l.allowance.left))
	}
	many = memory+again >= s.ceilings.batchRows() || l.queue.Bytes() >= int64(s.ceilings.batchBytes())
	switch {
	case l.gap:
		return ifAny(memory > 0 || l.queue.More(), bottleneck.Table), true
	case rows == 0 && memory == 0 && l.queue.More():
		return bottleneck.Disk, true
	case rows == 0 && memory > 0 && l.allowance.left <= 0:
		return bottleneck.Disk, true // until the next checkpoint
	case rows == 0 && l.away.requests > 0 && s.Cutter.Waiting(i) > 0:
		return bottleneck.Key, many || s.Cutter.Waiting(i) >= s.ceilings.batchRows()
	case rows == 0 && l.away.requests > 0:
		return ifAny(memory > 0, bottleneck.Link), many
	case rows == 0:
		return ifAny(s.Cutter.Held(i) > 0, bottleneck.Outage), true
	case l.health.down || l.health.notBefore.After(now):
		return bottleneck.Outage, true
	case l.turn.stale || l.turn.asks && !l.turn.at.After(now):
		return m.Blocked, many || m.Blocked != bottleneck.Link
	case !l.turn.asks:
		return bottleneck.Link, many
	case l.turn.tableLimits && l.turn.at.After(now):
		return s.ceilings.tables.of(l.table).word(), many
	case l.turn.paced.After(now):
		if rate := l.pacer.Rate(); rate > 0 {
			many = many || float64(memory+again)*l.perRow >= rate*manySeconds
		}
		if s.ceilings.tables.of(l.table).limits {
			return bottleneck.Table, many // its turn is later, but it would wait for the table anyway
		}
		return bottleneck.Partition, many
	}
	return bottleneck.None, false // the lane waits for more rows
}

// manySeconds is how many seconds its rows must last, at its rate, for a lane to count as held back by its partition.
const manySeconds = 0.25

func ifAny(any bool, w bottleneck.Word) bottleneck.Word {
	if any {
		return w
	}
	return bottleneck.None
}

// limitedQueue is a lane's queue, limited to the rows that the lane may send until the next checkpoint.
type limitedQueue struct {
	lane         *lane
	checkpointer *keep.Checkpointer // nil if the load has no checkpoints
	report       *ledger.ReportAttempts
}

func (g limitedQueue) Front() (table.Ref, bool) {
	if g.lane.allowance.left <= 0 {
		return table.Ref{}, false
	}
	return g.lane.queue.Front()
}

func (g limitedQueue) Advance() {
	if g.checkpointer != nil && g.checkpointer.Resumes() {
		if r, ok := g.lane.queue.Front(); ok && g.checkpointer.Leaves(r) {
			g.report.Replayed++
		}
	}
	g.lane.queue.Advance()
	if g.checkpointer != nil && g.lane.allowance.spend() {
		g.checkpointer.Waits()
	}
}
