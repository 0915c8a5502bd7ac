package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/ratelimit"
)

// keepPatience is how long no checkpoint may be written before the load fails.
const keepPatience = time.Minute

// checkpointer keeps in checkpoints which records are final. It belongs to the dispatcher's goroutine; only its saver runs in another.
type checkpointer struct {
	*schedule
	*readProgress
	saver    *saver
	about    checkpoint.About
	ids      *tableIDs
	hooks    *hooks
	mayAct   func() error       // asked before every request; may be nil
	patience ratelimit.Patience // how long no checkpoint may be written
	failed   error              // why the last one could not be written
	ended    bool               // nothing is sent any more
}

func newCheckpointer(cfg *Config, h *hooks, folder *rundir.Folder, planned *plan.Plan, from *resumePoint, now time.Time) *checkpointer {
	ordered := cfg.Write.Order == plan.LastWins
	k := &checkpointer{
		schedule:     &schedule{every: cfg.Checkpoint.Every, keptFor: cmp.Or(h.keptFor, keptFor)},
		readProgress: newReadProgress(planned, ordered, from.snapshot),
		saver:        newSaver(folder.Path, cfg.Checkpoint.Sync, h.onSave),
		ids:          from.ids, hooks: h,
		patience: ratelimit.Patience{For: cmp.Or(h.keepPatience, keepPatience)},
		about:    checkpoint.About{Job: from.job.Identity, Attempt: 1, Begun: now.UTC(), Ordered: ordered, Settle: cfg.Write.Settle},
	}
	if cfg.Checkpoint.State != nil {
		k.calm = stateEvery
		k.saver.state = func(encoded []byte) error { return cfg.keepInState(folder.Path, encoded) }
		k.mayAct = cfg.mayAct
	}
	if b := from.snapshot; b != nil {
		k.about.Attempt, k.about.Begun = b.Attempt+1, b.Begun
	}
	return k
}

// when is the schedule, nil if nothing is kept.
func (k *checkpointer) when() *schedule {
	if k == nil {
		return nil
	}
	return k.schedule
}

// allowance is how many rows the lane, of so many, may send from now until the next checkpoint.
func (k *checkpointer) allowance(l *lane, lanes int) int64 {
	if !k.ordered {
		return math.MaxInt64
	}
	return cmp.Or(k.hooks.allowance, l.following(lanes))
}

// keep describes the load and hands that to be written, if it is time.
func (d *dispatcher) keep(now time.Time) {
	k := d.checkpointer
	if k == nil {
		return
	}
	if k.mayAct != nil && !d.stopper.stopped() {
		if err := k.mayAct(); isLost(err) {
			d.stopper.stop(err)
			return
		}
	}
	if !d.stopper.stopped() && k.patience.Over(now) {
		d.stopper.stop(fmt.Errorf("no checkpoint could be written for %v: %w", k.patience.For, cmp.Or(k.failed, errSlow)))
		return
	}
	if k.due(now) > 0 {
		return
	}
	s, err := d.snapshot(now)
	if err != nil {
		d.stopper.stop(err)
		return
	}
	for _, l := range d.lanes.all {
		l.described(k.allowance(l, len(d.lanes.all)))
	}
	k.saving()
	k.saver.jobs <- &saving{s, d.files.open(), d.files.archive.failure()} // never blocks: one is written at a time
}

var errSlow = errors.New("the previous one is still being written")

// kept notes that a checkpoint was written, or not.
func (d *dispatcher) kept(s saved) {
	k := d.checkpointer
	k.busy = false
	if k.failed = s.err; s.err != nil {
		if isLost(s.err) {
			d.stopper.stop(s.err)
		}
		d.report.CheckpointError = s.err.Error()
		return // the one before still holds, and so does what it lets lanes send
	}
	if err := d.files.stamps.kept(); err != nil {
		d.report.CheckpointError = err.Error() // files are left behind
		return
	}
	d.report.CheckpointError = ""
	d.report.Checkpoints++
	k.last = s.described
	k.patience.Progress(time.Now())
	for _, l := range d.lanes.all {
		l.saved()
	}
	d.lanes.change()
}

// keepLast writes the last checkpoint of an attempt that did not finish.
func (d *dispatcher) keepLast() error {
	now := time.Now()
	d.checkpointer.ended = true
	_, unsettled := d.lanes.cutter.Unsettled(now)
	s, err := d.snapshot(now)
	if err != nil {
		return err
	}
	s.Settled = !unsettled && !now.Before(d.settling.suspectUntil)
	return d.checkpointer.saver.write(&saving{s, d.files.open(), d.files.archive.failure()})
}

// saves is where written checkpoints come back.
func (k *checkpointer) saves() <-chan saved {
	if k == nil {
		return nil
	}
	return k.saver.done
}

// end ends the writing of checkpoints.
func (k *checkpointer) end() {
	if k != nil {
		close(k.saver.jobs)
	}
}
