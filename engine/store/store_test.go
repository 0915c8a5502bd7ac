package store

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"example.com/tsimport/engine/filter"
	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

func TestMain(m *testing.M) { conformance.Main(m) }

var ctx = context.Background()

type clock struct{ ms atomic.Int64 }

func (c *clock) now() time.Time { return time.UnixMilli(c.ms.Load()) }

// must ends the test if there is an error of Go or of the service.
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

// at is a cell at a timestamp; 0 means none.
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

// read is a row's cells as text, "-" if there is no row.
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

func TestRowsAndTablesSurviveAReopen(t *testing.T) {
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

// Clients distinguish a table from a dropped one of its name by the creation time.
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

func TestAFullDiskGivesCleanErrors(t *testing.T) {
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

// missingX is a filter on column x, which no row has: it passes them or not.
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

// patient is a context that ends after being asked a number of times.
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

// A filter may take long over a row, so disconnection is checked at each.
func TestARangeWithAFilterStopsAtTheNextRowAfterItsClientDisconnects(t *testing.T) {
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

func TestReservedThroughputChangesOnceInAnInterval(t *testing.T) {
	c := &clock{}
	start := int64(1_700_000_000_000)
	c.ms.Store(start)
	s := open(t, Options{Now: c.now, ThroughputInterval: 2 * time.Minute})
	newTable(t, s, -1, 1)
	const no = wire.CodeTooFrequentReservation
	for _, v := range []struct {
		after       int64 // milliseconds since the start
		read, write int32 // -1 is not named
		want        string
		increase    int64 // seconds since the start
		decrease    int64 // likewise, -1 is never
	}{
		{1_000, 5, -1, "", 1, -1}, // the creation is not a change
		{1_001, 6, -1, no, 1, -1},
		{1_001, -1, 6, no, 1, -1},
		{1_001, 5, 0, "", 1, -1}, // as it is
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
