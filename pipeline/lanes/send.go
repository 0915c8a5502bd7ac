package lanes

import (
	"cmp"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/shuffle"
	"example.com/tsimport/writer"
)

// Dispatch hands batches of lanes that may send to free workers. more means that the input continues. It returns the
// time until another lane may send, and what blocks lanes that could send now.
func (s *Set) Dispatch(now time.Time, more bool) (next time.Duration, blocked bottleneck.Word) {
	for s.flights.open() && s.ceilings.window.Open(now) {
		if wait := s.ceilings.wait(now); wait > 0 {
			return wait, bottleneck.Ceiling
		}
		l, next := s.choose(now, more)
		if l == nil {
			return next, bottleneck.None
		}
		if wait := s.ceilings.instanceWait(now, s.batchUnits(l)); wait > 0 {
			l.turn.stale = true
			return wait, bottleneck.Instance
		}
		if wait := s.ceilings.tables.of(l.table).Next(now, s.batchUnits(l)).Sub(now); wait > 0 {
			if l.table == "" {
				l.turn.stale = true
				return wait, s.ceilings.tables.of("").word()
			}
			l.turn.at, l.turn.tableLimits = now.Add(wait), true // lanes of other tables may still send
			continue
		}
		if wait := s.ceilings.share.begin(now); wait > 0 {
			l.turn.stale = true
			return wait, bottleneck.Ceiling
		}
		s.cut(l, now)
		s.ceilings.share.end()
	}
	return time.Minute, bottleneck.Link // until a worker is free or an answer makes room on the link
}

func (s *Set) cut(l *lane, now time.Time) {
	f, o := s.flights.next(), s.options
	l.turn.stale = true
	f.MaxRows, f.MaxBytes = l.cautious(s.ceilings.batchRows()), s.ceilings.batchBytes()
	if f.probe = l.health.hung; f.probe {
		f.MaxRows = 1
	}
	f.RowExtra, f.Extra = o.RowBytes, o.RowExtra
	ready := s.Cutter.Ready(l.index)
	from := limitedQueue{l, o.Checkpointer, &o.Counts.ReportAttempts}
	for !s.Cutter.Cut(now, l.index, from, &f.Flight, s.ceilings.batchUnits(l.table, l.turn.units)) {
		if l.queue.Ready() == 0 || l.allowance.left <= 0 || s.Cutter.Stalled(l.index) {
			return // all fresh rows wait for rows of their key
		}
	}
	if len(f.Rows) > ready || s.Cutter.Ready(l.index) == 0 {
		l.away.fresh = max(0, len(f.Rows)-ready)
	}
	f.lane, f.table, f.until = l, l.table, o.Checkpointer.When().SendUntil()
	l.sent(now, &f.Flight)
	if f.probe {
		l.health.probing++
	}
	s.ceilings.sent(now, l.table, len(f.Rows), float64(f.Units), float64(f.Size()))
	f.mark = s.ceilings.window.Sent(now, f.Size())
	f.onLink = s.ceilings.window.Takes()
	s.flights.began(now)
	s.flights.leave(now)
	o.Counts.Retried += int64(f.Retried)
	if err := o.Leaves(&f.Flight); err != nil {
		for i := range f.Outcomes {
			f.Outcomes[i].Fate = table.Again
		}
		s.flights.back <- Result{flight: f, sent: now, done: now, err: err} // never blocks: it holds every flight
		return
	}
	s.flights.out <- f // never blocks: it holds every flight
}

type Landing struct {
	Answer   Answer
	At       time.Time
	Slot     int // number that Mark gave its lane
	Retried  int // number of rows sent again
	Requests int
	Table    string // name of the table, if there are several
	Changed  bool   // the partitions may have changed
	Err      error  // why the load cannot continue
}

// Landed takes a flight that has come back, with its outcomes. ended means that the input has ended.
func (s *Set) Landed(r *Result, ended bool) Landing {
	f, l := r.flight, r.flight.lane
	a := sum(&f.Flight)
	countAnswer(s.options.Counts, f, a, r.stats)
	s.ceilings.landed(r, a.units > 0 || a.flow > 0 || a.Final > 0)
	if a.failed < a.Rows {
		s.flights.answered(f, r.sent, r.done)
		s.heardOf(l, f, r.done.Sub(r.sent))
	}
	changed, down := false, l.unserved()
	if f.silent {
		l.landedLate(r.done, f, a)
	} else {
		if f.probe {
			l.health.probing--
		}
		// Pacers identify a request by the time passed to Sent.
		s.ceilings.tables.landed(l, f.left, r.done, &a)
		changed = l.landed(f.left, r.done, a, s.options.Backoff)
		s.ceilings.instance.Answered(f.left, r.done, a.units+a.flow, a.units)
	}
	if down && !l.unserved() {
		s.served(r.done)
	}
	if l.tally.written += int64(a.Final); a.Throttled > 0 {
		s.observed.throttled = r.done
	} else {
		s.observed.clean = max(s.observed.clean, a.Accepted)
	}
	s.Cutter.Done(r.done, &f.Flight)
	if ended && s.ends(l) {
		s.ceilings.tables.ended(l)
	}
	landed := Landing{Answer: a, At: r.done, Slot: l.slot, Retried: f.Retried, Requests: r.stats.Requests, Table: f.table,
		Changed: changed, Err: r.err}
	s.flights.free(f)
	return landed
}

func countAnswer(r *ledger.Counted, f *flight, a Answer, stats writer.Stats) {
	r.Requests += int64(stats.Requests)
	r.RowsSent += int64(a.Rows - stats.Found)
	r.Searched += int64(stats.Searched)
	r.Found += int64(stats.Found)
	r.Throttled += int64(a.Throttled)
	r.Unavailable += int64(a.Unavailable)
	if f.AllWritten {
		r.WriteCU += int64(f.WriteCU)
		return
	}
	for i := range f.Outcomes {
		if f.Outcomes[i].Fate == table.Written {
			r.WriteCU += int64(f.Outcomes[i].WriteCU)
		}
	}
}

// StartDisk starts the workers that move rows to and from disk. run starts each of them.
func (s *Set) StartDisk(run func(func() error)) {
	for range diskWorkers {
		run(s.disk.work)
	}
}

// Start starts the workers, by calling addWorker. room returns how many requests the connection can take.
func (s *Set) Start(room func() int, addWorker func()) {
	s.flights.room, s.flights.silence.addWorker = room, addWorker
	s.ceilings.room = func() int { return min(s.options.Concurrency, room()) }
	for range s.options.Concurrency {
		addWorker()
	}
}

// End makes all workers end, including the disk's. Nothing may be in flight.
func (s *Set) End() {
	close(s.flights.out)
	close(s.disk.jobs)
}

func (s *Set) Answers() <-chan Result { return s.flights.back }

func (s *Set) Jobs() <-chan *shuffle.Job { return s.disk.done }

func (s *Set) InFlight() int { return s.flights.flying() }

// WaitsMore reports whether a free worker begins to wait for memory now.
func (s *Set) WaitsMore() bool { return s.flights.waitsMore() }

// Busy reports whether requests or disk jobs are unfinished.
func (s *Set) Busy() bool { return s.flights.unanswered() > 0 || s.disk.busy > 0 }

// NextEvent returns the time, at most next, until work is due without an event. sends means that batches are still cut.
func (s *Set) NextEvent(now time.Time, next time.Duration, sends bool) time.Duration {
	if wait, ok := s.Cutter.Wait(now); ok && sends {
		next = min(next, wait)
	}
	if until, ok := s.Cutter.Unsettled(now); ok {
		next = min(next, until.Sub(now))
	}
	if s.flights.flying() > 0 {
		next = min(next, s.flights.silence.lookAt.Sub(now))
	}
	if s.Queues.DiskFull() && s.Queues.Full() {
		next = min(next, diskAgain)
	}
	return min(next, s.lookAgain())
}

// Worker sends flights one after the other.
type Worker struct {
	Writer *writer.Writer
	Table  string // table that rows go to, unless their flight names one
	Ids    *keep.TableIDs
	OnSend func([]table.Ref) // for tests
}

// Work sends flights until there are no more, or there is one worker too many.
func (w *Worker) Work(s *Set) error {
	for n := range s.flights.out {
		if n == nil {
			return nil
		}
		s.flights.back <- w.send(n) // never blocks: it holds every flight
	}
	return nil
}

func (w *Worker) send(f *flight) Result {
	if w.OnSend != nil {
		w.OnSend(f.Rows)
	}
	if f.table != "" {
		w.Writer.SetTable(f.table)
	}
	r := Result{flight: f, sent: time.Now()}
	if f.tooLate(r.sent) {
		r.done = r.sent
		return r
	}
	r.stats, r.err = w.Writer.Write(f.Rows, f.Repeated, f.Outcomes)
	f.AllWritten, f.WriteCU = r.stats.AllWritten, r.stats.WriteCU
	if r.err != nil && client.IsNoTable(r.err) && w.Ids.Opening(cmp.Or(f.table, w.Table), r.sent) {
		r.err = nil
		for i := range f.Outcomes {
			f.Outcomes[i].Unavailable = f.Outcomes[i].Unavailable || f.Outcomes[i].Fate == table.Again
		}
	}
	r.done = time.Now()
	return r
}
