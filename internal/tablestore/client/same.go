package client

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// ReplacedError says that a table was dropped, or that another one has its name now. The rows read under that name do not
// belong together.
type ReplacedError struct {
	Table string
	Why   string // what the service says now
}

func (e *ReplacedError) Error() string {
	return fmt.Sprintf("table %s was dropped while it was read: %s", e.Table, e.Why)
}

// Same asks whether the table of t's name is the one that t describes. The error is a *ReplacedError if it is not. Tables
// are distinguished by the times at which they were made, and by their primary keys: where the service does not say when a
// table was made, one with the same key is treated as the same.
func (a *Admin) Same(t *Table) error {
	now, err := a.Describe(t.Name)
	switch {
	case errors.Is(err, ErrNoTable):
		return &ReplacedError{t.Name, "it no longer exists"}
	case err != nil:
		return fmt.Errorf("check whether table %s is the one that was read: %w", t.Name, err)
	case t.Created != 0 && now.Created != 0 && t.Created != now.Created:
		return &ReplacedError{t.Name, fmt.Sprintf("reading began with the one created at %s, the present one was created at %s", madeAt(t.Created), madeAt(now.Created))}
	case !slices.Equal(t.Key, now.Key):
		return &ReplacedError{t.Name, "the present one has another primary key"}
	}
	return nil
}

func madeAt(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02 15:04:05.000000Z")
}
