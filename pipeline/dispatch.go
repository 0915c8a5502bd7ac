package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"tsimport/internal/table"
	"tsimport/partitioner"
	"tsimport/pipeline/intake"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/rundir"
	"tsimport/ratelimit"
	"tsimport/shuffle"
	"tsimport/writer"
)

// linger is how long a batch that is not full waits for more rows while the input goes on.
const linger = 250 * time.Millisecond

// requestCopies is how often the rows of a request are in memory while it is sent: as a message and in buffers.
const requestCopies = 3

// flight is a batch of one lane on its way.
type flight struct {
	partitioner.Flight
	lane  *lane
	table string    // among several
	bytes int64     // of memory, beside the blocks
	until time.Time // after which it must not be sent; zero is never
}

// result is a flight that has come back.
type result struct {
	flight     *flight
	sent, done time.Time
	stats      writer.Stats
	err        error
}

// errLimit ends a load whose rows are bad.
var errLimit = errors.New("too many rejected rows")

// dispatcher is where blocks become batches and outcomes become the ledger. It runs in one goroutine, which alone touches
// the lanes, their queues, the cutter, the run folder and the report.
type dispatcher struct {
	cfg      *Config
	hooks    *hooks
	folder   *rundir.Folder
	report   *Report
	shares   plan.Shares
	stopRead context.CancelFunc

	partitions *partitioner.Map
	lanes      []*lane
	queues     *shuffle.Lanes
	cutter     *partitioner.Cutter
	hot        *partitioner.HotKeys // of rows that are final; of a dry run, of all
	crowd      *crowd
	survey     *surveyor
	ids        *tableIDs
	disk       *disk
	intake     *intake.Flow
	room       func() int // requests that may be under way
	extras     *extras
	tables     *tableLedger // nil if there is one table
	archive    *archive     // nil if nothing is archived
	record     *recorder

	splits   <-chan intake.Handed // nil once the input is complete
	flights  chan *flight
	results  chan result
	idle     []*flight // one for each free worker
	flying   int
	inFlight int64 // bytes of memory
	ready    []*lane

	rows, units, bytes *ratelimit.Bucket // ceilings over all lanes

	readingWaits, sendingWaits bool // for memory

	sampled time.Time // when the lanes were last looked at to find the slowest

	keeper *keeper   // nil if nothing is kept: of a dry run
	ended  bool      // nothing is sent any more
	hold   time.Time // until then nothing is sent
	// suspectUntil is until when what the attempt before has sent may be applied.
	suspectUntil time.Time

	inputErr error // why the input could not be read to its end; what came before it is loaded
	stop     error // why no further batch is cut; nil while the load goes on
	halted   context.Context
	endAll   context.CancelFunc // of halted
	dryRows  int64              // rows of a dry run
}

// ceilingBurst is how far ahead the ceilings let a load run.
const ceilingBurst = 100 * time.Millisecond

func newDispatcher(cfg *Config, h *hooks, folder *rundir.Folder, report *Report, stopRead context.CancelFunc, in *intake.Flow, x *extras, survey *surveyor, disk *disk, from *origin) *dispatcher {
	m := survey.current.Load()
	w := &cfg.Write
	d := &dispatcher{
		cfg: cfg, hooks: h, folder: folder, report: report, shares: plan.DivideMemory(cfg.Limits.Memory), stopRead: stopRead,
		partitions: m, survey: survey, ids: from.ids, disk: disk, extras: x, intake: in, splits: in.Splits(),
		rows:  ratelimit.NewBucket(w.Rates.MaxRows, ceilingBurst),
		units: ratelimit.NewBucket(w.Rates.MaxWCU, ceilingBurst),
		bytes: ratelimit.NewBucket(w.Rates.MaxBytes, ceilingBurst),
		hold:  from.hold, suspectUntil: from.suspectUntil,
		room: func() int { return math.MaxInt },
	}
	if x.doubts != nil && w.Marks.LookFirst {
		// What the load before has sent may be applied for that long, and a row must not be looked for before.
		if until := time.Now().Add(w.Settle); until.After(d.hold) {
			d.hold = until
			cfg.Watch.Progress.Settling.Store(until.UnixMilli())
		}
	}
	d.halted, d.endAll = context.WithCancel(context.Background())
	d.queues = shuffle.New(m.Len(), shuffle.Options{Budget: d.shares.Lanes, Store: disk.store, Unordered: w.Order == plan.OrderNone})
	for i := range m.Len() {
		keys := m.Range(i)
		d.queues.SetKeys(i, &keys)
		d.lanes = append(d.lanes, newLane(i, d.queues.Lane(i), h.newPacer(w, m.Len() == 1), w.RetryFor))
		d.lanes[i].table, d.lanes[i].gap = m.Table(i), m.Gap(i)
	}
	d.queues.SetIdle(m.Gap)
	if m.Several() {
		d.tables = newTableLedger(cfg.Limits.MaxTables)
	}
	d.hot, d.crowd = partitioner.NewHotKeys(x.key[0].Type), newCrowd(x.key[0].Type)
	d.record = newRecorder(report)
	d.record.recut(d.lanes, m)
	settle, suspectUntil := w.Settle, from.suspectUntil
	if x.Increments != nil {
		settle, suspectUntil = 0, time.Time{} // an attempt that is applied late changes nothing
	}
	cut := partitioner.Options{
		Unordered: w.Order == plan.OrderNone,
		Supersede: w.Order == plan.LastWins && w.Mode == table.Put && w.Condition == table.Ignore && x.AutoIncrement == nil,
		Settle:    settle, SettleFirst: x.doubts != nil, Repeated: x.doubts != nil && w.Marks.LookFirst,
		Deletes: w.DeleteNull, SuspectUntil: suspectUntil,
		Backoff: w.Backoff.After,
		Lanes:   m.Len(),
		Route:   m.Find,
		Woken:   func(i int) { d.lanes[i].stale = true },
		Final:   d.final,
	}
	if x.stamps != nil {
		cut.Stamps = x.stamps
	}
	d.cutter = partitioner.New(cut)
	d.flights = make(chan *flight, w.Concurrency)
	d.results = make(chan result, w.Concurrency)
	for range w.Concurrency {
		d.idle = append(d.idle, new(flight))
	}
	d.shareFlights()
	return d
}

// shareFlights tells every lane how many requests it may have in flight: eight suffice for a lane among many, but one lane
// alone may have all. And how much memory rows may hold that wait behind one of their key.
func (d *dispatcher) shareFlights() {
	n := d.sending()
	d.cutter.LimitWaiting(d.shares.Lanes / 4 / int64(n))
	for _, l := range d.lanes {
		l.pacer.SetMaxInFlight(max(8, d.cfg.Write.Concurrency/n))
	}
}

// sending is how many lanes may send, at least one.
func (d *dispatcher) sending() (n int) {
	for _, l := range d.lanes {
		if !l.gap {
			n++
		}
	}
	return max(n, 1)
}

// run returns nil when every row is final, or why it stopped earlier. It returns only when no request is under way, and
// closes flights so that the workers end.
func (d *dispatcher) run(ctx context.Context) error {
	defer close(d.flights)
	defer close(d.disk.jobs)
	defer d.endAll()
	saves := d.saves()
	defer d.stopSaving()
	drain := d.cfg.Drain.Done()
	for {
		now := time.Now()
		d.cutter.Wake(now)
		next := time.Minute
		d.keep(now)
		if d.stop == nil {
			next = d.dispatch(now)
			d.checkPatience(now)
		}
		if d.stop == nil {
			d.startJobs(now)
			d.tellQueued()
		}
		if d.finished(now) {
			if d.stop == nil {
				return d.inputErr
			}
			return d.stop
		}
		splits := d.splits
		if d.stop != nil || d.queues.Full() || d.queues.Fed() || d.archive.waits(d.keeper) {
			splits = nil
		}
		d.countWaits(d.splits != nil && d.stop == nil && d.queues.Full())
		timer := time.NewTimer(d.nextEvent(now, next))
		select {
		case h, ok := <-splits:
			switch {
			case !ok:
				d.inputEnds()
			case h.Err != nil:
				d.inputErr = h.Err
			default:
				d.take(h.Parsed)
			}
		case r := <-d.results:
			d.landed(r)
		case j := <-d.disk.done:
			d.jobDone(j)
		case s := <-saves:
			d.kept(s)
		case m := <-d.survey.maps:
			d.recut(time.Now(), m)
		case err := <-d.survey.fatal:
			d.halt(err)
		case ask := <-d.cfg.Watch.Monitor.asks:
			ask <- d.state(time.Now())
		case <-drain:
			drain = nil
			d.halt(context.Cause(d.cfg.Drain))
		case <-ctx.Done():
			// Requests end with the context; wait for their workers, then leave.
			timer.Stop()
			d.halt(context.Cause(ctx))
			d.abandon()
			return d.stop
		case <-timer.C:
		}
		timer.Stop()
	}
}

// countWaits notes when reading or sending begins to wait for memory.
func (d *dispatcher) countWaits(reading bool) {
	sending := len(d.idle) > 0 && d.flying > 0 && d.inFlight >= d.shares.InFlight
	if reading && !d.readingWaits {
		d.report.ReadWaits++
	}
	if sending && !d.sendingWaits {
		d.report.SendWaits++
	}
	d.readingWaits, d.sendingWaits = reading, sending
}

// abandon waits for what is under way and starts nothing more.
func (d *dispatcher) abandon() {
	for d.flying > 0 || d.disk.busy > 0 {
		select {
		case r := <-d.results:
			d.landed(r)
		case j := <-d.disk.done:
			d.jobDone(j)
		}
	}
}

// halt stops reading and cutting; the first cause stays.
func (d *dispatcher) halt(cause error) {
	if d.stop == nil {
		d.stop = cause
	}
	d.endAll()
	d.stopRead()
}

// inputEnds notes that there are no more splits: lanes need not wait for more rows.
func (d *dispatcher) inputEnds() {
	d.splits = nil
	d.warnOfCrowd(true)
	for _, l := range d.lanes {
		l.stale = true
	}
}

// finished reports whether there is nothing left to do or to wait for.
func (d *dispatcher) finished(now time.Time) bool {
	if d.flying > 0 || d.disk.busy > 0 {
		return false
	}
	if d.stop == nil && (d.splits != nil || d.queues.Rows() > 0 || d.cutter.Remaining() > 0) {
		return false
	}
	// An attempt that may still be applied could undo what a later run writes: even a stopped load waits for it,
	// unless the user insists (then ctx ends).
	until, unsettled := d.cutter.Unsettled(now)
	if unsettled {
		d.cfg.Watch.Progress.Settling.Store(until.UnixMilli())
	}
	return !unsettled
}

// nextEvent returns the time until something is due without an event coming in; next is when a lane may send.
func (d *dispatcher) nextEvent(now time.Time, next time.Duration) time.Duration {
	if wait, ok := d.cutter.Wait(now); ok && d.stop == nil {
		next = min(next, wait)
	}
	if until, ok := d.cutter.Unsettled(now); ok {
		next = min(next, until.Sub(now))
	}
	if d.queues.DiskFull() && d.queues.Full() {
		next = min(next, diskAgain)
	}
	next = min(next, d.keeper.due(now), d.lookAgain())
	return max(next, 100*time.Microsecond)
}

// lookAgain returns how often patience has to be looked at.
func (d *dispatcher) lookAgain() time.Duration {
	next := time.Minute
	for _, l := range d.lanes {
		if l.stuck && l.patience.For > 0 {
			next = min(next, l.patience.LookEvery())
		}
	}
	if d.keeper != nil && d.stop == nil {
		next = min(next, d.keeper.patience.LookEvery())
	}
	return next
}

// dispatch hands batches of lanes that may send to free workers, in random turns. It returns the time until another lane
// may send.
func (d *dispatcher) dispatch(now time.Time) (next time.Duration) {
	if wait := max(d.keeper.mayWait(now), d.hold.Sub(now)); wait > 0 {
		return wait
	}
	next = time.Minute
	for len(d.idle) > 0 && d.flying < d.room() && (d.flying == 0 || d.inFlight < d.shares.InFlight) {
		if wait := max(d.rows.Wait(now), d.units.Wait(now), d.bytes.Wait(now)); wait > 0 {
			return wait
		}
		d.ready = d.ready[:0]
		next = time.Minute
		for _, l := range d.lanes {
			d.ask(l, now)
			switch {
			case !l.asks:
			case l.at.After(now):
				next = min(next, l.at.Sub(now))
			default:
				d.ready = append(d.ready, l)
			}
		}
		if len(d.ready) == 0 {
			return next
		}
		l := d.ready[rand.IntN(len(d.ready))]
		d.cut(l, now)
	}
	return time.Minute // until a worker is free
}

// ask finds out when the lane may send, and how much.
func (d *dispatcher) ask(l *lane, now time.Time) {
	if !l.stale && (!l.asks || l.at.After(now)) {
		return
	}
	l.stale, l.asks = false, false
	if l.gap {
		return
	}
	rows, fresh := d.cutter.Ready(l.index), 0
	if !d.cutter.Stalled(l.index) {
		fresh = int(min(int64(l.queue.Ready()), l.left))
	}
	if rows += fresh; rows == 0 {
		return
	}
	// Rows whose turn has come because the row of their key before them is final wait for nobody: their key would get on no
	// faster than the lane lingers.
	urgent := fresh == 0 && d.cutter.Promoted(l.index) > 0
	soon := !urgent && (d.splits != nil && !d.queues.Full() || l.queue.Coming())
	if soon || !urgent && l.queue.More() {
		l.units, l.at, l.asks = l.pacer.Next(now, l.inFlight, l.perRow)
	} else {
		l.units, l.at, l.asks = l.pacer.NextOf(now, l.inFlight, l.perRow, float64(rows)*l.perRow)
	}
	if l.notBefore.After(l.at) {
		l.at = l.notBefore
	}
	if soon && rows < d.wanted(l) && l.queue.Bytes() < int64(d.batchBytes()) {
		if t := l.lastSend.Add(linger); t.After(l.at) {
			l.at = t
		}
	}
}

// cut hands a batch of the lane to a worker.
func (d *dispatcher) cut(l *lane, now time.Time) {
	f := d.idle[len(d.idle)-1]
	l.stale = true
	f.MaxRows, f.MaxBytes = l.cautious(d.underCeilings(d.batchRows())), d.batchBytes()
	f.RowExtra, f.Extra = d.extras.rowBytes, d.extras.rowExtra
	for !d.cutter.Cut(now, l.index, gate{d, l}, &f.Flight, d.unitsUnderCeilings(l.units)) {
		if l.queue.Ready() == 0 || l.left <= 0 || d.cutter.Stalled(l.index) {
			return // all fresh rows wait for rows of their key
		}
	}
	d.idle = d.idle[:len(d.idle)-1]
	f.lane, f.table, f.until = l, l.table, d.keeper.sendUntil()
	f.bytes = int64(f.Size()) * requestCopies
	l.inFlight++
	l.lastSend = now
	l.perRow += (float64(f.Units)/float64(len(f.Rows)) - l.perRow) / 8
	l.pacer.Sent(now, float64(f.Units))
	d.rows.Take(now, float64(len(f.Rows)))
	d.units.Take(now, float64(f.Units))
	d.bytes.Take(now, float64(f.Size()))
	d.flying++
	d.inFlight += f.bytes
	d.report.Retried += int64(f.Retried)
	if err := d.extras.stamps.sending(&f.Flight); err != nil {
		for i := range f.Outcomes {
			f.Outcomes[i].Fate = table.Again
		}
		d.results <- result{flight: f, sent: now, done: now, err: err} // has room for every flight
		return
	}
	d.flights <- f // has room for every flight
}

func (d *dispatcher) checkPatience(now time.Time) {
	for _, l := range d.lanes {
		if l.hopeless(now) {
			if l.queue.Ready() == 0 && !l.queue.More() && d.splits == nil && d.cutter.GiveUp(l.index) {
				l.patience.Progress(now) // for rows that fail alone, the load need not
				continue
			}
			d.halt(fmt.Errorf("no row%s was accepted for %v (--retry-for); last answer: %s", d.ofPartition(l.index), d.cfg.Write.RetryFor, l.lastError))
			return
		}
	}
}

// landed takes the outcomes of a flight.
func (d *dispatcher) landed(r result) {
	f, l := r.flight, r.flight.lane
	d.flying--
	d.inFlight -= f.bytes
	a := sum(&f.Flight)
	d.report.count(f, a, r.stats)
	changed := l.landed(r.sent, r.done, a, d.cfg.Write.Backoff)
	l.written += int64(a.final)
	d.cutter.Done(r.done, &f.Flight)
	d.record.landed(r.done, l, a, f.Retried, r.stats.Requests)
	f.Reset()
	f.lane = nil
	d.idle = append(d.idle, f)
	if changed {
		d.survey.askTable(r.flight.table)
	}
	if r.err != nil {
		d.halt(r.err)
	}
	d.flushRejects()
	d.publish()
}
