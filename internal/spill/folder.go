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

// makeFolder makes a folder and locks it.
func makeFolder(dir string) (*folder, error) {
	path, err := os.MkdirTemp(dir, folderPrefix+"*") // with mode 0700
	if err != nil {
		return nil, err
	}
	f := &folder{path: path}
	if f.lock, err = os.OpenFile(filepath.Join(path, lockName), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err == nil {
		err = f.hold()
	}
	if err != nil {
		return nil, cmp.Or(err, f.remove())
	}
	return f, nil
}

// hold locks the folder, and only then writes the text that makes it a run's: until then other runs leave it alone,
// so none can find it unlocked and remove it between its making and its locking. A process that is killed just there
// leaves an empty folder behind.
func (f *folder) hold() error {
	if err := lock(f.lock); err != nil {
		return fmt.Errorf("lock %s: %w; give a local disk with --temp-dir", f.lock.Name(), err)
	}
	_, err := fmt.Fprintf(f.lock, "%s%d\n", lockText, os.Getpid())
	return err
}

func (f *folder) framesPath() string { return filepath.Join(f.path, framesName) }

func createFile(path string) (file, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
}

// remove removes the folder. The file of frames is closed already.
func (f *folder) remove() error {
	if f.lock != nil {
		_ = f.lock.Close()
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
	file, err := root.OpenFile(lockName, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	line, err := bufio.NewReaderSize(file, 128).ReadString('\n')
	pid, ours := strings.CutPrefix(strings.TrimSpace(line), lockText)
	return err == nil && ours && !isLocked(file, pid)
}
