package store

import (
	"fmt"
	"testing"
	"time"

	"tsimport/engine/wire"
)

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
		if got != v.want || d.LastIncrease != start/1000+v.increase || decrease != v.decrease {
			t.Errorf("%+v: %q, increased at %d, decreased at %d", v, got, d.LastIncrease-start/1000, decrease)
		}
	}
	if d := s.Table([]byte("t")).Describe(); d.Reserved != (wire.Capacity{}) {
		t.Error(d.Reserved)
	}
}

func TestARefusedThroughputLeavesTheOptionsAlone(t *testing.T) {
	s := open(t, Options{ThroughputInterval: time.Hour})
	newTable(t, s, -1, 1)
	if _, err := reserve(s, 1, 1); err != nil {
		t.Fatal(err)
	}
	r := &wire.UpdateTable{Name: []byte("t")}
	r.Options.MaxVersions = wire.Optional[int32]{Value: 5, Set: true}
	r.Throughput.Read = wire.Optional[int32]{Value: 2, Set: true}
	if _, err := s.UpdateTable(ctx, r); err == nil || err.Code != wire.CodeTooFrequentReservation || err.Status != 403 {
		t.Error(err)
	}
	if d := s.Table([]byte("t")).Describe(); d.MaxVersions != 1 || d.Reserved.Read != 1 {
		t.Errorf("%+v", d)
	}
}

func TestTheQuotaOfTablesIsExact(t *testing.T) {
	s := open(t, Options{MaxTables: 3})
	create := func(i int) string {
		if err := s.CreateTable(ctx, tableRequest(fmt.Sprintf("t%d", i), -1, 1)); err != nil {
			return err.Error()
		}
		return ""
	}
	for i := range 3 {
		if got := create(i); got != "" {
			t.Fatal(got)
		}
	}
	if got := create(3); got != "OTSQuotaExhausted: Number of tables exceeded the quota." {
		t.Error(got)
	}
	if got := create(0); got != "OTSObjectAlreadyExist: Requested table already exists." {
		t.Error(got)
	}
	if err := s.DeleteTable(ctx, []byte("t1")); err != nil {
		t.Fatal(err)
	}
	if got := create(3); got != "" {
		t.Error(got)
	}
	// Indexes count as tables.
	err := s.CreateIndex(ctx, &wire.CreateIndex{Table: []byte("t0"), Index: wire.IndexMeta{Name: "i", Key: []string{"k"}}})
	if err == nil || err.Code != wire.CodeQuotaExhausted {
		t.Error(err)
	}
	if err := s.DeleteTable(ctx, []byte("t3")); err != nil {
		t.Fatal(err)
	}
	r := tableRequest("t3", -1, 1)
	r.Indexes = []wire.IndexMeta{{Name: "i", Key: []string{"k"}}}
	if err := s.CreateTable(ctx, r); err == nil || err.Code != wire.CodeQuotaExhausted {
		t.Error(err)
	}
	r.Indexes = nil
	if err := s.CreateTable(ctx, r); err != nil {
		t.Error(err)
	}
}

func TestPartitionsAndPredefinedColumnsSurviveAReopen(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := tableRequest("t", -1, 1)
	r.Bounds = []wire.Cell{{Type: wire.Integer, Value: integer(-5)}, {Type: wire.Integer, Value: integer(7)}}
	if err := s.CreateTable(ctx, r); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*wire.DefinedColumns{
		{Name: r.Name, Add: []wire.DefinedColumn{{Name: "a", Type: 1}, {Name: "b", Type: 4}}}, {Name: r.Name, Delete: []string{"a"}},
	} {
		if err := s.UpdateDefined(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.UpdateDefined(ctx, &wire.DefinedColumns{Name: []byte("u"), Delete: []string{"a"}}); err == nil || err.Code != wire.CodeObjectNotExist {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := s.Table([]byte("t")).Describe()
	if len(d.Defined) != 1 || d.Defined[0] != (wire.DefinedColumn{Name: "b", Type: 4}) {
		t.Errorf("%+v", d.Defined)
	}
	if len(d.Bounds) != 2 || d.Bounds[0].Int() != -5 || d.Bounds[1].Int() != 7 || string(d.Bounds[1].Name) != "k" {
		t.Errorf("%+v", d.Bounds)
	}
}
