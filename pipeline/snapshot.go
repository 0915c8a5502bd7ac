package pipeline

import (
	"slices"
	"time"

	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/writer"
)

// keep takes a snapshot for a checkpoint, if one is due.
func (d *dispatcher) keep(now time.Time) {
	k := d.checkpointer
	if k == nil {
		return
	}
	if !d.stopper.stopped() {
		if err := k.Failure(now); err != nil {
			d.stopper.stop(err)
			return
		}
	}
	if k.Due(now) > 0 {
		return
	}
	s, err := d.snapshot(now)
	if err != nil {
		d.stopper.stop(err)
		return
	}
	d.lanes.Described()
	k.Write(s, d.files.Open(), d.files.Archive.Failure())
}

// kept notes whether a checkpoint was written.
func (d *dispatcher) kept(s keep.Saved) {
	k := d.checkpointer
	if err := k.Written(s); err != nil {
		if keep.IsLost(err) {
			d.stopper.stop(err)
		}
		d.counts.CheckpointError = err.Error()
		return // the previous checkpoint and its allowances remain valid
	}
	if err := d.files.Stamps.Forget(); err != nil {
		d.counts.CheckpointError = err.Error() // files are left behind
		return
	}
	d.counts.CheckpointError = ""
	d.counts.Checkpoints++
	k.Counts(s)
	d.lanes.Saved()
}

// guarded returns a sender that sends no request before the checkpoint that must announce it.
func (d *dispatcher) guarded(s writer.Sender) writer.Sender {
	if d.checkpointer == nil {
		return d.cfg.Checkpoint.Guarded(s, d.stopper.ended)
	}
	return d.checkpointer.Guarded(s, d.stopper.ended)
}

func (d *dispatcher) keepLast() error {
	now := time.Now()
	d.checkpointer.Stopped = true
	_, unsettled := d.lanes.Cutter.Unsettled(now)
	s, err := d.snapshot(now)
	if err != nil {
		return err
	}
	s.Settled = !unsettled && !now.Before(d.settling.suspectUntil)
	return d.checkpointer.WriteLast(s, d.files.Open(), d.files.Archive.Failure())
}

// snapshot describes the load now. It fails if a run file cannot be written, as no checkpoint may then rely on it.
func (d *dispatcher) snapshot(now time.Time) (*checkpoint.Snapshot, error) {
	k, begun := d.checkpointer, time.Now()
	s := k.Describe(now)
	d.counts.BytesSent = d.sent.Load()
	s.Counters = d.counts.Counters()
	s.Bad = slices.Clone(d.counts.BadInputs)
	d.account.Asides.Keep(s.Counters)
	d.annotations.keep(s.Counters)
	d.account.Tables.Keep(s.Counters, d.survey.tables)
	if err := d.files.Stamps.Begin(d.lanes.Cutter, k.AllFinal()); err != nil {
		return nil, err
	}
	if err := d.files.Keep(s); err != nil {
		return nil, err
	}
	if err := d.files.Archive.Keep(s.Files); err != nil {
		d.stopper.stop(err)
	}
	s.HoldFor = max(0, d.settling.hold.Sub(now))
	if until, any := d.lanes.Cutter.Settling(now); any {
		s.HoldFor = max(s.HoldFor, until.Sub(now))
	}
	sends := !d.stopper.stopped() && !k.Stopped
	// Allowances do not matter if nothing more is sent or rows are unordered.
	k.DescribeRows(s, d.lanes.Out(), d.lanes.Ranges(sends && k.Ordered), d.lanes.Waiting(k.Ordered, k.ReadTo()),
		d.readToEnd())
	k.DescribeSources(s)
	d.follow(s.Open())
	s.Moments = d.counts.KeepMoments()
	var err error
	if s.Snapshots, err = d.counts.KeepSnapshots(); err != nil {
		return nil, err
	}
	d.counts.CheckpointSeconds += k.Took(time.Since(begun)).Seconds()
	if hook := d.onSnapshot; hook != nil {
		hook(d, s)
	}
	return s, nil
}

// follow notes how far in the log of their source changes are settled, given that changes before a place are.
func (d *dispatcher) follow(before checkpoint.Position) {
	if last, any := d.admission.follower.Settled(before); any {
		d.counts.ResumeFrom = last.Last
		if !last.Made.IsZero() {
			d.cfg.Watch.Progress.Settled.Store(last.Made.UnixMilli())
		}
	}
}

// readToEnd reports whether all input was read. If not, the rest may hold rows that earlier attempts sent.
func (d *dispatcher) readToEnd() bool {
	return d.input.ended() && !d.stopper.stopped() && d.input.err == nil
}
