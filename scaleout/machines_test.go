package scaleout

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tsimport/engine/server"
	"tsimport/engine/sim"
	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
	"tsimport/pipeline"
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
		cfg.Write.Concurrency, cfg.Write.BatchRows = requestsInFlight, rowsOfRequest
	}
	rows := partitions * each
	file, err := os.Create(filepath.Join(w.dir, "in.csv"))
	if err != nil {
		t.Fatal(err)
	}
	text := bufio.NewWriter(file)
	fmt.Fprintln(text, "id,what")
	for i := range rows {
		fmt.Fprintf(text, "k%07d,%d\n", i, i)
	}
	if err := text.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	w.inputs = []string{file.Name()}
	w.partition(partitions, rows)
	if err := w.plan(w.start("driver", 1, -1, 0), func(r *Request) { r.Workers, r.SplitSize = processes, int64(rows)*16/64 }); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for n := range processes {
		p := w.start(fmt.Sprintf("process %d", n), uint64(n), -1, 0)
		p.slow = slowestAct
		all.Go(func() {
			if err := p.run(func(ctx context.Context, j *Job) error {
				_, err := j.Work(ctx)
				return err
			}); err != nil {
				t.Errorf("%s: %v", p.name, err)
			}
		})
	}
	all.Wait()
	made, err := ReadPlan(t.Context(), w.store)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ReadSummary(t.Context(), w.store, made)
	if err != nil || s == nil || s.Written != int64(rows) || s.Read != int64(rows) {
		t.Errorf("%d partitions, %d processes: %+v, %v", partitions, processes, s, err)
		return nil
	}
	return s
}

// partition makes the table with so many partitions of equal numbers of rows.
func (w *world) partition(n, rows int) {
	sdk, err := client.New(w.t.Context(), w.config(w.server.Transport()).Target.Client, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	admin := &client.Admin{Client: sdk, Context: w.t.Context()}
	if err := admin.Create("t", []table.KeyColumn{{Name: "id", Type: table.String}}, table.Definition{TimeToLive: -1, MaxVersions: 1}); err != nil {
		w.t.Fatal(err)
	}
	if err := w.server.Sim().Simulate("t", server.Simulation{Config: sim.Config{PartitionUnits: unitsOfPartition}}); err != nil {
		w.t.Fatal(err)
	}
	var at []sim.Key
	for i := range n - 1 {
		at = append(at, sim.Key(fmt.Sprintf("k%07d", (i+1)*rows/n)))
	}
	if err := w.server.Sim().Split(w.t.Context(), "t", server.Cut{Keys: at}); err != nil {
		w.t.Fatal(err)
	}
}
