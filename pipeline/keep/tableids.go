package keep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/ratelimit"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/writer"
)

// TableIDs recognises tables by creation time, as a table created again lacks the rows. It is safe for concurrent use.
type TableIDs struct {
	mu      sync.Mutex
	created map[string]int64     // creation times by table, as in client.Table; 0 if the service does not tell
	made    map[string]time.Time // when this attempt created a table
}

func NewTableIDs() *TableIDs {
	return &TableIDs{created: map[string]int64{}, made: map[string]time.Time{}}
}

// ReplacedError means that a table was dropped and created again after rows were written to it.
type ReplacedError struct {
	Table    string
	Was, Now int64 // creation times, as in client.Table
}

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("table %s was dropped and created again: the load began with the one created at %s, the present "+
		"one was created at %s, and the rows written before are lost",
		e.Table, madeAt(e.Was), madeAt(e.Now))
}

func (e *ReplacedError) Exit() int { return exitcode.Refused }

func madeAt(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02 15:04:05.000000Z")
}

// See compares a table's creation time with that of the first call, and returns a *ReplacedError if they differ.
func (t *TableIDs) See(name string, created int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.created[name]
	if was == 0 || created == 0 {
		t.created[name] = max(was, created)
		return nil
	}
	if was != created {
		return &ReplacedError{Table: name, Was: was, Now: created}
	}
	return nil
}

// NoteMade notes that this attempt has just created the table.
func (t *TableIDs) NoteMade(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made[name] = time.Now()
}

// Opening reports whether this attempt created the table so recently that the service may not find it yet.
func (t *TableIDs) Opening(name string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	made, ok := t.made[name]
	return ok && now.Sub(made) < client.OpensWithin
}

// Known returns the creation time of each table.
func (t *TableIDs) Known() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.created)
}

// SameTables returns an error if a table to which the previous attempt wrote rows was dropped or replaced.
func (o *Point) SameTables(planned *plan.Plan, admin *client.Admin) error {
	if t := planned.Table(); t != nil {
		if err := o.IDs.See(t.Name, t.Created); err != nil {
			return tableReplaced(o.Load.RunDir, err)
		}
	}
	if planned.Tables == nil || o.Snapshot == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(o.Snapshot.Tables)) {
		t, err := admin.Describe(name)
		if errors.Is(err, client.ErrNoTable) {
			return tableGone(o.Load.RunDir, name)
		}
		if err != nil {
			return err
		}
		if err := o.IDs.See(name, t.Created); err != nil {
			return tableReplaced(o.Load.RunDir, err)
		}
	}
	return nil
}

func tableGone(run, name string) error {
	return &plan.UsageError{Message: fmt.Sprintf("run %s cannot be resumed: table %s was dropped with the rows that the "+
		"run had written; "+source.StartOver, run, name)}
}

func tableReplaced(run string, why error) error {
	return &plan.UsageError{Message: fmt.Sprintf("run %s cannot be resumed: %v; "+source.StartOver, run, why)}
}

// Confirm checks that every table still exists and has not been replaced since rows were written to it.
func (t *TableIDs) Confirm(admin *client.Admin) error {
	for _, name := range slices.Sorted(maps.Keys(t.Known())) {
		now, err := admin.Describe(name)
		if errors.Is(err, client.ErrNoTable) {
			return fmt.Errorf("table %s was dropped with the rows that the load had written", name)
		}
		if err != nil {
			return fmt.Errorf("check whether table %s is the one that was written to: %w", name, err)
		}
		if err := t.See(name, now.Created); err != nil {
			return err
		}
	}
	return nil
}

// staleGuard holds back requests while the last checkpoint is too old: a resumed load relies on nothing being sent
// then. A batch cut in time may be late, as its rows are looked up first, it is halved, or the process was suspended.
type staleGuard struct {
	writer.Sender
	last    *atomic.Pointer[time.Time] // moment of the newest checkpoint on disk; nil means that none is needed
	keptFor time.Duration
	mayAct  func() error    // if nil, requests are always allowed
	halted  context.Context // ends when nothing is left to send
}

// errNotSent means that the load stopped before the request could be sent.
var errNotSent = client.NotSent(errors.New("the load stopped before the request was sent"))

// Guarded returns the sender of a load without checkpoints, which sends only while the lease, if any, is held.
func (c *Checkpoint) Guarded(s writer.Sender, halted context.Context) writer.Sender {
	if c.Lease == nil {
		return s
	}
	return &staleGuard{Sender: s, mayAct: c.MayAct, halted: halted}
}

// Post waits while the last checkpoint is too old or the lease is lost. It returns errNotSent if the load stops first.
func (g *staleGuard) Post(operation string, appendBody func(dst []byte) []byte) ([]byte, error) {
	for {
		if g.isFresh() && (g.mayAct == nil || g.mayAct() == nil) {
			return g.Sender.Post(operation, appendBody)
		}
		if ratelimit.Wait(g.halted, guardAgain) != nil {
			return nil, errNotSent
		}
	}
}

func (g *staleGuard) isFresh() bool {
	if g.last == nil {
		return true
	}
	last := g.last.Load()
	return last != nil && Elapsed(*last, time.Now()) < g.keptFor
}

// guardAgain is the interval at which a waiting request checks for a new checkpoint.
const guardAgain = 10 * time.Millisecond
