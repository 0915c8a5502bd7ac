package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"example.com/tsimport/internal/atomicfile"
)

// LockFile is the name of the file in a run folder that the process working on the run has locked.
const LockFile = "lock"

// Lock is a lock of a run, a load or a file, which only the process that holds the lock may work on.
type Lock struct {
	file *flock.Flock
	free func() error // removes the file that stands for a lock on file systems without locks
	// passing holds the file and the folders to remove when the lock is released, the innermost first.
	passing []string
}

// Holder is the process that works on a run.
type Holder struct {
	PID  int    `json:"pid"`
	Host string `json:"host"`
}

// HeldError means that another process works on the run.
type HeldError struct {
	Path string // path of the run, or of the lock of a load
	By   Holder
	Load bool // the load has no run folder yet
	// Stale is a file that names the holder, if the file system has no locks; the holder may not be running any more.
	Stale string
}

func (e *HeldError) Error() string {
	what := "run " + e.Path + " is worked on by"
	if e.Load {
		what = "the same load is running in"
	}
	by := " another process"
	if e.By.PID != 0 {
		by = fmt.Sprintf(" process %d on %s", e.By.PID, e.By.Host)
	}
	text := what + by + "; wait for it or stop it"
	if e.Stale != "" {
		text += fmt.Sprintf("; if it has ended, delete %s", e.Stale)
	}
	return text
}

// Errors of tryLock if another process has the lock, and if the file system has no locks.
var (
	errLocked  = errors.New("locked")
	errNoLocks = errors.New("the file system has no locks")
)

// TakeLock locks an existing run folder until Release or the end of the process. It may return a *HeldError.
func TakeLock(path string) (*Lock, error) {
	l, err := take(filepath.Join(path, LockFile))
	if held := new(HeldError); errors.As(err, &held) {
		held.Path = path
	}
	return l, err
}

// HolderOf reports whether a process works on the run in a folder, and which one, if it has identified itself. It
// writes nothing: it only takes a read lock for a moment, for which TakeLock waits.
func HolderOf(path string) (h Holder, held bool) {
	return holderOfLock(filepath.Join(path, LockFile))
}

// HeldClaims returns the holders of the claims in a folder whose names begin with a prefix, by name.
func HeldClaims(folder, prefix string) (map[string]Holder, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("look for other loads: %w", err)
	}
	claims := map[string]Holder{}
	for _, e := range entries {
		if name := strings.TrimSuffix(e.Name(), holderSuffix); strings.HasPrefix(name, prefix) {
			h, held := holderOfLock(filepath.Join(folder, name))
			if held && (h.PID == 0 || h.Host != thisProcess().Host || alive(h.PID)) { // if not, it is being removed
				claims[name] = h
			}
		}
	}
	return claims, nil
}

// holderOfLock is HolderOf for a lock file.
func holderOfLock(name string) (h Holder, held bool) {
	if _, err := os.Stat(name); err != nil {
		return h, false
	}
	f := flock.New(name, flock.SetFlag(os.O_RDONLY))
	err := tryLock(toRead{f})
	_ = f.Unlock()
	h = holderOf(name)
	switch {
	case err == nil:
		return Holder{}, false
	case errors.Is(err, errNoLocks):
		text, err := os.ReadFile(name + holderSuffix)
		if err != nil || json.Unmarshal(text, &h) != nil {
			return Holder{}, err == nil
		}
		return h, h.Host != thisProcess().Host || alive(h.PID)
	}
	return h, errors.Is(err, errLocked) || h.PID != 0 // if the file cannot be locked, its text counts
}

// toRead is a lock that is shared by its readers.
type toRead struct{ *flock.Flock }

func (f toRead) TryLock() (bool, error) { return f.TryRLock() }

// TakePassing is TakeLock, but creates a missing folder, which Release removes if it is empty, unless Keep is called.
func TakePassing(path string) (*Lock, error) {
	made := missingFolders(path)
	for {
		if err := makeFolders(path); err != nil {
			return nil, &FolderError{"create run folder", err}
		}
		_, statErr := os.Stat(filepath.Join(path, LockFile))
		l, err := TakeLock(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process has just removed the folder
		}
		if err == nil && errors.Is(statErr, fs.ErrNotExist) {
			l.passing = append([]string{filepath.Join(path, LockFile)}, made...)
		}
		return l, err
	}
}

// TakeClaim takes a load's lock, given its identity, in a folder of such locks, which it creates if missing. Release
// removes the lock file, and the folder and its parent if they are empty. TakeClaim may return a *HeldError.
func TakeClaim(folder, identity string) (*Lock, error) {
	name := filepath.Join(folder, identity)
	made := []string{folder, filepath.Dir(folder)}
	for {
		if err := makeFolders(folder); err != nil {
			return nil, &FolderError{"lock the load", err}
		}
		l, err := take(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if held := new(HeldError); errors.As(err, &held) {
			held.Load = true
		}
		if err == nil {
			removeAbandoned(folder, identity)
			l.passing = append([]string{name}, made...)
		}
		return l, err
	}
}

// TakeBeside locks a file to be written, by a lock file beside it that Release removes. It may return a *HeldError.
func TakeBeside(path, suffix string) (*Lock, error) {
	name := atomicfile.Beside(path, suffix)
	l, err := take(name)
	if folder := new(FolderError); errors.As(err, &folder) {
		return nil, folder.Err
	}
	if err == nil {
		l.passing = []string{name}
	}
	return l, err
}

// mostAbandoned is the maximum number of lock files that are checked when a lock is taken.
const mostAbandoned = 100

// removeAbandoned removes lock files of killed processes.
func removeAbandoned(folder, own string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, e := range entries[:min(len(entries), mostAbandoned)] {
		name := filepath.Join(folder, e.Name())
		if e.Name() == own || !e.Type().IsRegular() {
			continue
		}
		f := flock.New(name, flock.SetFlag(os.O_RDWR))
		if tryLock(f) == nil && isStill(f) {
			_ = removeAndUnlock(f, name)
		} else {
			_ = f.Unlock()
		}
	}
}

// makeFolders creates a folder and its parents, which other processes may remove meanwhile.
func makeFolders(path string) (err error) {
	for range 100 {
		err = os.MkdirAll(path, 0o700)
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return err
}

// missingFolders returns which of the folder and its parents are missing.
func missingFolders(path string) (missing []string) {
	for path = filepath.Clean(path); ; path = filepath.Dir(path) {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return missing
		}
		missing = append(missing, path)
	}
}

func take(name string) (*Lock, error) {
	for {
		l := &Lock{file: flock.New(name, flock.SetFlag(os.O_RDWR|os.O_CREATE), flock.SetPermissions(0o600))}
		err := tryLock(l.file)
		for wait := time.Millisecond; errors.Is(err, errLocked) && wait < 50*time.Millisecond; wait *= 2 {
			time.Sleep(wait) // the command tsimport runs takes a lock for a moment, to test it
			err = tryLock(l.file)
		}
		if errors.Is(err, errNoLocks) {
			l.free, err = holdFile(name + holderSuffix)
		}
		switch {
		case errors.Is(err, errLocked):
			return nil, &HeldError{Path: name, By: holderOf(name)}
		case errors.As(err, new(*HeldError)):
			return nil, err
		case err != nil:
			return nil, &FolderError{"lock run folder", err}
		}
		if !isStill(l.file) {
			_ = l.Release() // the process that had the lock has removed the file
			continue
		}
		if err := thisProcess().note(name); err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), l.Release())
		}
		return l, nil
	}
}

// tryLock locks the file until it is unlocked or the process ends. Its errors include errLocked and errNoLocks.
func tryLock(f interface {
	TryLock() (bool, error)
	Path() string
}) error {
	for {
		ok, err := f.TryLock()
		switch {
		case ok:
			return nil
		case err == nil:
			return errLocked
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.As(err, new(*fs.PathError)):
			return err // the file cannot be opened
		case errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.EINVAL):
			return errNoLocks // network file systems without a lock service
		}
		return fmt.Errorf("lock %s: %w", f.Path(), err)
	}
}

// isStill reports whether the name of a locked file still refers to it.
func isStill(f *flock.Flock) bool {
	locked, err1 := f.Stat()
	named, err2 := os.Stat(f.Path())
	return err1 == nil && err2 == nil && os.SameFile(locked, named)
}

// removeAndUnlock removes names in order until one cannot be removed, then unlocks. On Windows, which cannot remove an
// open file, it unlocks first. Elsewhere, a process that has opened the file meanwhile finds that its name is gone.
func removeAndUnlock(f *flock.Flock, names ...string) error {
	var err error
	if runtime.GOOS == "windows" {
		err = f.Unlock()
	}
	for _, name := range names {
		if os.Remove(name) != nil {
			break
		}
	}
	return errors.Join(err, f.Unlock())
}

func thisProcess() Holder {
	host, _ := os.Hostname() // used in messages, and to check whether a process is alive
	return Holder{PID: os.Getpid(), Host: host}
}

// note writes the holder to a locked file, after the first byte, which Windows locks against other handles.
func (h Holder) note(name string) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(append(text[1:], '\n'), 1)
	if _, firstErr := f.WriteAt(text[:1], 0); runtime.GOOS != "windows" {
		err = errors.Join(err, firstErr)
	}
	return errors.Join(err, f.Close())
}

// holderOf reads the holder from a lock file. It is empty if the holder has not identified itself yet.
func holderOf(name string) (h Holder) {
	f, err := os.Open(name)
	if err != nil {
		return Holder{}
	}
	defer f.Close()
	rest := io.NewSectionReader(f, 1, 1<<10)
	if json.NewDecoder(io.MultiReader(strings.NewReader("{"), rest)).Decode(&h) != nil {
		return Holder{}
	}
	return h
}

// Keep makes Release keep the lock's file and folder.
func (l *Lock) Keep() { l.passing = nil }

// Release releases the lock, and removes the files and folders that its Take function names.
func (l *Lock) Release() error {
	if l == nil || l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	if len(l.passing) == 0 {
		_ = os.Truncate(f.Path(), 0) // the holder is only for messages
	}
	err := removeAndUnlock(f, l.passing...)
	if l.free != nil {
		err = errors.Join(err, l.free())
	}
	return err
}
