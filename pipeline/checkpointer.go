package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/ratelimit"
	"example.com/tsimport/writer"
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

// failure is why the load must stop: another process works on it, or no checkpoint could be written for too long.
func (k *checkpointer) failure(now time.Time) error {
	if k.mayAct != nil {
		if err := k.mayAct(); isLost(err) {
			return err
		}
	}
	if k.patience.Over(now) {
		return fmt.Errorf("no checkpoint could be written for %v: %w", k.patience.For, cmp.Or(k.failed, errSlow))
	}
	return nil
}

// lookEvery is how often somebody must ask for failure.
func (k *checkpointer) lookEvery() time.Duration { return k.patience.LookEvery() }

// describe begins a checkpoint, which the caller completes.
func (k *checkpointer) describe(now time.Time) *checkpoint.Snapshot {
	k.built = now
	s := &checkpoint.Snapshot{About: k.about}
	s.Time, s.Tables, s.Uptime = now.UTC(), k.ids.known(), checkpoint.Now()
	return s
}

// took notes how long it took to describe the load.
func (k *checkpointer) took(cost time.Duration) time.Duration {
	k.cost = cost
	return cost
}

// write hands a checkpoint over to be written, after files that it counts on. Failed is why it must not be written.
func (k *checkpointer) write(s *checkpoint.Snapshot, files []*os.File, failed error) {
	k.saving()
	k.saver.jobs <- &saving{s, files, failed} // never blocks: one is written at a time
}

// writeLast writes the last checkpoint of an attempt that did not finish.
func (k *checkpointer) writeLast(s *checkpoint.Snapshot, files []*os.File, failed error) error {
	return k.saver.write(&saving{s, files, failed})
}

// work writes checkpoints until there are no more.
func (k *checkpointer) work() error { return k.saver.work() }

// written takes a checkpoint back that was written, or was not.
func (k *checkpointer) written(s saved) error {
	k.busy, k.failed = false, s.err
	return s.err
}

// counts says that a checkpoint that was written counts.
func (k *checkpointer) counts(s saved) {
	k.last = s.described
	k.patience.Progress(time.Now())
}

// waits says that a lane waits for a checkpoint, or soon will; unknown that there are lanes which no checkpoint knows.
func (k *checkpointer) waits()   { k.soon = true }
func (k *checkpointer) unknown() { k.now = true }

// guarded returns the sender under the staleGuard of the load's checkpoints, until nothing more is to be sent.
func (k *checkpointer) guarded(s writer.Sender, halted context.Context) writer.Sender {
	return &staleGuard{Sender: s, last: &k.saver.onDisk, keptFor: k.keptFor, mayAct: k.mayAct, halted: halted}
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
