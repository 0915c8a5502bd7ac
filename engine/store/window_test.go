package store

import (
	"testing"

	"tsimport/engine/wire"
)

// The window of the deviation is [now − deviation, now + deviation) in whole seconds.
func TestTheWindowOfTimestampsHoldsItsStartAndNotItsEnd(t *testing.T) {
	c := &clock{}
	c.ms.Store(1_000_000_500)
	s := open(t, Options{Now: c.now})
	r := tableRequest("t", -1, 1)
	r.Options.Deviation.Value = 100
	if err := s.CreateTable(ctx, r); err != nil {
		t.Fatal(err)
	}
	tab := s.Table([]byte("t"))
	for ts, want := range map[int64]string{
		999_899_999: wire.CodeParameterInvalid, 999_900_000: "", 1_000_000_500: "", 1_000_099_999: "", 1_000_100_000: wire.CodeParameterInvalid,
	} {
		for _, op := range []wire.RowOp{wire.PutRow, wire.UpdateRow} {
			if codes := apply(t, s, tab, change(op, ts, at("c", "v", ts)), change(op, 1, at("c", "v", 0))); codes[0] != want || codes[1] != "" {
				t.Errorf("%s at %d: got %q, want %q", op, ts, codes[0], want)
			}
		}
		if there := read(t, s, tab, ts) != "-"; there != (want == "") {
			t.Errorf("the row of %d is there: %v", ts, there)
		}
	}
	deletion := wire.Cell{Name: []byte("c"), Type: wire.NoValue, Op: wire.DeleteVersion, Timestamp: 1, Stamped: true}
	if codes := apply(t, s, tab, change(wire.UpdateRow, 1, deletion)); codes[0] != "" {
		t.Errorf("a version far outside the window cannot be deleted: %v", codes)
	}
}
