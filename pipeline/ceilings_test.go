package pipeline

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/server"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
)

type sends struct {
	mu    sync.Mutex
	at    []time.Time
	units []float64
}

func (s *sends) add(at time.Time, units float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.units = append(s.at, at), append(s.units, units)
}

// most returns the largest sum of sends within any period of the given length.
func (s *sends) most(within time.Duration) (most float64) {
	from, sum := 0, 0.0
	for to := range s.at {
		sum += s.units[to]
		for s.at[to].Sub(s.at[from]) >= within {
			sum -= s.units[from]
			from++
		}
		most = max(most, sum)
	}
	return most
}

// noted is a pacer that never waits and records when the dispatcher sends.
type noted struct {
	restless
	sends *sends
}

func (w noted) Sent(now time.Time, units float64) { w.sends.add(now, units) }

func TestCeilingsHoldInEveryTenthOfSecond(t *testing.T) {
	const rows, rate = 1500, 1000.0
	for name, set := range map[string]func(*lanes.Rates){
		"rows":  func(r *lanes.Rates) { r.MaxRows = rate },
		"units": func(r *lanes.Rates) { r.MaxWCU = rate },
		"bytes": func(r *lanes.Rates) { r.MaxBytes = rate * 15 }, // id and a, with their values, are about 15 bytes
	} {
		t.Run(name, virtual(func(t *testing.T, w *world) {
			w.partitioned(server.Simulation{}, "k00400", "k00800", "k01200")
			var left, met sends
			w.plan.Decide = func(r faults.Request) faults.Fault {
				met.add(time.Now(), float64(r.Rows))
				return faults.Fault{}
			}
			cfg := w.config(w.file("in.csv", shuffled(rows)))
			cfg.Pacer = func() lanes.Pacer { return noted{sends: &left} }
			set(&cfg.Lanes.Rates)
			// Neither the initial savings nor the last request causes a wait.
			least := rows/rate - 0.02 - 0.2
			if r := w.load(cfg); r.Written != rows || r.Seconds < least {
				t.Errorf("%d written in %.3f s, want %.3f or more", r.Written, r.Seconds, least)
			}
			// The inflow, the savings and one request together never exceed 1.5 times the rate.
			const limit = 1.5 * rate / 10
			most := left.most(100 * time.Millisecond)
			conformance.True(t, most <= limit, "%.0f rows left within a tenth of a second, want at most %v", most, limit)
			most = met.most(100 * time.Millisecond)
			conformance.True(t, most <= limit, "%.0f rows arrived within a tenth of a second, want at most %v", most, limit)
		}))
	}
}

// timed is a pacer that never waits and records answers to unknown requests.
type timed struct {
	restless
	flying  map[time.Time]int
	unknown *int
}

func (p timed) Sent(now time.Time, _ float64) { p.flying[now]++ }

func (p timed) Answered(sent, _ time.Time, _, _ float64) {
	if p.flying[sent]--; p.flying[sent] < 0 {
		*p.unknown++
	}
}

func TestPacersIdentifyAnsweredRequests(t *testing.T) {
	w := newWorld(t)
	w.partitioned(server.Simulation{}, "k00400", "k00800", "k01200")
	cfg := w.config(w.file("in.csv", shuffled(1500)))
	unknown := 0
	cfg.Pacer = func() lanes.Pacer { return timed{flying: map[time.Time]int{}, unknown: &unknown} }
	r := w.load(cfg)
	conformance.True(t, r.Written == 1500 && unknown == 0, "%d written, %d unknown answers", r.Written, unknown)
}

func instanceWorld(t *testing.T, units float64) *world {
	return newWorldOf(t, server.Options{InstanceUnits: units})
}

// An instance with little capacity saves up only enough for a few rows, and always refuses larger requests.
func TestLanesShareInstanceRate(t *testing.T) {
	t.Parallel()
	for _, rate := range []float64{50, 100, 500, 1000} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rows := int(min(20*rate, 2000))
				w := instanceWorld(t, rate)
				w.partitioned(server.Simulation{Config: sim.Config{Latency: 5 * time.Millisecond}}, "k00300", "k00600", "k00900")
				r := w.load(w.config(w.file("in.csv", shuffled(rows))))
				// tsbench spread --limit-instance measures the shortfall.
				if got := float64(rows) / r.Seconds / rate; got < 0.8 && rows >= 1000 || got > 1.05 || len(w.rows()) != rows {
					t.Errorf("%.3f of what the instance takes, %d rows of %d", got, len(w.rows()), rows)
				}
				// Most refusals are of requests that four lanes send at the beginning, before the limit is known.
				conformance.True(t, r.Throttled != 0 && (rate != 1000 || int(r.Throttled) <= rows/2), "%d refused", r.Throttled)
			})
		})
	}
}

// crowdedLink counts the writes in flight. Each answer takes some time.
type crowdedLink struct {
	http.RoundTripper
	mu             sync.Mutex
	inFlight, most int
}

func (c *crowdedLink) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/BatchWriteRow" {
		return c.RoundTripper.RoundTrip(r)
	}
	c.mu.Lock()
	c.inFlight++
	c.most = max(c.most, c.inFlight)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.inFlight--
	}()
	time.Sleep(10 * time.Millisecond) // in virtual time
	return c.RoundTripper.RoundTrip(r)
}

func TestConcurrentLoadsShareCeilings(t *testing.T) {
	const loads, rows, rate = 5, 900, 1000.0
	for name, limits := range map[string]lanes.Rates{"rows": {MaxRows: rate}, "units": {MaxWCU: rate}} { // row = unit
		t.Run(name, virtual(func(t *testing.T, w *world) {
			w.partitioned(server.Simulation{}, "k00400", "k00800", "k01200")
			var met sends
			w.plan.Decide = func(r faults.Request) faults.Fault {
				met.add(time.Now(), float64(r.Rows))
				return faults.Fault{}
			}
			shared := lanes.NewSharedLimits(limits, 0)
			began := time.Now()
			together(t, w, loads, rows, func(cfg *trial) { cfg.Lanes.Shared = shared })
			most := met.most(time.Second)
			conformance.True(t, most <= rate, "%.0f rows arrived within a second, want at most %v", most, rate)
			// In virtual time the ceiling must also be fully used.
			took, least := time.Since(began).Seconds(), loads*rows/rate
			conformance.True(t, took <= 1.25*least, "%v rows took %.2f s and need only %.2f", loads*rows, took, least)
		}))
	}
}

func TestConcurrentLoadsShareRequestsInFlight(t *testing.T) {
	const loads, rows, most = 5, 600, 7
	virtually(t, func(t *testing.T, w *world) {
		w.partitioned(server.Simulation{}, "k00400", "k00800", "k01200")
		link := &crowdedLink{RoundTripper: w.transport()}
		shared := lanes.NewSharedLimits(lanes.Rates{}, most)
		together(t, w, loads, rows, func(cfg *trial) {
			cfg.Lanes.Shared, cfg.Lanes.BatchRows, cfg.Target.Client.Transport = shared, 5, link
			cfg.Pacer = func() lanes.Pacer { return restless{} }
		})
		conformance.Equal(t, link.most, most, "requests were in flight at most")
	})
}

// together runs loads at the same time, each of its own file, with distinct keys, into one table.
func together(t *testing.T, w *world, loads, rows int, set func(*trial)) {
	t.Helper()
	var group sync.WaitGroup
	for i := range loads {
		cfg := w.config(w.file(fmt.Sprintf("in%d.csv", i), shuffled(rows)))
		cfg.RunDir = fmt.Sprintf("%s/run-%d", w.dir, i)
		set(&cfg)
		group.Go(func() {
			r := w.load(cfg)
			conformance.True(t, r.Written+r.Superseded == int64(rows), "load %d: %d of %d rows", i, r.Written+r.Superseded, rows)
		})
	}
	group.Wait()
}

// When the other lanes of a table have ended, the last lane soon gets their rate. The fastest of three loads counts.
func TestLastLaneTakesOverRequests(t *testing.T) {
	t.Parallel()
	seconds := []float64{math.Inf(1)}
	for slices.Min(seconds) > 19 && len(seconds) <= 3 {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.partitioned(server.Simulation{Config: sim.Config{Limiter: "sliding-window", PartitionUnits: 1000, TableUnits: 2000,
				Latency: 50 * time.Millisecond, Jitter: 0.1}}, "k1", "k2", "k3")
			random := rand.New(rand.NewPCG(1, 1))
			text := rowsOf("id,n\n", 24_000, func(i int) string { // half of the rows are in the first partition
				return fmt.Sprintf("k%d%08d,%d\n", max(0, random.IntN(6)-2), random.IntN(1e8), i)
			})
			seconds = append(seconds, w.load(w.config(w.file("in.csv", text))).Seconds)
		})
	}
	conformance.True(t, slices.Min(seconds) <= 19, "the loads took %.1f s", seconds)
}

func idle() float64 { return 0 }

// limitedLoads has, for each word, a load that is limited by it. A faster machine would not speed it up.
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
		must(w.t,
			w.server.Sim().Simulate("",
				server.Simulation{Config: sim.Config{Answers: sim.Answers{NewTableMissing: time.Second}}}))
		return w.byMonth(w.file("in.csv", purchases(500, 1)))
	},
	bottleneck.Index: func(w *world) trial {
		w.partitioned(server.Simulation{Config: sim.Config{PartitionUnits: 1500, Burst: 100 * time.Millisecond,
			Answers: sim.Answers{Indexes: 2}}}, "k00600")
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
		cfg.Write.Mode = table.Update // with puts, intermediate rows would be superseded
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

func slowReader(w *world) trial {
	cfg, _ := w.fromRows(sourcetest.NewRows("rows", 500))
	cfg.Read.Sources = slowRows{cfg.Read.Sources}
	return cfg
}

type slowRows struct{ source.Origin }

func (s slowRows) Open(ctx context.Context, division []byte) ([]source.Source, error) {
	all, err := s.Origin.Open(ctx, division)
	for i := range all {
		all[i] = slowSource{all[i]}
	}
	return all, err
}

type waitingRows struct{ source.Origin }

func (waitingRows) Waiting() bool { return true }

type slowSource struct{ source.Source }

func (s slowSource) Next() (source.Piece, error) {
	time.Sleep(20 * time.Millisecond) // for every ten rows
	return s.Source.Next()
}

func TestIndexesAreReportedBeforeFirstRowAndCounted(t *testing.T) {
	for _, dry := range []bool{false, true} {
		w := newWorld(t)
		w.partitioned(server.Simulation{Config: sim.Config{Answers: sim.Answers{Indexes: 2}}})
		cfg := w.config(w.file("in.csv", numbered("k", 100)))
		cfg.DryRun = dry
		said, sent := "", false
		cfg.onSend = func([]table.Ref) { sent = true }
		cfg.Watch.OnPlan = func(p *plan.Plan) {
			said = strings.Join(p.Warnings, "\n")
			conformance.True(t, !sent, "a row was sent before")
		}
		r := w.load(cfg)
		const want = "table t has 2 secondary indexes (t_index1, t_index2): a row of one write unit costs 3 write units " +
			"and 2 read units with them"
		conformance.Contains(t, said, want, "dry run %v: said", dry)
		conformance.True(t, len(r.Indexes) == 2 && r.IndexWriteCU == 200 && r.IndexReadCU == 200,
			"dry run %v: %+v", dry, r.ReportIndexes)
	}
}

func TestLoadReportsItsBottleneck(t *testing.T) {
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
			conformance.True(t, len(r.LimitedBy) != 0 && r.LimitedBy[0].By == word.String() && r.LimitedBy[0].Share >= 0.4,
				"%+v in %.2f s", r.LimitedBy, r.Seconds)
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
			now := bottleneck.Word(progress.Hindrance.LimitedBy.Load())
			conformance.True(t, now != bottleneck.None, "the progress says nothing")
		}))
	}
}

// The lag is shown while the pipe that has delivered a change is still open.
func TestOpenPipeShowsLagOfChanges(t *testing.T) {
	virtually(t, func(t *testing.T, w *world) {
		r, pipe := io.Pipe()
		cfg := w.config("-")
		cfg.Read.Stdin, cfg.Read.Changes, cfg.Write.Mode = r, &reader.Changes{Typed: func(string) bool { return true }},
			table.Changes
		cfg.Watch.Progress = new(ledger.Progress)
		change := func(id string) string {
			return fmt.Sprintf(`{"op":"c","after":{"id":%q,"n":1},"source":{"table":"t","ts_ms":%d}}`+"\n", id,
				time.Now().UnixMilli())
		}
		time.AfterFunc(time.Hour, func() {
			_, _ = io.WriteString(pipe, change("a"))
			time.Sleep(time.Minute)
			n, since, known := cfg.Watch.Progress.Lag()
			conformance.True(t, known && n == 0 && since.Round(time.Second) == time.Minute, "lag %d, %v (%v)", n, since, known)
			conformance.Equal(t, len(w.rows()), 1, "rows while the pipe is open")
			w.failNext(faults.Fault{Action: faults.Hang})
			_, _ = io.WriteString(pipe, change("b")+change("c"))
			time.Sleep(time.Second)
			n, since, _ = cfg.Watch.Progress.Lag()
			conformance.True(t, n == 2 && since.Round(time.Second) == time.Minute+time.Second, "it hangs: lag %d, %v", n, since)
			pipe.Close()
		})
		w.load(cfg)
	})
}

// lateStream delivers nothing for a while, then its content.
type lateStream struct {
	io.Reader
	wait time.Duration
}

func (l *lateStream) Read(b []byte) (int, error) {
	time.Sleep(l.wait)
	l.wait = 0
	return l.Reader.Read(b)
}

func TestLateStreamIsLimitedByReader(t *testing.T) {
	for name, stream := range map[string]io.Reader{
		"nothing at first": &lateStream{strings.NewReader(numbered("k", 100)), 20 * time.Second},
		"a few rows before": io.MultiReader(strings.NewReader(numbered("k", 10)),
			&lateStream{strings.NewReader("k00010,10\n"), 20 * time.Second}),
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
			conformance.True(t, len(r.LimitedBy) != 0 && r.LimitedBy[0].By == "reader" && r.LimitedBy[0].Seconds >= 20 &&
				r.LimitedBy[0].Share >= 0.9, "%+v in %.2f s", r.LimitedBy, r.Seconds)
			conformance.Equal(t, bottleneck.Word(said.Load()), bottleneck.Reader, "meanwhile the word")
		}))
	}
}
