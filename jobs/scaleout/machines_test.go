package scaleout

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline"
)

var machines = flag.Bool("scaleout-machines", false, "measure 64 to 512 partitions with 1 to 32 processes in virtual time")

// What the loads of TestMoreMachinesLoadFaster are like.
const (
	unitsOfPartition = 100 // rows a second
	requestsInFlight = 4   // of a process
	rowsOfRequest    = 50
	slowestAct       = 30 * time.Millisecond // of an object or a request, there and back; half of that on average
)

// TestMoreMachinesLoadFaster loads a table of many partitions by more and more processes, each on a machine of its own: in virtual time
// processors decide nothing, only requests, the store's objects and the partitions' capacity take time.
func TestMoreMachinesLoadFaster(t *testing.T) {
	each, partitions, processes := 500, []int{64}, []int{1, 4}
	if *machines {
		each, partitions, processes = 3000, []int{64, 128, 256, 512}, []int{1, 2, 4, 8, 16, 32}
	}
	for _, p := range partitions {
		took := map[int]float64{}
		for _, n := range processes {
			var s *Summary
			synctest.Test(t, func(t *testing.T) { s = loadByMachines(t, each, p, n) })
			if s == nil {
				return
			}
			took[n] = s.Seconds
			t.Logf("%d partitions, %2d processes: %6.1f s, of that reading %5.1f, writing %6.1f; %.2f of the capacity while writing; %.2f %% throttled, %d requests, %d shards",
				p, n, s.Seconds, s.ReadSeconds, s.WriteSeconds, float64(each)/(unitsOfPartition*s.WriteSeconds), 100*float64(s.Throttled)/float64(s.RowsSent), s.Requests, s.Shards)
		}
		if took[4] > 0.6*took[1] {
			t.Errorf("%d partitions: one process takes %.1f s, four %.1f s", p, took[1], took[4])
		}
	}
}

func loadByMachines(t *testing.T, each, partitions, processes int) *Summary {
	w := newWorld(t)
	w.tune = func(cfg *pipeline.Config) {
		cfg.Lanes.Concurrency, cfg.Lanes.BatchRows = requestsInFlight, rowsOfRequest
	}
	rows := partitions * each
	var text strings.Builder
	text.WriteString("id,what\n")
	for i := range rows {
		fmt.Fprintf(&text, "k%07d,%d\n", i, i)
	}
	w.inputs = []string{w.file("in.csv", text.String())}
	w.partition(partitions, rows)
	w.planned(func(r *Request) { r.Workers, r.SplitSize = processes, int64(rows)*16/64 })
	var all sync.WaitGroup
	for n := range processes {
		p := w.start(fmt.Sprintf("process %d", n), uint64(n), -1, 0)
		p.slow = slowestAct
		all.Go(func() {
			conformance.Equal(t, p.run(workAll), nil, "%s", p.name)
		})
	}
	all.Wait()
	made, err := ReadPlan(t.Context(), w.store)
	must(t, err)
	s, err := ReadSummary(t.Context(), w.store, made)
	if err != nil || s == nil || s.Written != int64(rows) || s.Read != int64(rows) {
		t.Errorf("%d partitions, %d processes: %+v, %v", partitions, processes, s, err)
		return nil
	}
	return s
}

// partition makes the table with so many partitions of equal numbers of rows.
func (w *world) partition(n, rows int) {
	admin := &client.Admin{Client: w.sdk(), Context: w.t.Context()}
	target := w.config(nil).Target
	must(w.t, admin.Create("t", target.Key, target.Define))
	must(w.t, w.server.Sim().Simulate("t", server.Simulation{Config: sim.Config{PartitionUnits: unitsOfPartition}}))
	var at []sim.Key
	for i := range n - 1 {
		at = append(at, sim.Key(fmt.Sprintf("k%07d", (i+1)*rows/n)))
	}
	must(w.t, w.server.Sim().Split(w.t.Context(), "t", server.Cut{Keys: at}))
}
