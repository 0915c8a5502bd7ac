package lanes

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/spill"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/ratelimit"
	"example.com/tsimport/shuffle"
	"example.com/tsimport/writer"
)

// linger is how long a partly filled batch waits for more rows while the input continues.
const linger = 250 * time.Millisecond

// Set holds a load's lanes and their rows, unsent ones in queues, others in the cutter. It belongs to the dispatcher.
type Set struct {
	all        []*lane
	Partitions *partitioner.Map
	Queues     *shuffle.Lanes
	Cutter     *partitioner.Cutter
	flights    *flights
	disk       *disk

	options  *Options
	ceilings *ceilings // limits over all lanes
	ready    []*lane   // lanes that were ready at the last choice
	sampled  time.Time // when the lanes were last sampled to find the slowest
	observed observed
	hearing  hearing
}

// Options configures how lanes send, and their limits.
type Options struct {
	*Config
	Order        plan.Order
	Timeout      time.Duration // time-out of a request
	Memory       plan.Shares
	Disk         *spill.Store       // holds spilled rows; if nil, none are spilled
	Checkpointer *keep.Checkpointer // nil if the load has no checkpoints
	Counts       *ledger.Counted
	Learnt       *writer.Size // limit of bodies, learnt from a gateway's refusals
	Indexes      int          // number of the table's secondary indexes
	// RowBytes is the number of bytes added to every row when it is sent. RowExtra, if not nil, returns more for one row.
	RowBytes int
	RowExtra func(table.Ref) int
	Leaves   func(*partitioner.Flight) error // called with a batch before it is sent; an error stops the load
	Free     func(*table.Block)              // takes back a block of final rows; may be nil
	Tuning   *Tuning
}

// Tuning lets tests change lanes. The zero Tuning changes nothing.
type Tuning struct {
	Pacer     func() Pacer // returns the pacer of a lane; nil means a ratelimit.Pacer
	Allowance int64        // rows that a lane may send until the next checkpoint; 0 means that it is computed
}

func (t *Tuning) newPacer(alone bool) Pacer {
	if t.Pacer != nil {
		return t.Pacer()
	}
	return ratelimit.NewPacer(ratelimit.PacerOptions{Alone: alone})
}

func New(m *partitioner.Map, o *Options) *Set {
	s := &Set{
		hearing: hearing{probes: 1}, Partitions: m, options: o,
		disk: &disk{store: o.Disk, jobs: make(chan *shuffle.Job, diskWorkers),
			done: make(chan *shuffle.Job, diskWorkers)},
		ceilings: newCeilings(o), flights: newFlights(o.Concurrency, o.Memory.InFlight, o.Timeout),
	}
	s.Queues = shuffle.New(m.Len(), shuffle.Options{Budget: o.Memory.Lanes, Store: o.Disk,
		Unordered: o.Order == plan.OrderNone, Free: o.Free})
	for i := range m.Len() {
		keys := m.Range(i)
		s.Queues.SetKeys(i, &keys)
		s.all = append(s.all, s.add(i, m))
	}
	s.Queues.SetIdle(m.Gap)
	return s
}

// CutBy sets how batches are cut, except for what lanes decide. o.Final and allWritten are called with final rows.
func (s *Set) CutBy(o partitioner.Options, allWritten func([]table.Ref)) {
	final := o.Final
	o.Lanes, o.Route = len(s.all), s.Partitions.Find
	o.Woken = func(i int) { s.all[i].turn.stale = true }
	o.Final = func(r table.Ref, end partitioner.End, out table.Outcome) {
		final(r, end, out)
		s.Queues.Final(r)
	}
	s.Cutter = partitioner.New(o)
	s.Cutter.OnWritten(func(rows []table.Ref) {
		allWritten(rows)
		s.Queues.AllFinal(rows)
	})
	s.share()
}

// Mark gives each lane the number that identifies its landings.
func (s *Set) Mark(slots []int) {
	for i, l := range s.all {
		l.slot = slots[i]
	}
}

func (s *Set) add(i int, m *partitioner.Map) *lane {
	l := newLane(i, s.Queues.Lane(i), s.options.Tuning.newPacer(m.Len() == 1), s.options.RetryFor)
	l.table, l.gap = m.Table(i), m.Gap(i)
	l.health.unknown.fresh = func() Pacer {
		p := s.options.Tuning.newPacer(len(s.all) == 1)
		p.SetMaxInFlight(s.mayFly())
		return p
	}
	if s.options.Checkpointer == nil {
		l.allowance.left = math.MaxInt64
	}
	return l
}

// share tells every lane how many requests it may have in flight, and how much memory its rows may take while they wait
// for another row of their key. Eight requests are enough for a lane among many, but a single lane may have all.
func (s *Set) share() {
	s.Cutter.LimitWaiting(s.options.Memory.Lanes / 4 / int64(s.Sending()))
	n := s.mayFly()
	for _, l := range s.all {
		l.pacer.SetMaxInFlight(n)
	}
}

func (s *Set) mayFly() int { return max(8, s.options.Concurrency/s.Sending()) }

// Sending returns the number of lanes that may send, at least one.
func (s *Set) Sending() (n int) {
	for _, l := range s.all {
		if !l.gap {
			n++
		}
	}
	return max(n, 1)
}

// Change notes that something has changed for all lanes.
func (s *Set) Change() {
	for _, l := range s.all {
		l.turn.stale = true
	}
}

// Empty reports whether no unfinished row is left.
func (s *Set) Empty() bool { return s.Unfinished() == 0 }

// ends reports that the last row of a lane has become final. It does so once, and not for lanes of earlier maps.
func (s *Set) ends(l *lane) bool {
	if l.turn.ended || l.away.requests > 0 || l.index >= len(s.all) || s.all[l.index] != l || l.queue.Rows() > 0 ||
		s.Cutter.Held(l.index) > 0 {
		return false
	}
	l.turn.ended = true
	return true
}

// Put puts a block into its lane. If the map has changed since, its rows are divided again.
func (s *Set) Put(i int, b *table.Block, under *partitioner.Map, now time.Time) {
	if under != s.Partitions {
		keys := under.Range(i)
		s.Queues.PushRouted(b, &keys, s.Partitions.Find)
		return
	}
	s.Queues.Push(i, b)
	s.all[i].turn.begin(now)
}

// Begin notes that rows have arrived in lanes.
func (s *Set) Begin(now time.Time) {
	for _, l := range s.all {
		if l.queue.Ready() > 0 || l.queue.More() {
			l.turn.begin(now)
		}
	}
}

// choose returns a lane that may send now, or nil and the time until one may. more means that the input continues.
func (s *Set) choose(now time.Time, more bool) (l *lane, next time.Duration) {
	s.ready, next = s.ready[:0], time.Minute
	more = more && !s.Queues.Full() && !s.options.FlushRequest.wanted()
	probe := s.mayProbe()
	s.observed.few = s.fewConnections()
	for _, l := range s.all {
		if s.ask(l, now, more); l.health.hung {
			l.turn.asks = l.turn.asks && probe && l.health.probing == 0
		}
		switch {
		case !l.turn.asks:
		case l.turn.at.After(now):
			next = min(next, l.turn.at.Sub(now))
		default:
			s.ready = append(s.ready, l)
		}
	}
	if len(s.ready) == 0 {
		return nil, next
	}
	if s.observed.few || s.ceilings.shared(now) {
		return s.longest(now), 0
	}
	return s.ready[rand.IntN(len(s.ready))], 0
}

// longest returns the ready lane with the most rows, or one that has waited too long. Under a common rate, a lane that
// has to wait for others would otherwise send its last rows alone, at the speed of its partition.
func (s *Set) longest(now time.Time) *lane {
	first := slices.MinFunc(s.ready, func(a, b *lane) int { return a.turn.lastSend.Compare(b.turn.lastSend) })
	if now.Sub(first.turn.lastSend) >= s.turn() {
		return first
	}
	rows := func(l *lane) int64 { return l.queue.Rows() + int64(s.Cutter.Held(l.index)) }
	return slices.MaxFunc(s.ready, func(a, b *lane) int { return cmp.Compare(rows(a), rows(b)) })
}

// lateRows is the minimum number of rows in a batch when answers are late but no rows are refused. If the link is the
// cause, headers cost as much as six short rows. If partitions have queues, these hold the same rows in any case.
const lateRows = 100.0

// lateBytes limits the bytes of these rows: if rows are long, headers matter little.
const lateBytes = 32 << 10

// lateBatch returns the minimum number of rows in the lane's batches when answers are late.
func (l *lane) lateBatch() float64 {
	if n := l.queue.Ready(); n > 0 {
		return min(lateRows, lateBytes/(float64(l.queue.Bytes())/float64(n)))
	}
	return 0
}

func (s *Set) ask(l *lane, now time.Time, more bool) {
	if !l.turn.stale && !l.health.hung && (!l.turn.asks || l.turn.at.After(now)) {
		return
	}
	l.turn.stale, l.turn.asks, l.turn.tableLimits = false, false, false
	if l.gap {
		return
	}
	rows, fresh := s.Cutter.Ready(l.index), 0
	if !s.Cutter.Stalled(l.index) {
		fresh = int(min(int64(l.queue.Ready()), l.allowance.left))
	}
	if rows += fresh; rows == 0 {
		return
	}
	if l.health.hung { // a probe is one row
		l.turn.units, l.turn.at, l.turn.paced, l.turn.asks = l.perRow, now, now, true
		l.turn.at = keep.Later(l.turn.at, l.health.notBefore)
		return
	}
	// Send a row at once when its predecessor is final, as lingering would only delay its key.
	urgent := fresh == 0 && s.Cutter.Promoted(l.index) > 0
	soon := !urgent && (more || l.queue.Coming())
	if soon || !urgent && l.queue.More() {
		l.turn.units, l.turn.at, l.turn.asks = l.pacer.Next(now, l.away.requests, l.perRow)
	} else {
		l.turn.units, l.turn.at, l.turn.asks = l.pacer.NextOf(now, l.away.requests, l.perRow, float64(rows)*l.perRow)
	}
	l.turn.paced = l.turn.at
	if l.turn.asks && !l.unserved() && s.ceilings.window.Late() &&
		(s.observed.throttled.IsZero() || now.Sub(s.observed.throttled) > throttledLately) {
		l.turn.units = max(l.turn.units, min(float64(rows), l.lateBatch())*l.perRow)
	}
	if l.turn.asks && s.observed.few && !l.unserved() {
		s.enlarge(l, now)
	}
	l.turn.at = keep.Later(l.turn.at, l.health.notBefore)
	if s.Cutter.Promoted(l.index) > 0 && l.fewKeys(s.Cutter.Ready(l.index), fresh, s.ceilings.batchRows()) {
		l.turn.at = keep.Later(l.turn.at, l.turn.lastSend.Add(linger))
	}
	if soon && rows < s.ceilings.wanted(l.table, l.turn.units, l.perRow) &&
		l.queue.Bytes() < int64(s.ceilings.batchBytes()) {
		l.turn.at = keep.Later(l.turn.at, l.turn.lastSend.Add(linger))
	}
}

// fewKeys reports whether a batch sent now would be small only because keys have rows in flight. When these land, as
// many rows can follow; if they were sent as these land, there would always be only a few in each request.
func (l *lane) fewKeys(ready, fresh, most int) bool {
	rows := ready + min(fresh, l.away.fresh)
	return 2*rows < min(most, rows+l.away.rows)
}

// batchUnits returns the approximate number of units in the lane's next batch.
func (s *Set) batchUnits(l *lane) float64 {
	rows := s.Cutter.Ready(l.index) + int(min(int64(l.queue.Ready()), l.allowance.left))
	return min(s.ceilings.batchUnits(l.table, l.turn.units), float64(min(rows, s.ceilings.batchRows()))*l.perRow)
}

func (l *lane) sent(now time.Time, f *partitioner.Flight) {
	l.away.requests++
	l.away.rows += len(f.Rows)
	l.turn.lastSend = now
	l.perRow += (float64(f.Units)/float64(len(f.Rows)) - l.perRow) / 8
	l.pacer.Sent(now, float64(f.Units))
}

// Stalled returns why the load must be given up, or nil. If only rows that fail even alone are left, it gives those up.
func (s *Set) Stalled(now time.Time, more bool) error {
	for _, l := range s.all {
		if !l.stalled(now) {
			continue
		}
		if more || l.queue.Ready() > 0 || l.queue.More() || !s.Cutter.GiveUp(l.index) {
			return &stalledError{fmt.Sprintf("no row%s was written for %v (--retry-for)", s.name(l.index), s.options.RetryFor),
				l.trouble.lastError}
		}
		l.trouble.patience.Progress(now)
	}
	return nil
}

// stalledError reports that a load has written no row for too long.
type stalledError struct{ text, answer string }

func (e *stalledError) Error() string { return e.text + "; last answer: " + e.answer }

// Unwrap returns the service's last answer, which tells whether it is useful to run the load again.
func (e *stalledError) Unwrap() error {
	code, message, _ := strings.Cut(e.answer, " ")
	return &tablestore.OtsError{Code: code, Message: message}
}

func (s *Set) lookAgain() time.Duration {
	next := time.Minute
	for _, l := range s.all {
		if l.trouble.stuck && l.trouble.patience.For > 0 {
			next = min(next, l.trouble.patience.LookEvery())
		}
	}
	return next
}

// served notes that a lane that was down serves again, so that the others may, too.
func (s *Set) served(now time.Time) {
	for _, l := range s.all {
		if l.unserved() {
			l.retry(now)
		}
	}
}

// LastError returns the service's last answer to a stuck lane, or "" if none is stuck.
func (s *Set) LastError() (text string) {
	for _, l := range s.all {
		if l.trouble.stuck {
			text = l.trouble.lastError
		}
	}
	return text
}

// FirstKey formats the first key value of a partition. It returns "" if there is none.
func FirstKey(m *partitioner.Map, i int) string {
	if v, ok := m.LowerValue(i); ok {
		return plan.ShowKey(v)
	}
	return ""
}

// name describes a partition by its key range, if there are several.
func (s *Set) name(i int) string {
	if len(s.all) == 1 {
		return ""
	}
	of := ""
	if t := s.Partitions.Table(i); t != "" {
		of = " of table " + t
	}
	from, to := cmp.Or(FirstKey(s.Partitions, i), "the first key"), "the last key"
	if i+1 < s.Partitions.Len() {
		to = cmp.Or(FirstKey(s.Partitions, i+1), to)
	}
	return of + " of the partition from " + from + " to " + to
}

// Unfinished returns the number of rows that have arrived and are not final.
func (s *Set) Unfinished() int64 { return s.Queues.Rows() + int64(s.Cutter.Remaining()) }
