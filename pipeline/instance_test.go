package pipeline

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"tsimport/engine/server"
	"tsimport/engine/sim"
	"tsimport/internal/table"
	"tsimport/partitioner"
)

// instanceWorld is a world whose instance takes so many units a second.
func instanceWorld(t *testing.T, units float64) *world {
	t.Helper()
	w := newWorld(t)
	s, err := server.Open("", server.Options{InMemory: true, Faults: w.plan, InstanceUnits: units})
	must(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	w.server = s
	return w
}

// An instance of little capacity saves up a few rows' worth only: larger requests are refused however long they wait.
func TestAllLanesShareTheRateOfAnInstance(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{50, 100, 500, 1000} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rows := int(min(20*rate, 2000))
				w := instanceWorld(t, rate)
				w.partitioned(server.Simulation{Config: sim.Config{Latency: 5 * time.Millisecond}}, "k00300", "k00600", "k00900")
				r := w.load(w.config(w.file("in.csv", shuffled(rows))))
				// tsbench spread --limit-instance measures how much less it is.
				if got := float64(rows) / r.Seconds / rate; got < 0.8 && rows > 1000 || got > 1.05 || len(w.rows()) != rows {
					t.Errorf("%.3f of what the instance takes, %d rows of %d", got, len(w.rows()), rows)
				}
				// Most are refused at once, when nobody knows the limit yet: what four lanes have sent by then.
				if r.Throttled == 0 || rate == 1000 && int(r.Throttled) > rows/2 {
					t.Errorf("%d rows were refused", r.Throttled)
				}
			})
		})
	}
}

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
	if a := sum(f); a.units != 2 || a.accepted != 1 || a.flow != 2 || a.throttled != 3 || a.failed != 0 {
		t.Errorf("%+v", a)
	}
}
