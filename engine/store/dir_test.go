package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

func TestADirectoryThatHoldsNoStoreIsRefusedAndLeftAlone(t *testing.T) {
	file := func(name, text string) func(string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644) }
	}
	nothing := func(string) error { return nil }
	for name, v := range map[string]struct {
		prepare func(dir string) error
		below   string
		options Options
		want    string
	}{
		"something else":       {file("notes.txt", "mine"), "", Options{}, "not a tsimport store"},
		"another format":       {file(markerName, "tsimport store, format 2\n"), "", Options{}, "format"},
		"nothing, to read":     {nothing, "", Options{ReadOnly: true}, ""},
		"not there, to read":   {nothing, "missing", Options{ReadOnly: true}, ""},
		"it cannot be written": {func(dir string) error { return os.Chmod(dir, 0o555) }, "", Options{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "it cannot be written" && os.Getuid() == 0 {
				t.Skip("root may write everywhere")
			}
			dir := t.TempDir()
			must(t, v.prepare(dir))
			before, _ := os.ReadDir(dir)
			_, err := Open(filepath.Join(dir, v.below), v.options)
			conformance.True(t, err != nil && strings.Contains(err.Error(), v.want) && strings.Contains(err.Error(), dir),
				"%v", err)
			files, _ := os.ReadDir(dir)
			conformance.Equal(t, len(files), len(before), "the directory was changed: %v", files)
		})
	}
}

func TestASecondOpenNamesTheDirectoryAndOnlyItsOwnerReadsIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "store")
	for range 2 {
		s := reopen(t, dir, Options{})
		_, err := Open(dir, Options{})
		conformance.True(t, err != nil && strings.Contains(err.Error(), dir) && strings.Contains(err.Error(), "in use") &&
			!strings.Contains(err.Error(), "\n"), "%v", err)
		files := 0
		err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) { // Pebble deletes a log that it has read back, in its own time
				return nil
			}
			if err == nil && e.Name() != "LOCK" && info.Mode().Perm()&0o077 != 0 { // it is empty
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			files++
			return err
		})
		conformance.True(t, err == nil && files >= 5, "%d files, %v", files, err)
		must(t, s.Close())
	}
}

// TestInterruptedCreationIsCompleted ends a creation before each of its writes, by a kill and by a loss of power.
func TestInterruptedCreationIsCompleted(t *testing.T) {
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
			s := reopen(t, "d", Options{FS: watched})
			mu.Lock()
			during := states
			mu.Unlock()
			s.Close()
			conformance.MustTrue(t, len(during) >= 10, "the creation is %d writes", len(during))
			for i, state := range during {
				s, err := Open("d", Options{FS: state})
				if err != nil {
					t.Errorf("before write %d: %v", i, err)
					continue
				}
				newTable(t, s, -1, 1)
				conformance.Equal(t, s.Close(), nil, "before write %d", i)
			}
		})
	}
}

// TestConcurrentOpensCreateOneStore opens an empty directory many times at once: one gets it, others are refused.
func TestConcurrentOpensCreateOneStore(t *testing.T) {
	for range 5 {
		dir := filepath.Join(t.TempDir(), "store")
		var all sync.WaitGroup
		stores := make([]*Store, 8)
		for i := range stores {
			all.Go(func() {
				s, err := Open(dir, Options{})
				conformance.True(t, err == nil || strings.Contains(err.Error(), "in use"), "%v", err)
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
		conformance.Equal(t, open, 1, "how many are open")
	}
}

func TestAStoreWithoutItsDataDoesNotOpen(t *testing.T) {
	for name, lose := range map[string]string{"the directory": dataDir, "its table of contents": dataDir + "/*MANIFEST*"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := reopen(t, dir, Options{})
			newTable(t, s, -1, 1)
			must(t, s.Close())
			lost, _ := filepath.Glob(filepath.Join(dir, lose))
			for _, f := range lost {
				os.RemoveAll(f)
			}
			for range 2 {
				_, err := Open(dir, Options{})
				conformance.True(t, len(lost) != 0 && err != nil && strings.Contains(err.Error(), dir), "without %q: %v", lost, err)
			}
		})
	}
}

// drawStored draws a change of up to five versions of up to nine columns, of all types and sizes at their limits.
func drawStored(rng *rand.Rand, k, now int64) wire.Change {
	c := wire.Change{Op: wire.PutRow, Row: wire.Row{Key: rowKey(k)}}
	for column := range rng.IntN(10) {
		for version := range 1 + rng.IntN(5) {
			cell := wire.Cell{Name: fmt.Appendf(nil, "column%.*d", 1+rng.IntN(3), column)}
			switch rng.IntN(5) {
			case 0:
				cell.Type, cell.Value = wire.Integer, integer(rng.Int64())
			case 1:
				cell.Type, cell.Value = wire.Double, integer(rng.Int64N(1<<60))
			case 2:
				cell.Type, cell.Value = wire.Boolean, []byte{byte(rng.IntN(2))}
			case 3:
				cell.Type, cell.Value = wire.String, bytes.Repeat([]byte("s"), []int{0, 1, 7, 127, 128, 300}[rng.IntN(6)])
			case 4:
				cell.Type, cell.Value = wire.Binary, bytes.Repeat([]byte{0, 0xff}, []int{0, 1, 63, 64, 200}[rng.IntN(5)])
			}
			if cell.Stamped = rng.IntN(3) > 0; cell.Stamped {
				cell.Timestamp = now - 1000*rng.Int64N(200_000) - int64(version)
			}
			c.Row.Cells = append(c.Row.Cells, cell)
		}
	}
	return c
}

// An empty lower bound for column names omits nothing, but its rows are read cell by cell.
func TestCopiedRowsEqualRowsReadByCell(t *testing.T) {
	const now = 1_700_000_000_000
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var c clock
		c.ms.Store(now)
		s := open(t, Options{Now: c.now})
		ttl := []int32{-1, 86_400, 172_800}[rng.IntN(3)]
		tab := newTable(t, s, ttl, 1+rng.Int32N(4))
		for k := range int64(150) {
			change := drawStored(rng, k, now)
			apply(t, s, tab, change)
			if rng.IntN(10) == 0 {
				apply(t, s, tab, wire.Change{Op: wire.PutRow, Row: wire.Row{Key: rowKey(k),
					Cells: []wire.Cell{at("a", string(make([]byte, 200_000)), 0)}}})
			}
		}
		for k := range int64(600) { // the keys alone take two units
			apply(t, s, tab, change(wire.PutRow, 1000+k, at("a", "", now-86_000_000)))
		}
		c.ms.Add(rng.Int64N(90_000_000)) // some of it expires
		for _, versions := range []int32{0, 1, 2, 9} {
			q := &wire.GetRange{Backward: rng.IntN(2) == 0, Limit: rng.IntN(60),
				Start: []wire.Cell{{Name: []byte("k"), Type: wire.InfMin}},
				End:   []wire.Cell{{Name: []byte("k"), Type: wire.InfMax}}}
			if q.Backward {
				q.Start, q.End = q.End, q.Start
			}
			q.Selection.MaxVersions = wire.Optional[int32]{Value: versions, Set: versions > 0}
			for pages := 0; ; pages++ {
				cell := *q
				cell.Selection.StartColumn = []byte{}
				copied, err := s.Range(ctx, tab, q, nil)
				must(t, err)
				want, err := s.Range(ctx, tab, &cell, nil)
				must(t, err)
				conformance.MustTrue(t, bytes.Equal(copied.Rows, want.Rows) && bytes.Equal(copied.Next, want.Next) &&
					copied.Consumed == want.Consumed, "seed %d, %d versions, page %d: %d bytes of rows, %v, want %d, %v", seed,
					versions, pages, len(copied.Rows), copied.Consumed, len(want.Rows), want.Consumed)
				next := bytes.Clone(copied.Next)
				copied.Release()
				want.Release()
				if next == nil {
					break
				}
				var d wire.Decoder
				row, err := d.Row(next)
				must(t, err)
				q.Start = row.Key
			}
		}
	}
}
