package pipeline

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/pipeline/lanes"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
)

// partitioned makes table t with the string key id and partitions that begin at the keys.
func (w *world) partitioned(c server.Simulation, keys ...string) {
	w.t.Helper()
	must(w.t, w.admin().Create("t", []table.KeyColumn{{Name: "id", Type: table.String}},
		table.Definition{TimeToLive: -1, MaxVersions: 1}))
	must(w.t, w.server.Sim().Simulate("t", c))
	w.cutAt(0, keys...)
}

func (w *world) cutAt(unavailable time.Duration, keys ...string) {
	w.t.Helper()
	var at []sim.Key
	for _, k := range keys {
		at = append(at, sim.Key(k))
	}
	must(w.t, w.server.Sim().Split(context.Background(), "t", server.Cut{Keys: at, Unavailable: unavailable}))
}

func numbered(prefix string, rows int) string {
	return rowsOf("id,a\n", rows, func(i int) string { return fmt.Sprintf("%s%05d,v%d\n", prefix, i, i) })
}

func TestUnavailablePartitionDoesNotHoldUpOthers(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		w.partitioned(server.Simulation{}, "k00500")
		must(t, w.server.Sim().Move("t", 0, time.Hour))
		cfg := w.config(w.file("in.csv", numbered("k", 1000)))
		cfg.Lanes.RetryFor = 2 * time.Second
		cfg.Lanes.Concurrency = 1 // not even the only worker
		r, err := cfg.run(context.Background())
		conformance.True(t, err != nil && strings.Contains(err.Error(), "of the partition from the first key to k00500") &&
			strings.Contains(err.Error(), "OTSPartitionUnavailable"), "the error does not name partition and answer: %v", err)
		conformance.True(t, r.Written == 500 && r.Unfinished == 500 && r.Rejected == 0 && r.ExitCode == exitcode.Failed,
			"%d written, %d unfinished, %d rejected, exit %d", r.Written, r.Unfinished, r.Rejected, r.ExitCode)
	})
}

func TestSinglePartitionKeyIsReportedDuringLoad(t *testing.T) {
	many := func(rows int, id func(i int) string) string {
		return rowsOf("id,n\n", rows, func(i int) string { return fmt.Sprintf("%s,%d\n", id(i), i) })
	}
	one := func(int) string { return "one" }
	for _, tt := range []struct {
		name, text   string
		dryRun, said bool
		share        float64 // of the hot key in the report; 0 is none
	}{
		{"all rows", many(17_000, one), false, true, 1},
		{"of a short input, once it has been read", many(1_500, one), false, true, 1},
		{"a dry run", many(1_500, one), true, true, 1},
		{"a dry run of few rows", many(300, one), true, false, 1},
		{"half of the rows", many(17_000, func(i int) string { return fmt.Sprint(i % 2 * i) }), true, false, 0.5},
		{"two fifths", many(4000, func(i int) string { return fmt.Sprint(i % 5 / 2 * i) }), false, false, 0.4},
		{"sorted by a key of many values", many(17_000, func(i int) string { return fmt.Sprint(i / 1200) }), true, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			cfg := w.config(w.file("in.csv", tt.text))
			cfg.Target.Key = []table.KeyColumn{{Name: "id", Type: table.String}, {Name: "n", Type: table.Integer}}
			cfg.DryRun, cfg.Target.Absent = tt.dryRun, tt.dryRun
			var said []ledger.ReportHotKey
			written := int64(-1)
			cfg.Watch.Progress = new(ledger.Progress)
			cfg.Watch.OnHotKey = func(h ledger.ReportHotKey, rows int64) {
				said, written = append(said, h), cfg.Watch.Progress.Ended.Written.Load()
				conformance.True(t, rows <= 17_000, "%d rows", rows)
			}
			r := w.load(cfg)
			if tt.said != (len(said) == 1) || tt.said && (said[0] != ledger.ReportHotKey{Column: "id", Value: "one", Share: 1} ||
				!tt.dryRun && written == r.Written) {
				t.Errorf("said %+v, when %d rows were written", said, written)
			}
			conformance.True(t, tt.share == 0 == (len(r.HotKeys) == 0) &&
				(tt.share == 0 || math.Abs(r.HotKeys[0].Share-tt.share) <= .05), "reported %+v", r.HotKeys)
		})
	}
}

// TestFullMemorySlowsButNeverEndsLoad drives every class of memory, and the disk, to its limit.
func TestFullMemorySlowsButNeverEndsLoad(t *testing.T) {
	huge := strings.Repeat("x", 10<<10)
	text := rowsOf("id,a\n", 12_000, func(i int) string {
		if i%4000 == 7 {
			return fmt.Sprintf("k%05d,%s\n", i%6000, huge)
		}
		return fmt.Sprintf("k%05d,%d\n", i%6000, i)
	})
	want := lastOf(t, text)
	for _, tt := range []struct {
		name                string
		memory, tempMax     int64
		waits, full, spills bool
	}{{name: "nothing at all", memory: 1, tempMax: 1, waits: true},
		{name: "a little, and a full disk", memory: 4 << 20, tempMax: 1, waits: true, full: true},
		{name: "a little, and disk enough", memory: 4 << 20, spills: true}} {
		t.Run(tt.name, virtual(func(t *testing.T, w *world) {
			w.partitioned(server.Simulation{}, "k01000", "k02000", "k03000", "k04000")
			cfg := w.config(w.file("in.csv", text))
			cfg.Limits.Memory, cfg.Limits.TempMax, cfg.Limits.TempDir = tt.memory, tt.tempMax, w.dir
			cfg.Pacer = func() lanes.Pacer { return restless{} }
			cfg.Lanes.Concurrency = 2 // more would have all rows in flight
			cfg.Watch.Monitor = NewMonitor()
			opened := make(chan struct{})
			go func() {
				defer close(opened)
				wait(t, cfg.Watch.Monitor, func(s *State) bool {
					return s.Memory.Full && (!tt.full || s.Spill.Error != "") || tt.spills && s.Spill.Rows > 0
				})
			}()
			w.plan.Decide = func(r faults.Request) faults.Fault {
				<-opened
				if r.N%3 == 0 {
					return faults.Fault{Action: faults.RefuseRows, RowCode: func(i int) string { return everyThird(i, "OTSTimeout") }}
				}
				return faults.Fault{}
			}
			r := w.load(cfg)
			w.plan.Change(w.plan.Only, nil)
			w.wantRows(want)
			conformance.True(t, (!tt.waits || r.ReadWaits != 0) && (tt.memory != 1 || r.SendWaits != 0), "%+v", r)
			full := strings.Contains(r.SpillError, "no space left")
			conformance.True(t, !tt.full || full, "spill error %q with at most %d bytes on disk", r.SpillError, tt.tempMax)
			conformance.True(t, !tt.spills || r.SpilledRows != 0, "nothing was spilled")
			left, err := filepath.Glob(filepath.Join(w.dir, "tsimport-spill-*"))
			conformance.True(t, err == nil && len(left) == 0, "%v is left behind: %v", left, err)
		}))
	}
}

func wait(t *testing.T, m *Monitor, enough func(*State) bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // a load that hangs
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var last *State
	for {
		s, err := m.State(ctx)
		if err != nil {
			t.Errorf("the load has ended or hangs: %v; last state %+v", err, last)
			return
		}
		if enough(s) {
			return
		}
		last = s
		<-tick.C
	}
}

func TestTheStateOfARunningLoadCanBeAskedFor(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		w.partitioned(server.Simulation{}, "k00500")
		must(t, w.server.Sim().Move("t", 1, time.Hour))
		cfg := w.config(w.file("in.csv", numbered("k", 1000)))
		drain, stop := context.WithCancelCause(context.Background())
		cfg.Drain, cfg.Watch.Monitor = drain, NewMonitor()
		done := make(chan error, 1)
		go func() {
			_, err := cfg.run(context.Background())
			done <- err
		}()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for {
			s := conformance.Try(cfg.Watch.Monitor.State(ctx)).Must(t)
			if s.Written < 500 || !s.Lanes[1].Down || s.Reading {
				time.Sleep(time.Millisecond)
				continue
			}
			conformance.True(t, s.Read == 1000 && len(s.Lanes) == 2 && s.Lanes[1].From == "k00500" && s.Lanes[0].Final == 500 &&
				s.Queued+int64(s.Retrying+s.RowsOut) == 500 && s.Map.Exact && s.Map.Partitions == 2 && s.Marks.Final == 500,
				"%+v", s)
			break
		}
		stop(&Interrupted{Signal: "test", ExitCode: exitcode.Interrupted})
		must(t, <-done)
		short, cancelShort := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancelShort()
		s, err := cfg.Watch.Monitor.State(short)
		conformance.True(t, err != nil, "a load that has ended says %+v", s)
	})
}

func TestPartitionWithoutRowsNeverExhaustsPatience(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		w.partitioned(server.Simulation{})
		// The partition is away, is split meanwhile, and the upper half never gets a row.
		must(t, w.server.Sim().Move("t", 0, 200*time.Millisecond))
		cfg := w.config(w.file("in.csv", numbered("k", 1000)))
		cfg.Lanes.RetryFor, cfg.Lanes.Rates.MaxRows = 500*time.Millisecond, 700
		cfg.surveyEvery = 2 * time.Millisecond
		var once sync.Once
		w.plan.Decide = func(faults.Request) faults.Fault {
			once.Do(func() { w.cutAt(200*time.Millisecond, "z") })
			return faults.Fault{}
		}
		r := w.load(cfg)
		conformance.True(t, r.Written == 1000 && r.Partitions == 2 && r.PartitionsUsed == 1 && r.Unavailable != 0,
			"%d written, %d of %d partitions used, %d unavailable", r.Written, r.PartitionsUsed, r.Partitions, r.Unavailable)
	})
}

// hot is a file in which every second row has the key a, between k00001, k00003, …, with values of that many bytes.
func hot(rows, bytes int) string {
	v := strings.Repeat("x", bytes)
	return rowsOf("id,a\n", rows, func(i int) string {
		if i%2 == 1 {
			return fmt.Sprintf("k%05d,%d%s\n", i, i, v)
		}
		return fmt.Sprintf("a,%d%s\n", i, v)
	})
}

func (w *world) running(cfg trial, done func(*State) bool) {
	w.t.Helper()
	drain, stop := context.WithCancelCause(context.Background())
	cfg.Drain, cfg.Watch.Monitor = drain, NewMonitor()
	ended := make(chan error, 1)
	go func() {
		_, err := cfg.run(context.Background())
		ended <- err
	}()
	wait(w.t, cfg.Watch.Monitor, done)
	stop(&Interrupted{Signal: "test", ExitCode: exitcode.Interrupted})
	must(w.t, <-ended)
}

func TestRowsQueuedForOneKeyLeaveMemoryToOtherPartitions(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		w.partitioned(server.Simulation{Config: sim.Config{Latency: 5 * time.Millisecond}}, "b")
		cfg := w.config(w.file("in.csv", hot(8000, 2000)))
		cfg.Write.Mode = table.Update // every row of a is written, one after the other
		cfg.Limits.Memory, cfg.Limits.TempDir = 24<<20, w.dir
		most := int64(0)
		w.running(cfg, func(s *State) bool {
			most = max(most, s.Memory.Lanes-s.Memory.Budget)
			return s.Lanes[1].Final == 4000
		})
		// Two lanes may exceed the budget by what they read back to continue, and the block that was on its way.
		limit := int64(2 * maxBatchInMemory)
		conformance.True(t, most <= limit, "rows took %d bytes more than their budget, want at most %d", most, limit)
	})
}

// maxBatchInMemory is a batch of the rows above and the frame it is read back with.
const maxBatchInMemory = 200*2100 + 512<<10

func TestRowsOfOneKeyWaitOnlyForEachOther(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		w.partitioned(server.Simulation{})
		r, in := io.Pipe()
		go func() {
			// The input never ends: more rows might come.
			fmt.Fprint(in, "id,a\n"+strings.Repeat("a,1\n", 400)+strings.Repeat("b,"+strings.Repeat("1", 100)+"\n", 12_000))
		}()
		cfg := w.config("-")
		cfg.Read.Stdin, cfg.Read.SplitBytes = r, 4096
		cfg.Write.Mode = table.Update
		start := time.Now()
		w.running(cfg, func(s *State) bool { return s.Written >= 200 })
		in.Close()
		// A batch waits a quarter of a second for company, like the first one here.
		took := time.Since(start)
		conformance.True(t, took <= 2*time.Second, "200 rows of one key took %v", took)
	})
}

func TestASortedFileFeedsEveryPartitionAtOnce(t *testing.T) {
	t.Parallel()
	text := numbered("k", 40_000)
	for _, tt := range []struct {
		order plan.Order
		when  orderWhen
		all   bool
	}{{plan.OrderNone, orderWhenItPays, true}, {plan.LastWins, orderWhenItPays, true},
		{plan.LastWins, orderNever, false}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.partitioned(server.Simulation{}, "k10000", "k20000", "k30000")
			for n := range 4 {
				must(t, w.server.Sim().Move("t", n, time.Hour))
			}
			cfg := w.config(w.file("in.csv", text))
			// A quarter of the rows fits into memory, and none on disk.
			cfg.Write.Order, cfg.Limits.Memory, cfg.Limits.TempMax, cfg.Limits.TempDir, cfg.order = tt.order, 4<<20, 1,
				w.dir, tt.when
			cfg.Read.SplitBytes = 4 << 10
			fed := 0
			w.running(cfg, func(s *State) bool {
				fed = 0
				for _, l := range s.Lanes {
					if l.Queued+l.Retrying > 0 {
						fed++
					}
				}
				return fed == len(s.Lanes) || s.Memory.Full
			})
			if tt.all != (fed >= 3) { // the section at a bound may begin before it
				t.Errorf("%+v: %d of 4 partitions have rows when memory is full", tt, fed)
			}
		})
	}
}
