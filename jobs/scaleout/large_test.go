package scaleout

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/extsort"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/jobs/scaleout/runfile"
	"example.com/tsimport/pipeline/checkpoint"
)

// large is the directory of a job whose splits are all read, 30 ms away. All rows of a shard share an index row.
type large struct {
	jobdir.Store     // whose other methods are not asked for
	splits       int // that are read
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

func TestTheStatusOfALargeJobTakesLessThanAMinute(t *testing.T) {
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

// A process must not read or keep other shards' extents: 20,000 splits have 25,000,000 extents of 1,250 shards.
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

// results are those of the splits of a job whose list has pages of 1,000 names, 30 ms each.
type results struct {
	jobdir.Store // whose other methods are not asked for
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

// TestWorkerOfALargeJobSeldomListsAllResults has a worker and 99 others, each of which reads a split in two seconds.
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
