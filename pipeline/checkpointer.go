package pipeline

import (
	"cmp"
	"errors"
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
	mayAct   func() error       // asked before every request; may be nil
	patience ratelimit.Patience // how long no checkpoint may be written
	failed   error              // why the last one could not be written
	ended    bool               // nothing is sent any more
}

// tuning is what tests change of the keeping of checkpoints. That of a user's load is zero.
type tuning struct {
	keptFor  time.Duration                    // 0 is the constant
	patience time.Duration                    // 0 is the constant
	onSave   func(*checkpoint.Snapshot) error // a checkpoint is about to be written
}

func newCheckpointer(from *resumePoint, folder *rundir.Folder, planned *plan.Plan, t tuning, now time.Time) *checkpointer {
	l := from.load
	k := &checkpointer{
		schedule:     &schedule{every: l.Checkpoint.Every, keptFor: cmp.Or(t.keptFor, keptFor)},
		readProgress: newReadProgress(planned, l.Ordered, from.snapshot),
		saver:        newSaver(folder.Path, l.Checkpoint.Sync, t.onSave),
		ids:          from.ids,
		patience:     ratelimit.Patience{For: cmp.Or(t.patience, keepPatience)},
		about:        checkpoint.About{Job: from.job.Identity, Attempt: 1, Begun: now.UTC(), Ordered: l.Ordered, Settle: l.Settle},
	}
	if l.Checkpoint.State != nil {
		k.calm = stateEvery
		k.saver.state = func(encoded []byte) error { return l.keepInState(folder.Path, encoded) }
		k.mayAct = l.Checkpoint.mayAct
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

var errSlow = errors.New("the previous one is still being written")

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
