package pipeline

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/plan"
)

// tableIDs tells the tables that a load writes to from tables of the same names that are made later, by the times at which
// they were made: rows that were written to a table that is dropped are gone, although writing continues. It is safe for
// concurrent use.
type tableIDs struct {
	mu      sync.Mutex
	created map[string]int64     // by table, as in client.Table; 0 is a service that does not say
	made    map[string]time.Time // tables that this attempt has made, and when
}

func newTableIDs() *tableIDs {
	return &tableIDs{created: map[string]int64{}, made: map[string]time.Time{}}
}

// remember remembers the tables of the attempt before.
func (t *tableIDs) remember(s *checkpoint.Snapshot) { maps.Copy(t.created, s.Tables) }

// ReplacedError says that a table was dropped and made again since rows were written to it.
type ReplacedError struct {
	Table    string
	Was, Now int64 // when it was made, as in client.Table
}

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("table %s was dropped and created again: the load began with the one created at %s, the present one was created at %s, and the rows written before are lost",
		e.Table, madeAt(e.Was), madeAt(e.Now))
}

// Exit is the exit code.
func (e *ReplacedError) Exit() int { return exitcode.Refused }

func madeAt(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02 15:04:05.000000Z")
}

// see compares when a table was made with what is known of it, which is noted when it is seen first. The error is a
// *ReplacedError.
func (t *tableIDs) see(name string, created int64) error {
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

// noteMade notes that this attempt has just made the table.
func (t *tableIDs) noteMade(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made[name] = time.Now()
}

// opening reports whether this attempt has made the table so lately that the service may say that it does not exist.
func (t *tableIDs) opening(name string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	made, ok := t.made[name]
	return ok && now.Sub(made) < client.OpensWithin
}

// known returns when each table was made.
func (t *tableIDs) known() map[string]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.created)
}

// sameTables refuses to resume where a table that rows were written to is gone or another one.
func (o *resumePoint) sameTables(planned *plan.Plan, admin *client.Admin) error {
	if t := planned.Table(); t != nil {
		if err := o.ids.see(t.Name, t.Created); err != nil {
			return tableReplaced(o.load.RunDir, err)
		}
	}
	if planned.Tables == nil || o.snapshot == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(o.snapshot.Tables)) {
		t, err := admin.Describe(name)
		if errors.Is(err, client.ErrNoTable) {
			return tableGone(o.load.RunDir, name)
		}
		if err != nil {
			return err
		}
		if err := o.ids.see(name, t.Created); err != nil {
			return tableReplaced(o.load.RunDir, err)
		}
	}
	return nil
}

func tableGone(run, name string) error {
	return &plan.UsageError{Message: fmt.Sprintf("run %s cannot be resumed: table %s was dropped, with the rows that the run has written; start over with --fresh", run, name)}
}

func tableReplaced(run string, why error) error {
	return &plan.UsageError{Message: fmt.Sprintf("run %s cannot be resumed: %v; start over with --fresh", run, why)}
}

// confirm looks whether every table is there and the one that was written to.
func (t *tableIDs) confirm(admin *client.Admin) error {
	for _, name := range slices.Sorted(maps.Keys(t.known())) {
		now, err := admin.Describe(name)
		if errors.Is(err, client.ErrNoTable) {
			return fmt.Errorf("table %s was dropped, with the rows that the load has written", name)
		}
		if err != nil {
			return fmt.Errorf("check whether table %s is the one that was written to: %w", name, err)
		}
		if err := t.see(name, now.Created); err != nil {
			return err
		}
	}
	return nil
}
