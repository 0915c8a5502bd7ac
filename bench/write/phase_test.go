package write

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/bench"
	"example.com/tsimport/bench/result"
	"example.com/tsimport/engine/sim"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/writer"
)

type scripted struct {
	answer func(rows []table.Ref, outcomes []table.Outcome) error
}

var must = conformance.Must

func (s scripted) Write(rows []table.Ref, _ []bool, outcomes []table.Outcome) (writer.Stats, error) {
	return writer.Stats{Requests: 1}, s.answer(rows, outcomes)
}

func accept(rows []table.Ref, outcomes []table.Outcome) error {
	for i := range rows {
		outcomes[i] = table.Outcome{Fate: table.Written, WriteCU: 1}
	}
	return nil
}

func around(concurrency int, answer func([]table.Ref, []table.Outcome) error) *surroundings {
	s := &surroundings{
		newWriter: func() (rowWriter, func()) { return scripted{answer}, func() {} },
		shape:     Shape{RowSize: 100, Columns: 2, Keys: bench.RandomKeys, Seed: 1}, table: "t", batchRows: 200,
		concurrency: concurrency, retryFor: time.Minute, settings: result.Settings{BatchRows: 200},
	}
	s.partitions.Store(partitioner.NewMap(nil))
	return s
}

func TestLatencyCountsFromDueTime(t *testing.T) {
	// 10 batches a second, each answered after 10 ms, except for one second without answers.
	stalling := func(rate float64) *result.Result {
		var res *result.Result
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			p := &phase{surroundings: around(1, func(rows []table.Ref, outcomes []table.Outcome) error {
				at := time.Since(began)
				if at >= 5*time.Second && at < 6*time.Second {
					time.Sleep(6*time.Second - at)
				}
				time.Sleep(10 * time.Millisecond)
				return accept(rows, outcomes)
			}), duration: 10 * time.Second, rate: rate}
			var err error
			res, err = p.run(t.Context())
			conformance.MustTrue(t, err == nil, "%v", err)
		})
		return res
	}
	open := stalling(2000)
	conformance.MustTrue(t, open.Totals.Rows == 20000 && open.Latency.Count == 100,
		"%d rows, %d latencies; want all of 100 batches", open.Totals.Rows, open.Latency.Count)
	// The batch due at 5.0 s waits 1.01 s, the next one 0.92 s, and so on: eleven wait longer than 50 ms.
	if p90 := open.Latency.P(.9); p90 < 50 || open.Latency.Max < 1005 || open.Latency.Max > 1015 {
		t.Errorf("p90 %v ms, max %v ms; want more than 50 and 1010", p90, open.Latency.Max)
	}
	slow := int64(0)
	for _, point := range open.Points {
		for us, n := range point.Latency {
			if us > 50_000 {
				slow += n
			}
		}
	}
	conformance.Equal(t, slow, 11, "batches are counted as late")
	// A closed loop meets the stall only once, as the latency of one request.
	if closed := stalling(0); closed.Latency.P(.99) > 11 || closed.Latency.Max < 1000 {
		t.Errorf("closed loop: p99 %v ms, max %v ms; want 10 and 1010", closed.Latency.P(.99), closed.Latency.Max)
	}
}

func TestUnsentBatchesCountAsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &phase{surroundings: around(1, func(rows []table.Ref, outcomes []table.Outcome) error {
			time.Sleep(1001 * time.Millisecond) // so that no answer arrives exactly when the time runs out
			return accept(rows, outcomes)
		}), duration: 10 * time.Second, rate: 2000} // ten batches are due each second, one is answered
		res := conformance.Try(p.run(t.Context())).Must(t)
		conformance.True(t, res.Totals.Rows == 2000 && res.Latency.Count == 100 && res.Latency.P(.5) >= 4000,
			"%d rows, %d latencies, p50 %v ms; want 2000, 100, 5 s", res.Totals.Rows, res.Latency.Count, res.Latency.P(.5))
	})
}

func TestThrottledRowsAreRetriedWithinTheirBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := map[string]int{}
		p := &phase{surroundings: around(1, func(rows []table.Ref, outcomes []table.Outcome) error {
			time.Sleep(5 * time.Millisecond)
			for i, r := range rows {
				tries[string(r.Key())]++
				switch n := tries[string(r.Key())]; {
				case i%2 == 1 && n == 1:
					outcomes[i] = table.Outcome{Fate: table.Again, Throttled: true, Code: "OTSNotEnoughCapacityUnit"}
				case i == 0 && n == 1:
					outcomes[i] = table.Outcome{Fate: table.Refused, Code: "OTSInvalidPK"}
				default:
					outcomes[i] = table.Outcome{Fate: table.Written, WriteCU: 2}
				}
			}
			return nil
		}), rows: 100}
		var samples samplesOf
		p.samples = result.NewSampleWriter(&samples)
		res := conformance.Try(p.run(t.Context())).Must(t)
		got := res.Totals
		conformance.True(t, got.Rows == 99 && got.Throttled == 50 && got.Failed == 1 && got.Retried == 50 &&
			got.Requests == 2 && got.Units == 198 && res.Unfinished == 0, "totals %+v, %d unfinished", got, res.Unfinished)
		conformance.True(t, res.Codes["OTSNotEnoughCapacityUnit"] == 50 && res.Codes["OTSInvalidPK"] == 1 &&
			res.Latency.Count == 1 && res.Service.Count == 2 && res.Latency.Max >= 10,
			"codes %v, latency %+v, of requests %+v", res.Codes, res.Latency, res.Service)
		if err := p.samples.Flush(); err != nil || samples.lines() != 3 {
			t.Errorf("%d lines of samples, %v; want a header and two", samples.lines(), err)
		}
	})
}

type samplesOf struct{ text []byte }

func (s *samplesOf) Write(b []byte) (int, error) {
	s.text = append(s.text, b...)
	return len(b), nil
}

func (s *samplesOf) lines() (n int) {
	for _, b := range s.text {
		if b == '\n' {
			n++
		}
	}
	return n
}

func TestFatalAnswerEndsRun(t *testing.T) {
	broken := errors.New("OTSAuthFailed")
	synctest.Test(t, func(t *testing.T) {
		p := &phase{surroundings: around(8, func([]table.Ref, []table.Outcome) error {
			time.Sleep(time.Millisecond)
			return broken
		}), duration: time.Hour}
		_, err := p.run(t.Context())
		conformance.True(t, errors.Is(err, broken), "%v, want %v", err, broken)
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		p := &phase{surroundings: around(4, func(rows []table.Ref, outcomes []table.Outcome) error {
			time.Sleep(10 * time.Millisecond)
			return accept(rows, outcomes)
		}), duration: time.Hour}
		res, err := p.run(ctx)
		conformance.True(t, err == nil && res.Totals.Rows >= 4*190*200 && res.Seconds >= 1.9 && res.Seconds <= 2.1,
			"%v; %d rows in %v s", err, res.Totals.Rows, res.Seconds)
	})
	synctest.Test(t, func(t *testing.T) {
		p := &phase{surroundings: around(2, func(rows []table.Ref, outcomes []table.Outcome) error {
			for i := range rows {
				outcomes[i] = table.Outcome{Fate: table.Again, Unavailable: true, Code: "OTSPartitionUnavailable"}
			}
			return nil
		}), rows: 1000}
		if _, err := p.run(t.Context()); err == nil || time.Since(p.began) < time.Minute {
			t.Errorf("%v after %v; want to give up after a minute", err, time.Since(p.began))
		}
	})
}

func TestTotalsExcludeWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &phase{surroundings: around(1, func(rows []table.Ref, outcomes []table.Outcome) error {
			time.Sleep(100 * time.Millisecond)
			return accept(rows, outcomes)
		}), duration: 10 * time.Second, warmUp: 4 * time.Second}
		res := conformance.Try(p.run(t.Context())).Must(t)
		all := int64(0)
		for _, point := range res.Points {
			all += point.Rows
		}
		conformance.True(t, all >= 99*200 && res.Totals.Rows >= 60*200 && res.Totals.Rows <= 62*200 &&
			res.PerSecond.Rows >= 1990 && res.PerSecond.Rows <= 2040,
			"%d rows in the points, %d in the totals, %v a second", all, res.Totals.Rows, res.PerSecond.Rows)
	})
}

type simulated struct {
	mu    sync.Mutex
	table *sim.Table
}

func (s *simulated) Write(rows []table.Ref, _ []bool, outcomes []table.Outcome) (writer.Stats, error) {
	time.Sleep(5 * time.Millisecond)
	asked := make([]sim.Row, len(rows))
	for i, r := range rows {
		asked[i] = sim.Row{Key: r.Key()[:8], Units: 1, Bytes: int32(r.Row().Size())}
	}
	s.mu.Lock()
	s.table.Decide(time.Now(), asked)
	s.mu.Unlock()
	for i := range asked {
		outcomes[i] = table.Outcome{Fate: table.Written, WriteCU: 1}
		if asked[i].Verdict == sim.Throttled {
			outcomes[i] = table.Outcome{Fate: table.Again, Throttled: true, Code: "OTSNotEnoughCapacityUnit"}
		}
	}
	return writer.Stats{Requests: 1}, nil
}

func TestSearchFindsSimulatedCapacity(t *testing.T) {
	const capacity = 5000
	synctest.Test(t, func(t *testing.T) {
		s := around(32, nil)
		sims := &simulated{table: sim.NewTable(sim.Config{PartitionUnits: capacity}, time.Now())}
		s.newWriter = func() (rowWriter, func()) { return sims, func() {} }
		phaseOf := func(duration time.Duration) func(context.Context, float64) (*result.Result, error) {
			return func(ctx context.Context, rate float64) (*result.Result, error) {
				return (&phase{surroundings: s, duration: duration, warmUp: duration / 5, rate: rate}).run(ctx)
			}
		}
		search := &searcher{limits: Search{MaxP99: 50 * time.Millisecond, MaxThrottled: .01, Start: 500},
			try: phaseOf(3 * time.Second), hold: phaseOf(20 * time.Second), say: logs(t)}
		res := conformance.Try(search.run(t.Context())).Must(t)
		conformance.True(t, res.PerSecond.Rows >= .93*capacity && res.PerSecond.Rows <= 1.01*capacity &&
			res.Totals.ThrottledShare() <= .01 && res.Latency.P(.99) <= 50, "found %v rows/s of %d, %v throttled, p99 %v ms",
			res.PerSecond.Rows, capacity, res.Totals.ThrottledShare(), res.Latency.P(.99))
		last := res.Steps[len(res.Steps)-1]
		conformance.True(t, last.Passed, "the last step did not pass: %+v", last)
	})
}

func TestSearchFollowsGrowingTable(t *testing.T) {
	tries := 0
	at := func(_ context.Context, rate float64) (*result.Result, error) {
		capacity := 500.0
		if tries++; tries > 3 { // by then the table has split
			capacity = 4000
		}
		rows := min(rate, capacity)
		r := &result.Result{Seconds: 5, PerSecond: result.Rates{Rows: rows},
			Totals: result.Totals{Requests: 100, Rows: int64(5 * rows), RowsSent: int64(5 * rate)}}
		r.Totals.Throttled = int64(5 * (rate - rows))
		return r, nil
	}
	s := &searcher{limits: Search{Start: 1000}, try: at, hold: at, say: logs(t)}
	res, err := s.run(t.Context())
	conformance.True(t, err == nil && res.PerSecond.Rows >= 4000*.96 && res.PerSecond.Rows <= 4000 && tries <= 20,
		"%v, %v rows/s after %d tries; want a little below 4000", err, res.PerSecond.Rows, tries)
}

func logs(t *testing.T) func(words.Kind, string) {
	return func(_ words.Kind, line string) { t.Log(line) }
}

func TestSearchFindsLatencyLimit(t *testing.T) {
	// Below 3,000 rows per second p99 is 10 ms, above it 100 ms, without any throttling.
	tried := 0
	at := func(_ context.Context, rate float64) (*result.Result, error) {
		tried++
		r := &result.Result{Seconds: 5, PerSecond: result.Rates{Rows: rate},
			Totals: result.Totals{Requests: 100, Rows: int64(5 * rate), RowsSent: int64(5 * rate)}}
		p99 := 10.0
		if rate > 3000 {
			p99 = 100
		}
		r.Latency = result.Latency{Count: 100, At: []float64{1, 1, 1, 1, p99, p99, p99}}
		return r, nil
	}
	s := &searcher{limits: Search{MaxP99: 20 * time.Millisecond, Start: 100}, try: at, hold: at, say: logs(t)}
	res, err := s.run(t.Context())
	conformance.True(t, err == nil && res.PerSecond.Rows >= 3000/(1+precision) && res.PerSecond.Rows <= 3000 &&
		tried <= 20, "%v, %v rows/s after %d tries; want a little below 3000", err, res.PerSecond.Rows, tried)
	s = &searcher{limits: Search{MaxP99: time.Millisecond, Start: 100}, try: at, hold: at, say: logs(t)}
	var none *errNoRate
	if _, err := s.run(t.Context()); !errors.As(err, &none) ||
		!strings.Contains(err.Error(), "even 1 rows/s exceeds the limits: p99 10 ms, more than --max-p99 1ms") {
		t.Errorf("a limit that no rate keeps: %v", err)
	}
	s = &searcher{limits: Search{MaxP99: time.Millisecond, Start: 100}, least: 40, try: at, hold: at, say: logs(t)}
	_, err = s.run(t.Context())
	conformance.True(t, errors.As(err, &none) && none.rate == 40, "a batch takes a step at 40 rows/s: %v", err)
}

func TestUnsustainedRateNamesExceededLimit(t *testing.T) {
	at := func(throttled int64) func(context.Context, float64) (*result.Result, error) {
		return func(_ context.Context, rate float64) (*result.Result, error) {
			rows := int64(5 * rate)
			return &result.Result{Seconds: 5, PerSecond: result.Rates{Rows: rate},
				Totals: result.Totals{Requests: 100, Rows: rows, RowsSent: rows, Throttled: rows * throttled / 100}}, nil
		}
	}
	s := &searcher{limits: Search{MaxThrottled: .01, Start: maxRate}, try: at(0), hold: at(5), say: logs(t)}
	_, err := s.run(t.Context())
	conformance.Refused(t, err, "5.00 % throttled (--max-throttled 1%)", "error")
}

func TestSustainedRateMayBeFarBelowShortSteps(t *testing.T) {
	// Steps pass at up to 10,000 rows per second. Rates above 4,000, when held, fall behind or are late.
	for name, behind := range map[string]bool{"falls behind": true, "is late": false} {
		holds := 0
		at := func(limit float64) func(context.Context, float64) (*result.Result, error) {
			return func(_ context.Context, rate float64) (*result.Result, error) {
				rows, p99 := rate, 10.0
				if limit == 4000 {
					holds++
				}
				if rate > limit && behind {
					rows = limit
				} else if rate > limit {
					p99 = 100
				}
				r := &result.Result{Seconds: 5, PerSecond: result.Rates{Rows: rows},
					Totals: result.Totals{Requests: 100, Rows: int64(5 * rows), RowsSent: int64(5 * rows)}}
				r.Latency = result.Latency{Count: 100, At: []float64{1, 1, 1, 1, p99, p99, p99}}
				return r, nil
			}
		}
		s := &searcher{limits: Search{MaxP99: 2e7, Start: 1000}, try: at(10_000), hold: at(4000), say: logs(t)}
		res, err := s.run(t.Context())
		conformance.True(t, err == nil && res.PerSecond.Rows <= 4000 && res.PerSecond.Rows >= 2000 && holds <= mostHolds,
			"what %s: %v, %+v after %d holds", name, err, res, holds)
	}
}

func TestRowSizeAndSinglePartitionBatches(t *testing.T) {
	for _, kind := range []bench.KeyKind{bench.RandomKeys, bench.SequentialKeys, bench.ZipfKeys, bench.StudentCardKeys} {
		made := conformance.Try(newRows(Shape{RowSize: 333, Columns: 7, Keys: kind, Seed: 3}, 10000, "t")).Must(t)
		s := around(1, nil)
		if kind == bench.RandomKeys {
			s.partitions.Store(partitioner.NewMap([]table.Value{{Type: table.Integer, Int: -1 << 61},
				{Type: table.Integer, Int: 1 << 60}}))
		}
		c := newCutter(made, 10000, 200, &s.partitions, 1)
		rows := int64(0)
		for n := 0; ; n++ {
			if n == 20 && kind == bench.RandomKeys { // partitions split and merge while rows wait
				s.partitions.Store(partitioner.NewMap([]table.Value{{Type: table.Integer, Int: 0}}))
			}
			b := conformance.Try(c.next()).Must(t)
			if b == nil {
				break
			}
			conformance.MustTrue(t, b.first == rows && len(b.rows.Rows) <= 200,
				"%s: a batch of %d rows after %d, it says %d", kind, len(b.rows.Rows), rows, b.first)
			m := s.partitions.Load()
			for i := range b.rows.Rows {
				row := table.Ref{Block: b.rows, Index: int32(i)}
				conformance.MustEqual(t, row.Row().Size(), 333, "%s: bytes of a row", kind)
				if lane := m.Find(row.Key()); string(m.Lower(lane)) != b.lower {
					t.Fatalf("%s: a row of partition %d in a batch of another", kind, lane)
				}
			}
			rows += int64(len(b.rows.Rows))
			c.done(b)
		}
		conformance.Equal(t, rows, 10000, "%s: rows", kind)
	}
}

func TestLargeRowsMakeSmallBatches(t *testing.T) {
	for size, want := range map[int]int{20_000: 200, 25_000: 167, 1 << 20: 4, 4 << 20: 1} {
		made := conformance.Try(newRows(Shape{RowSize: size, Columns: 8, Keys: bench.RandomKeys, Seed: 1}, 10, "t")).Must(t)
		s := around(1, nil)
		b, err := newCutter(made, 0, 200, &s.partitions, 1).next()
		conformance.True(t, err == nil && len(b.rows.Rows) == want,
			"rows of %d bytes: %d in a batch, %v; want %d", size, len(b.rows.Rows), err, want)
	}
}

func TestInvalidMeasurementsAreRefused(t *testing.T) {
	good := Config{TablePrefix: "b_", Rows: 1, Concurrency: 1}
	must(t, good.check())
	for name, change := range map[string]func(*Config){
		"no end":              func(c *Config) { c.Rows = 0 },
		"negative rows":       func(c *Config) { c.Rows = -1 },
		"all warm-up":         func(c *Config) { c.Duration, c.WarmUp = time.Second, time.Second },
		"too many rows":       func(c *Config) { c.BatchRows = 201 },
		"no worker":           func(c *Config) { c.Concurrency = 0 },
		"a rate below 0":      func(c *Config) { c.Rate = -1 },
		"a bad prefix":        func(c *Config) { c.TablePrefix = "1-" },
		"no prefix":           func(c *Config) { c.TablePrefix = "" },
		"search for rows":     func(c *Config) { c.Search = &Search{}; c.Duration = time.Second },
		"search without time": func(c *Config) { c.Search = &Search{}; c.Rows = 0 },
		"search at a rate":    func(c *Config) { c.Search = &Search{}; c.Rows, c.Duration, c.Rate = 0, time.Second, 5 },
		"all throttled":       func(c *Config) { c.Search = &Search{MaxThrottled: 1}; c.Rows, c.Duration = 0, time.Second },
	} {
		c := good
		change(&c)
		err := c.check()
		conformance.True(t, errors.As(err, new(*plan.UsageError)), "%s: %v", name, err)
	}
	for i, s := range []Shape{{RowSize: 10, Columns: 1, Keys: "random"}, {RowSize: 100, Columns: 0, Keys: "random"},
		{RowSize: 9000, Columns: 1025, Keys: "random"}, {RowSize: 3 << 20, Columns: 1, Keys: "random"},
		{RowSize: 5 << 20, Columns: 8, Keys: "random"}, {RowSize: 100, Columns: 1, Keys: "sorted"}} {
		_, err := newRows(s, 1, "t")
		conformance.True(t, errors.As(err, new(*plan.UsageError)), "shape %s: %v", strconv.Itoa(i), err)
	}
}
