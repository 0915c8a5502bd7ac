package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/filter"
	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func TestMain(m *testing.M) { conformance.Main(m) }

var ctx = context.Background()

type clock struct{ ms atomic.Int64 }

func (c *clock) now() time.Time { return time.UnixMilli(c.ms.Load()) }

// must ends the test if err is not the zero value of its type.
func must[E comparable](t interface {
	Helper()
	Fatal(...any)
}, err E) {
	t.Helper()
	var none E
	if err != none {
		t.Fatal(err)
	}
}

func writes(tab *Table, changes ...wire.Change) []TableWrite {
	return []TableWrite{{Table: tab, Changes: changes, Outcomes: make([]wire.Outcome, len(changes))}}
}

func rowsIter(s *Store, id uint32) (*pebble.Iterator, error) {
	return s.db.NewIter(&pebble.IterOptions{LowerBound: appendRowPrefix(nil, id), UpperBound: appendRowPrefix(nil, id+1)})
}

func reopen(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s := conformance.Try(Open(dir, o)).Must(t)
	return s
}

func newTable(t testing.TB, s *Store, ttl, versions int32) *Table {
	t.Helper()
	must(t, s.CreateTable(ctx, tableRequest("t", ttl, versions)))
	return s.Table([]byte("t"))
}

func tableRequest(name string, ttl, versions int32) *wire.CreateTable {
	r := &wire.CreateTable{Name: []byte(name), Key: []wire.KeyColumn{{Name: "k", Type: wire.KeyInteger}}}
	r.Options.TTL = wire.Optional[int32]{Value: ttl, Set: true}
	r.Options.MaxVersions = wire.Optional[int32]{Value: versions, Set: true}
	r.Options.Deviation = wire.Optional[int64]{Value: 1_000_000_000, Set: true}
	return r
}

func rowKey(k int64) []wire.Cell {
	return []wire.Cell{{Name: []byte("k"), Type: wire.Integer, Value: integer(k)}}
}

// at returns a cell with a timestamp; 0 means no timestamp.
func at(name, value string, ts int64) wire.Cell {
	return wire.Cell{Name: []byte(name), Type: wire.String, Value: []byte(value), Timestamp: ts, Stamped: ts != 0}
}

func change(op wire.RowOp, k int64, cells ...wire.Cell) wire.Change {
	return wire.Change{Op: op, Row: wire.Row{Key: rowKey(k), Cells: cells, Delete: op == wire.DeleteRow}}
}

func apply(t testing.TB, s *Store, tab *Table, changes ...wire.Change) (codes []string) {
	t.Helper()
	out := make([]wire.Outcome, len(changes))
	must(t, s.Write(ctx, []TableWrite{{Table: tab, Changes: changes, Outcomes: out}}, false))
	for i := range out {
		codes = append(codes, "")
		if out[i].Err != nil {
			codes[i] = out[i].Err.Code
		}
	}
	return codes
}

// read returns a row's cells as text, or "-" if there is no row.
func read(t testing.TB, s *Store, tab *Table, k int64) string {
	t.Helper()
	o := s.Get(tab, rowKey(k), &wire.Selection{}, nil)
	conformance.MustEqual(t, o.Err, nil, "error")
	if len(o.Row) == 0 {
		return "-"
	}
	var d wire.Decoder
	row, err := d.Row(o.Row)
	must(t, err)
	var parts []string
	for _, c := range row.Cells {
		v := string(c.Value)
		if c.Type == wire.Integer {
			v = fmt.Sprint(c.Int())
		}
		parts = append(parts, fmt.Sprintf("%s=%s@%d", c.Name, v, c.Timestamp))
	}
	return strings.Join(parts, " ")
}

func open(t testing.TB, o Options) *Store {
	t.Helper()
	o.InMemory = true
	s := reopen(t, "", o)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestRowsAndTablesSurviveReopen(t *testing.T) {
	dir := t.TempDir()
	for _, readOnly := range []bool{false, true} {
		s := reopen(t, dir, Options{ReadOnly: readOnly})
		if !readOnly {
			tab := newTable(t, s, -1, 1)
			apply(t, s, tab, change(wire.PutRow, 1, at("a", "x", 0)), change(wire.PutRow, 2), change(wire.PutRow, 3),
				change(wire.DeleteRow, 3))
		} else {
			tab := s.Table([]byte("t"))
			if got := read(t, s, tab, 1); !strings.HasPrefix(got, "a=x@") || read(t, s, tab, 2) != "" ||
				read(t, s, tab, 3) != "-" {
				t.Error(got, read(t, s, tab, 2), read(t, s, tab, 3))
			}
			out := make([]wire.Outcome, 1)
			err := s.Write(ctx, []TableWrite{{Table: tab, Changes: []wire.Change{change(wire.PutRow, 1)}, Outcomes: out}}, false)
			conformance.True(t, err != nil && err.Code == wire.CodeNoPermission, "%v", err)
		}
		must(t, s.Close())
	}
}

// Clients tell a table from a dropped one of the same name by the creation time.
func TestTablesHaveDistinctCreationTimes(t *testing.T) {
	c := &clock{}
	c.ms.Store(1_700_000_000_000)
	fs := vfs.NewMem()
	made := int64(0)
	for _, after := range []int64{0, 0, 1000, -5000, 0} { // the clock stands still, or is set back
		c.ms.Add(after)
		s := reopen(t, "store", Options{FS: fs, Now: c.now})
		for range 2 {
			at := newTable(t, s, -1, 1).Describe().Created
			conformance.True(t, at > made, "made at %d after one made at %d", at, made)
			made = at
			must(t, s.DeleteTable(ctx, []byte("t")))
		}
		must(t, s.Close())
	}
}

func failing(on *atomic.Bool) vfs.FS {
	return errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if on.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return syscall.ENOSPC
		}
		return nil
	}))
}

func TestFullDiskRefusesWrites(t *testing.T) {
	var full atomic.Bool
	s := reopen(t, "d", Options{FS: failing(&full)})
	tab := newTable(t, s, -1, 1)
	apply(t, s, tab, change(wire.PutRow, 1, at("a", "x", 0)))
	full.Store(true)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				err := s.Write(ctx, writes(tab, change(wire.PutRow, 2)), false)
				conformance.Refused(t, err, "", "a write to a full disk was acknowledged")
			}
		})
	}
	wg.Wait()
	refused := s.Write(ctx, writes(tab, change(wire.PutRow, 2)), false)
	conformance.True(t, refused != nil && refused.Code == wire.CodeNoPermission &&
		strings.Contains(refused.Message, "nothing was applied"), "%v", refused)
	got := read(t, s, tab, 1)
	conformance.True(t, strings.HasPrefix(got, "a=x@"), "what was there cannot be read: %v", got)
	conformance.Is(t, s.Close(), syscall.ENOSPC, "close")
}

// missingX returns a filter on column x, which no row has. Rows pass it if passes is set.
func missingX(t *testing.T, passes bool) *filter.Filter {
	t.Helper()
	b := []byte("\x08\x01\x12\x14\x08\x01\x12\x01x\x1a\x09\x00\x01\x00\x00\x00\x00\x00\x00\x00\x20\x01\x28\x01")
	if passes {
		b[len(b)-3] = 0
	}
	f, err := filter.DecodeCondition(b)
	must(t, err)
	return f
}

// patient is a context that is done after a number of calls of Err.
type patient struct {
	context.Context
	asked int
}

func (c *patient) Err() error {
	if c.asked--; c.asked < 0 {
		return context.Canceled
	}
	return nil
}

// A filter may take a long time per row, so the scan checks the context at every row.
func TestFilteredRangeStopsWhenClientDisconnects(t *testing.T) {
	s := open(t, Options{})
	tab := newTable(t, s, -1, 1)
	for k := range int64(20) {
		apply(t, s, tab, change(wire.PutRow, k))
	}
	q := &wire.GetRange{
		Start: []wire.Cell{{Name: []byte("k"), Type: wire.InfMin}}, End: []wire.Cell{{Name: []byte("k"), Type: wire.InfMax}},
	}
	_, err := s.Range(&patient{ctx, 10}, tab, q, missingX(t, true))
	conformance.True(t, err != nil && err.Message == readError(context.Canceled).Message, "%v", err)
	p, err := s.Range(&patient{ctx, 100}, tab, q, missingX(t, true))
	conformance.True(t, err == nil && len(p.Rows) != 0, "%v %v", p, err)
	p, err = s.Range(&patient{ctx, 10}, tab, q, nil)
	conformance.True(t, err == nil && len(p.Rows) != 0, "%v %v", p, err)
}

func reserve(s *Store, read, write int32) (*wire.TableDescription, *wire.Error) {
	r := &wire.UpdateTable{Name: []byte("t")}
	if read >= 0 {
		r.Throughput.Read = wire.Optional[int32]{Value: read, Set: true}
	}
	if write >= 0 {
		r.Throughput.Write = wire.Optional[int32]{Value: write, Set: true}
	}
	return s.UpdateTable(ctx, r)
}

func TestReservedThroughputChangesOncePerInterval(t *testing.T) {
	c := &clock{}
	start := int64(1_700_000_000_000)
	c.ms.Store(start)
	s := open(t, Options{Now: c.now, ThroughputInterval: 2 * time.Minute})
	newTable(t, s, -1, 1)
	const no = wire.CodeTooFrequentReservation
	for _, v := range []struct {
		after       int64 // milliseconds since the start
		read, write int32 // -1 if omitted
		want        string
		increase    int64 // seconds since the start
		decrease    int64 // likewise; -1 means never
	}{
		{1_000, 5, -1, "", 1, -1}, // the creation is not a change
		{1_001, 6, -1, no, 1, -1},
		{1_001, -1, 6, no, 1, -1},
		{1_001, 5, 0, "", 1, -1}, // the current values
		{120_999, 6, -1, no, 1, -1},
		{121_000, -1, 7, "", 121, -1},
		{240_999, 0, 0, no, 121, -1},
		{241_000, 4, 8, "", 241, 241},
		{100_000, 0, 0, "", 241, 100}, // the clock was set back
	} {
		c.ms.Store(start + v.after)
		_, err := reserve(s, v.read, v.write)
		got := ""
		if err != nil {
			got = err.Code
		}
		d := s.Table([]byte("t")).Describe()
		decrease := int64(-1)
		if d.LastDecrease != 0 {
			decrease = d.LastDecrease - start/1000
		}
		conformance.True(t, got == v.want && d.LastIncrease == start/1000+v.increase && decrease == v.decrease,
			"%+v: %q, increased at %d, decreased at %d", v, got, d.LastIncrease-start/1000, decrease)
	}
	conformance.Equal(t, s.Table([]byte("t")).Describe().Reserved, wire.Capacity{}, "reserved")
}

func TestForeignDirectoryIsRefusedUnchanged(t *testing.T) {
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

func TestOpenStoreIsLockedAndPrivate(t *testing.T) {
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
			if errors.Is(err, fs.ErrNotExist) { // Pebble deletes a replayed log at some later time
				return nil
			}
			if err == nil && e.Name() != "LOCK" && info.Mode().Perm()&0o077 != 0 { // LOCK is empty
				t.Errorf("%s has mode %v", path, info.Mode())
			}
			files++
			return err
		})
		conformance.True(t, err == nil && files >= 5, "%d files, %v", files, err)
		must(t, s.Close())
	}
}

// TestInterruptedCreationIsCompleted interrupts a creation before each of its writes, by a kill and by a power loss.
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

// TestConcurrentOpensCreateOneStore opens an empty directory many times at once. Only one call succeeds.
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

func TestStoreWithoutDataDoesNotOpen(t *testing.T) {
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

// drawStored draws a change with up to five versions of up to nine columns, of all types and of extreme sizes.
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

// A read with an empty lower bound for column names decodes rows cell by cell, but must have the same result.
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
		for k := range int64(600) { // the keys alone cost two units
			apply(t, s, tab, change(wire.PutRow, 1000+k, at("a", "", now-86_000_000)))
		}
		c.ms.Add(rng.Int64N(90_000_000)) // some cells expire
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

func TestFlushWaitsForEnoughMemtables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gather{after: 1, count: 3, most: time.Minute}
		var l pebble.EventListener
		g.listen(&l)
		flush := func() (done *atomic.Bool) {
			done = new(atomic.Bool)
			l.FlushBegin(pebble.FlushInfo{})
			go func() {
				l.TableCreated(pebble.TableCreateInfo{Reason: "flushing"})
				done.Store(true)
			}()
			synctest.Wait()
			return done
		}
		for range 2 {
			conformance.MustEqual(t, flush().Load(), true, "a flush waits while the store is opened")
		}
		g.flushes = 0
		g.hold(true)
		conformance.MustTrue(t, flush().Load(), "the first flush waits")
		first := flush()
		for range 3 {
			conformance.MustEqual(t, first.Load(), false, "the flush did not wait for three memtables")
			l.TableCreated(pebble.TableCreateInfo{Reason: "compacting"})
			l.WALCreated(pebble.WALCreateInfo{})
			synctest.Wait()
		}
		conformance.MustEqual(t, first.Load(), true, "the flush waits, although three memtables are full")
		second, began := flush(), time.Now()
		time.Sleep(g.most - time.Nanosecond)
		conformance.MustTrue(t, !second.Load(), "the flush continued after %v", time.Since(began))
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		conformance.MustEqual(t, second.Load(), true, "the flush waits longer than it may")
		l.TableCreated(pebble.TableCreateInfo{Reason: "flushing"}) // the flush's next file
		conformance.MustEqual(t, time.Since(began), g.most, "how long the flush was held back")
		third := flush()
		g.noteRead()
		synctest.Wait()
		conformance.MustEqual(t, third.Load(), true, "a flush waits, although rows are read")
		g.noteRead()
		conformance.MustTrue(t, flush().Load(), "a flush waits, although rows were read since the one before began")
		fourth := flush()
		conformance.MustEqual(t, fourth.Load(), false, "a flush does not wait, although no rows were read")
		g.hold(false)
		synctest.Wait()
		conformance.MustTrue(t, fourth.Load() && flush().Load(), "a flush waits, although the store is closed")
	})
}

func TestCloseDoesNotWaitForHeldFlush(t *testing.T) {
	dir := t.TempDir()
	s := reopen(t, dir, Options{})
	s.gather.after, s.gather.most = 0, 24*time.Hour // a wait would exceed the test's time
	tab := newTable(t, s, -1, 1)
	apply(t, s, tab, change(1, 1, at("c", "first", 0)))
	conformance.Must(t, conformance.ErrorOf(s.db.AsyncFlush()))
	apply(t, s, tab, change(1, 2, at("c", "second", 0)))
	must(t, s.Close())
	s = reopen(t, dir, Options{})
	defer s.Close()
	tab = s.Table([]byte("t"))
	for k, want := range []string{"first", "second"} {
		got, _, _ := strings.Cut(read(t, s, tab, int64(k+1)), "@")
		conformance.Equal(t, got, "c="+want, "row %d", k+1)
	}
}
