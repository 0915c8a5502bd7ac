package runfolder

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// LockFile is the name of the file in a run folder that the process holds which works on the run.
const LockFile = "lock"

// Lock is held by the one process that works on a run.
type Lock struct{ file *os.File }

// Holder is the process that works on a run.
type Holder struct {
	PID  int    `json:"pid"`
	Host string `json:"host"`
}

// HeldError says that another process works on the run.
type HeldError struct {
	Path string
	By   Holder
}

func (e *HeldError) Error() string {
	if e.By.PID == 0 {
		return fmt.Sprintf("run %s is worked on by another process; wait for it or stop it", e.Path)
	}
	return fmt.Sprintf("run %s is worked on by process %d on %s; wait for it or stop it", e.Path, e.By.PID, e.By.Host)
}

// errLocked is what lockFile returns when another process has the lock.
var errLocked = errors.New("locked")

// TakeLock takes the lock of a run folder, which exists. It is free again when the process ends, however it ends. The error
// is a *HeldError if another process has it.
func TakeLock(path string) (*Lock, error) {
	name := filepath.Join(path, LockFile)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock run folder: %w", err)
	}
	if err := lockFile(f); err != nil {
		defer f.Close()
		if errors.Is(err, errLocked) {
			held := &HeldError{Path: path}
			if text, readErr := os.ReadFile(name); readErr == nil {
				_ = json.Unmarshal(text, &held.By) // who holds it may not have said so yet
			}
			return nil, held
		}
		return nil, fmt.Errorf("lock run folder %s: %w", path, err)
	}
	host, _ := os.Hostname() // for a message only
	text, err := json.Marshal(Holder{PID: os.Getpid(), Host: host})
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(text, 0)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock run folder %s: %w", path, err)
	}
	return &Lock{file: f}, nil
}

// Release gives the lock back. The file stays: removing it would let two processes hold two files of the name.
func (l *Lock) Release() error {
	if l == nil || l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	return errors.Join(f.Truncate(0), f.Close())
}
