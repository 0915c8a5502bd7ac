package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// LockFile is the name of the file in a run folder that the process holds which works on the run.
const LockFile = "lock"

// Lock is held by the one process that works on a run, or on a load.
type Lock struct {
	file *os.File
	free func() error // gives back what holds where the file system has no locks
	// passing are the file and the folders that go with the lock, the innermost first.
	passing []string
}

// Holder is the process that works on a run.
type Holder struct {
	PID  int    `json:"pid"`
	Host string `json:"host"`
}

// HeldError says that another process works on the run.
type HeldError struct {
	Path string // of the run, or of the lock of a load
	By   Holder
	Load bool // the load is not known by a run folder yet
	// Stale is a file that says who has the lock, where the file system has no locks: nobody can tell whether it still has.
	Stale string
}

func (e *HeldError) Error() string {
	what := "run " + e.Path + " is worked on by"
	if e.Load {
		what = "the same load is under way in"
	}
	by := " another process"
	if e.By.PID != 0 {
		by = fmt.Sprintf(" process %d on %s", e.By.PID, e.By.Host)
	}
	text := what + by + "; wait for it or stop it"
	if e.Stale != "" {
		text += fmt.Sprintf("; if it is gone, delete %s", e.Stale)
	}
	return text
}

// What lockFile returns when another process has the lock, and where the file system has none.
var (
	errLocked  = errors.New("locked")
	errNoLocks = errors.New("the file system has no locks")
)

// TakeLock takes the lock of a run folder, which exists. It is free again when the process ends, however it ends. The error
// is a *HeldError if another process has it.
func TakeLock(path string) (*Lock, error) {
	l, err := take(filepath.Join(path, LockFile))
	if held := new(HeldError); errors.As(err, &held) {
		held.Path = path
	}
	return l, err
}

// TakePassing is TakeLock for a folder that may be missing: it is made. Release takes the lock's file away, and the folder if it
// was made and is empty, unless Keep was called.
func TakePassing(path string) (*Lock, error) {
	made := missingFolders(path)
	for {
		if err := makeFolders(path); err != nil {
			return nil, fmt.Errorf("create run folder: %w", err)
		}
		_, statErr := os.Stat(filepath.Join(path, LockFile))
		l, err := TakeLock(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process has just taken the folder away
		}
		if err == nil && errors.Is(statErr, fs.ErrNotExist) {
			l.passing = append([]string{filepath.Join(path, LockFile)}, made...)
		}
		return l, err
	}
}

// TakeClaim takes the lock of a load in a folder of such locks, by what identifies the load. The folder is made; Release takes
// away what is empty. The error is a *HeldError if another process has it.
func TakeClaim(folder, identity string) (*Lock, error) {
	name := filepath.Join(folder, identity)
	made := []string{folder, filepath.Dir(folder)}
	for {
		if err := makeFolders(folder); err != nil {
			return nil, fmt.Errorf("lock the load: %w", err)
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

// mostAbandoned bounds how many locks are looked at for one that is taken.
const mostAbandoned = 100

// removeAbandoned takes away the files of locks whose processes were killed.
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
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if lockFile(f) == nil && isStill(f, name) {
			_ = os.Remove(name) // who has opened it meanwhile sees that its name is gone
		}
		f.Close()
	}
}

// makeFolders makes a folder and those above it, which other processes may take away meanwhile.
func makeFolders(path string) (err error) {
	for range 100 {
		err = os.MkdirAll(path, 0o755)
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return err
}

// missingFolders returns the folder and those above it that are missing.
func missingFolders(path string) (missing []string) {
	for path = filepath.Clean(path); ; path = filepath.Dir(path) {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return missing
		}
		missing = append(missing, path)
	}
}

// take takes the lock that a file stands for.
func take(name string) (*Lock, error) {
	for {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, fmt.Errorf("lock run folder: %w", err)
		}
		l := &Lock{file: f}
		err = lockFile(f)
		for wait := time.Millisecond; errors.Is(err, errLocked) && wait < 50*time.Millisecond; wait *= 2 {
			time.Sleep(wait) // tsimport runs takes a lock for a moment, to see whether it can be taken
			err = lockFile(f)
		}
		if errors.Is(err, errNoLocks) {
			l.free, err = holdFile(name + holderSuffix)
		}
		held := new(HeldError)
		switch {
		case errors.As(err, &held):
			return nil, errors.Join(err, f.Close())
		case errors.Is(err, errLocked):
			held.Path = name
			if text, readErr := os.ReadFile(name); readErr == nil {
				_ = json.Unmarshal(text, &held.By) // who holds it may not have said so yet
			}
			f.Close()
			return nil, held
		case err != nil:
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		if !isStill(f, name) {
			_ = l.Release() // whoever had it has taken the file away
			continue
		}
		if err := thisProcess().write(f); err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), l.Release())
		}
		return l, nil
	}
}

// isStill reports whether a name still stands for an open file.
func isStill(f *os.File, name string) bool {
	opened, err1 := f.Stat()
	named, err2 := os.Stat(name)
	return err1 == nil && err2 == nil && os.SameFile(opened, named)
}

func thisProcess() Holder {
	host, _ := os.Hostname() // for a message, and to look whether a process is alive
	return Holder{PID: os.Getpid(), Host: host}
}

func (h Holder) write(f *os.File) error {
	text, err := json.Marshal(h)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(text, 0)
	}
	return err
}

// Keep lets the lock's file and folder stay.
func (l *Lock) Keep() { l.passing = nil }

// Release gives the lock back. The file of a run folder's lock stays.
func (l *Lock) Release() error {
	if l == nil || l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	var err error
	for _, name := range l.passing { // while it is locked: who opens the file later sees that its name is gone
		if os.Remove(name) != nil {
			break
		}
	}
	if len(l.passing) == 0 {
		err = f.Truncate(0)
	}
	if l.free != nil {
		err = errors.Join(err, l.free())
	}
	return errors.Join(err, f.Close())
}
