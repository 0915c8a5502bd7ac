package pipeline

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/spill"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/shuffle"
)

// dispatcher connects the parts of a load. Only its goroutine uses the lanes, the account, the files and the counts.
type dispatcher struct {
	cfg    *Config
	counts *ledger.Counted

	input        input
	admission    *admission
	lanes        *lanes.Set
	annotations  *annotations
	account      *ledger.Account
	record       *timelineRecorder
	checkpointer *keep.Checkpointer // nil if the load has no checkpoints
	files        *ledger.Files
	survey       *partitionPoller
	settling     settling
	stopper      *stopper
	sent         *atomic.Int64                           // bytes of requests of all attempts
	onSnapshot   func(*dispatcher, *checkpoint.Snapshot) // for tests
}

type input struct {
	flow   *intake.Flow
	splits <-chan intake.Handed // nil once the input is complete
	err    error                // why the input could not be read to its end; what was read before is loaded
	waits  bool                 // reading waits for memory
}

func (i *input) ended() bool { return i.splits == nil }

// settling holds the times until which attempts of an earlier run may still be applied.
type settling struct {
	hold         time.Time // nothing is sent before this time
	suspectUntil time.Time // requests of the previous attempt may be applied until this time
}

func (a *attempt) newDispatcher(x *annotations, f *ledger.Files, disk *spill.Store, stopRead func()) *dispatcher {
	cfg, counts, from := a.cfg, a.counts, a.from
	m, w := a.survey.current.Load(), &cfg.Write
	in, keyType := intake.New(a.planned, m), a.planned.Schema.Key[0].Type
	var checkpointer *keep.Checkpointer
	if cfg.keeps() {
		checkpointer = keep.NewCheckpointer(from, a.folder, a.planned, a.hooks.keeping, time.Now())
		in.Resume(checkpointer.ForIntake())
	}
	in.Follow(a.scheduling())
	// Annotated rows may be kept for later; in a dry run nothing marks them final.
	in.Reuses = !cfg.DryRun && x.AutoIncrement == nil && x.Increments == nil && f.Stamps == nil
	free := in.Free
	if look := a.hooks.onFree; look != nil {
		free = func(b *table.Block) { look(b); in.Free(b) }
	}
	d := &dispatcher{
		cfg: cfg, counts: counts, input: input{flow: in, splits: in.Splits()}, annotations: x,
		record: newTimelineRecorder(counts, a.started, a.hooks.used()), checkpointer: checkpointer, files: f,
		survey: a.survey, settling: settling{hold: from.Hold, suspectUntil: from.SuspectUntil}, stopper: newStopper(stopRead),
		onSnapshot: a.hooks.onSnapshot, sent: &a.service.traffic.BytesSent,
	}
	d.lanes = lanes.New(m, &lanes.Options{
		Config: &cfg.Lanes, Order: w.Order, Timeout: cfg.Target.Client.RequestTimeout,
		Memory: plan.DivideMemory(cfg.Limits.Memory), Disk: disk,
		Checkpointer: checkpointer, Counts: counts, Learnt: x.Size, Indexes: len(a.planned.Indexes()),
		RowBytes: x.rowBytes, RowExtra: x.rowExtra, Leaves: f.Stamps.Sending, Free: free, Tuning: &a.hooks.Tuning,
	})
	for _, l := range a.looks {
		d.record.meter.Before(l.from, l.to, l.used)
	}
	if f.RepeatedRows != nil && w.Marks.LookFirst {
		// Rows must not be looked up while requests of the earlier load may still be applied.
		d.settling.hold = keep.Later(d.settling.hold, time.Now().Add(w.Settle))
	}
	if d.settling.hold.After(time.Now()) {
		cfg.Watch.Progress.Waiting.Store(&ledger.Wait{Until: d.settling.hold,
			Why: "nothing is sent while requests of the previous process may still be applied"})
	}
	counts.LateUntil = from.Late
	d.account = &ledger.Account{Counts: counts, Rejects: f.Folder, Ends: cfg.Watch.Ends, OnReject: cfg.Watch.OnReject,
		OnKept: cfg.Watch.OnKept, Options: x.Options, Files: f, Limit: cfg.Limits.MaxErrors, Stop: d.stopFor,
		Hot: partitioner.NewHotKeys(keyType), Form: in.RowForm()}
	if cfg.Limits.SetAside {
		once := w.Mode == table.Increment || a.planned.Schema.Numbered > 0
		d.account.Asides = ledger.NewAsides(cfg.Limits.MaxErrors, once, counts, a.planned, from.Snapshot, in)
	}
	if d.account.Asides != nil {
		d.account.Asides.Added = d.withhold
	} else if counts.OverLimit(cfg.Limits.MaxErrors, false) {
		d.stopper.stop(ledger.ErrLimit) // earlier attempts have exceeded it
	}
	if m.Several() {
		d.account.Tables = ledger.NewTables(cfg.Limits.MaxTables)
		d.account.Tables.Resume(from.Snapshot)
	}
	d.admission = &admission{
		limit: cfg.Limits.Records, dry: cfg.DryRun, account: d.account, archive: f.Archive, want: a.survey.want,
		stop:        d.stopper,
		hotKeyWatch: newHotKeyWatch(keyType, m.Several(), a.planned.Schema.Columns[0].Name, cfg.Watch.OnHotKey),
	}
	if checkpointer != nil {
		d.admission.readProgress = checkpointer.ReadProgress
	}
	d.lanes.Mark(d.record.slots(m))
	d.lanes.CutBy(d.cutting(from.SuspectUntil), d.account.AllWritten)
	return d
}

func (d *dispatcher) cutting(suspectUntil time.Time) partitioner.Options {
	w, x, f := &d.cfg.Write, d.annotations, d.files
	o := partitioner.Options{
		Unordered: w.Order == plan.OrderNone,
		Supersede: w.Order == plan.LastWins && w.Mode == table.Put && w.Condition == table.Ignore && w.When == nil &&
			!w.Unchanged && x.AutoIncrement == nil,
		Settle: w.Settle, SettleTimedOut: settleTimedOut(w.Settle, d.cfg.Target.Client.RequestTimeout),
		SettleFirst: f.RepeatedRows != nil, Repeated: f.RepeatedRows != nil && w.Marks.LookFirst, Deletes: w.DeleteNull,
		SuspectUntil: suspectUntil, Backoff: d.cfg.Lanes.Backoff.After, Final: d.account.Final,
	}
	if x.Increments != nil {
		o.Settle, o.SuspectUntil = 0, time.Time{} // a late attempt changes nothing
	}
	if f.Stamps != nil {
		o.Stamps = f.Stamps
	}
	return o
}

// settleTimedOut returns how long after its time-out an attempt may still be applied: settle less the time-out, during
// which the service has had the request. A sixth of the time-out is kept for time that the request spent in buffers.
func settleTimedOut(settle, timeout time.Duration) time.Duration {
	left := timeout / 6
	return max(settle-timeout+left, min(settle, left))
}

// run returns nil once every row is final, or why it stopped. No request is then in flight, and no worker gets another.
func (d *dispatcher) run(ctx context.Context) error {
	defer d.lanes.End()
	defer d.stopper.end()
	saves := d.checkpointer.Saves()
	defer d.checkpointer.End()
	drain := d.cfg.Drain.Done()
	if l := d.cfg.Checkpoint.Held(); l != nil {
		l.Unsettled, l.UnsettledFor = true, 0 // how long is unknown until the load ends by itself
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
		case r := <-d.lanes.Answers():
			d.landed(r)
		case j := <-d.lanes.Jobs():
			d.jobDone(j)
		case s := <-saves:
			d.kept(s)
		case m := <-d.survey.maps:
			d.recut(time.Now(), m)
		case err := <-d.survey.fatal:
			d.stopper.stop(err)
		case <-d.cfg.Lanes.FlushRequest.Begins():
			d.lanes.Change()
		case ask := <-d.cfg.Watch.Monitor.asks:
			ask <- d.state(time.Now())
		case <-d.lanes.Woken():
		case <-drain:
			drain = nil
			d.stopper.stop(context.Cause(d.cfg.Drain))
		case <-ctx.Done():
			// Requests end with the context: wait until their workers have reported, then return.
			timer.Stop()
			d.stopper.stop(context.Cause(ctx))
			d.abandon()
			return d.stopper.cause
		case <-timer.C:
		}
		timer.Stop()
	}
}

// start starts all work that can start now. It returns the time until the next lane may send.
func (d *dispatcher) start(now time.Time) (next time.Duration) {
	d.lanes.Cutter.Wake(now)
	for _, name := range d.lanes.FallSilent(now) {
		d.survey.askTable(name)
	}
	next = time.Minute
	d.keep(now)
	blocked := bottleneck.None
	if !d.stopper.stopped() {
		next, blocked = d.dispatch(now)
		if err := d.lanes.Stalled(now, !d.input.ended()); err != nil {
			d.stopper.stop(err)
		}
	}
	d.noteLimit(now, blocked)
	if !d.stopper.stopped() {
		d.lanes.StartJobs(now)
	}
	return next
}

// reads reports whether a split may be taken now. It counts how often reading or sending begins to wait for memory.
func (d *dispatcher) reads() bool {
	full := d.lanes.Queues.Full()
	waits := !d.input.ended() && !d.stopper.stopped() && full
	if waits && !d.input.waits {
		d.counts.ReadWaits++
	}
	d.input.waits = waits
	if d.lanes.WaitsMore() {
		d.counts.SendWaits++
	}
	// Before its first checkpoint, a run cannot be resumed, and would leave its archived records behind.
	return !d.stopper.stopped() && !full && !d.lanes.Queues.Saturated() &&
		!(d.files.Archive != nil && d.checkpointer.When().AwaitsFirst())
}

// hand takes an output of the intake. If ok is false, the intake has ended.
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

// stopFor stops the load. At a change that cannot be applied, it only stops reading: earlier changes are still written.
func (d *dispatcher) stopFor(err error) {
	if errors.Is(err, ledger.ErrLimit) && d.cfg.Write.Mode == table.Changes && d.admission.entering {
		d.admission.full = true
		return
	}
	d.stopper.stop(err)
}

func (d *dispatcher) take(p *intake.Parsed) {
	if d.admission.truncate(p) {
		d.inputEnds()
		d.stopper.stopRead()
	}
	if d.admission.enter(p); d.admission.full {
		d.inputEnds()
		d.stopper.stopRead()
	}
	now := time.Now()
	d.record.point(now)
	for _, b := range p.Blocks {
		if d.admission.rows(b.Block, d.account.Tables != nil && p.Partitions.Gap(b.Lane)) {
			d.lanes.Put(b.Lane, b.Block, p.Partitions, now)
		}
	}
	d.admission.hotKeyWatch.warn(false)
	if p.Partitions != d.lanes.Partitions {
		d.lanes.Begin(now) // the map has changed since the rows were divided
	}
	p.Arrived()
	d.account.Flush()
	d.publish()
}

// inputEnds notes that there are no more splits, so lanes need not wait for more rows.
func (d *dispatcher) inputEnds() {
	d.input.splits = nil
	d.admission.hotKeyWatch.warn(true)
	d.lanes.Change()
}

// abandon waits for the requests and disk jobs in progress, and starts no others.
func (d *dispatcher) abandon() {
	for d.lanes.Busy() {
		select {
		case r := <-d.lanes.Answers():
			d.landed(r)
		case j := <-d.lanes.Jobs():
			d.jobDone(j)
		}
	}
}

// finished reports whether there is nothing left to do or to wait for.
func (d *dispatcher) finished(now time.Time) bool {
	if d.lanes.Busy() {
		return false
	}
	if !d.stopper.stopped() && !(d.input.ended() && d.lanes.Empty()) {
		return false
	}
	// A late attempt could undo what a later run writes, so even a stopped load waits for it, unless rows may be repeated.
	until, unsettled := d.lanes.Cutter.Unsettled(now)
	switch {
	case unsettled && d.cfg.Checkpoint.Repeats:
		d.counts.LateUntil = keep.Later(d.counts.LateUntil, until)
		return true
	case unsettled:
		d.cfg.Watch.Progress.Waiting.Store(&ledger.Wait{Until: until, Why: "requests without an answer may still be applied"})
	}
	return !unsettled
}

// leave tells the next holder of the lease whether, and for how long, requests may still be applied.
func (d *dispatcher) leave(l *jobdir.Lease, now time.Time) {
	until, _ := d.lanes.Cutter.Unsettled(now)
	until = keep.Later(keep.Later(until, d.counts.LateUntil), keep.Later(d.settling.hold, d.settling.suspectUntil))
	l.Unsettled, l.UnsettledFor = until.After(now), max(0, until.Sub(now))
}

// nextEvent returns the time until work is due even if no event arrives. next is the time until a lane may send.
func (d *dispatcher) nextEvent(now time.Time, next time.Duration) time.Duration {
	next = d.lanes.NextEvent(now, next, !d.stopper.stopped())
	if d.checkpointer != nil && !d.stopper.stopped() {
		next = min(next, d.checkpointer.LookEvery())
	}
	next = min(next, d.checkpointer.When().Due(now), d.record.meter.Due(now))
	return max(next, 100*time.Microsecond)
}

// dispatch sends everything that may be sent now. It returns the time until more may be sent, and what prevents it.
func (d *dispatcher) dispatch(now time.Time) (next time.Duration, blocked bottleneck.Word) {
	if wait := d.settling.hold.Sub(now); wait > 0 {
		return wait, bottleneck.Outage
	}
	if wait := d.checkpointer.When().MayWait(now); wait > 0 {
		return wait, bottleneck.Disk
	}
	return d.lanes.Dispatch(now, !d.input.ended())
}

// noteLimit samples, at short intervals, what limits the load's speed.
func (d *dispatcher) noteLimit(now time.Time, blocked bottleneck.Word) {
	m := d.record.meter
	if !m.Wants(now, d.lanes.LimitEvery()) {
		return
	}
	word, unsure := d.lanes.LimitedBy(now, lanes.Limits{Blocked: blocked, Reading: !d.input.ended() && !d.input.waits,
		Stopped: d.stopper.stopped()})
	if w, ok := d.cfg.Read.Sources.(source.Waits); ok && word == bottleneck.Reader && w.Waiting() {
		word = bottleneck.Source
	}
	m.Note(now, word, unsure)
	d.cfg.Watch.Progress.Hindrance.LimitedBy.Store(uint32(m.Now()))
}

func (d *dispatcher) landed(r lanes.Result) {
	l := d.lanes.Landed(&r, d.input.ended())
	d.record.landed(&l)
	if l.Changed {
		d.survey.askTable(l.Table)
	}
	if l.Err != nil {
		d.stopper.stop(l.Err)
	}
	d.account.Flush()
	d.publish()
}

func (d *dispatcher) jobDone(j *shuffle.Job) {
	if err := d.lanes.JobDone(j); err != nil {
		d.stopper.stop(err)
	}
}

// withhold keeps rows in their lanes until a checkpoint names the inputs set aside, which a resuming attempt relies on.
func (d *dispatcher) withhold() {
	if d.checkpointer == nil || !d.checkpointer.Ordered {
		return
	}
	d.lanes.Withhold()
	d.checkpointer.Unknown()
}

func (d *dispatcher) recut(now time.Time, m *partitioner.Map) {
	d.lanes.Recut(now, m)
	d.lanes.Mark(d.record.slots(m))
	if d.checkpointer != nil {
		d.checkpointer.Unknown()
	}
	d.survey.current.Store(m)
	d.input.flow.Recut(m)
	d.counts.Recuts++
}
