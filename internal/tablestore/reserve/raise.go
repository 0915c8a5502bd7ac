package reserve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"tsimport/internal/tablestore/client"
)

// Note is what is to be restored.
type Note struct {
	Version int       `json:"version"`
	Table   string    `json:"table"`
	Created int64     `json:"created,omitempty"` // when the table was made, as the service says it; 0 is unknown
	Was     int       `json:"was"`               // write units before the first raise
	Set     []int     `json:"set"`               // what raises have set, or were about to set
	Run     string    `json:"run,omitempty"`     // the run folder of who raised it last
	Since   time.Time `json:"since"`
}

// noteVersion is that of notes that this version writes. A newer one is refused.
const noteVersion = 1

// ReadNote reads a note.
func ReadNote(text []byte) (*Note, error) {
	n := new(Note)
	if err := json.Unmarshal(text, n); err != nil {
		return nil, fmt.Errorf("read the note of a raised throughput: %w", err)
	}
	if n.Version > noteVersion {
		return nil, errors.New("the note of a raised throughput was written by a newer version of tsimport; use that version")
	}
	return n, nil
}

// Register keeps the note of a table, safe from a crash.
type Register interface {
	Read(context.Context) (*Note, error) // nil without one
	Write(context.Context, *Note) error
	Remove(context.Context, *Note) error
}

// Clock is the time that changes are paced by.
type Clock struct {
	Now  func() time.Time
	Wait func(context.Context, time.Duration) error // returns early with the cause why the context has ended
}

// Raise raises the throughput of one table.
type Raise struct {
	Admin    *client.Admin // with a Connection
	Table    string
	Units    int // write units that are wanted; 0 raises nothing, and restores what an earlier run has left
	Register Register
	Run      string // the run folder, for the note
	Clock    Clock
	Say      func(line string)
	// May reports why this process may not act any more, because another one has taken its work over; nil is always.
	May func() error

	note *Note
	// open says that a change was sent of which nobody knows whether it was made.
	open bool
}

// NotRestored says that a table still has a throughput that is not its own.
type NotRestored struct {
	Table   string
	Is, Was int
	Cause   error
}

func (e *NotRestored) Error() string {
	return fmt.Sprintf("table %s: its reserved write throughput is still %d units, and was %d before: %v", e.Table, e.Is, e.Was, e.Cause)
}
func (e *NotRestored) Unwrap() error { return e.Cause }

// Pending is the note of what is to be restored; nil is nothing.
func (r *Raise) Pending() *Note { return r.note }

func (r *Raise) sayf(format string, a ...any) {
	if r.Say != nil {
		r.Say(fmt.Sprintf(format, a...))
	}
}

// Begin raises the throughput, once the service allows it. After an error, too, End is to be called. It may be called again with other Units.
func (r *Raise) Begin(ctx context.Context) (err error) {
	own := r.note != nil
	if r.note, err = r.Register.Read(ctx); err != nil {
		return err
	}
	if r.note == nil && r.Units == 0 {
		return nil
	}
	found := r.note != nil && !own
	for refusals := 0; ; {
		t, err := r.Admin.Describe(r.Table)
		if err != nil {
			return err
		}
		if err := r.adopt(ctx, t); err != nil {
			return err
		}
		if found && r.note != nil && t.ReservedWrite != r.note.Was {
			r.sayf("table %s: an earlier run has raised its reserved write throughput from %d to %d units and not restored it; this load does", r.Table, r.note.Was, t.ReservedWrite)
		}
		found = false
		was := t.ReservedWrite
		if r.note != nil {
			was = r.note.Was
		}
		if r.Units <= was {
			if r.Units > 0 {
				r.sayf("table %s: it reserves %d write units, so --raise-write %d raises nothing", r.Table, was, r.Units)
			}
			return nil
		}
		if err := r.noteRaise(ctx, t, was); err != nil || t.ReservedWrite == r.Units {
			return err
		}
		err = r.change(r.Units)
		if err == nil {
			r.sayf("table %s: reserved write throughput raised from %d to %d units for this load", r.Table, was, r.Units)
			return nil
		}
		if refusals++; !errors.Is(err, client.ErrTooFrequent) || refusals > client.MaxPostponed {
			return fmt.Errorf("raise the write throughput: %w", err)
		}
		if err := r.wait(ctx, refusals, "raised"); err != nil {
			return err
		}
	}
}

// adopt looks whether the note is about the table as it is, and drops it if not.
func (r *Raise) adopt(ctx context.Context, t *client.Table) error {
	n := r.note
	switch {
	case n == nil:
		return nil
	case n.Created != 0 && t.Created != 0 && n.Created != t.Created:
		r.sayf("table %s was dropped and made again since a run raised its throughput; nothing is restored", r.Table)
	case t.ReservedWrite != n.Was && !slices.Contains(n.Set, t.ReservedWrite):
		r.sayf("table %s: somebody else has set its reserved write throughput to %d units since a run raised it from %d; it stays", r.Table, t.ReservedWrite, n.Was)
	case t.ReservedWrite == n.Was && r.Units == 0:
		// Nothing was raised, or it was restored by hand.
	default:
		return nil
	}
	return r.forget(ctx)
}

func (r *Raise) forget(ctx context.Context) error {
	if r.note == nil {
		return nil
	}
	err := r.Register.Remove(ctx, r.note)
	if err == nil {
		r.note = nil
	}
	return err
}

// noteRaise notes what is to be restored, before it is raised.
func (r *Raise) noteRaise(ctx context.Context, t *client.Table, was int) error {
	n := Note{Version: noteVersion, Table: r.Table, Created: t.Created, Was: was, Run: r.Run, Since: r.Clock.Now().UTC().Truncate(time.Second)}
	if r.note != nil {
		if n.Set = slices.Clone(r.note.Set); n.Run == r.note.Run && slices.Contains(n.Set, r.Units) {
			return nil
		}
		n.Since = r.note.Since
	}
	if !slices.Contains(n.Set, r.Units) {
		n.Set = append(n.Set, r.Units)
	}
	if err := r.Register.Write(ctx, &n); err != nil {
		return fmt.Errorf("note the write throughput that is to be restored: %w", err)
	}
	r.note = &n
	return nil
}

func (r *Raise) change(units int) error {
	if err := r.may(); err != nil {
		return err
	}
	err := r.Admin.Update(r.Table, client.Change{ReservedWrite: &units})
	r.open = err != nil && !errors.Is(err, client.ErrTooFrequent) && client.Classify(err).Open()
	return err
}

func (r *Raise) may() error {
	if r.May == nil {
		return nil
	}
	return r.May()
}

// wait waits until the throughput may be changed.
func (r *Raise) wait(ctx context.Context, refusals int, verb string) error {
	due, err := r.Admin.Postponed(r.Table, client.ThroughputInterval, r.Clock.Now(), refusals)
	if err != nil {
		return err
	}
	left := max(0, due.Sub(r.Clock.Now()))
	r.sayf("waiting %v until the throughput of table %s may be %s: the service allows one change in %v", left.Round(time.Second), r.Table, verb, client.ThroughputInterval)
	return r.Clock.Wait(ctx, left)
}

// End restores what the note says, and forgets it. If the service does not allow it yet, it waits until patience ends. The error is a
// *NotRestored if the table still has what was set here: the note stays then, for the next run.
func (r *Raise) End(ctx, patience context.Context) (err error) {
	if r.note == nil {
		if r.note, err = r.Register.Read(ctx); err != nil || r.note == nil {
			return err
		}
	}
	for refusals := 0; ; {
		t, err := r.Admin.Describe(r.Table)
		if errors.Is(err, client.ErrNoTable) {
			r.sayf("table %s is gone, and its raised throughput with it", r.Table)
			return r.forget(ctx)
		}
		if err != nil {
			return r.notRestored(r.note.Set[len(r.note.Set)-1], err)
		}
		if err := r.adopt(ctx, t); err != nil || r.note == nil {
			return err
		}
		if t.ReservedWrite == r.note.Was {
			if r.open {
				return r.notRestored(r.note.Set[len(r.note.Set)-1], errors.New("the answer to the request that raised it was lost, and it may still be made"))
			}
			return r.forget(ctx)
		}
		was := r.note.Was
		err = r.change(was)
		if err == nil {
			r.sayf("table %s: reserved write throughput restored from %d to %d units", r.Table, t.ReservedWrite, was)
			return r.forget(ctx)
		}
		if refusals++; !errors.Is(err, client.ErrTooFrequent) || refusals > client.MaxPostponed || patience.Err() != nil {
			return r.notRestored(t.ReservedWrite, err)
		}
		if waitErr := r.wait(patience, refusals, "restored"); waitErr != nil {
			return r.notRestored(t.ReservedWrite, err)
		}
	}
}

func (r *Raise) notRestored(is int, cause error) error {
	return &NotRestored{Table: r.Table, Is: is, Was: r.note.Was, Cause: cause}
}
