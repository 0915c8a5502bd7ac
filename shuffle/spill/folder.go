package spill

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The names that runs leave in the directory, and in their own folders. Nothing else is ever removed.
const (
	folderPrefix = "tsimport-spill-"
	makingPrefix = "tsimport-making-spill-"
	lockName     = "lock"
	framesName   = "frames"
)

// lockText begins a lock file: a folder of the right name with no such file in it is somebody else's. The id of the
// process that made it follows.
const lockText = "tsimport spills rows here; process "

// folder is one run's folder. Its lock file stays locked as long as the process lives; the system unlocks it however
// the process ends, so an unlocked one tells that the folder is nobody's any more.
type folder struct {
	path string
	lock *os.File
}

// makeFolder makes a folder and locks it. It gets its name only when it is locked: under that name another run would
// otherwise find it unlocked for a moment and remove it.
func makeFolder(dir string) (*folder, error) {
	making, err := os.MkdirTemp(dir, makingPrefix+"*") // with mode 0700
	if err != nil {
		return nil, err
	}
	f := &folder{path: making}
	if f.lock, err = makeLock(filepath.Join(making, lockName)); err != nil {
		return nil, cmp.Or(err, f.remove())
	}
	path := filepath.Join(dir, folderPrefix+strings.TrimPrefix(filepath.Base(making), makingPrefix))
	if err := os.Rename(making, path); err != nil {
		return nil, cmp.Or(err, f.remove())
	}
	f.path = path
	return f, nil
}

func makeLock(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err = fmt.Fprintf(lock, "%s%d\n", lockText, os.Getpid()); err == nil {
		err = hold(lock)
	}
	if err != nil {
		return nil, cmp.Or(fmt.Errorf("lock %s: %w", path, err), lock.Close())
	}
	return lock, nil
}

func (f *folder) framesPath() string { return filepath.Join(f.path, framesName) }

func createFile(path string) (file, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

// remove removes the folder. The file of frames is closed already.
func (f *folder) remove() error {
	if f.lock != nil {
		_ = f.lock.Close() // it may be closed: not every system's lock is an open file
	}
	return removeFolder(f.path)
}

// removeFolder removes the files of a run and then the folder, unless there is something else in it. The lock goes
// after the frames: as long as it is there the next run can finish what was begun here.
func removeFolder(path string) error {
	for _, name := range []string{filepath.Join(path, framesName), filepath.Join(path, lockName), path} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// sweep removes the folders in dir whose runs have ended without removing them. A folder that cannot be looked into or
// removed belongs to another user, or is being removed by another run: it is left alone.
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

// isAbandoned reports whether the folder is a run's and that run has ended.
func isAbandoned(path string) bool {
	root, err := os.OpenRoot(path) // in a shared directory somebody's link must not lead out of the folder
	if err != nil {
		return false
	}
	defer root.Close()
	if info, err := root.Lstat(lockName); err != nil || !info.Mode().IsRegular() {
		return false
	}
	lock, err := root.OpenFile(lockName, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer lock.Close()
	line, err := bufio.NewReaderSize(lock, 128).ReadString('\n')
	pid, ours := strings.CutPrefix(strings.TrimSpace(line), lockText)
	return err == nil && ours && !isHeld(lock, pid)
}
