package rundir

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// The file of a claim is removed with the claim. No process may hold a claim whose file has lost its name.
func TestClaimIsExclusive(t *testing.T) {
	root := filepath.Join(t.TempDir(), "runs")
	var inside, taken atomic.Int32
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 50 {
				l, err := TakeClaim(filepath.Join(root, ".locks"), "load")
				if err != nil {
					held := new(HeldError)
					conformance.True(t, errors.As(err, &held) && held.Load, "%v", err)
					continue
				}
				conformance.Equal(t, inside.Add(1), 1, "two have the claim")
				taken.Add(1)
				inside.Add(-1)
				conformance.Equal(t, l.Release(), nil, "Release")
			}
		})
	}
	wait.Wait()
	conformance.True(t, taken.Load() != 0, "nobody got the claim")
	conformance.Is(t, conformance.ErrorOf(os.Stat(root)), os.ErrNotExist, "something is left")
}

func TestLocksOfKilledProcessesAreRemoved(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "locks")
	held := conformance.Try(TakeClaim(folder, "held")).Must(t)
	must(t, os.WriteFile(filepath.Join(folder, "killed"), []byte(`{"pid":1}`), 0o600))
	l := conformance.Try(TakeClaim(folder, "another")).Must(t)
	conformance.Is(t, conformance.ErrorOf(os.Stat(filepath.Join(folder, "killed"))), os.ErrNotExist,
		"the lock of a process that is gone")
	_, err := TakeClaim(folder, "held")
	conformance.True(t, errors.As(err, new(*HeldError)), "the lock of a process that runs: %v", err)
	for _, l := range []*Lock{l, held} {
		conformance.Equal(t, l.Release(), nil, "Release")
	}
}

func TestFolderOfUnstartedRunIsRemoved(t *testing.T) {
	dir := t.TempDir()
	l := conformance.Try(TakePassing(filepath.Join(dir, "runs", "one"))).Must(t)
	_, err := TakePassing(filepath.Join(dir, "runs", "one"))
	conformance.True(t, errors.As(err, new(*HeldError)), "taken twice: %v", err)
	must(t, l.Release())
	left, _ := os.ReadDir(dir)
	conformance.Equal(t, len(left), 0, "left: %v", left)
	l = conformance.Try(TakePassing(dir)).Must(t)
	must(t, l.Release())
	left, err = os.ReadDir(dir)
	conformance.True(t, err == nil && len(left) == 0, "the user's folder: %v, %v", left, err)
	l, err = TakePassing(dir) // the user's own folder
	must(t, err)
	l.Keep()
	must(t, l.Release())
	conformance.Equal(t, conformance.ErrorOf(os.Stat(filepath.Join(dir, LockFile))), nil, "the lock of a run that began")
}

func TestFileReplacesMissingFileSystemLocks(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock"+holderSuffix)
	free := conformance.Try(holdFile(name)).Must(t)
	held := new(HeldError)
	_, err := holdFile(name)
	conformance.True(t, errors.As(err, &held) && held.By.PID == os.Getpid(), "taken twice: %v", err)
	must(t, free())
	leave := func(h Holder) {
		t.Helper()
		text, err := json.Marshal(h)
		if err == nil {
			err = os.WriteFile(name, text, 0o644)
		}
		must(t, err)
	}
	leave(Holder{PID: 1 << 30, Host: thisProcess().Host}) // no such process
	if free, err = holdFile(name); err != nil {
		t.Errorf("left by a process that is gone: %v", err)
	} else {
		must(t, free())
	}
	leave(Holder{PID: 1 << 30, Host: "elsewhere"})
	if _, err := holdFile(name); !errors.As(err, &held) || !strings.Contains(err.Error(), "delete "+name) {
		t.Errorf("left by another machine: %v", err)
	}
	left, _ := os.ReadDir(filepath.Dir(name))
	conformance.Equal(t, len(left), 1, "left: %v", left)
}

// answers holds the successive results of TryLock.
type answers []error

func (a *answers) Path() string { return "the-lock" }

func (a *answers) TryLock() (bool, error) {
	err := (*a)[0]
	*a = (*a)[1:]
	return err == nil, err
}

func TestFileSystemWithoutLocksIsDetected(t *testing.T) {
	for _, err := range []error{syscall.ENOLCK, syscall.ENOSYS, syscall.EOPNOTSUPP, syscall.EINVAL} {
		conformance.Is(t, tryLock(&answers{err}), errNoLocks, "%v", err)
	}
	conformance.Equal(t, tryLock(&answers{syscall.EINTR, nil}), nil, "interrupted once")
	if err := tryLock(&answers{syscall.EIO}); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "the-lock") {
		t.Errorf("a disk that fails: %v", err)
	}
	err := tryLock(&answers{&fs.PathError{Op: "open", Path: "x", Err: syscall.EINVAL}})
	conformance.True(t, err != nil && !errors.Is(err, errNoLocks), "a file that cannot be opened: %v", err)
}

// Windows prevents others from reading or writing the locked byte, which is the first one.
func TestHolderIsReadDespiteLockedFirstByte(t *testing.T) {
	name := filepath.Join(t.TempDir(), LockFile)
	for text, want := range map[string]Holder{
		"{\"pid\":7,\"host\":\"a\"}\n":                {7, "a"},
		"\x00\"pid\":7,\"host\":\"a\"}\n":             {7, "a"},
		"{\"pid\":7,\"host\":\"a\"}\nleft\":\"b\"}\n": {7, "a"}, // the rest of a longer text
		"":               {},
		"{\"pid\":7,\"h": {},
	} {
		must(t, os.WriteFile(name, []byte(text), 0o600))
		conformance.Equal(t, holderOf(name), want, "%q", text)
	}
	err := (Holder{8, "b"}).note(name)
	conformance.True(t, err == nil && holderOf(name) == (Holder{8, "b"}), "%v, %+v", err, holderOf(name))
}

func TestOpenExclusiveRefusesSecondProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.csv")
	j := conformance.Try(OpenExclusive(path, 0)).Must(t)
	conformance.Refused(t, conformance.ErrorOf(OpenExclusive(path, 0)), "another process", "opened twice")
	must(t, j.Close())
	// A journal that was refused or closed is not locked any more.
	_, err := OpenExclusive(path, 0, func(*os.File) error { return fs.ErrInvalid })
	conformance.True(t, errors.Is(err, fs.ErrInvalid), "refused by the check: %v", err)
	j = conformance.Try(OpenExclusive(path, 0)).Must(t)
	must(t, j.Close())
}

func TestHolderOfRunIsFoundReadOnly(t *testing.T) {
	dir := t.TempDir()
	_, held := HolderOf(dir)
	conformance.True(t, !held, "a folder without a lock is held")
	l := conformance.Try(TakeLock(dir)).Must(t)
	name := filepath.Join(dir, LockFile)
	before := conformance.Try(os.Stat(name)).Must(t)
	h, held := HolderOf(dir)
	conformance.True(t, held && h.PID == os.Getpid(), "%+v, %v", h, held)
	after, err := os.Stat(name)
	conformance.True(t, err == nil && after.ModTime().Equal(before.ModTime()) && after.Size() == before.Size(),
		"the lock's file changed: %v", err)
	must(t, l.Release())
	_, held = HolderOf(dir)
	conformance.True(t, !held, "a run whose lock was released is held")
	// A killed process leaves its id in the file. The id is now unused or belongs to another process.
	for _, h := range []Holder{{PID: 1 << 30, Host: thisProcess().Host}, thisProcess()} {
		must(t, h.note(name))
		_, held := HolderOf(dir)
		conformance.True(t, !held, "%+v was killed and holds the run", h)
	}
	if err := (Holder{PID: 7, Host: "elsewhere"}).note(name); err != nil { // that lock is free, too
		t.Fatal(err)
	}
	_, held = HolderOf(dir)
	conformance.True(t, !held, "a process of another machine was killed and holds the run")
	if l, err = TakeLock(dir); err != nil {
		t.Errorf("nothing is left locked: %v", err)
	} else {
		must(t, l.Release())
	}
}
