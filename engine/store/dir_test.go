package store

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"tsimport/engine/wire"
)

func TestADirectoryOfSomethingElseIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "not a tsimport store") || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("the directory was changed: %v", files)
	}
}

func TestASecondOpenNamesTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "store")
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "in use") || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	s.Close()
}

func TestReadOnlyNeedsAStore(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Join(dir, "missing")} {
		if _, err := Open(d, Options{ReadOnly: true}); err == nil {
			t.Errorf("%s was opened", d)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("the directory was changed: %v", files)
	}
}

func TestAStoreOfAnotherFormatIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, markerName), []byte("tsimport store, format 2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "format") {
		t.Error(err)
	}
}

func TestAnUnwritableDirectoryIsRefused(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
}

// TestAnInterruptedCreationIsTakenUp ends a creation before each of its writes, by a kill and by a loss of power.
func TestAnInterruptedCreationIsTakenUp(t *testing.T) {
	for name, left := range map[string]int{"a kill": 100, "a loss of power": 0} {
		t.Run(name, func(t *testing.T) {
			disk := vfs.NewCrashableMem()
			random := rand.New(rand.NewPCG(1, 1))
			var mu sync.Mutex
			var states []*vfs.MemFS
			watched := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
					mu.Lock()
					defer mu.Unlock()
					states = append(states, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: left, RNG: random}))
				}
				return nil
			}))
			s, err := Open("d", Options{FS: watched})
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			during := states
			mu.Unlock()
			s.Close()
			if len(during) < 10 {
				t.Fatalf("the creation is %d writes", len(during))
			}
			for i, state := range during {
				s, err := Open("d", Options{FS: state})
				if err != nil {
					t.Errorf("before write %d: %v", i, err)
					continue
				}
				newTable(t, s, -1, 1)
				if err := s.Close(); err != nil {
					t.Errorf("before write %d: %v", i, err)
				}
			}
		})
	}
}

// TestOneOfManyCreatesAStore opens an empty directory many times at once: one gets it, the others hear that it is in use.
func TestOneOfManyCreatesAStore(t *testing.T) {
	for range 5 {
		dir := filepath.Join(t.TempDir(), "store")
		var all sync.WaitGroup
		stores := make([]*Store, 8)
		for i := range stores {
			all.Go(func() {
				s, err := Open(dir, Options{})
				if err != nil && !strings.Contains(err.Error(), "in use") {
					t.Error(err)
				}
				stores[i] = s
			})
		}
		all.Wait()
		open := 0
		for _, s := range stores {
			if s != nil {
				open++
				s.Close()
			}
		}
		if open != 1 {
			t.Errorf("%d are open", open)
		}
	}
}

func TestAStoreWithoutItsDataDoesNotOpen(t *testing.T) {
	for name, lose := range map[string]string{"the directory": dataDir, "its table of contents": dataDir + "/*MANIFEST*"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			newTable(t, s, -1, 1)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			lost, _ := filepath.Glob(filepath.Join(dir, lose))
			for _, f := range lost {
				os.RemoveAll(f)
			}
			for range 2 {
				if _, err := Open(dir, Options{}); len(lost) == 0 || err == nil || !strings.Contains(err.Error(), dir) {
					t.Errorf("without %q: %v", lost, err)
				}
			}
		})
	}
}

// TestDamageInsideTheLogIsNotItsEnd flips a bit of a row in front of others, in the first log that a store has.
func TestDamageInsideTheLogIsNotItsEnd(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tab := newTable(t, s, -1, 1)
	for k := range int64(50) {
		apply(t, s, tab, change(wire.PutRow, k, at("a", strings.Repeat("x", 2000), 0)))
	}
	killed := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	logs, _ := filepath.Glob(filepath.Join(killed, dataDir, "*.log"))
	if len(logs) != 1 {
		t.Fatal(logs)
	}
	b, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.LastIndex(b[:40_000], []byte("xx"))] ^= 1
	if err := os.WriteFile(logs[0], b, 0o644); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(killed, Options{}); err == nil {
		s.Close()
		t.Error("the store opened, without the rows behind the damage")
	}
}
