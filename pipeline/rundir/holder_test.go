package rundir

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheHolderOfARunIsFoundWithoutAChange(t *testing.T) {
	dir := t.TempDir()
	if _, held := HolderOf(dir); held {
		t.Error("a folder without a lock is held")
	}
	l, err := TakeLock(dir)
	must(t, err)
	name := filepath.Join(dir, LockFile)
	before, err := os.Stat(name)
	must(t, err)
	if h, held := HolderOf(dir); !held || h.PID != os.Getpid() {
		t.Errorf("%+v, %v", h, held)
	}
	after, err := os.Stat(name)
	if err != nil || !after.ModTime().Equal(before.ModTime()) || after.Size() != before.Size() {
		t.Errorf("the lock's file changed: %v", err)
	}
	must(t, l.Release())
	if _, held := HolderOf(dir); held {
		t.Error("a run whose lock was released is held")
	}
	// What a process leaves that was killed names a process of this machine that is gone, or another one by now.
	for _, h := range []Holder{{PID: 1 << 30, Host: thisProcess().Host}, thisProcess()} {
		must(t, h.note(name))
		if _, held := HolderOf(dir); held {
			t.Errorf("%+v was killed and holds the run", h)
		}
	}
	if err := (Holder{PID: 7, Host: "elsewhere"}).note(name); err != nil { // where the lock is free, too
		t.Fatal(err)
	}
	if _, held := HolderOf(dir); held {
		t.Error("a process of another machine was killed and holds the run")
	}
	if l, err = TakeLock(dir); err != nil {
		t.Errorf("nothing is left locked: %v", err)
	} else {
		must(t, l.Release())
	}
}
