package pipeline

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/writer"
)

// dispatcher wires the parts of a load, each of which has a file of its own. It runs in one goroutine, which alone touches
// them, the run folder and what is counted.
type dispatcher struct {
	cfg    *Config
	counts *ledger.Counted

	input        input
	admission    *admission
	lanes        *lanes
	annotations  *annotations
	flights      *flights
	account      *ledger.Account
	record       *timelineRecorder
	checkpointer *keep.Checkpointer // nil if nothing is kept
	files        *ledger.Files
	disk         *disk
	survey       *partitionPoller
	settling     settling
	stopper      *stopper
}

// input is what is still to come of the input.
type input struct {
	flow   *intake.Flow
	splits <-chan intake.Handed // nil once the input is complete
	err    error                // why it could not be read to its end; what came before it is loaded
	waits  bool                 // for memory
}

func (i *input) ended() bool { return i.splits == nil }

// settling is how long attempts of an earlier run may still be applied.
type settling struct {
	hold         time.Time // until then nothing is sent
	suspectUntil time.Time // until then what the attempt before has sent may be applied
}

func (a *attempt) newDispatcher(x *annotations, f *ledger.Files, disk *disk, stopRead context.CancelFunc) *dispatcher {
	cfg, counts, from := a.cfg, a.counts, a.from
	m, w := a.survey.current.Load(), &cfg.Write
	in, keyType := intake.New(a.planned, m), a.planned.Schema.Key[0].Type
	var checkpointer *keep.Checkpointer
	if cfg.keeps() {
		checkpointer = keep.NewCheckpointer(from, a.folder, a.planned, a.hooks.keeping, time.Now())
		in.Resume(checkpointer.ForIntake())
	}
	in.Follow(a.scheduling())
	// Who annotates rows may keep some; in a dry run, nobody says that they are final.
	in.Reuses = !cfg.DryRun && x.AutoIncrement == nil && x.Increments == nil && f.Stamps == nil
	free := in.Free
	if look := a.hooks.onFree; look != nil {
		free = func(b *table.Block) { look(b); in.Free(b) }
	}
	shares := plan.DivideMemory(cfg.Limits.Memory)
	d := &dispatcher{
		cfg: cfg, counts: counts, input: input{flow: in, splits: in.Splits()},
		lanes: newLanes(m, w, shares.Lanes, disk, checkpointer != nil, newCeilings(w, x.Size, cfg.Target.Client.RequestTimeout), a.hooks, free), annotations: x, flights: newFlights(w.Concurrency, shares.InFlight, cfg.Target.Client.RequestTimeout),
		record: newTimelineRecorder(counts, a.started, a.hooks.used()), checkpointer: checkpointer, files: f, disk: disk, survey: a.survey,
		settling: settling{hold: from.Hold, suspectUntil: from.SuspectUntil}, stopper: newStopper(stopRead),
	}
	d.lanes.ceilings.share = a.share
	for _, l := range a.looks {
		d.record.meter.Before(l.from, l.to, l.used)
	}
	if f.RepeatedRows != nil && w.Marks.LookFirst {
		// What the load before has sent may be applied for that long, and a row must not be looked for before.
		d.settling.hold = keep.Later(d.settling.hold, time.Now().Add(w.Settle))
	}
	if d.settling.hold.After(time.Now()) {
		cfg.Watch.Progress.Waiting.Store(&ledger.Wait{Until: d.settling.hold, Why: "nothing is sent while requests of the process before this one may still be applied"})
	}
	counts.LateUntil = from.Late
	d.account = &ledger.Account{Counts: counts, Rejects: f.Folder, Ends: cfg.Watch.Ends, OnReject: cfg.Watch.OnReject, OnKept: cfg.Watch.OnKept, Options: x.Options, Files: f, Limit: cfg.Limits.MaxErrors, Stop: d.stopper.stop, Hot: partitioner.NewHotKeys(keyType), Form: in.RowForm()}
	if cfg.Limits.SetAside {
		once := w.Mode == table.Increment || a.planned.Schema.Numbered > 0
		d.account.Asides = ledger.NewAsides(cfg.Limits.MaxErrors, once, counts, a.planned, from.Snapshot, in)
	}
	if d.account.Asides != nil {
		d.account.Asides.Added = d.withhold
	}
	if d.account.Asides == nil && counts.OverLimit(cfg.Limits.MaxErrors, false) {
		d.stopper.stop(ledger.ErrLimit) // earlier attempts have passed it
	}
	if m.Several() {
		d.account.Tables = ledger.NewTables(cfg.Limits.MaxTables)
		d.account.Tables.Resume(from.Snapshot)
	}
	d.admission = &admission{
		limit: cfg.Limits.Records, dry: cfg.DryRun, account: d.account, archive: f.Archive, want: a.survey.want, stop: d.stopper,
		hotKeyWatch: newCrowd(keyType, m.Several(), a.planned.Schema.Columns[0].Name, cfg.Watch.OnHotKey),
	}
	if checkpointer != nil {
		d.admission.readProgress = checkpointer.ReadProgress
	}
	d.lanes.indexes = len(a.planned.Indexes())
	d.record.recut(d.lanes.all, m)
	d.lanes.cutter = partitioner.New(d.cutting(from.SuspectUntil))
	d.lanes.cutter.OnWritten(func(rows []table.Ref) {
		d.account.AllWritten(rows)
		d.lanes.queues.AllFinal(rows)
	})
	d.lanes.share()
	return d
}

// cutting says how batches are cut.
func (d *dispatcher) cutting(suspectUntil time.Time) partitioner.Options {
	w, x, f, m := &d.cfg.Write, d.annotations, d.files, d.lanes.partitions
	o := partitioner.Options{
		Unordered: w.Order == plan.OrderNone,
		Supersede: w.Order == plan.LastWins && w.Mode == table.Put && w.Condition == table.Ignore && w.When == nil && !w.Unchanged && x.AutoIncrement == nil,
		Settle:    w.Settle, SettleTimedOut: settleTimedOut(w.Settle, d.cfg.Target.Client.RequestTimeout), SettleFirst: f.RepeatedRows != nil, Repeated: f.RepeatedRows != nil && w.Marks.LookFirst,
		Deletes: w.DeleteNull, SuspectUntil: suspectUntil,
		Backoff: w.Backoff.After,
		Lanes:   m.Len(),
		Route:   m.Find,
		Woken:   func(i int) { d.lanes.all[i].stale = true },
		Final: func(r table.Ref, end partitioner.End, o table.Outcome) {
			d.account.Final(r, end, o)
			d.lanes.queues.Final(r)
		},
	}
	if x.Increments != nil {
		o.Settle, o.SuspectUntil = 0, time.Time{} // an attempt that is applied late changes nothing
	}
	if f.Stamps != nil {
		o.Stamps = f.Stamps
	}
	return o
}

// settleTimedOut returns for how long after its time-out an attempt may still be applied. The service has had the request for that
// long already, but for what waited in buffers on its way: a sixth of the time-out is left for that.
func settleTimedOut(settle, timeout time.Duration) time.Duration {
	left := timeout / 6
	return max(settle-timeout+left, min(settle, left))
}

// run returns nil when every row is final, or why it stopped earlier. It returns only when no request is in flight, and
// closes flights so that the workers end.
func (d *dispatcher) run(ctx context.Context) error {
	defer close(d.flights.out)
	defer close(d.disk.jobs)
	defer d.stopper.end()
	saves := d.checkpointer.Saves()
	defer d.checkpointer.End()
	drain := d.cfg.Drain.Done()
	if l := d.cfg.Checkpoint.Held(); l != nil {
		l.Unsettled, l.UnsettledFor = true, 0 // until the load ends by itself, nobody knows
		defer func() { d.leave(l, time.Now()) }()
	}
	for {
		now := time.Now()
		next := d.start(now)
		if d.finished(now) {
			if d.stopper.stopped() {
				return d.stopper.cause
			}
			return d.input.err
		}
		splits := d.input.splits
		if !d.reads() {
			splits = nil
		}
		timer := time.NewTimer(d.nextEvent(now, next))
		select {
		case h, ok := <-splits:
			d.hand(h, ok)
		case r := <-d.flights.back:
			d.landed(r)
		case j := <-d.disk.done:
			d.jobDone(j)
		case s := <-saves:
			d.kept(s)
		case m := <-d.survey.maps:
			d.recut(time.Now(), m)
		case err := <-d.survey.fatal:
			d.stopper.stop(err)
		case <-d.cfg.Write.FlushRequest.begins():
			d.lanes.change()
		case ask := <-d.cfg.Watch.Monitor.asks:
			ask <- d.state(time.Now())
		case <-d.lanes.ceilings.share.woken():
		case <-drain:
			drain = nil
			d.stopper.stop(context.Cause(d.cfg.Drain))
		case <-ctx.Done():
			// Requests end with the context; wait for their workers, then leave.
			timer.Stop()
			d.stopper.stop(context.Cause(ctx))
			d.abandon()
			return d.stopper.cause
		case <-timer.C:
		}
		timer.Stop()
	}
}

// start starts all that can be started now. It returns the time until another lane may send.
func (d *dispatcher) start(now time.Time) (next time.Duration) {
	d.lanes.cutter.Wake(now)
	d.noteSilence(now)
	next = time.Minute
	d.keep(now)
	blocked := bottleneck.None
	if !d.stopper.stopped() {
		next, blocked = d.dispatch(now)
		d.checkPatience(now)
	}
	d.noteLimit(now, blocked)
	if !d.stopper.stopped() {
		d.startJobs(now)
	}
	return next
}

// reads reports whether a split is taken now. It counts when reading or sending begins to wait for memory.
func (d *dispatcher) reads() bool {
	full := d.lanes.queues.Full()
	waits := !d.input.ended() && !d.stopper.stopped() && full
	if waits && !d.input.waits {
		d.counts.ReadWaits++
	}
	d.input.waits = waits
	if d.flights.waitsMore() {
		d.counts.SendWaits++
	}
	// A run of which no checkpoint was written is not continued, and what it had archived would be left over.
	return !d.stopper.stopped() && !full && !d.lanes.queues.Saturated() && !(d.files.Archive != nil && d.checkpointer.When().AwaitsFirst())
}

// hand takes what the intake hands over; without ok it was the last.
func (d *dispatcher) hand(h intake.Handed, ok bool) {
	switch {
	case !ok:
		d.inputEnds()
	case h.Err != nil:
		d.input.err = h.Err
	case h.Ended != nil:
		d.admission.ended(h.Ended)
	case h.Aside != nil:
		d.account.Asides.Add(h.Aside.Source, client.OneLine(h.Aside.Err.Error()), false)
	default:
		d.take(h.Parsed)
	}
}

// take takes in a parsed split and puts its rows into their lanes.
func (d *dispatcher) take(p *intake.Parsed) {
	if d.admission.truncate(p) {
		d.inputEnds()
		d.stopper.stopRead()
	}
	d.admission.enter(p)
	now := time.Now()
	d.record.point(now)
	for _, b := range p.Blocks {
		if d.admission.rows(b.Block, d.account.Tables != nil && p.Partitions.Gap(b.Lane)) {
			d.lanes.put(b.Lane, b.Block, p.Partitions, now)
		}
	}
	d.admission.hotKeyWatch.warn(false)
	if p.Partitions != d.lanes.partitions {
		d.lanes.begin(now) // the map has changed since the rows were divided
	}
	p.Arrived()
	d.account.Flush()
	d.publish()
}

// inputEnds notes that there are no more splits: lanes need not wait for more rows.
func (d *dispatcher) inputEnds() {
	d.input.splits = nil
	d.admission.hotKeyWatch.warn(true)
	d.lanes.change()
}

// abandon waits for the requests in flight and starts no more.
func (d *dispatcher) abandon() {
	for d.flights.unanswered() > 0 || d.disk.busy > 0 {
		select {
		case r := <-d.flights.back:
			d.landed(r)
		case j := <-d.disk.done:
			d.jobDone(j)
		}
	}
}

// finished reports whether there is nothing left to do or to wait for.
func (d *dispatcher) finished(now time.Time) bool {
	if d.flights.unanswered() > 0 || d.disk.busy > 0 {
		return false
	}
	if !d.stopper.stopped() && !(d.input.ended() && d.lanes.empty()) {
		return false
	}
	// An attempt that may still be applied could undo what a later run writes: even a stopped load waits for it,
	// unless the user insists (then ctx ends).
	until, unsettled := d.lanes.cutter.Unsettled(now)
	switch {
	case unsettled && d.cfg.Checkpoint.Repeats:
		d.counts.LateUntil = keep.Later(d.counts.LateUntil, until)
		return true
	case unsettled:
		d.cfg.Watch.Progress.Waiting.Store(&ledger.Wait{Until: until, Why: "requests without an answer may still be applied"})
	}
	return !unsettled
}

// leave tells who holds the lease next whether requests may still be applied, and for how long.
func (d *dispatcher) leave(l *jobdir.Lease, now time.Time) {
	until, _ := d.lanes.cutter.Unsettled(now)
	until = keep.Later(keep.Later(until, d.counts.LateUntil), keep.Later(d.settling.hold, d.settling.suspectUntil))
	l.Unsettled, l.UnsettledFor = until.After(now), max(0, until.Sub(now))
}

// nextEvent returns the time until something is due without an event coming in; next is when a lane may send.
func (d *dispatcher) nextEvent(now time.Time, next time.Duration) time.Duration {
	if wait, ok := d.lanes.cutter.Wait(now); ok && !d.stopper.stopped() {
		next = min(next, wait)
	}
	if until, ok := d.lanes.cutter.Unsettled(now); ok {
		next = min(next, until.Sub(now))
	}
	if d.flights.flying() > 0 {
		next = min(next, d.flights.lookAt.Sub(now))
	}
	if d.lanes.queues.DiskFull() && d.lanes.queues.Full() {
		next = min(next, diskAgain)
	}
	if d.checkpointer != nil && !d.stopper.stopped() {
		next = min(next, d.checkpointer.LookEvery())
	}
	next = min(next, d.checkpointer.When().Due(now), d.lanes.lookAgain(), d.record.meter.Due(now))
	return max(next, 100*time.Microsecond)
}

// dispatch hands batches of lanes that may send to free workers. It returns the time until another lane may send, and what
// keeps those that may from doing so.
func (d *dispatcher) dispatch(now time.Time) (next time.Duration, blocked bottleneck.Word) {
	if wait := d.settling.hold.Sub(now); wait > 0 {
		return wait, bottleneck.Outage
	}
	if wait := d.checkpointer.When().MayWait(now); wait > 0 {
		return wait, bottleneck.Disk
	}
	for d.flights.open() && d.lanes.ceilings.open(now) {
		if wait := d.lanes.ceilings.wait(now); wait > 0 {
			return wait, bottleneck.Ceiling
		}
		l, next := d.lanes.choose(now, !d.input.ended())
		if l == nil {
			return next, bottleneck.None
		}
		if wait := d.lanes.ceilings.instanceWait(now, d.lanes.batchUnits(l)); wait > 0 {
			l.stale = true
			return wait, bottleneck.Instance
		}
		if wait := d.lanes.ceilings.tables.wait(l, now, d.lanes.batchUnits(l)); wait > 0 {
			if l.table == "" {
				l.stale = true
				return wait, d.lanes.ceilings.tables.of("").word()
			}
			l.at, l.tableLimits = now.Add(wait), true // lanes of other tables may send
			continue
		}
		if wait := d.lanes.ceilings.share.begin(now); wait > 0 {
			l.stale = true
			return wait, bottleneck.Ceiling
		}
		d.cut(l, now)
		d.lanes.ceilings.share.end()
	}
	return time.Minute, bottleneck.Link // until a worker is free, or an answer has made room on the link
}

// cut hands a batch of the lane to a worker.
func (d *dispatcher) cut(l *lane, now time.Time) {
	f, x := d.flights.next(), d.annotations
	l.stale = true
	f.MaxRows, f.MaxBytes = l.cautious(d.lanes.ceilings.batchRows()), d.lanes.ceilings.batchBytes()
	if f.probe = l.hung; f.probe {
		f.MaxRows = 1
	}
	f.RowExtra, f.Extra = x.rowBytes, x.rowExtra
	from := limitedQueue{l, d.checkpointer, &d.counts.ReportAttempts}
	for !d.lanes.cutter.Cut(now, l.index, from, &f.Flight, d.lanes.ceilings.batchUnits(l.table, l.units)) {
		if l.queue.Ready() == 0 || l.left <= 0 || d.lanes.cutter.Stalled(l.index) {
			return // all fresh rows wait for rows of their key
		}
	}
	f.lane, f.table, f.until = l, l.table, d.checkpointer.When().SendUntil()
	l.sent(now, &f.Flight)
	if f.probe {
		l.probing++
	}
	d.lanes.ceilings.sent(now, l.table, len(f.Rows), float64(f.Units), float64(f.Size()))
	f.mark = d.lanes.ceilings.window.Sent(now, f.Size())
	f.onLink = d.lanes.ceilings.window.Takes()
	d.flights.began(now)
	d.flights.leave(now)
	d.counts.Retried += int64(f.Retried)
	if err := d.files.Stamps.Sending(&f.Flight); err != nil {
		for i := range f.Outcomes {
			f.Outcomes[i].Fate = table.Again
		}
		d.flights.back <- result{flight: f, sent: now, done: now, err: err} // never blocks: it holds every flight
		return
	}
	d.flights.out <- f // never blocks: it holds every flight
}

func (d *dispatcher) checkPatience(now time.Time) {
	if l := d.lanes.hopeless(now, !d.input.ended()); l != nil {
		d.stopper.stop(&impatient{fmt.Sprintf("no row%s was written for %v (--retry-for)", d.lanes.name(l.index), d.cfg.Write.RetryFor), l.lastError})
	}
}

// impatient is why a load ends of which no row is written any more.
type impatient struct{ text, answer string }

func (e *impatient) Error() string { return e.text + "; last answer: " + e.answer }

// Unwrap returns the last answer of the service: whether it is of use to try again depends on it.
func (e *impatient) Unwrap() error {
	code, message, _ := strings.Cut(e.answer, " ")
	return &tablestore.OtsError{Code: code, Message: message}
}

// landed takes the outcomes of a flight.
func (d *dispatcher) landed(r result) {
	f, l := r.flight, r.flight.lane
	a := sum(&f.Flight)
	countAnswer(d.counts, f, a, r.stats)
	d.lanes.ceilings.landed(&r, a.units > 0 || a.flow > 0 || a.final > 0)
	if a.failed < a.rows {
		d.flights.answered(f, r.sent, r.done)
		d.lanes.heardOf(l, f, r.done.Sub(r.sent))
	}
	changed, down := false, l.unserved()
	if f.silent {
		l.landedLate(r.done, f, a)
	} else {
		if f.probe {
			l.probing--
		}
		// Pacers know a request by the moment of which they were told when it left.
		d.lanes.ceilings.tables.landed(l, f.left, r.done, &a)
		changed = l.landed(f.left, r.done, a, d.cfg.Write.Backoff)
		d.lanes.ceilings.instance.Answered(f.left, r.done, a.units+a.flow, a.units)
	}
	if down && !l.unserved() {
		d.lanes.served(r.done)
	}
	if l.written += int64(a.final); a.throttled > 0 {
		d.lanes.throttled = r.done
	} else {
		d.lanes.clean = max(d.lanes.clean, a.accepted)
	}
	d.lanes.cutter.Done(r.done, &f.Flight)
	if d.input.ended() && d.lanes.ends(l) {
		d.lanes.ceilings.tables.ended(l)
	}
	d.record.landed(r.done, l, a, f.Retried, r.stats.Requests)
	d.flights.free(f)
	if changed {
		d.survey.askTable(f.table)
	}
	if r.err != nil {
		d.stopper.stop(r.err)
	}
	d.account.Flush()
	d.publish()
}

// countAnswer counts an answer.
func countAnswer(r *ledger.Counted, f *flight, a answer, stats writer.Stats) {
	r.Requests += int64(stats.Requests)
	r.RowsSent += int64(a.rows - stats.Found)
	r.Searched += int64(stats.Searched)
	r.Found += int64(stats.Found)
	r.Throttled += int64(a.throttled)
	r.Unavailable += int64(a.unavailable)
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

// withhold has no row leave its lane before a checkpoint says which inputs are set aside: an attempt that resumes counts on the order of
// those that may have been sent.
func (d *dispatcher) withhold() {
	if d.checkpointer == nil || !d.checkpointer.Ordered {
		return
	}
	for _, l := range d.lanes.all {
		l.withhold()
	}
	d.checkpointer.Unknown()
}

// recut takes a new partition map.
func (d *dispatcher) recut(now time.Time, m *partitioner.Map) {
	d.lanes.recut(now, m)
	d.record.recut(d.lanes.all, m)
	if d.checkpointer != nil {
		d.checkpointer.Unknown()
	}
	d.survey.current.Store(m)
	d.input.flow.Recut(m)
	d.counts.Recuts++
}
