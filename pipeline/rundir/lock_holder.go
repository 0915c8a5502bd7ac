package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// holderSuffix ends the name of a file that stands for a lock if there are no file locks. Its creator holds the lock.
const holderSuffix = ".holder"

// holdFile creates the file, or returns a *HeldError. It replaces the file of a local process that has ended.
func holdFile(name string) (free func() error, err error) {
	for range 3 {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			err = errors.Join(json.NewEncoder(f).Encode(thisProcess()), f.Sync(), f.Close())
			return func() error { return os.Remove(name) }, err
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		held := &HeldError{Path: name, Stale: name}
		if json.Unmarshal(text, &held.By) != nil || held.By.Host != thisProcess().Host || alive(held.By.PID) {
			return nil, held
		}
		// Two processes may both find the file stale. One that has moved a newer file away puts it back.
		aside := name + "." + strconv.Itoa(os.Getpid())
		if err := os.Rename(name, aside); err != nil {
			continue
		}
		if moved, err := os.ReadFile(aside); err != nil || !bytes.Equal(moved, text) {
			_ = os.Link(aside, name)
			_ = os.Remove(aside)
			return nil, held
		}
		_ = os.Remove(aside)
	}
	return nil, fmt.Errorf("create %s: other processes are creating it too", name)
}

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false // Windows reports it this way
	}
	defer p.Release()
	return runtime.GOOS == "windows" || !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
