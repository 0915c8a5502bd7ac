package lanes

import (
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
)

func TestRefusalsOfTheInstanceAreNotThoseOfThePartition(t *testing.T) {
	b := blockOf(new(table.Split), "a", "b", "c", "d")
	f := &partitioner.Flight{Outcomes: []table.Outcome{
		{Fate: table.Written},
		{Fate: table.Again, Throttled: true, Code: "OTSNotEnoughCapacityUnit"},
		{Fate: table.Again, Throttled: true, Code: "OTSFlowControl"},
		{Fate: table.Again, Throttled: true, Code: "OTSFlowControl"},
	}}
	for i := range f.Outcomes {
		f.Rows = append(f.Rows, table.Ref{Block: b, Index: int32(i)})
	}
	if a := sum(f); a.units != 2 || a.Accepted != 1 || a.flow != 2 || a.Throttled != 3 || a.failed != 0 {
		t.Errorf("%+v", a)
	}
}

func TestNoLoadStarvesBesideOthers(t *testing.T) {
	l := NewSharedLimits(Rates{}, 2)
	greedy, late := l.join(), l.join()
	now := time.Unix(1000, 0)
	for range 2 {
		if greedy.begin(now) != 0 {
			t.Fatal("refused although requests are free")
		}
		greedy.sent(now, 1, 1, 1)
	}
	if late.begin(now) == 0 {
		t.Fatal("three requests of two")
	}
	greedy.landed()
	select {
	case <-late.woken():
	default:
		t.Error("the load that waits was not woken")
	}
	if greedy.begin(now) == 0 {
		t.Error("the load with more requests comes before the one that waits")
	}
	conformance.Equal(t, late.begin(now), 0, "the load that waits is refused the free request")
	late.sent(now, 1, 1, 1)
	greedy.leave()
	conformance.Equal(t, l.inFlight, 1, "in flight after a load with one more has left")
	late.landed()
	if late.leave(); l.inFlight != 0 || len(l.loads) != 0 {
		t.Errorf("%d requests and %d loads are left", l.inFlight, len(l.loads))
	}
}
