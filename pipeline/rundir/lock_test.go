package rundir

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// The file of a claim is taken away with it: nobody may hold one that has no name any more.
func TestOneProcessAtATimeHasAClaim(t *testing.T) {
	root := filepath.Join(t.TempDir(), "runs")
	var inside, taken atomic.Int32
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 50 {
				l, err := TakeClaim(filepath.Join(root, ".locks"), "load")
				if err != nil {
					held := new(HeldError)
					if !errors.As(err, &held) || !held.Load {
						t.Error(err)
					}
					continue
				}
				if inside.Add(1) != 1 {
					t.Error("two have the claim")
				}
				taken.Add(1)
				inside.Add(-1)
				if err := l.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if taken.Load() == 0 {
		t.Error("nobody got the claim")
	}
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is left: %v", err)
	}
}

func TestLocksOfProcessesThatWereKilledAreTakenAway(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "locks")
	held, err := TakeClaim(folder, "held")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "killed"), []byte(`{"pid":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := TakeClaim(folder, "another")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "killed")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock of a process that is gone: %v", err)
	}
	if _, err := TakeClaim(folder, "held"); !errors.As(err, new(*HeldError)) {
		t.Errorf("the lock of a process that runs: %v", err)
	}
	for _, l := range []*Lock{l, held} {
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
}

func TestTheFolderOfARunThatDidNotBeginIsTakenAway(t *testing.T) {
	dir := t.TempDir()
	l, err := TakePassing(filepath.Join(dir, "runs", "one"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TakePassing(filepath.Join(dir, "runs", "one")); !errors.As(err, new(*HeldError)) {
		t.Errorf("taken twice: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if l, err = TakePassing(dir); err != nil { // the user's own folder
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("the user's folder: %v, %v", left, err)
	}
	if l, err = TakePassing(dir); err != nil {
		t.Fatal(err)
	}
	l.Keep()
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, LockFile)); err != nil {
		t.Errorf("the lock of a run that began: %v", err)
	}
}

func TestWithoutLocksOfTheFileSystemAFileSaysWhoHasIt(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock"+holderSuffix)
	free, err := holdFile(name)
	if err != nil {
		t.Fatal(err)
	}
	held := new(HeldError)
	if _, err := holdFile(name); !errors.As(err, &held) || held.By.PID != os.Getpid() {
		t.Errorf("taken twice: %v", err)
	}
	if err := free(); err != nil {
		t.Fatal(err)
	}
	leave := func(h Holder) {
		t.Helper()
		text, err := json.Marshal(h)
		if err == nil {
			err = os.WriteFile(name, text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	leave(Holder{PID: 1 << 30, Host: thisProcess().Host}) // no such process
	if free, err = holdFile(name); err != nil {
		t.Errorf("left by a process that is gone: %v", err)
	} else if err := free(); err != nil {
		t.Fatal(err)
	}
	leave(Holder{PID: 1 << 30, Host: "elsewhere"})
	if _, err := holdFile(name); !errors.As(err, &held) || !strings.Contains(err.Error(), "delete "+name) {
		t.Errorf("left by another machine: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(name)); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

func TestTwoProcessesDoNotWriteOneJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.csv")
	j, err := OpenJournal(path, 0, Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(path, 0, Exclusive); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opened twice: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
