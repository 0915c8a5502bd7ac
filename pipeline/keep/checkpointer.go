package keep

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

// keepPatience is how long a load continues without writing a checkpoint before it fails.
const keepPatience = time.Minute

// Checkpointer keeps the final records in checkpoints. The dispatcher's goroutine owns it; its saver runs in another.
type Checkpointer struct {
	*Schedule
	*ReadProgress
	saver    *saver
	about    checkpoint.About
	ids      *TableIDs
	mayAct   func() error       // called before every request; may be nil
	Patience ratelimit.Patience // for the writing of a checkpoint
	Failed   error              // why the last checkpoint could not be written
	Stopped  bool               // nothing more is sent
}

// Tuning lets tests change how checkpoints are kept. A user's load has the zero Tuning.
type Tuning struct {
	KeptFor  time.Duration                    // 0 means the constant
	Patience time.Duration                    // 0 means the constant
	OnSave   func(*checkpoint.Snapshot) error // called before a checkpoint is written
}

func NewCheckpointer(from *Point, folder *rundir.Folder, planned *plan.Plan, t Tuning, now time.Time) *Checkpointer {
	l := from.Load
	k := &Checkpointer{
		Schedule:     &Schedule{every: l.Checkpoint.Every, keptFor: cmp.Or(t.KeptFor, keptFor)},
		ReadProgress: NewReadProgress(planned, l.Ordered, from.Snapshot),
		saver:        newSaver(folder.Path, l.Checkpoint.Sync, t.OnSave),
		ids:          from.IDs,
		Patience:     ratelimit.Patience{For: cmp.Or(t.Patience, keepPatience)},
		about: checkpoint.About{Job: from.Job.Identity, Attempt: 1, Begun: now.UTC(), Ordered: l.Ordered,
			Settle: l.Settle},
	}
	if l.Checkpoint.State != nil {
		k.calm = stateEvery
		k.saver.state = func(encoded []byte) error { return l.keepInState(folder.Path, encoded) }
		k.mayAct = l.Checkpoint.MayAct
	}
	if b := from.Snapshot; b != nil {
		k.about.Attempt, k.about.Begun = b.Attempt+1, b.Begun
	}
	return k
}

// When returns the schedule, nil if nothing is kept.
func (k *Checkpointer) When() *Schedule {
	if k == nil {
		return nil
	}
	return k.Schedule
}

var errSlow = errors.New("the previous one is still being written")

// Failure returns why the load must stop: another process works on it, or no checkpoint could be written for too long.
func (k *Checkpointer) Failure(now time.Time) error {
	if k.mayAct != nil {
		if err := k.mayAct(); IsLost(err) {
			return err
		}
	}
	if k.Patience.Over(now) {
		return fmt.Errorf("no checkpoint could be written for %v: %w", k.Patience.For, cmp.Or(k.Failed, errSlow))
	}
	return nil
}

// LookEvery is the interval at which Failure must be called.
func (k *Checkpointer) LookEvery() time.Duration { return k.Patience.LookEvery() }

// Describe begins a checkpoint that the caller completes.
func (k *Checkpointer) Describe(now time.Time) *checkpoint.Snapshot {
	k.built = now
	s := &checkpoint.Snapshot{About: k.about}
	s.Time, s.Tables, s.Uptime = now.UTC(), k.ids.Known(), checkpoint.Now()
	return s
}

// Took notes how long it took to describe the load, and returns that.
func (k *Checkpointer) Took(cost time.Duration) time.Duration {
	k.cost = cost
	return cost
}

// Write hands a checkpoint over for writing, after the files it relies on. failed, if not nil, forbids that.
func (k *Checkpointer) Write(s *checkpoint.Snapshot, files []*os.File, failed error) {
	k.saving()
	k.saver.jobs <- &saving{s, files, failed} // never blocks: one is written at a time
}

// WriteLast writes the last checkpoint of an attempt that did not finish.
func (k *Checkpointer) WriteLast(s *checkpoint.Snapshot, files []*os.File, failed error) error {
	return k.saver.write(&saving{s, files, failed})
}

// Work writes checkpoints until there are no more.
func (k *Checkpointer) Work() error { return k.saver.work() }

// Written takes back a checkpoint from the saver, written or failed.
func (k *Checkpointer) Written(s Saved) error {
	k.Busy, k.Failed = false, s.err
	return s.err
}

// Counts notes that a written checkpoint is valid.
func (k *Checkpointer) Counts(s Saved) {
	k.last = s.described
	k.Patience.Progress(time.Now())
}

// Waits notes that a lane waits for a checkpoint, or soon will. Unknown notes that some lanes are in no checkpoint.
func (k *Checkpointer) Waits()   { k.soon = true }
func (k *Checkpointer) Unknown() { k.now = true }

// Guarded returns the sender under the staleGuard of the load's checkpoints, until the last send.
func (k *Checkpointer) Guarded(s writer.Sender, halted context.Context) writer.Sender {
	return &staleGuard{Sender: s, last: &k.saver.onDisk, keptFor: k.keptFor, mayAct: k.mayAct, halted: halted}
}

// Saves delivers written checkpoints.
func (k *Checkpointer) Saves() <-chan Saved {
	if k == nil {
		return nil
	}
	return k.saver.done
}

// End ends the writing of checkpoints.
func (k *Checkpointer) End() {
	if k != nil {
		close(k.saver.jobs)
	}
}
