package scaleout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/extsort"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/jobs/scaleout/runfile"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/reader/source"
)

// TestShardsHaveEqualRowsInAnyOrderOfTheInput includes tables with more partitions than sampled places.
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
				share := float64(len(s.Ranges)) * float64(len(shards)) / float64(partitions) // relative to an equal share
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

// TestSplitReadsLittleMoreThanItsBytes ends splits anywhere in a piece, and the last piece at any record.
func TestSplitReadsLittleMoreThanItsBytes(t *testing.T) {
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

// large is the directory of a job, 30 ms away, whose splits are all read. All rows of a shard share an index row.
type large struct {
	jobdir.Store     // nil: other methods are not called
	splits       int // number of splits
	index, run   []byte
	asked        atomic.Int64
	atATime      atomic.Int64
	most         atomic.Int64
}

func (l *large) String() string { return "large" }

func (l *large) far() func() {
	l.asked.Add(1)
	n := l.atATime.Add(1)
	for most := l.most.Load(); n > most && !l.most.CompareAndSwap(most, n); most = l.most.Load() {
	}
	time.Sleep(30 * time.Millisecond)
	return func() { l.atATime.Add(-1) }
}

func (l *large) Get(_ context.Context, name string) ([]byte, error) {
	defer l.far()()
	var i int
	if _, err := fmt.Sscanf(name, "splits/%06d.json", &i); err != nil {
		return nil, fs.ErrNotExist
	}
	r := splitResult{done: done{Version: planVersion, Plan: "large",
		By: "process 1 on a host of the name that hosts have"}, Split: i, Read: 1000, Rows: 1000, Bytes: 62_000}
	r.Objects = []runfile.Object{{Name: fmt.Sprintf("runs/%06d.1234abcd", i), Bytes: int64(len(l.run))}}
	r.Index = runfile.Object{Name: r.Objects[0].Name + ".index", Bytes: int64(len(l.index))}
	return json.Marshal(&r)
}

func (l *large) GetRange(_ context.Context, name string, from, n int64) ([]byte, error) {
	defer l.far()()
	if strings.HasSuffix(name, ".index") {
		return bytes.Clone(l.index[from : from+n]), nil
	}
	return bytes.Clone(l.run[from : from+n]), nil
}

func (l *large) PutAbsent(_ context.Context, name string, body []byte) error {
	if strings.HasSuffix(name, ".index") {
		l.index = body
	} else {
		l.run = body
	}
	return nil
}

func (l *large) List(context.Context, string) (names []string, err error) {
	defer l.far()()
	for i := range l.splits {
		names = append(names, splitName(i))
	}
	return names, nil
}

func TestStatusOfALargeJobTakesLessThanAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &large{splits: 20_000}
		p := &Plan{Version: planVersion, ID: "large", Job: &checkpoint.Job{}, Splits: make([]Split, store.splits),
			Shards: make([]Shard, 1250)}
		began := time.Now()
		s := conformance.Try((&Watcher{job: &Job{Plan: p, store: store, known: newKnown()}}).Status(t.Context())).Must(t)
		if took := time.Since(began); s.Stages[0].Done != store.splits || s.Read != 20_000_000 || took > time.Minute {
			t.Errorf("%d of %d splits are read, with %d records, after %v", s.Stages[0].Done, store.splits, s.Read, took)
		}
	})
}

// 20,000 splits have 25,000,000 extents of 1,250 shards, too many for a process to read all of them.
func TestShardOfALargeJobReadsOnlyItsOwnExtents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const splits, shards, rows = 20_000, 1250, 3
		store := new(large)
		w := runfile.NewWriter(t.Context(), store, "runs/000000", shards)
		for shard := range shards {
			for i := range rows {
				conformance.Must(t, w.Add(shard, &runfile.Row{Key: fmt.Appendf(nil, "key %d", i), Body: []byte("body"), Size: 10}))
			}
		}
		conformance.Must(t, w.Close())
		p := &Plan{Version: planVersion, ID: "large", Job: &checkpoint.Job{}, Splits: make([]Split, splits),
			Shards: make([]Shard, shards)}
		j := &Job{Plan: p, store: store, known: newKnown()}
		j.o.Load.Limits.TempDir = t.TempDir()
		sorter := conformance.Try(extsort.New(extsort.Options{Memory: 32 << 20})).Must(t)
		defer sorter.Close()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		began, r := time.Now(), new(reducedResult)
		conformance.Must(t, j.sortRuns(t.Context(), 700, r, sorter))
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(j)
		took, kept := time.Since(began), int64(after.HeapAlloc-before.HeapAlloc)>>20
		t.Logf("%d requests, %d at a time, in %v; %d MiB kept", store.asked.Load(), store.most.Load(), took, kept)
		conformance.True(t, r.From == splits*rows && store.asked.Load() == 3*splits && store.most.Load() <= readsAtATime &&
			kept <= 64 && took <= 3*time.Minute,
			"%d rows, %d requests, %d at a time, in %v; %d MiB kept", r.From, store.asked.Load(), store.most.Load(), took, kept)
	})
}

// results is the directory of a job with results of splits, listed in pages of 1,000 names that take 30 ms each.
type results struct {
	jobdir.Store // nil: other methods are not called
	there        map[string]bool
	pages, gets  int
}

func (r *results) Get(_ context.Context, name string) ([]byte, error) {
	r.gets++
	time.Sleep(30 * time.Millisecond)
	if !r.there[name] {
		return nil, fs.ErrNotExist
	}
	return nil, nil
}

func (r *results) List(context.Context, string) (names []string, err error) {
	for name := range r.there {
		names = append(names, name)
	}
	pages := len(names)/1000 + 1
	r.pages += pages
	time.Sleep(time.Duration(pages) * 30 * time.Millisecond)
	return names, nil
}

// TestWorkerOfALargeJobSeldomListsAllResults runs a worker among 99 others, which read a split in two seconds each.
func TestWorkerOfALargeJobSeldomListsAllResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const splits, others = 20_000, 99
		store := &results{there: map[string]bool{}}
		j := &Job{Plan: &Plan{Splits: make([]Split, splits)}, store: store, looks: map[string]*look{}}
		st, rnd, mine := stage{tasks: splits, result: splitName}, rand.New(rand.NewPCG(1, 1)), 0
		order := rnd.Perm(splits)
		for {
			open := conformance.Try(j.open(t.Context(), st)).Must(t)
			if len(open) == 0 {
				break
			}
			name := splitName(open[0])
			conformance.True(t, !store.there[name], "split %d, which is read, is open", open[0])
			time.Sleep(2 * time.Second)
			store.there[name] = true
			mine++
			for n := 0; n < others && len(order) > 0; order = order[1:] {
				if name := splitName(order[0]); !store.there[name] {
					store.there[name] = true
					n++
				}
			}
		}
		t.Logf("%d splits, %d pages of lists and %d results asked for", mine, store.pages, store.gets)
		conformance.Equal(t, len(store.there), splits, "splits that are read")
		conformance.True(t, mine >= splits/(others+1) && store.pages <= 8*mine && store.gets <= 8*mine,
			"%d splits took %d pages of lists and %d results", mine, store.pages, store.gets)
	})
}

// The cost of a step must not grow with a product of splits, shards and workers.
func TestForecastsGrowWithTheInputs(t *testing.T) {
	of := func(bytes int64, workers int) *Outlook {
		rows := bytes / 77
		return &Outlook{Bytes: bytes, Rows: rows, RowBytes: 109, Units: rows, Looked: true, Workers: workers, Processors: 8,
			Memory: 4 << 30}
	}
	steps := func(o *Outlook) map[string]Step {
		all := map[string]Step{}
		for _, s := range Forecast(o) {
			t.Logf("%d bytes, %d workers: %s: %d tasks, %d bytes, %d requests, %v, %d bytes of memory", o.Bytes, o.Workers,
				s.Name, s.Tasks, s.Bytes, s.Requests, time.Duration(s.Seconds*1e9).Round(time.Second), s.Memory)
			all[s.Name] = s
		}
		return all
	}
	one, ten := steps(of(1e12, 8)), steps(of(10e12, 100))
	for name, s := range ten {
		if seconds := one[name].Seconds; s.Seconds > 12*seconds || s.Memory > 4<<30+20_000*resultBytes*2 {
			t.Errorf("%s takes %v s and %d bytes of memory, ten times less takes %v s", name, s.Seconds, s.Memory, seconds)
		}
	}
	if w := ten["write"]; w.Requests > 3*w.Tasks*ten["read"].Tasks {
		t.Errorf("writing takes %d requests for %d shards of %d splits", w.Requests, w.Tasks, ten["read"].Tasks)
	}
	unique := of(1e12, 8)
	unique.Unique = true
	u, w := steps(unique)["write"], one["write"]
	conformance.True(t, u.Seconds < w.Seconds && u.Bytes < w.Bytes,
		"without a reduction writing takes %v s and %d bytes, with one %v s and %d", u.Seconds, u.Bytes, w.Seconds, w.Bytes)
	direct := of(1e12, 8)
	direct.Direct = true
	direct.Rates = lanes.Rates{MaxRows: float64(direct.Rows) / 36_000}
	all := steps(direct)
	conformance.Equal(t, len(all), 3, "steps of a job without shards")
	conformance.Equal(t, all["read"].Seconds, 36_000, "seconds with a ceiling")
}
