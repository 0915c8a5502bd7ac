package store

import (
	"testing"
	"time"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
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
	conformance.Equal(t, s.Table([]byte("t")).Describe().Reserved, wire.Capacity{}, "reserved")
}
