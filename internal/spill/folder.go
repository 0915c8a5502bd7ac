package spill

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// Names of folders in the directory and of files in them. The package removes nothing else.
const (
	folderPrefix = "tsimport-spill-"
	lockName     = "lock"
	framesName   = "frames"
)

// lockText begins a lock file; the process ID follows. A folder without such a file was not made by this package.
const lockText = "tsimport spills rows here; process "

// folder is one run's folder. Its lock file stays locked until the process ends, even if it is killed.
type folder struct {
	path string
	lock *flock.Flock
}

func makeFolder(dir string) (*folder, error) {
	path, err := os.MkdirTemp(dir, folderPrefix+"*") // has mode 0700
	if err != nil {
		return nil, err
	}
	f := &folder{path: path}
	f.lock = flock.New(filepath.Join(path, lockName), flock.SetFlag(os.O_CREATE|os.O_EXCL|os.O_RDWR),
		flock.SetPermissions(0o600))
	if err := f.hold(); err != nil {
		return nil, cmp.Or(err, f.remove())
	}
	return f, nil
}

// hold locks the lock file before it writes lockText to it, so that no other run removes the folder in the meantime. A
// process killed between the two steps leaves a folder that is never removed.
func (f *folder) hold() error {
	locked, err := f.lock.TryLock()
	switch {
	case errors.As(err, new(*fs.PathError)):
		return err // the file cannot be created
	case err != nil:
		return fmt.Errorf("lock %s: %w; name a local disk with TMPDIR", f.lock.Path(), err)
	case !locked:
		return fmt.Errorf("lock %s: another process has locked it", f.lock.Path())
	}
	file, err := os.OpenFile(f.lock.Path(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s%d\n", lockText, os.Getpid())
	_, err = file.WriteAt([]byte(text[1:]), 1)
	_, _ = file.WriteAt([]byte(text[:1]), 0) // Windows refuses to write the locked byte, which isAbandoned does not read
	return errors.Join(err, file.Close())
}

func (f *folder) framesPath() string { return filepath.Join(f.path, framesName) }

func createFile(path string) (file, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

// remove removes the folder. The file of frames must have been closed.
func (f *folder) remove() error {
	_ = f.lock.Unlock()
	return removeFolder(f.path)
}

// removeFolder removes a run's files and then the folder, unless it contains something else. The lock file is the last
// file removed: while it exists, the next run can finish the removal.
func removeFolder(path string) error {
	for _, name := range []string{filepath.Join(path, framesName), filepath.Join(path, lockName), path} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// sweep removes the folders of killed runs from dir, as far as permissions allow.
func sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() && strings.HasPrefix(e.Name(), folderPrefix) && isAbandoned(path) {
			_ = removeFolder(path)
		}
	}
	return nil
}

// isAbandoned reports whether the folder belongs to a run that has ended.
func isAbandoned(path string) bool {
	root, err := os.OpenRoot(path) // in a shared directory, another user's link must not lead out of the folder
	if err != nil {
		return false
	}
	defer root.Close()
	info, err := root.Lstat(lockName)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	file, err := root.Open(lockName)
	if err != nil {
		return false
	}
	defer file.Close()
	line, err := bufio.NewReaderSize(io.NewSectionReader(file, 1, 128), 128).ReadString('\n')
	return err == nil && strings.HasPrefix(line, lockText[1:]) && isUnlocked(filepath.Join(path, lockName), info)
}

// isUnlocked reports whether the file at path is known to be unlocked and still the file that looked describes.
func isUnlocked(path string, looked fs.FileInfo) bool {
	lock := flock.New(path, flock.SetFlag(os.O_RDWR))
	if locked, err := lock.TryLock(); err != nil || !locked {
		return false
	}
	info, err := lock.Stat()
	return errors.Join(err, lock.Unlock()) == nil && os.SameFile(info, looked)
}
