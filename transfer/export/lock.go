package export

import (
	"errors"
	"fmt"

	"example.com/tsimport/pipeline/rundir"
)

const lockSuffix = ".tsimport-export.lock" // is there while a process writes

// BusyError says that another process exports to a file.
type BusyError struct{ Path string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("another process exports to %s; wait for it to end, or name another file", e.Path)
}

// lockOutput keeps other exports to the file away: what one of them notes would be of the other's rows.
func lockOutput(path string) (*rundir.Lock, error) {
	lock, err := rundir.TakeBeside(path, lockSuffix)
	switch held := new(rundir.HeldError); {
	case errors.As(err, &held) && held.Stale == "":
		err = &BusyError{path}
	case err != nil:
		err = fmt.Errorf("create output: %w", err)
	}
	return lock, err
}
