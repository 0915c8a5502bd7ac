package pipeline

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/pipeline/lanes"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
)

// idle is a machine whose processors are free.
func idle() float64 { return 0 }

// limitedLoads has a load for each word in which this is what limits it. Faster machines make them no faster.
var limitedLoads = map[bottleneck.Word]func(*world) trial{
	bottleneck.Partition: func(w *world) trial {
		w.partitioned(server.Simulation{Config: sim.Config{PartitionUnits: 500, Burst: 100 * time.Millisecond}}, "k00600")
		return w.config(w.file("in.csv", shuffled(1200)))
	},
	bottleneck.Instance: func(w *world) trial {
		*w = *instanceWorld(w.t, 1000)
		w.partitioned(server.Simulation{}, "k00600")
		return w.config(w.file("in.csv", shuffled(1200)))
	},
	bottleneck.Table: func(w *world) trial {
		must(w.t, w.server.Sim().Simulate("", server.Simulation{Config: sim.Config{Answers: sim.Answers{NewTableMissing: time.Second}}}))
		return w.byMonth(w.file("in.csv", purchases(500, 1)))
	},
	bottleneck.Index: func(w *world) trial {
		w.partitioned(server.Simulation{Config: sim.Config{PartitionUnits: 1500, Burst: 100 * time.Millisecond, Answers: sim.Answers{Indexes: 2}}}, "k00600")
		return w.config(w.file("in.csv", shuffled(1200)))
	},
	bottleneck.Link: func(w *world) trial {
		w.partitioned(server.Simulation{Config: sim.Config{Latency: 30 * time.Millisecond}})
		cfg := w.config(w.file("in.csv", numbered("k", 6000)))
		cfg.Lanes.Concurrency = 1
		return cfg
	},
	bottleneck.Key: func(w *world) trial {
		w.partitioned(server.Simulation{Config: sim.Config{Latency: 30 * time.Millisecond}})
		cfg := w.config(w.file("in.csv", "id,v\n"+strings.Repeat("one,1\n", 100)))
		cfg.Write.Mode = table.Update // of puts, those in between would be left out
		return cfg
	},
	bottleneck.Reader: slowReader,
	bottleneck.Source: func(w *world) trial {
		cfg := slowReader(w)
		cfg.Read.Sources = waitingRows{cfg.Read.Sources}
		return cfg
	},
	bottleneck.CPU: func(w *world) trial {
		cfg := slowReader(w)
		began := time.Now()
		cfg.processors = func() float64 { return 1e3 * time.Since(began).Seconds() }
		return cfg
	},
	bottleneck.Disk: func(w *world) trial {
		w.partitioned(server.Simulation{Config: sim.Config{Latency: 5 * time.Millisecond}})
		cfg := w.config(w.file("in.csv", numbered("k", 300)))
		cfg.Lanes.BatchRows, cfg.Lanes.Concurrency, cfg.Pacer = 1, 8, func() lanes.Pacer { return restless{} }
		cfg.Checkpoint.Every, cfg.keeping.KeptFor = time.Millisecond, 40*time.Millisecond
		var saved atomic.Int64
		cfg.keeping.OnSave = func(*checkpoint.Snapshot) error {
			if saved.Add(1) <= 5 {
				time.Sleep(200 * time.Millisecond) // a slow disk
			}
			return nil
		}
		return cfg
	},
	bottleneck.Ceiling: func(w *world) trial {
		cfg := w.config(w.file("in.csv", numbered("k", 500)))
		cfg.Lanes.Rates.MaxRows = 500
		return cfg
	},
	bottleneck.Outage: func(w *world) trial {
		began := time.Now()
		w.fail(faults.Fault{Action: faults.Refuse, Code: "OTSPartitionUnavailable"}, func(r faults.Request) bool {
			return r.N > 0 && time.Since(began) < 1500*time.Millisecond
		})
		return w.config(w.file("in.csv", numbered("k", 3000)))
	},
}

// slowReader is a load whose input comes at 500 rows a second.
func slowReader(w *world) trial {
	cfg, _ := w.fromRows(sourcetest.NewRows("rows", 500))
	cfg.Read.Sources = slowRows{cfg.Read.Sources}
	return cfg
}

// slowRows is an origin whose sources take their time.
type slowRows struct{ source.Origin }

func (s slowRows) Open(ctx context.Context, division []byte) ([]source.Source, error) {
	all, err := s.Origin.Open(ctx, division)
	for i := range all {
		all[i] = slowSource{all[i]}
	}
	return all, err
}

// waitingRows is an origin that does not answer.
type waitingRows struct{ source.Origin }

func (waitingRows) Waiting() bool { return true }

type slowSource struct{ source.Source }

func (s slowSource) Next() (source.Piece, error) {
	time.Sleep(20 * time.Millisecond) // for ten rows
	return s.Source.Next()
}

func TestIndexesAreSaidBeforeTheFirstRowAndCounted(t *testing.T) {
	for _, dry := range []bool{false, true} {
		w := newWorld(t)
		w.partitioned(server.Simulation{Config: sim.Config{Answers: sim.Answers{Indexes: 2}}})
		cfg := w.config(w.file("in.csv", numbered("k", 100)))
		cfg.DryRun = dry
		said, sent := "", false
		cfg.onSend = func([]table.Ref) { sent = true }
		cfg.Watch.OnPlan = func(p *plan.Plan) {
			if said = strings.Join(p.Warnings, "\n"); sent {
				t.Error("a row was sent before")
			}
		}
		r := w.load(cfg)
		const want = "table t has 2 secondary indexes (t_index1, t_index2): a row that costs one write unit without costs 3 write units and 2 read units with them"
		conformance.Contains(t, said, want, "dry run %v: said", dry)
		if len(r.Indexes) != 2 || r.IndexWriteCU != 200 || r.IndexReadCU != 200 {
			t.Errorf("dry run %v: %+v", dry, r.ReportIndexes)
		}
	}
}

func TestALoadSaysWhatLimitsIt(t *testing.T) {
	for _, word := range bottleneck.Words() {
		start := limitedLoads[word]
		if start == nil {
			t.Errorf("no load is limited by %v", word)
			continue
		}
		t.Run(word.String(), virtual(func(t *testing.T, w *world) {
			cfg := start(w)
			progress := new(ledger.Progress)
			cfg.Watch.Progress = progress
			r := w.load(cfg)
			if len(r.LimitedBy) == 0 || r.LimitedBy[0].By != word.String() || r.LimitedBy[0].Share < 0.4 {
				t.Errorf("%+v in %.2f s", r.LimitedBy, r.Seconds)
			}
			sum, share := 0.0, 0.0
			for _, p := range r.LimitedBy {
				sum, share = sum+p.Seconds, share+p.Share
			}
			if share < 0.999 || share > 1.001 || sum > r.Seconds+1e-6 { // sums of fractions are not exact
				t.Errorf("the words are true for %.3f s of %.3f s, their shares add up to %.3f", sum, r.Seconds, share)
			}
			var points bottleneck.Spent
			for i := range r.Timeline.Points {
				points.Add(&r.Timeline.Points[i].Limited)
			}
			for _, p := range r.LimitedBy {
				if got := points[bottleneck.Parse(p.By)].Seconds(); fmt.Sprintf("%.6f", got) != fmt.Sprintf("%.6f", p.Seconds) {
					t.Errorf("%s: %.6f s over time, %.6f s in all", p.By, got, p.Seconds)
				}
			}
			if now := bottleneck.Word(progress.Hindrance.LimitedBy.Load()); now == bottleneck.None {
				t.Error("the progress says nothing")
			}
		}))
	}
}

// lateStream gives nothing for a while.
type lateStream struct {
	io.Reader
	wait time.Duration
}

func (l *lateStream) Read(b []byte) (int, error) {
	time.Sleep(l.wait)
	l.wait = 0
	return l.Reader.Read(b)
}

func TestAStreamThatComesLateIsLimitedByTheReader(t *testing.T) {
	for name, stream := range map[string]io.Reader{
		"nothing at first":  &lateStream{strings.NewReader(numbered("k", 100)), 20 * time.Second},
		"a few rows before": io.MultiReader(strings.NewReader(numbered("k", 10)), &lateStream{strings.NewReader("k00010,10\n"), 20 * time.Second}),
	} {
		t.Run(name, virtual(func(t *testing.T, w *world) {
			cfg := w.config("-")
			cfg.Read.Stdin = stream
			progress := new(ledger.Progress)
			cfg.Watch.Progress = progress
			var said atomic.Uint32
			said.Store(uint32(bottleneck.None))
			time.AfterFunc(10*time.Second, func() { said.Store(progress.Hindrance.LimitedBy.Load()) })
			r := w.load(cfg)
			if len(r.LimitedBy) == 0 || r.LimitedBy[0].By != "reader" || r.LimitedBy[0].Seconds < 20 || r.LimitedBy[0].Share < 0.9 {
				t.Errorf("%+v in %.2f s", r.LimitedBy, r.Seconds)
			}
			conformance.Equal(t, bottleneck.Word(said.Load()), bottleneck.Reader, "meanwhile the word")
		}))
	}
}
