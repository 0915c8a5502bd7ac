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
	"example.com/tsimport/pipeline/checkpoint"
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

func TestPlannerKilledAtAnyStepIsReplaced(t *testing.T) {
	t.Parallel()
	step := 9
	if *everyDeath {
		step = 1
	}
	for at := 0; ; at += step {
		planned := false
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.makeInputs(rand.New(rand.NewPCG(4, 1)))
			err := w.plan(w.start("dies", 1, at, 0), func(*Request) {})
			planned = err == nil
			conformance.True(t, passing(err), "act %d: %v", at, err)
			w.planned(func(*Request) {})
			w.finish()
		})
		if planned {
			t.Logf("%d acts", at)
			return
		}
	}
}

var digits = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)

// TestStoreFaultsLoseNothing makes each kind of operation fail once for each kind of object.
func TestStoreFaultsLoseNothing(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		inJob(func(t *testing.T, w *world) {
			failed, ended := map[string]bool{}, 0 // kinds of failed acts, and the number that ended a process
			for n := range 100 {
				p := w.start(fmt.Sprint("flaky ", n), 3, -1, 0)
				p.goesWrong(func(verb, name string, done bool) error {
					kind := verb + " " + digits.ReplaceAllString(name, "N")
					if done != after || failed[kind] {
						return nil
					}
					failed[kind] = true
					return errStore
				})
				err := p.run(workAll)
				if err == nil {
					break
				}
				ended++
				conformance.Is(t, err, errStore, "after %q", slices.Sorted(maps.Keys(failed)))
			}
			w.finish()
			conformance.True(t, len(failed) >= 30 && ended >= 10, "%d kinds of acts failed, %d ended it", len(failed), ended)
		})(t)
	}
}

func TestTaskFailureIsShownUntilTheTaskIsDone(t *testing.T) {
	ctx := t.Context()
	store := conformance.Try(jobdir.Open(ctx, t.TempDir(), jobdir.Options{})).Must(t)
	p := &Plan{Version: planVersion, ID: "one", Job: &checkpoint.Job{}, Splits: []Split{{}, {}},
		Shards: []Shard{{Ranges: []int{0}}}}
	p, err := keepPlan(ctx, store, p)
	conformance.MustTrue(t, err == nil, "%v", err)
	j := conformance.Try(newJob(store, p, Options{Owner: "a worker"})).Must(t)
	failed := &plan.UsageError{Message: "read oss://u:secret@b/in.csv: it has changed"}
	conformance.Equal(t, j.told(ctx, stageRead, 1, failed), error(failed), "the error became")
	for _, none := range []error{nil, jobdir.ErrLost, jobdir.ErrLate, fmt.Errorf("write: %w", errNoSlot), &StoppedError{},
		&jobdir.HeldError{}} {
		conformance.Equal(t, j.told(ctx, stageRead, 0, none), none, "became")
	}
	ended, end := context.WithCancel(ctx)
	end()
	_ = j.told(ended, stageWrite, 0, errors.New("an attempt that was stopped"))

	look := func() []*Failure {
		w := conformance.Try(NewWatcher(ctx, store)).Must(t)
		return conformance.Try(w.Status(ctx)).Must(t).Failures
	}
	all := look()
	conformance.True(t, len(all) == 1 && all[0].Stage == stageRead && all[0].Index == 1 && all[0].By == "a worker" &&
		all[0].ExitCode == exitcode.Usage && all[0].Message != failed.Message, "the failures are %+v", all)
	must(t, j.commit(ctx, store, splitName(1), &splitResult{done: j.newDone("x"), Split: 1}))
	conformance.Equal(t, len(look()), 0, "a task that is done has the failures")
}

func TestStatusShowsTheSilenceOfAWorker(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		w.readAll()
		dies := w.start("dies", 3, -1, 0)
		dies.wire = func(*http.Request) (time.Duration, bool) { return 0, true }
		dies.tries(workAll)
		look := func() (held int, silent []float64) {
			watcher := conformance.Try(NewWatcher(t.Context(), w.store)).Must(t)
			s := conformance.Try(watcher.Status(t.Context())).Must(t)
			for _, of := range s.Working {
				silent = append(silent, of.Silent)
			}
			return s.Stages[1].Held, silent
		}
		held, silent := look()
		conformance.True(t, held != 0 && slices.Max(silent) <= 0, "%d tasks are held, silent for %v", held, silent)
		time.Sleep(5 * time.Minute)
		if held, silent := look(); held > 0 || len(silent) == 0 || slices.Min(silent) < 300 || slices.Max(silent) > 330 {
			t.Errorf("after five minutes %d tasks are held, silent for %v", held, silent)
		}
		w.late.Wait()
		w.finish()
	})(t)
}

// TestStatusFailsWithItsStore makes each operation of the store fail in turn.
func TestStatusFailsWithItsStore(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		w.readAll()
		p := w.start("watcher", 7, -1, 0)
		for n := 0; ; n++ {
			act := 0
			p.goesWrong(func(_, _ string, done bool) (err error) {
				if !done && act == n {
					err = errStore
				}
				if !done {
					act++
				}
				return err
			})
			watcher, err := NewWatcher(t.Context(), p)
			if err == nil {
				_, err = watcher.Status(t.Context())
			}
			if err == nil {
				conformance.True(t, n > 3, "the status takes %d acts", n)
				break
			}
			conformance.Is(t, err, errStore, "act %d", n)
		}
		p.goesWrong(nil)
		w.finish()
	})(t)
}

func TestMetricsShowTheStatus(t *testing.T) {
	code := exitcode.Rejects
	s := &Status{Stages: []StageState{{"read", 9, 5, 2}, {"write", 7, 6, 3}}, Read: 11, Written: 12, Rejected: 13,
		Superseded: 14, BytesRead: 15, Bytes: 16, ExitCode: &code}
	want := `tsimport_job_tasks{stage="read",state="done"} 5
tsimport_job_tasks{stage="read",state="held"} 2
tsimport_job_tasks{stage="read",state="open"} 2
tsimport_job_tasks{stage="write",state="done"} 6
tsimport_job_tasks{stage="write",state="held"} 3
tsimport_job_tasks{stage="write",state="open"} 0
tsimport_job_records_total{outcome="read"} 11
tsimport_job_records_total{outcome="written"} 12
tsimport_job_records_total{outcome="rejected"} 13
tsimport_job_records_total{outcome="superseded"} 14
tsimport_job_bytes_read_total 15
tsimport_job_bytes 16
tsimport_job_done 1
`
	var all strings.Builder
	must(t, s.Metrics(&all))
	values := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(all.String(), "")
	conformance.Equal(t, cmp.Diff(want, values), "", "a job that is done (-want +got)")
	s.ExitCode = nil
	all.Reset()
	must(t, s.Metrics(&all))
	conformance.True(t, strings.HasSuffix(all.String(), "tsimport_job_done 0\n"), "%s", all.String())
	for _, about := range []string{"# HELP ", "# TYPE "} {
		conformance.Equal(t, strings.Count(all.String(), about), 5, "%s", about)
	}
}

// TestFirstResultOfATaskCounts also commits a later attempt's result, with rejects in several lists.
func TestFirstResultOfATaskCounts(t *testing.T) {
	ctx := t.Context()
	store := conformance.Try(jobdir.Open(ctx, t.TempDir(), jobdir.Options{})).Must(t)
	j := &Job{store: store, Plan: &Plan{ID: "one"}}
	rejects := func(attempt string, records int) done {
		d := j.newDone(attempt)
		lists := &rejectLists{store: store, name: "rejects/" + attempt}
		for i := range records {
			r := &keptReject{Record: int64(i), Reject: table.Reject{Raw: bytes.Repeat([]byte("x"), listBytes/3)}}
			must(t, lists.add(ctx, r))
		}
		must(t, lists.close(ctx, &d))
		return d
	}
	first := &splitResult{done: rejects("first", 7), Split: 3, Read: 9, Rows: 2}
	second := &splitResult{done: rejects("second", 0), Split: 3, Read: 9, Rows: 9, ExpiredCells: 5,
		Index: runfile.Object{Name: "an index"}}
	for _, r := range []*splitResult{first, second} {
		must(t, j.commit(ctx, store, splitName(3), r))
	}
	diff := cmp.Diff(first, second, cmp.AllowUnexported(splitResult{}))
	conformance.True(t, diff == "", "the second attempt has what the first has not committed (-first +second):\n%s", diff)
	var lines []int64
	if err := j.eachReject(ctx, &second.done, func(r *keptReject, _ []byte) error {
		lines = append(lines, r.Record)
		return nil
	}); err != nil || !slices.Equal(lines, []int64{0, 1, 2, 3, 4, 5, 6}) || len(second.Rejects) < 2 {
		t.Errorf("%d lists have the records %v, %v", len(second.Rejects), lines, err)
	}
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

func TestJobWaitsOnceForLateRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := lost(t)
		heard, say := sayings()
		began := time.Now()
		var wrote time.Duration // time until all shards were written
		watcher := conformance.Try(NewWatcher(t.Context(), w.store)).Must(t)
		go func() {
			for wrote == 0 {
				time.Sleep(watchEvery)
				if s, err := watcher.Status(t.Context()); err == nil && s.Stages[1].Done == s.Stages[1].Tasks {
					wrote = time.Since(began)
					conformance.True(t, s.LateUntil != nil && time.Until(*s.LateUntil) >= 4*time.Minute,
						"the status says that late requests may come until %v", s.LateUntil)
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

func TestWaitingWorkerStopsWithinTwoSeconds(t *testing.T) {
	for name, after := range map[string]time.Duration{"for a lease": 10 * time.Second, "for requests": 3 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := lost(t)
				drain, end := context.WithCancelCause(t.Context())
				errSignal := errors.New("a signal")
				var at time.Time
				time.AfterFunc(after, func() { at = time.Now(); end(errSignal) })
				p := w.start("worker", 2, -1, 0)
				j := conformance.Try(Open(p.ctx, p, Options{Load: w.config(p), Program: "test", Drain: drain,
					Clock: func() time.Duration { return time.Since(w.startsAt) }})).Must(t)
				_, err := j.Work(p.ctx)
				took := time.Since(at)
				conformance.True(t, errors.Is(err, errSignal) && !at.IsZero() && took <= 2*time.Second, "%v later: %v", took, err)
				conformance.Equal(t, j.Close(), nil, "Close")
				w.late.Wait()
			})
		})
	}
}

func TestJobDirectoryFaultsPauseAWorkerForALimitedTime(t *testing.T) {
	for name, c := range map[string]struct {
		fails func(since time.Duration, name string) bool
		err   error
		says  string
	}{
		"a minute": {func(since time.Duration, _ string) bool { return since < time.Minute }, nil,
			"the job directory cannot be used"},
		"forever": {func(time.Duration, string) bool { return true }, errStore, "the job directory cannot be used"},
		"leases given back": {func(_ time.Duration, name string) bool { return strings.Contains(name, "/lease.") }, nil,
			"warning: release the lease"},
		"a minute, in turns": {func(since time.Duration,
			_ string) bool {
			return int(since.Seconds())%10 < 5 && since < time.Minute
		}, nil, ""},
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
						fails = put != "" && strings.HasPrefix(object, readingFolder) && w.stored(object)
					}
					if fails {
						return &jobdir.FaultError{Cause: errStore}
					}
					return nil
				})
				s, err = j.Work(ctx)
				return err
			})
			conformance.MustTrue(t, errors.Is(err, c.err) && strings.Contains(heard(), c.says), "%v; said: %s", err, heard())
			if c.err == nil {
				w.check(s)
			} else if took := time.Since(began); took < pipeline.DefaultRetryFor || took > 2*pipeline.DefaultRetryFor {
				t.Errorf("it has given up after %v", took)
			}
		}))
	}
}

func (w *world) stored(name string) bool {
	_, err := w.store.Get(context.Background(), name)
	return err == nil
}

// TestLostTaskIsTakenOverInTime disturbs one of three workers with default timeouts, with and without a replacement.
func TestLostTaskIsTakenOverInTime(t *testing.T) {
	for name, disturb := range map[string]func(*process){
		"killed": func(p *process) { p.kill(errDied) },
		"stopped": func(p *process) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.frozen = time.Now().Add(10 * time.Minute)
		},
	} {
		for _, replaced := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, another is started: %v", name, replaced), func(t *testing.T) {
				if replaced {
					conformance.NotForRaces(t)
				}
				synctest.Test(t, func(t *testing.T) { takeover(t, disturb, replaced) })
			})
		}
	}
}

func takeover(t *testing.T, disturb func(*process), replaced bool) {
	const rows = 20_000
	w := newWorld(t)
	w.tune = byDefault
	text := new(strings.Builder)
	text.WriteString("id,what\n")
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
	disturb(first)
	disturbed := time.Now()
	if replaced {
		start("in place of the first")
	}
	all.Wait()
	w.finish()
	must(t, w.start("looks", 2, -1, 0).run(func(ctx context.Context, j *Job) error {
		taken := 0
		for i := range j.Plan.Shards {
			r, err := j.shard(ctx, i)
			if err != nil || r == nil {
				return errors.Join(err, errors.New("it is not written"))
			}
			if r.Started.Before(disturbed) {
				continue
			}
			taken++
			if after := r.Started.Sub(disturbed); after > jobdir.Term+5*time.Second || r.RowsSent > r.Written*11/10 {
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

// TestShareOfTheCeilingsIsHeldUntilTheProcessEnds has two shares and three processes.
func TestShareOfTheCeilingsIsHeldUntilTheProcessEnds(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		clear(w.store.Objects)
		w.planned(func(r *Request) { r.Workers, r.Load.Lanes.Rates.MaxRows = 2, 1e6 })
		var all []*Job
		for n := range 3 {
			all = append(all, conformance.Try(w.start(fmt.Sprint(n), uint64(n), -1, 0).open()).Must(t))
		}
		for _, n := range []int{0, 1, 0, 1} { // a process keeps its share for all tasks
			must(t, all[n].takeSlot(t.Context()))
		}
		conformance.Equal(t, all[2].takeSlot(t.Context()), errNoSlot, "a third share of two")
		must(t, all[1].Close())
		must(t, all[2].takeSlot(t.Context()))
		must(t, errors.Join(all[0].Close(), all[2].Close()))
		w.finish()
	})(t)
}

// The share of the ceilings and the leases of a lost process must expire at the same time.
func TestShardLeasesAreWatchedWhileWaitingForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inputs = []string{w.extra()}
		w.planned(func(r *Request) { r.Workers, r.Load.Lanes.Rates.MaxRows = 1, 100 })
		w.readAll()
		must(t, w.start("waits", 1, -1, 0).run(func(ctx context.Context, j *Job) error {
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
			time.Sleep(jobdir.Term + time.Second)
			worked, err = j.takeOne(ctx, j.stages()[1], []int{0})
			conformance.Equal(t, worked, true, "it is taken over when the leases have ended")
			return err
		}))
		time.Sleep(10 * time.Minute)
	})
}

// Waiting for lookEvery would make a small load two seconds slower.
func TestProcessPollsAgainAfterItsPartHasDoneATask(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		j := conformance.Try(w.start("worker", 2, -1, 0).open()).Must(t)
		part := conformance.Try(j.newPart(t.Context(), 1, 2)).Must(t)
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
