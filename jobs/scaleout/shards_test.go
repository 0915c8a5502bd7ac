package scaleout

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/reader/source"
)

// TestShardsHaveEqualRowsInAnyOrderOfTheInput has more partitions than sampled places.
func TestShardsHaveEqualRowsInAnyOrderOfTheInput(t *testing.T) {
	key := func(i int) table.Value { return table.Value{Type: table.String, Bytes: fmt.Appendf(nil, "%08d", i)} }
	const rows, places, each = 1_000_000, 64, 40
	for _, partitions := range []int{24, 64, 128, 512} {
		var bounds []table.Value
		for i := range partitions - 1 {
			bounds = append(bounds, key((i+1)*rows/partitions))
		}
		for _, sorted := range []bool{true, false} {
			rnd := rand.New(rand.NewPCG(1, uint64(partitions)))
			sample := make([][]table.Value, places)
			for p := range sample {
				for i := range each {
					if sorted {
						sample[p] = append(sample[p], key(p*rows/places+i))
					} else {
						sample[p] = append(sample[p], key(rnd.IntN(rows)))
					}
				}
			}
			_, shards := shardKeys(bounds, sample, 2)
			conformance.MustEqual(t, len(shards), 2*shardsEach, "%d partitions: shards", partitions)
			weight := 0.0
			for _, s := range shards {
				weight += s.Weight
				share := float64(len(s.Ranges)) * float64(len(shards)) / float64(partitions) // of an equal part
				conformance.True(t, share >= 0.8 && share <= 1.25,
					"%d partitions, sorted %v: a shard has %d of them", partitions, sorted, len(s.Ranges))
			}
			conformance.True(t, math.Abs(weight-1) <= 1e-9,
				"%d partitions, sorted %v: the weights sum up to %v", partitions, sorted, weight)
		}
	}
}

// TestHeavyPartitionGetsItsOwnShard makes shards of a shuffled input with a third of the rows in one partition.
func TestHeavyPartitionGetsItsOwnShard(t *testing.T) {
	key := func(i int) table.Value { return table.Value{Type: table.Integer, Int: int64(i)} }
	rnd := rand.New(rand.NewPCG(1, 2))
	var bounds []table.Value
	for i := range 99 {
		bounds = append(bounds, key((i+1)*1000))
	}
	sample := make([][]table.Value, 64)
	for p := range sample {
		for range 40 {
			i := rnd.IntN(100_000)
			if rnd.IntN(3) == 0 {
				i = 50_000 + rnd.IntN(1000)
			}
			sample[p] = append(sample[p], key(i))
		}
	}
	_, shards := shardKeys(bounds, sample, 2)
	for _, s := range shards {
		if heavy := s.Weight > 0.3; heavy != (len(s.Ranges) == 1) || heavy && s.Ranges[0] != 50 {
			t.Errorf("a shard of weight %.2f has the ranges %v", s.Weight, s.Ranges)
		}
	}
	_, shards = shardKeys(bounds, nil, 2)
	conformance.True(t, len(shards) == 6 && len(shards[0].Ranges) >= 16, "without a sample: %+v", shards)
}

type counting struct {
	source.Source
	pieces, bytes int64
}

func (c *counting) Next() (source.Piece, error) {
	p, err := c.Source.Next()
	if err == nil {
		c.pieces++
		c.bytes += p.Bytes()
	}
	return p, err
}

// TestASplitReadsLittleMoreThanItsBytes ends splits anywhere in pieces, and cuts the last piece at any record.
func TestASplitReadsLittleMoreThanItsBytes(t *testing.T) {
	for _, size := range []int{41, 97, 500, 3000, 1 << 20} {
		t.Run(fmt.Sprint(size), inJob(func(t *testing.T, w *world) {
			var all, given int64
			must(t, w.start("reader", 3, -1, 0).run(func(ctx context.Context, j *Job) error {
				prepared, err := j.prepare(ctx)
				if err != nil {
					return err
				}
				counts := make([]counting, len(prepared.Plan.Sources))
				for i, s := range prepared.Plan.Sources {
					s.SetSplitBytes(size)
					counts[i].Source = s.Source
					s.Source = &counts[i]
					given += s.About().Bytes
				}
				for i := range j.Plan.Splits {
					err = errors.Join(err, j.readSplit(ctx, i))
				}
				for i := range counts {
					all += counts[i].bytes
				}
				most := given + int64(len(j.Plan.Splits)*size)
				conformance.True(t, all <= most, "%d bytes were read of %d, in pieces of %d", all, given, size)
				return err
			}))
			w.finish()
		}))
	}
}

var machines = flag.Bool("scaleout-machines", false, "measure 64 to 512 partitions with 1 to 32 processes, simulated")

// The loads of TestMoreMachinesLoadFaster.
const (
	unitsOfPartition = 100 // rows a second
	requestsInFlight = 4   // of a process
	rowsOfRequest    = 50
	slowestAct       = 30 * time.Millisecond // of an object or a request, there and back; half of that on average
)

// TestMoreMachinesLoadFaster has a machine per process. Only requests, objects and partitions' capacity take time.
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
