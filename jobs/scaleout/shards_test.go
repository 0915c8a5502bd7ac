package scaleout

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/extsort"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/jobs/scaleout/runfile"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/checkpoint"
)

var machines = flag.Bool("scaleout-machines", false, "measure 64 to 512 partitions with 1 to 32 processes, simulated")

// The parameters of TestMoreMachinesLoadFaster.
const (
	unitsOfPartition = 100 // rows per second
	requestsInFlight = 4   // per process
	rowsOfRequest    = 50
	slowestAct       = 30 * time.Millisecond // maximum round trip for an object or a request; the average is half of it
)

// TestMoreMachinesLoadFaster simulates a machine per process. Only requests, objects and the capacity limit take time.
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
			t.Logf("%d partitions, %2d processes: %6.1f s, of that reading %5.1f, writing %6.1f; %.2f of the capacity while "+
				"writing; %.2f %% throttled, %d requests, %d shards",
				p, n, s.Seconds, s.ReadSeconds, s.WriteSeconds, float64(each)/(unitsOfPartition*s.WriteSeconds),
				100*float64(s.Throttled)/float64(s.RowsSent), s.Requests, s.Shards)
		}
		conformance.True(t, took[4] <= 0.6*took[1], "%d partitions: 1 process takes %.1f s, 4 %.1f s", p, took[1], took[4])
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
		all.Go(func() { conformance.Equal(t, p.run(workAll), nil, "%s", p.name) })
	}
	all.Wait()
	s, err := ReadSummary(t.Context(), w.store, conformance.Try(ReadPlan(t.Context(), w.store)).Must(t))
	if err != nil || s == nil || s.Written != int64(rows) || s.Read != int64(rows) {
		t.Errorf("%d partitions, %d processes: %+v, %v", partitions, processes, s, err)
		return nil
	}
	return s
}

func (w *world) admin() *client.Admin {
	return &client.Admin{Client: w.sdk(), Context: w.t.Context()}
}

func (w *world) partition(n, rows int) {
	target := w.config(nil).Target
	must(w.t, w.admin().Create("t", target.Key, target.Define))
	must(w.t, w.server.Sim().Simulate("t", server.Simulation{Config: sim.Config{PartitionUnits: unitsOfPartition}}))
	var at []sim.Key
	for i := range n - 1 {
		at = append(at, sim.Key(fmt.Sprintf("k%07d", (i+1)*rows/n)))
	}
	must(w.t, w.server.Sim().Split(w.t.Context(), "t", server.Cut{Keys: at}))
}

// large returns a job with 20,000 results, in a store 30 ms away, and its number of operations, in all and at a time.
func large(t *testing.T, shards int) (j *Job, asked, most *int) {
	const splits = 20_000
	w, atATime := newWorld(t), 0
	p := w.start("watches", 1, -1, 0)
	p.slow = 60 * time.Millisecond
	asked, most = new(int), new(int)
	p.goesWrong(func(_, _ string, done bool) error {
		if atATime++; done {
			atATime -= 2
			*asked++
		}
		*most = max(*most, atATime)
		return nil
	})
	runs := runfile.NewWriter(t.Context(), w.store, "runs/000000", shards)
	for n := range 3 * shards {
		must(t, runs.Add(n/3, &runfile.Row{Key: fmt.Appendf(nil, "key %d", n%3), Body: []byte("body"), Size: 10}))
	}
	must(t, runs.Close())
	for i := range splits {
		r := splitResult{done: done{Version: planVersion, Plan: "large", By: "process 1 on a host with a long name"},
			Split: i, Read: 1000, Rows: 1000, Bytes: 62_000, Objects: runs.Objects, Index: runs.Index}
		must(t, putJSON(t.Context(), w.store.Put, splitName(i), r))
	}
	plan := &Plan{Version: planVersion, ID: "large", Job: &checkpoint.Job{}, Splits: make([]Split, splits),
		Shards: make([]Shard, shards)}
	return &Job{Plan: plan, store: p, known: newKnown()}, asked, most
}

// 20,000 splits have 25,000,000 extents of 1,250 shards, too many for a process to read all of them.
func TestLargeJobIsReadInAMinuteAndAShardOnlyReadsItsOwnExtents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, asked, most := large(t, 1250)
		start := time.Now()
		s := conformance.Try((&Watcher{job: j}).Status(t.Context())).Must(t)
		took := time.Since(start)
		conformance.True(t, s.Stages[0].Done == len(j.Plan.Splits) && s.Read == 20_000_000 && took <= time.Minute,
			"%d splits are read, with %d records, after %v", s.Stages[0].Done, s.Read, took)
		j.known = newKnown()
		*asked = 0
		sorter := conformance.Try(extsort.New(extsort.Options{Memory: 32 << 20})).Must(t)
		defer sorter.Close()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		began, r := time.Now(), new(reducedResult)
		must(t, j.sortRuns(t.Context(), 700, r, sorter))
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(j)
		took = time.Since(began)
		kept, splits := int64(after.HeapAlloc-before.HeapAlloc)>>20, len(j.Plan.Splits)
		conformance.True(t, r.From == int64(3*splits) && *asked == 3*splits && *most <= readsAtATime && kept <= 64 &&
			took <= 3*time.Minute, "%d rows, %d requests, %d at a time, in %v; %d MiB kept", r.From, *asked, *most, took, kept)
	})
}

// TestWorkerOfALargeJobSeldomListsAllResults has 99 other workers, and lists that take 30 ms per 1,000 names.
func TestWorkerOfALargeJobSeldomListsAllResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const splits, others = 20_000, 99
		w, pages, gets, mine := newWorld(t), 0, 0, 0
		p := w.start("works", 1, -1, 0)
		p.goesWrong(func(verb, _ string, done bool) error {
			if n := len(w.store.Objects)/1000 + 1; verb == "list" && !done {
				pages += n
				time.Sleep(time.Duration(n) * 30 * time.Millisecond)
			} else if verb == "get" && !done {
				gets++
			}
			return nil
		})
		j := &Job{Plan: &Plan{Splits: make([]Split, splits)}, store: p, looks: map[string]*look{}}
		st := stage{tasks: splits, result: splitName}
		must(t, conformance.ErrorOf(j.open(t.Context(), st)))
		first, next := conformance.Try(j.open(t.Context(), st)).Must(t), conformance.Try(j.open(t.Context(), st)).Must(t)
		conformance.True(t, first[0] == next[splits-1] && first[1] == next[0], "a task that may be held is first again")
		order := rand.New(rand.NewPCG(1, 1)).Perm(splits)
		for ; ; mine++ {
			open := conformance.Try(j.open(t.Context(), st)).Must(t)
			if len(open) == 0 {
				break
			}
			conformance.True(t, !w.stored(splitName(open[0])), "split %d, which is read, is open", open[0])
			time.Sleep(2 * time.Second)
			w.store.Objects[splitName(open[0])] = ""
			for n := 0; n < others && len(order) > 0; order = order[1:] {
				if name := splitName(order[0]); !w.stored(name) {
					w.store.Objects[name] = ""
					n++
				}
			}
		}
		conformance.Equal(t, len(w.store.Objects), splits, "splits that are read")
		conformance.True(t, mine >= splits/(others+1) && pages <= 8*mine && gets <= 8*mine,
			"%d splits took %d pages of lists and %d results", mine, pages, gets)
	})
}
