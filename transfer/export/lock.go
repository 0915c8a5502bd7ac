package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/gofrs/flock"

	"example.com/tsimport/internal/atomicfile"
)

const lockSuffix = ".tsimport-export.lock" // is there while a process writes

// BusyError says that another process exports to a file.
type BusyError struct{ Path string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("another process exports to %s; wait for it to end, or name another file", e.Path)
}

// lockOutput keeps other exports to the file away until unlock: what one of them notes would be of the other's rows. File systems without locks
// keep nobody away.
func lockOutput(path string) (unlock func() error, err error) {
	for {
		lock := flock.New(atomicfile.Beside(path, lockSuffix), flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
		switch locked, err := lock.TryLock(); {
		case errors.As(err, new(*fs.PathError)):
			return nil, fmt.Errorf("create output: %w", err)
		case err != nil:
			return func() error { return removeLock(path) }, nil
		case !locked:
			return nil, &BusyError{path}
		}
		held, err := lock.Stat()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("create output: %w", err), lock.Unlock())
		}
		if now, err := os.Lstat(atomicfile.Beside(path, lockSuffix)); err == nil && os.SameFile(held, now) {
			return func() error { return endLock(lock, path) }, nil
		}
		if err := lock.Unlock(); err != nil { // the former holder has removed the file
			return nil, fmt.Errorf("create output: %w", err)
		}
	}
}

// endLock removes the file before others can have the lock, where a file that is open can be removed.
func endLock(lock *flock.Flock, path string) error {
	if runtime.GOOS == "windows" {
		return errors.Join(lock.Unlock(), removeLock(path))
	}
	return errors.Join(removeLock(path), lock.Unlock())
}

func removeLock(path string) error {
	if err := os.Remove(atomicfile.Beside(path, lockSuffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		if runtime.GOOS == "windows" {
			return nil // another process has it already
		}
		return fmt.Errorf("remove what an export has left: %w", err)
	}
	return nil
}
