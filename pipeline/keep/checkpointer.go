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

// keepPatience is how long a load continues while no checkpoint can be written before it fails.
const keepPatience = time.Minute

// Checkpointer keeps the final records in checkpoints. It belongs to the dispatcher's goroutine; its saver has its own.
type Checkpointer struct {
	*Schedule
	*ReadProgress
	saver    *saver
	about    checkpoint.About
	ids      *TableIDs
	mayAct   func() error       // if not nil, called before every request; an error forbids it
	Patience ratelimit.Patience // limits the time without a written checkpoint
	Failed   error              // why the last checkpoint could not be written
	Stopped  bool               // the load sends nothing more
}

// Tuning lets tests change how checkpoints are kept. The zero Tuning changes nothing.
type Tuning struct {
	KeptFor  time.Duration                    // 0 means the constant
	Patience time.Duration                    // 0 means the constant
	OnSave   func(*checkpoint.Snapshot) error // called before a checkpoint is written; may be nil
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

// When returns the schedule, or nil if the load has no checkpoints.
func (k *Checkpointer) When() *Schedule {
	if k == nil {
		return nil
	}
	return k.Schedule
}

var errSlow = errors.New("the previous one is still being written")

// Failure returns why the load must stop: another process has taken it over, or no checkpoint was written for too long.
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

// LookEvery returns the interval at which Failure must be called.
func (k *Checkpointer) LookEvery() time.Duration { return k.Patience.LookEvery() }

// Describe returns a new checkpoint, which the caller completes.
func (k *Checkpointer) Describe(now time.Time) *checkpoint.Snapshot {
	k.built = now
	s := &checkpoint.Snapshot{About: k.about}
	s.Time, s.Tables, s.Uptime = now.UTC(), k.ids.Known(), checkpoint.Now()
	return s
}

// Took notes how long it took to describe the load, and returns that time.
func (k *Checkpointer) Took(cost time.Duration) time.Duration {
	k.cost = cost
	return cost
}

// Write hands over a checkpoint to be written once files are synced. failed, if not nil, is why it must not be written.
func (k *Checkpointer) Write(s *checkpoint.Snapshot, files []*os.File, failed error) {
	k.saving()
	k.saver.jobs <- &saving{s, files, failed} // never blocks, as only one is written at once
}

// WriteLast writes the last checkpoint of an attempt that did not finish.
func (k *Checkpointer) WriteLast(s *checkpoint.Snapshot, files []*os.File, failed error) error {
	return k.saver.write(&saving{s, files, failed})
}

// Work writes checkpoints until there are no more.
func (k *Checkpointer) Work() error { return k.saver.work() }

// Written takes back a checkpoint from the saver. It returns an error if the checkpoint was not written.
func (k *Checkpointer) Written(s Saved) error {
	k.Busy, k.Failed = false, s.err
	return s.err
}

// Counts notes that a written checkpoint is valid.
func (k *Checkpointer) Counts(s Saved) {
	k.last = s.described
	k.Patience.Progress(time.Now())
}

// Waits notes that a lane waits for a checkpoint, or will soon. Unknown notes that some lanes are in no checkpoint yet.
func (k *Checkpointer) Waits()   { k.soon = true }
func (k *Checkpointer) Unknown() { k.now = true }

// Guarded returns a sender that sends only while the last checkpoint is fresh. halted ends when nothing more is sent.
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
