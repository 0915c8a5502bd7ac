package scaleout

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/tabletest"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/scaleout/runfile"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) { conformance.Main(m) }

var must = conformance.Must

var everyDeath = flag.Bool("scaleout-deaths", false, "let a process die at every act, not at some")

// TestProcessKilledAtAnyStepIsReplaced kills a process before or after each request. Another one must finish its job.
func TestProcessKilledAtAnyStepIsReplaced(t *testing.T) {
	t.Parallel()
	acts := 0
	inJob(func(t *testing.T, w *world) { // counts the acts of an undisturbed process
		p := w.start("alive", 3, 1<<30, 0)
		must(t, p.run(workAll))
		acts = 1<<30 - p.left
	})(t)
	step := max(1, acts/6)
	if *everyDeath {
		step = 1
	}
	for at := 0; at < acts; at += step {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			inJob(func(t *testing.T, w *world) {
				w.start("dies", 3, at, 0).tries(workAll)
				w.finish()
			})(t)
		})
	}
	t.Logf("%d acts", acts)
}

func workAll(ctx context.Context, j *Job) error {
	_, err := j.Work(ctx)
	return err
}

var digits = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)

// faults calls do until it succeeds, each time with a new process in which the first three operations of each kind
// fail, before or after they take effect. An operation that has ended a process does not fail again. Only failures of
// operations that match may are allowed to pass unreported.
func (w *world) faults(after bool, may string, do func(p *process) error) {
	w.t.Helper()
	var mu sync.Mutex
	ended := map[string]bool{}
	for n := range 200 {
		failed, times := map[string]bool{}, map[string]int{}
		p := w.start(fmt.Sprint("flaky ", n), 3, -1, 0)
		p.goesWrong(func(verb, name string, done bool) error {
			mu.Lock()
			defer mu.Unlock()
			kind := verb + " " + digits.ReplaceAllString(name, "N")
			if done != after {
				return nil
			}
			times[kind]++
			n := times[kind]
			if kind += strings.Repeat("'", n); n > 3 || ended[kind] {
				return nil
			}
			failed[kind] = true
			return fmt.Errorf("%w at <%s>", errStore, kind)
		})
		err := do(p)
		mu.Lock()
		before := len(ended)
		for kind := range failed {
			if err != nil && strings.Contains(err.Error(), "<"+kind+">") {
				ended[kind] = true
				conformance.Equal(w.t, strings.Count(err.Error(), "<"+kind+">"), 1, "how often it is in %v", err)
			} else if err == nil && !regexp.MustCompile("^("+may+")").MatchString(kind) {
				w.t.Errorf("a failure of %q is not reported, afterwards: %v", kind, after)
			}
		}
		mu.Unlock()
		if err == nil {
			return
		}
		conformance.InALine(w.t, err, errStore.Error(), "a fault")
		conformance.MustTrue(w.t, len(ended) > before, "%v does not name any of %q", err, slices.Sorted(maps.Keys(failed)))
	}
	w.t.Errorf("faults have ended 200 processes")
}

// TestStoreFaultsLoseNothing makes the store fail planners and a worker. They ignore an error only if it is harmless.
func TestStoreFaultsLoseNothing(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.verify = true
			w.makeInputs(rand.New(rand.NewPCG(4, 1)))
			line := "z," + refusedText + "\n" // is rejected when it is written
			w.inputs, w.rejects = append(w.inputs, w.file("refused.csv", "id,what\n"+line)), append(w.rejects, line)
			w.faults(after, "none", func(p *process) error {
				return w.plan(p, func(r *Request) {
					r.Readers, r.Load.Lanes.Rates.MaxRows, r.Load.Limits.MaxErrors.Rows = 1, 1e6, int64(len(w.rejects)-1)
				})
			})
			w.readAll()
			_, err := w.work()
			refused(t, err, exitcode.ErrorLimit, "were rejected")
			w.faults(after, "none", func(p *process) error {
				watcher, err := NewWatcher(p.ctx, p)
				if err == nil {
					_, err = watcher.Status(p.ctx)
				}
				return err
			})
			resume := func(p *process) error {
				return p.run(func(ctx context.Context, j *Job) error { return j.Continue(ctx) })
			}
			refused(t, resume(w.start("resumes", 6, -1, 0)), exitcode.ErrorLimit, "a higher limit, continues it")
			w.faults(after, "none", func(p *process) error {
				return w.plan(p, func(r *Request) { r.Load.Limits.MaxErrors.Rows = int64(len(w.rejects)) })
			})
			conformance.Equal(t, w.stored(stopName), false, "the job is stopped")
			w.store.Objects[stopName] = ""
			w.faults(after, "none", resume)
			w.finish()
			// Leases expire, objects that are left behind or stored again do no harm, and a stop is looked for again.
			const may = "delete [a-z]+/(N/)?lease|list (runs|rejects|probe|writing|writing/N)/'+$|" +
				"put writing/N/(checkpoint|data)|put [a-z]+/(N/)?lease.N''|get stop"
			limited := func(r *Request) { r.Readers, r.Load.Lanes.Rates.MaxRows = 1, 1e6 }
			for stage := range 5 { // the stages one after the other, then all together
				if stage == 0 || stage == 4 {
					clear(w.store.Objects)
					w.planned(limited)
				}
				w.faults(after, may, func(p *process) error {
					return p.run(func(ctx context.Context, j *Job) (err error) {
						switch stage {
						case 3:
							for s := (*Summary)(nil); s == nil && err == nil; {
								s, _, err = j.workOnce(ctx)
							}
							return err
						case 4:
							return workAll(ctx, j)
						}
						st := j.stages()[stage]
						for i := 0; i < st.tasks && err == nil; {
							var worked bool
							if worked, err = j.takeOne(ctx, st, []int{i}); worked {
								i++
							} else {
								time.Sleep(lookEvery) // an earlier process has its lease
							}
						}
						return err
					})
				})
				name := []string{stageRead, stageWrite, stageVerify, stageFinish, stageRead}[stage]
				conformance.True(t, !after || w.stored(failuresFolder+name+"-000000.json"), "no failure of %s is kept", name)
			}
			w.finish()
			direct := newWorld(t)
			direct.order = plan.OrderNone
			direct.makeInputs(rand.New(rand.NewPCG(4, 1)))
			direct.planned(limited)
			direct.faults(after, may, func(p *process) error { return p.run(workAll) })
			direct.finish()
		})
	}
}

// TestFirstResultOfATaskCounts also commits a later attempt's result, with rejects in several lists.
func TestFirstResultOfATaskCounts(t *testing.T) {
	ctx, store := t.Context(), newWorld(t).store
	j := &Job{store: store, Plan: &Plan{ID: "one"}}
	lists := &rejectLists{store: store, name: "rejects"}
	first := &splitResult{done: j.newDone("first"), Split: 3, Read: 9, Rows: 2}
	for i := range int64(7) {
		raw := bytes.Repeat([]byte("x"), listBytes/3)
		must(t, lists.add(ctx, &keptReject{Record: i, Reject: table.Reject{Raw: raw}}))
	}
	must(t, lists.close(ctx, &first.done))
	second := &splitResult{done: j.newDone("second"), Split: 3, ExpiredCells: 5, Index: runfile.Object{Name: "an index"}}
	must(t, errors.Join(j.commit(ctx, store, splitName(3), first), j.commit(ctx, store, splitName(3), second)))
	diff := cmp.Diff(first, second, cmp.AllowUnexported(splitResult{}))
	conformance.True(t, diff == "", "the second attempt has what the first has not committed (-first +second):\n%s", diff)
	var records []int64
	must(t, j.eachReject(ctx, &second.done, func(r *keptReject, _ []byte) error {
		records = append(records, r.Record)
		return nil
	}))
	conformance.Same(t, records, []int64{0, 1, 2, 3, 4, 5, 6}, "records of %d lists", len(second.Rejects))
	conformance.Equal(t, second.Rejects[1].Object, "rejects.2", "the second list")
}

// byDefault sets the default timeout.
func byDefault(cfg *pipeline.Config) { cfg.Target.Client.RequestTimeout = 0 }

// diesSending makes a process die, with this chance per request, while it sends rows. The request is applied late.
func (p *process) diesSending(rnd *rand.Rand, chance float64, late time.Duration) *process {
	var mu sync.Mutex
	p.wire = func(r *http.Request) (time.Duration, bool) {
		mu.Lock()
		defer mu.Unlock()
		return late, r.URL.Path == "/BatchWriteRow" && rnd.Float64() < chance
	}
	return p
}

// nextLoad runs another load into the table. It begins after the job's end and replaces every row.
func (w *world) nextLoad() {
	sdk := w.sdk()
	for key := range w.want {
		must(w.t, tabletest.Do(sdk, tabletest.Put("t", tabletest.Key("id", key), tabletest.Cells{"what": "the next load"})))
		w.want[key] = "the next load"
	}
}

// TestLateRequestsOfLostWorkersUndoNothing applies late requests at any permitted time, which is before the job's end.
func TestLateRequestsOfLostWorkersUndoNothing(t *testing.T) {
	eachSeed(t, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		w := newWorld(t)
		w.tune = byDefault
		switch rnd.IntN(4) {
		case 0:
			w.order = plan.OrderNone
		case 1:
			w.order, w.mode = plan.OrderNone, table.Update // with fixed timestamps
		case 2:
			w.verify = true
		}
		w.makeInputs(rnd)
		if w.good == 0 {
			w.inputs = append(w.inputs, w.extra())
		}
		w.planned(func(*Request) {})
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
		conformance.Equal(t, cmp.Diff(w.want, w.rows()), "", "a request of the job has undone the next load (-want +got)")
	})
}

func lost(t *testing.T) *world {
	w := newWorld(t)
	w.tune, w.verify = byDefault, true
	w.makeInputs(rand.New(rand.NewPCG(4, 1)))
	w.planned(func(r *Request) { r.Workers = 1 })
	p := w.start("dies", 3, -1, 0).diesSending(rand.New(rand.NewPCG(1, 1)), 1, 300*time.Second)
	conformance.MustTrue(t, p.run(workAll) != nil, "it has not died")
	return w
}

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

func TestWaitingWorkerStopsWithinTwoSeconds(t *testing.T) {
	for _, after := range []time.Duration{10 * time.Second, 3 * time.Minute} { // it waits for a lease, for requests
		synctest.Test(t, func(t *testing.T) {
			w := lost(t)
			drain, end := context.WithCancelCause(t.Context())
			heard, say := sayings()
			errSignal, at := errors.New("a signal"), time.Now().Add(after)
			time.AfterFunc(after, func() { end(errSignal) })
			p := w.start("worker", 2, -1, 0)
			err := p.run(func(ctx context.Context, j *Job) error {
				j.o.Drain, j.o.Say = drain, say
				return workAll(ctx, j)
			})
			took := time.Since(at)
			conformance.True(t, errors.Is(err, errSignal) && took >= 0 && took <= 2*time.Second &&
				strings.Count(heard(), "waiting for tasks of other workers") == 1 && strings.Contains(heard(),
				"all rows are written; waiting until") == (after > time.Minute), "%v later: %v; said %s", took, err, heard())
			w.late.Wait()
		})
	}
}

func TestJobDirectoryFaultsPauseAWorkerForALimitedTime(t *testing.T) {
	for says, lasts := range map[string]time.Duration{"cannot be used; retrying for 15m0s": time.Minute,
		"the job directory cannot be used": time.Hour, "warning: release the lease": 0} {
		t.Run(says, inJob(func(t *testing.T, w *world) {
			began := time.Now()
			heard, say := sayings()
			var s *Summary
			p := w.start("worker", 2, -1, 0)
			p.goesWrong(func(verb, object string, done bool) error {
				gives := strings.HasPrefix(object, readingFolder) && strings.Contains(object, "lease.") && w.stored(object)
				if !done && (verb == "list" || verb == "put") && (time.Since(began) < lasts || lasts == 0 && gives) {
					return &jobdir.FaultError{Cause: errStore}
				}
				return nil
			})
			err := p.run(func(ctx context.Context, j *Job) (err error) {
				j.o.Say = say
				s, err = j.Work(ctx)
				return err
			})
			conformance.Contains(t, heard(), says, "what it says")
			if took := time.Since(began); lasts < time.Hour {
				must(t, err)
				w.check(s)
			} else if !errors.Is(err, errStore) || took < pipeline.DefaultRetryFor || took > 2*pipeline.DefaultRetryFor {
				t.Errorf("it has given up after %v: %v", took, err)
			}
		}))
	}
}

func (w *world) stored(name string) bool {
	_, err := w.store.Get(context.Background(), name)
	return err == nil
}

// TestLostTaskIsTakenOverInTime kills one of three workers with default timeouts. None replaces it.
func TestLostTaskIsTakenOverInTime(t *testing.T) { synctest.Test(t, takeover) }

func takeover(t *testing.T) {
	const rows = 20_000
	w := newWorld(t)
	w.tune = byDefault
	text := bytes.NewBufferString("id,what\n")
	for n := range rows {
		key, what := fmt.Sprintf("k%04x", uint16(n*40503)), fmt.Sprint("record ", n)
		w.want[key] = what
		fmt.Fprintf(text, "%s,%s\n", key, what)
	}
	w.inputs, w.good = []string{w.file("in.csv", text.String())}, rows
	w.planned(func(r *Request) { r.Workers, r.SplitSize = 3, 1<<20 })
	w.readAll()
	var all sync.WaitGroup
	start := func(name string) *process {
		p := w.start(name, 1, -1, 0)
		p.wire = func(*http.Request) (time.Duration, bool) { // makes writing take two minutes
			time.Sleep(time.Second)
			return 0, false
		}
		all.Go(func() {
			err := p.run(workAll)
			conformance.True(t, err == nil || errors.Is(err, errDied), "%s: %v", p.name, err)
		})
		return p
	}
	first := start("first")
	start("second")
	start("third")
	time.Sleep(30 * time.Second)
	first.kill(errDied)
	killed := time.Now()
	all.Wait()
	w.finish()
	must(t, w.start("looks", 2, -1, 0).run(func(ctx context.Context, j *Job) error {
		taken := 0
		for i := range j.Plan.Shards {
			r, err := j.shard(ctx, i)
			if err != nil || r == nil {
				return errors.Join(err, errors.New("it is not written"))
			}
			if r.Started.Before(killed) {
				continue
			}
			taken++
			if after := r.Started.Sub(killed); after > jobdir.Term+5*time.Second || r.RowsSent > r.Written*11/10 {
				t.Errorf("shard %d was taken over after %v, and %d rows were sent for %d", i, after, r.RowsSent, r.Written)
			}
		}
		conformance.True(t, taken == shardsEach, "%d shards were taken over, want %d", taken, shardsEach)
		return nil
	}))
	time.Sleep(10 * time.Minute) // for abandoned requests
}

// TestDatabaseSessionsAreLimited checks that a process waits while another one reads.
func TestDatabaseSessionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inputs = []string{w.extra()}
		w.planned(func(r *Request) { r.Readers = 1 })
		must(t, w.start("waits", 1, -1, 0).run(func(ctx context.Context, j *Job) error {
			readers, o := jobdir.Below(w.store, "readers/0000"), jobdir.LeaseOptions{Owner: "other", Clock: j.o.Clock}
			other := conformance.Try(jobdir.Acquire(ctx, readers, o)).Must(t)
			worked := conformance.Try(j.takeOne(ctx, j.stages()[0], []int{0})).Must(t)
			conformance.Equal(t, worked, false, "it reads beside the other")
			must(t, other.Release())
			worked, err := j.takeOne(ctx, j.stages()[0], []int{0})
			conformance.Equal(t, worked, true, "it reads when the other does not")
			_, err2 := jobdir.Acquire(ctx, readers, o)
			conformance.Equal(t, errors.As(err2, new(*jobdir.HeldError)), true, "another reads while it has the sources open")
			return err
		}))
		w.check(w.finish())
	})
}

// The share of the ceilings and the leases of a lost process must expire at the same time.
func TestShardLeasesAreWatchedWhileWaitingForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inputs = []string{w.extra()}
		w.planned(func(r *Request) { r.Workers, r.Load.Lanes.Rates.MaxRows = 1, 100 })
		w.readAll()
		p, slow := w.start("waits", 1, -1, 0), w.start("other", 3, -1, 0)
		must(t, p.run(func(ctx context.Context, j *Job) error {
			gone := func(folder string) {
				l, err := jobdir.Acquire(ctx, jobdir.Below(w.store, folder), jobdir.LeaseOptions{Owner: "gone", Clock: j.o.Clock})
				must(t, err)
				l.Abandon()
			}
			gone("budget/0000")
			gone(shardFolder(0))
			worked, err := j.takeOne(ctx, j.stages()[1], []int{0})
			conformance.True(t, !worked && err == nil && j.seen[shardFolder(0)] != nil,
				"worked: %v, %v; the lease of the shard is watched: %v", worked, err, j.seen[shardFolder(0)] != nil)
			p.goesWrong(func(verb, name string, _ bool) error {
				return map[bool]error{true: errStore}[verb == "list" && strings.HasPrefix(name, writingFolder)]
			})
			conformance.Is(t, conformance.ErrorOf(j.takeOne(ctx, j.stages()[1], []int{0})), errStore, "an unread lease")
			p.goesWrong(nil)
			time.Sleep(jobdir.Term + time.Second)
			worked, err = j.takeOne(ctx, j.stages()[1], []int{0})
			conformance.True(t, worked && err == nil, "it is not taken over when the leases have ended: %v", err)
			other := conformance.Try(slow.open()).Must(t)
			must(t, j.takeSlot(ctx)) // it keeps its share for all tasks, until it ends
			conformance.Equal(t, other.takeSlot(ctx), errNoSlot, "a second share of one")
			must(t, j.Close())
			must(t, other.takeSlot(ctx))
			conformance.Equal(t, j.takeSlot(ctx), errNoSlot, "a share of another process")
			slow.mu.Lock()
			slow.frozen = time.Now().Add(2 * jobdir.Term)
			slow.mu.Unlock()
			time.Sleep(jobdir.Term + time.Second)
			must(t, j.takeSlot(ctx))
			time.Sleep(jobdir.Term)
			conformance.Is(t, other.slot.Check(), jobdir.ErrLost, "the share of a process that was paused")
			conformance.Equal(t, other.takeSlot(ctx), errNoSlot, "another share for it")
			return errors.Join(other.Close(), j.Close())
		}))
	})
}

// Waiting for lookEvery would make a small load two seconds slower.
func TestProcessPollsAgainAfterItsPartHasDoneATask(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		j := conformance.Try(w.start("worker", 2, -1, 0).open()).Must(t)
		part := j.newPart(t.Context(), 1, 2)
		began := time.Now()
		var works sync.WaitGroup
		works.Go(func() {
			steps := 0
			must(t, part.persist(t.Context(), func() (worked, over bool, err error) {
				steps++
				return true, steps == 3, nil
			}))
		})
		must(t, j.pause(t.Context(), time.Hour))
		conformance.True(t, time.Since(began) < lookEvery, "it waited %v", time.Since(began))
		works.Wait()
		must(t, errors.Join(part.Close(), j.Close()))
	})(t)
}

// Hundreds of idle processes would overload a slow store.
func TestIdleProcessPollsASlowStoreLessOften(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		must(t, w.start("idle", 1, -1, 0).run(func(ctx context.Context, j *Job) error {
			for took, want := range map[time.Duration]time.Duration{0: lookEvery, 1e9: 4e9, time.Minute: mostPause} {
				looks, last := 0, time.Now()
				must(t, j.persist(ctx, func() (worked, over bool, err error) {
					pause := time.Since(last)
					conformance.True(t, looks == 0 || pause >= want && pause < want+time.Second,
						"looks of %v are %v apart, want %v", took, pause, want)
					time.Sleep(took)
					looks, last = looks+1, time.Now()
					return false, looks == 4, nil
				}))
			}
			return nil
		}))
	})(t)
}
