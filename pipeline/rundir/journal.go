package rundir

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"

	"github.com/gofrs/flock"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/progress"
)

// Journal is a file that only grows, until a resumed run truncates it. It is not safe for concurrent use.
type Journal struct {
	path   string
	file   *os.File
	lines  *bufio.Writer
	length int64
	lock   *flock.Flock // set by OpenExclusive
}

// OpenJournal opens or creates the file and, after check, truncates it to its first keep bytes, which must exist.
func OpenJournal(path string, keep int64, check ...func(*os.File) error) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	for _, c := range check {
		if err := c(file); err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
	j := &Journal{path: path, file: file, lines: bufio.NewWriterSize(file, 64<<10), length: keep}
	size, err := file.Seek(0, io.SeekEnd)
	switch {
	case err != nil:
	case size < keep:
		err = fmt.Errorf("open journal %s: it has %d bytes, but the run wrote %d; it was changed meanwhile; restore it, or "+
			"%s", path, size, keep, progress.StartOver)
	default:
		if err = file.Truncate(keep); err == nil {
			_, err = file.Seek(keep, io.SeekStart)
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return j, nil
}

// OpenExclusive is OpenJournal for a file that only one process may open. Without file locks, it excludes no process.
func OpenExclusive(path string, keep int64, check ...func(*os.File) error) (*Journal, error) {
	lock := flock.New(lockOf(path), flock.SetFlag(os.O_RDWR|os.O_CREATE), flock.SetPermissions(0o600))
	switch err := tryLock(lock); {
	case errors.Is(err, errLocked):
		return nil, fmt.Errorf("open journal %s: another process writes to it", path)
	case errors.As(err, new(*fs.PathError)):
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j, err := OpenJournal(path, keep, check...)
	if err != nil {
		return nil, errors.Join(err, unlockJournal(lock))
	}
	j.lock = lock
	return j, nil
}

// lockOf returns the file to lock for the journal: the journal or, on Windows, where locks block writes, another file.
func lockOf(path string) string {
	if runtime.GOOS == "windows" {
		return atomicfile.Beside(path, ".lock")
	}
	return path
}

func unlockJournal(lock *flock.Flock) error {
	if runtime.GOOS == "windows" {
		return removeAndUnlock(lock, lock.Path())
	}
	return lock.Unlock()
}

func (j *Journal) Append(b []byte) error {
	n, err := j.lines.Write(b)
	j.length += int64(n)
	if err != nil {
		return fmt.Errorf("write journal %s: %w", j.path, err)
	}
	return nil
}

// Length returns the length in bytes, including bytes not yet flushed.
func (j *Journal) Length() int64 { return j.length }

// File returns the open file. It must be synced before its length is relied on.
func (j *Journal) File() *os.File { return j.file }

func (j *Journal) Path() string { return j.path }

// Flush writes data buffered by Append.
func (j *Journal) Flush() error {
	if err := j.lines.Flush(); err != nil {
		return fmt.Errorf("write journal %s: %w", j.path, err)
	}
	return nil
}

// Sync makes everything appended so far safe from a crash of the machine.
func (j *Journal) Sync() error {
	if err := errors.Join(j.Flush(), j.file.Sync()); err != nil {
		return fmt.Errorf("write journal %s: %w", j.path, err)
	}
	return nil
}

func (j *Journal) Close() error {
	err := j.Sync()
	closeErr := j.file.Close()
	if j.lock != nil {
		closeErr = errors.Join(closeErr, unlockJournal(j.lock))
	}
	if err == nil && closeErr != nil {
		err = fmt.Errorf("write journal %s: %w", j.path, closeErr)
	}
	return err
}

// Read calls f with a reader of everything appended so far.
func (j *Journal) Read(f func(*bufio.Reader) error) error {
	if err := j.Flush(); err != nil {
		return err
	}
	return f(bufio.NewReaderSize(io.NewSectionReader(j.file, 0, j.length), 64<<10))
}
