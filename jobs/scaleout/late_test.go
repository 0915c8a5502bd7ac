package scaleout

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
)

// byDefault is a load with the time-outs that a user has who gives none.
func byDefault(cfg *pipeline.Config) { cfg.Target.Client.RequestTimeout = 0 }

// diesSending makes a process die with a request with rows on its way, which comes late. Chance is of each such request.
func (p *process) diesSending(rnd *rand.Rand, chance float64, late time.Duration) *process {
	var mu sync.Mutex
	p.wire = func(r *http.Request) (time.Duration, bool) {
		mu.Lock()
		defer mu.Unlock()
		return late, r.URL.Path == "/BatchWriteRow" && rnd.Float64() < chance
	}
	return p
}

// nextLoad is another load of the table, which begins when the job has ended: it replaces every row.
func (w *world) nextLoad() {
	sdk := w.sdk()
	for key := range w.want {
		must(w.t, tabletest.Do(sdk, tabletest.Put("t", tabletest.Key("id", key), tabletest.Cells{"what": "the next load"})))
		w.want[key] = "the next load"
	}
}

// TestLateRequestsOfLostWorkersUndoNeitherTheJobNorTheNextLoad has workers die with rows on their way. These come at any moment up to the last at
// which they may: after their shard was committed by another worker, but neither into the comparison nor after the job.
func TestLateRequestsOfLostWorkersUndoNeitherTheJobNorTheNextLoad(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		w := newWorld(t)
		w.tune = byDefault
		switch rnd.IntN(4) {
		case 0:
			w.order = plan.OrderNone
		case 1:
			w.order, w.mode = plan.OrderNone, table.Update // with fixed stamps
		case 2:
			w.verify = true
		}
		w.makeInputs(rnd)
		if w.good == 0 {
			w.inputs = append(w.inputs, w.extra())
		}
		w.planned(func(r *Request) { r.Verify = w.verify })
		var all sync.WaitGroup
		for n := range 2 + rnd.IntN(3) {
			p := w.start(fmt.Sprintf("dies %d", n), rnd.Uint64(), -1, 0)
			p.diesSending(rand.New(rand.NewPCG(rnd.Uint64(), 5)), 0.3, time.Duration(rnd.Int64N(int64(330*time.Second))))
			all.Go(func() { p.tries(workAll) })
		}
		w.finish()
		w.nextLoad()
		all.Wait()
		w.late.Wait()
		conformance.Equal(t, gocmp.Diff(w.want, w.rows()), "", "a request of the job has undone the next load (-want +got)")
	})
}

// lost is a job of which a worker has died with rows on their way.
func lost(t *testing.T) *world {
	w := newWorld(t)
	w.tune, w.verify = byDefault, true
	w.makeInputs(rand.New(rand.NewPCG(4, 1)))
	w.planned(func(r *Request) { r.Workers, r.Verify = 1, true })
	p := w.start("dies", 3, -1, 0).diesSending(rand.New(rand.NewPCG(1, 1)), 1, 300*time.Second)
	if err := p.run(workAll); err == nil {
		t.Fatal("it has not died")
	}
	return w
}

// sayings keep what a process says.
func sayings() (heard func() string, say words.Say) {
	var mu sync.Mutex
	var text strings.Builder
	return func() string {
			mu.Lock()
			defer mu.Unlock()
			return text.String()
		}, func(kind words.Kind, line string) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(&text, "%s%s\n", kind, line)
		}
}

func TestShardsThatAreTakenOverAreCommittedAtOnceAndTheJobWaitsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := lost(t)
		heard, say := sayings()
		began := time.Now()
		var wrote time.Duration // until all shards were written
		watcher, err := NewWatcher(t.Context(), w.store)
		must(t, err)
		go func() {
			for wrote == 0 {
				time.Sleep(watchEvery)
				if s, err := watcher.Status(t.Context()); err == nil && s.Stages[1].Done == s.Stages[1].Tasks {
					wrote = time.Since(began)
					if s.LateUntil == nil || time.Until(*s.LateUntil) < 4*time.Minute {
						t.Errorf("the status says that late requests may come until %v", s.LateUntil)
					}
				}
			}
		}()
		var s *Summary
		must(t, w.start("worker", 2, -1, 0).run(func(ctx context.Context, j *Job) (err error) {
			j.o.Say = say
			s, err = j.Work(ctx)
			return err
		}))
		if all := time.Since(began); wrote == 0 || wrote > 2*time.Minute || all < 5*time.Minute || all > 7*time.Minute {
			t.Errorf("all shards were written after %v, and the job has ended after %v", wrote, all)
		}
		conformance.Contains(t, heard(), "waiting until", "what it says")
		w.check(s)
		w.late.Wait()
		w.check(s)
	})
}

func TestAWorkerThatWaitsEndsWithinTwoSeconds(t *testing.T) {
	for name, after := range map[string]time.Duration{"for a lease": 10 * time.Second, "for late requests": 3 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := lost(t)
				drain, end := context.WithCancelCause(t.Context())
				errSignal := errors.New("a signal")
				var at time.Time
				time.AfterFunc(after, func() { at = time.Now(); end(errSignal) })
				p := w.start("worker", 2, -1, 0)
				j, err := Open(p.ctx, p, Options{Load: w.config(p), Program: "test", Drain: drain, Clock: func() time.Duration { return time.Since(w.startsAt) }})
				must(t, err)
				if name == "for a lease" {
					for i := range j.Plan.Shards {
						if err = j.WriteShard(p.ctx, i); err != nil {
							break
						}
					}
				} else {
					_, err = j.Work(p.ctx)
				}
				if took := time.Since(at); !errors.Is(err, errSignal) || at.IsZero() || took > 2*time.Second {
					t.Errorf("%v after the signal: %v", took, err)
				}
				conformance.Equal(t, j.Close(), nil, "Close")
				w.late.Wait()
			})
		})
	}
}

func TestPassingFaultsOfTheJobDirectoryPauseAWorkerButNotForever(t *testing.T) {
	for name, c := range map[string]struct {
		fails func(since time.Duration, name string) bool
		err   error
		says  string
	}{
		"a minute":           {func(since time.Duration, _ string) bool { return since < time.Minute }, nil, "the job directory fails"},
		"forever":            {func(time.Duration, string) bool { return true }, errStore, "the job directory fails"},
		"leases given back":  {func(_ time.Duration, name string) bool { return strings.Contains(name, "/lease.") }, nil, "warning: give back the lease"},
		"a minute, in turns": {func(since time.Duration, _ string) bool { return int(since.Seconds())%10 < 5 && since < time.Minute }, nil, ""},
	} {
		t.Run(name, inJob(func(t *testing.T, w *world) {
			began := time.Now()
			heard, say := sayings()
			var s *Summary
			p := w.start("worker", 2, -1, 0)
			err := p.run(func(ctx context.Context, j *Job) (err error) {
				j.o.Say = say
				p.goesWrong(func(verb, object string, done bool) error {
					if verb == "get" || verb == "delete" || done {
						return nil
					}
					fails := c.fails(time.Since(began), object)
					if name == "leases given back" {
						_, put, _ := strings.Cut(object, "lease.")
						fails = put != "" && strings.HasPrefix(object, "splits/") && w.stored(object)
					}
					if fails {
						return &jobdir.FaultError{Cause: errStore}
					}
					return nil
				})
				s, err = j.Work(ctx)
				return err
			})
			if !errors.Is(err, c.err) || !strings.Contains(heard(), c.says) {
				t.Fatalf("%v; said: %s", err, heard())
			}
			if c.err == nil {
				w.check(s)
			} else if took := time.Since(began); took < pipeline.DefaultRetryFor || took > 2*pipeline.DefaultRetryFor {
				t.Errorf("it has given up after %v", took)
			}
		}))
	}
}

// stored reports whether there is an object.
func (w *world) stored(name string) bool {
	_, err := w.store.Get(context.Background(), name)
	return err == nil
}
