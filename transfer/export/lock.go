package export

import (
	"errors"
	"fmt"

	"example.com/tsimport/pipeline/rundir"
)

const lockSuffix = ".tsimport-export.lock" // is there while a process writes

// BusyError says that another process exports to a file. Stale is a file that says so where the file system has no locks.
type BusyError struct{ Path, Stale string }

func (e *BusyError) Error() string {
	text := fmt.Sprintf("another process exports to %s; wait for it to end, or name another file", e.Path)
	if e.Stale != "" {
		text += "; if it has ended, delete " + e.Stale
	}
	return text
}

// lockOutput keeps other exports to the file away: what one of them notes would be of the other's rows.
func lockOutput(path string) (*rundir.Lock, error) {
	lock, err := rundir.TakeBeside(path, lockSuffix)
	return lock, notLocked(path, err)
}

func notLocked(path string, err error) error {
	if held := new(rundir.HeldError); errors.As(err, &held) {
		return &BusyError{path, held.Stale}
	}
	if err != nil {
		return fmt.Errorf("create output: %w", err)
	}
	return nil
}
