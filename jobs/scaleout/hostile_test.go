package scaleout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/reader/source/sourcetest"
)

var errFull = errors.New("no space left on device")

func TestFullJobDirectoryIsNamedAndTheLoadContinues(t *testing.T) {
	for _, left := range []int{0, 2, 9, 20, 40} {
		t.Run(fmt.Sprint(left), inJob(func(t *testing.T, w *world) {
			p := w.start("on a full disk", 2, -1, 0)
			err := p.run(func(ctx context.Context, j *Job) error {
				p.goesWrong(func(verb, _ string, done bool) error {
					if verb != "put" || done {
						return nil
					}
					if left--; left < 0 { // no more objects fit
						return errFull
					}
					return nil
				})
				return workAll(ctx, j)
			})
			refused(t, err, exitcode.Failed, errFull.Error())
			w.finish()
		}))
	}
}

// together runs the job with three concurrent processes. set may change each of them.
func (w *world) together(set func(n int, p *process)) {
	w.t.Helper()
	var all sync.WaitGroup
	for n := range 3 {
		p := w.start(fmt.Sprint("process ", n), uint64(n), -1, 0)
		set(n, p)
		all.Go(func() {
			if err := p.run(workAll); err != nil {
				w.t.Errorf("%s: %v", p.name, err) // the process has lost its task
			}
		})
	}
	all.Wait()
}

func TestFailingWorkerIsNamedAndOthersContinue(t *testing.T) {
	for says, c := range map[string]struct {
		code    int
		program string
		fails   func(verb, name string, done bool) error
	}{
		"must have the same version": {code: exitcode.Usage, program: "other"},
		"permission denied": {code: exitcode.Usage, fails: func(verb, _ string, done bool) error { // another user's directory
			if verb == "put" && !done {
				return fs.ErrPermission
			}
			return nil
		}},
		errFull.Error(): {code: exitcode.Failed, fails: func(verb, name string, done bool) error { // only its own disk
			if verb == "put" && strings.HasPrefix(name, "runs/") && !done {
				return errFull
			}
			return nil
		}},
	} {
		t.Run(says, inJob(func(t *testing.T, w *world) {
			var others sync.WaitGroup
			others.Go(func() { w.together(func(_ int, p *process) { p.slow = time.Second }) })
			p := w.start("cannot", 1, -1, 0)
			p.goesWrong(c.fails)
			j, err := Open(p.ctx, p, Options{Load: w.config(p), Program: cmp.Or(c.program, "test"), Owner: p.name,
				Clock: func() time.Duration { return time.Since(w.startsAt) }})
			if err == nil {
				_, err = j.Work(p.ctx)
				conformance.Equal(t, j.Close(), nil, "Close")
			}
			if refused(t, err, c.code, says); strings.Contains(err.Error(), "\n") {
				t.Errorf("%q has several lines", err)
			}
			others.Wait()
			w.finish()
		}))
	}
}

func TestIdleProcessPollsASlowStoreLessOften(t *testing.T) {
	for took, most := range map[time.Duration]time.Duration{0: lookEvery, 1e9: 4 * time.Second, time.Minute: mostPause} {
		inJob(func(t *testing.T, w *world) {
			must(t, w.start("idle", 1, -1, 0).run(func(ctx context.Context, j *Job) error {
				looks, last := 0, time.Now()
				return j.persist(ctx, func() (worked, over bool, err error) {
					if pause := time.Since(last); looks > 0 && (pause < most || pause > most+time.Second) {
						t.Errorf("looks of %v are %v apart, want %v", took, pause, most)
					}
					time.Sleep(took)
					looks, last = looks+1, time.Now()
					return false, looks == 5, nil
				})
			}))
		})(t)
	}
}

func TestProcessesWithSlowStoreKeepTheirTasks(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		w.together(func(_ int, p *process) { p.slow = 4 * time.Second })
		w.finish()
	})(t)
}

func TestClockSkewNeitherStealsNorHoldsTasks(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		began := time.Now()
		dies := w.start("dies", 9, 60, 0)
		dies.ahead = 10 * time.Minute
		err := dies.run(workAll)
		conformance.True(t, passing(err) && err != nil, "the one that dies: %v", err)
		w.together(func(n int, p *process) { p.ahead = time.Duration(n-1) * 10 * time.Minute })
		took := time.Since(began)
		conformance.True(t, took <= 5*time.Minute, "a task of a process that is gone was taken over after %v", took)
		w.finish()
	})(t)
}

func TestOnlyTheEndingWorkerReportsTheEnd(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		var all sync.WaitGroup
		var here atomic.Int32
		for n := range 4 {
			p := w.start(fmt.Sprint("process ", n), uint64(n), -1, 0)
			all.Go(func() {
				p.tries(func(ctx context.Context, j *Job) error {
					s, err := j.Work(ctx)
					if err == nil && s.Here {
						here.Add(1)
					}
					return err
				})
			})
		}
		all.Wait()
		conformance.Equal(t, here.Load(), 1, "workers that have ended the job")
		conformance.Equal(t, w.finish().Here, false, "a worker that begins later has ended the job")
	})(t)
}

func TestPermanentRefusalEndsAllCurrentWorkers(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		w.readAll()
		var all sync.WaitGroup
		var ended time.Time // end of the first process
		for n := range 3 {
			p := w.start(fmt.Sprint("process ", n), uint64(n), -1, 0)
			p.slow, p.denied = 3*time.Second, n == 0
			all.Go(func() {
				err := p.run(workAll)
				if refused(t, err, exitcode.Refused, "AccessKeyID is disabled"); errors.As(err, new(*StoppedError)) == p.denied {
					t.Errorf("%s: %v", p.name, err)
				}
				if p.denied {
					ended = time.Now()
				}
			})
		}
		all.Wait()
		took := time.Since(ended)
		conformance.True(t, took <= time.Minute, "the other workers have ended %v later", took)
		w.finish() // by a worker that the service accepts
		conformance.Equal(t, w.stored(stopName), false, "the job is stopped")
	})(t)
}

func TestOnlyOneOfTwoPlannersMakesThePlan(t *testing.T) {
	for _, other := range []string{"the same load", "another table"} {
		t.Run(other, func(t *testing.T) {
			for seed := range uint64(8) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					w.inputs = []string{w.extra()}
					var all sync.WaitGroup
					var isNew [2]bool
					var failed [2]error
					for n := range 2 {
						p := w.start(fmt.Sprint("driver ", n), 2*seed+uint64(n), -1, 0)
						p.slow = time.Second
						r := Request{Options: Options{Load: w.config(p), Program: "test", Owner: p.name}, Workers: 2}
						if n == 1 && other == "another table" {
							r.Load.Target.Table = "u"
						}
						all.Go(func() { _, isNew[n], failed[n] = Make(p.ctx, p, r) })
					}
					all.Wait()
					conformance.True(t, isNew[0] != isNew[1], "new: %v, %v", isNew, failed)
					for n := range 2 {
						switch {
						case isNew[n] || other == "the same load":
							conformance.Equal(t, failed[n], nil, "driver %d", n)
						default:
							refused(t, failed[n], exitcode.Usage, "another job")
						}
					}
				})
			}
		})
	}
}

func TestMissingInputStopsOnlyThatMachine(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		aside := w.inputs[0] + ".aside"
		must(t, os.Rename(w.inputs[0], aside))
		_, err := w.work()
		refused(t, err, exitcode.Usage, "in-0.csv")
		must(t, os.Rename(aside, w.inputs[0]))
		w.finish() // by another machine
	})(t)
}

// A copy of a directory that lacks objects must be refused, or finished by repeating tasks.
func TestPartialCopyOfADirectoryIsFinishedOrRefused(t *testing.T) {
	for _, stage := range []string{"read", "written"} {
		t.Run(stage, inJob(func(t *testing.T, w *world) {
			if w.verify = stage == "written"; w.verify {
				clear(w.store.Objects)
				w.planned(func(*Request) {})
			}
			w.readAll()
			if stage == "written" {
				must(t, w.start("writer", 4, -1, 0).run(func(ctx context.Context, j *Job) (err error) {
					for i := range j.Plan.Shards {
						err = errors.Join(err, j.writeShard(ctx, i))
					}
					return err
				}))
			}
			whole := maps.Clone(w.store.Objects)
			refusals, finished := 0, 0
			names := slices.Sorted(maps.Keys(whole))
			var missing [][]string
			kinds := map[string]bool{}
			for _, name := range names { // the first object of each kind, or all objects
				kind := strings.Trim(regexp.MustCompile("[0-9a-f]{2,}|[0-9]").ReplaceAllString(name, "#"), "#")
				if *everyDeath || !kinds[kind] {
					missing = append(missing, []string{name})
				}
				kinds[kind] = true
			}
			rnd := rand.New(rand.NewPCG(1, 2))
			for range 5 {
				rnd.Shuffle(len(names), func(a, b int) { names[a], names[b] = names[b], names[a] })
				missing = append(missing, slices.Clone(names[:2+rnd.IntN(len(names)-2)]))
			}
			for _, lack := range missing {
				w.store.Objects = maps.Clone(whole)
				for _, name := range lack {
					delete(w.store.Objects, name)
				}
				s, err := w.work()
				_, ended := w.store.Objects[summaryName]
				switch {
				case err == nil:
					finished++
					w.check(s)
				case ended:
					t.Errorf("without %s: there is a summary, after %v", lack, err)
				case !strings.Contains(err.Error(), "memory"):
					t.Errorf("without %s: %v", lack, err)
				default:
					refusals++
				}
			}
			conformance.True(t, refusals != 0 && finished != 0, "%d refused, %d finished", refusals, finished)
			t.Logf("%d objects, %d copies: %d were refused, %d finished", len(whole), len(missing), refusals, finished)
		}))
	}
}

func (w *world) readAll() {
	w.t.Helper()
	must(w.t, w.start("reader", 3, -1, 0).run(func(ctx context.Context, j *Job) (err error) {
		for i := range j.Plan.Splits {
			err = errors.Join(err, j.readSplit(ctx, i))
		}
		return err
	}))
}

func TestFailedPartEndsItsProcess(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		w.readAll()
		p := w.start("worker", 5, -1, 0)
		j := conformance.Try(p.open()).Must(t)
		n := j.Plan.atATime()
		conformance.MustTrue(t, n >= 2, "the process writes %d shards at a time", n)
		p.goesWrong(func(verb, name string, done bool) error {
			if verb == "put" && !done && strings.HasSuffix(name, reducedName) {
				return errStore
			}
			return nil
		})
		before := j.o.Drain
		stop := conformance.Try(j.startParts(p.ctx)).Must(t)
		<-j.o.Drain.Done() // the failure drains this part too
		conformance.Is(t, j.rest(p.ctx), errStore, "the process continues")
		conformance.Is(t, stop(), errStore, "the parts have failed")
		conformance.Equal(t, j.o.Drain, before, "the process cannot work any more")
		p.goesWrong(nil)
		w.check(conformance.Try(j.Work(p.ctx)).Must(t))
		conformance.Equal(t, j.Close(), nil, "Close")
	})(t)
}

// refusedText is contained in rows that the tests' service refuses.
const refusedText = "a text that the service refuses"

// answerOf returns a response with an error of the service.
func answerOf(r *http.Request, status int, code, message string) *http.Response {
	answer := protowire.AppendTag(nil, 1, protowire.BytesType)
	answer = protowire.AppendString(answer, code)
	answer = protowire.AppendTag(answer, 2, protowire.BytesType)
	answer = protowire.AppendString(answer, message)
	return enginetest.Sign(&http.Response{StatusCode: status, Header: http.Header{}, Request: r}, r.URL.Path, answer)
}

// TestAnyOrderOfTasksLoadsALiveSource changes rows of the source as they are read. The service refuses some rows.
func TestAnyOrderOfTasksLoadsALiveSource(t *testing.T) { eachSeed(t, liveJob) }

func liveJob(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 5))
	w := newWorld(t)
	rows := 1 + rnd.IntN(600)
	of := sourcetest.NewKeyed("live", rows)
	of.Live, of.Parts, of.Page = true, 1+rnd.IntN(12), 1+rnd.IntN(60)
	w.source = of
	w.verify = seed%2 == 0
	past := map[int64][]string{} // all texts that each row has had
	bad := map[int64]bool{}
	for id, text := range of.Rows() {
		if rnd.IntN(50) == 0 {
			text = refusedText
			of.Put(id, text)
			bad[id] = true
		}
		past[id] = []string{text}
	}
	workers := 1 + rnd.IntN(4)
	w.planned(func(r *Request) { r.Workers = workers })
	made := conformance.Try(ReadPlan(t.Context(), w.store)).Must(t)
	conformance.Equal(t, made.Unique, !w.verify, "shards are written from the runs")
	changes := rand.New(rand.NewPCG(rnd.Uint64(), 9))
	change := func() { // it changes only rows that the service accepts
		id := int64(changes.IntN(rows*10 + 20))
		if past[id] == nil {
			past[id] = []string{""}
		}
		switch {
		case bad[id]:
		case changes.IntN(3) == 0:
			of.Delete(id)
			past[id] = append(past[id], "")
		default:
			text := fmt.Sprintf("changed %d", changes.Uint64())
			past[id] = append(past[id], text)
			of.Put(id, text)
		}
	}
	changing, stop := context.WithCancel(t.Context())
	var processes, changer sync.WaitGroup
	changer.Go(func() {
		for changing.Err() == nil {
			change()
			time.Sleep(50 * time.Millisecond)
		}
	})
	for n := range 2 + rnd.IntN(5) {
		acts := []int{-1, rnd.IntN(200), rnd.IntN(600)}[rnd.IntN(3)]
		p := w.start(fmt.Sprintf("process %d", n), rnd.Uint64(), acts, []float64{0, 0.005}[rnd.IntN(2)])
		do := someTasks(rand.New(rand.NewPCG(rnd.Uint64(), 3)))
		processes.Go(func() { p.tries(do) })
	}
	s, err := w.work()
	stop()
	changer.Wait()
	must(t, err)
	w.checkLive(s, past, bad)
	processes.Wait()
	time.Sleep(10 * time.Minute) // for abandoned requests
	w.checkLive(s, past, bad)
}

// checkLive compares the ledger and the table with the past rows of the source.
func (w *world) checkLive(s *Summary, past map[int64][]string, bad map[int64]bool) {
	w.t.Helper()
	got := w.rows()
	if from :=
		s.Follow(); from != "to follow the source from here: resume_from LSN 0/1; safe_since unknown: it is a test" {
		w.t.Error(from)
	}
	conformance.True(w.t, s.Live && s.Read == s.Written+s.Rejected && s.Written == int64(len(got)) &&
		s.Rejected == int64(len(bad)) && s.Superseded == 0,
		"live %v: %d read, %d written, %d rejected, %d superseded; the table has %d rows, and %d are bad", s.Live, s.Read,
		s.Written, s.Rejected, s.Superseded, len(got), len(bad))
	c := s.Compared
	conformance.True(w.t, w.verify == (c != nil) &&
		(c == nil || c.Compared == s.Written && c.Missing+c.Different+c.Surplus == 0), "compared: %+v", c)
	for id, texts := range past {
		text, there := got[fmt.Sprint(id)]
		delete(got, fmt.Sprint(id))
		switch {
		case bad[id]:
			conformance.True(w.t, !there, "row %d was to be refused, and is there", id)
		case !there && !slices.Contains(texts, ""):
			w.t.Errorf("row %d is missing", id)
		case there && !slices.Contains(texts, text):
			w.t.Errorf("row %d is %q, which it never was: %q", id, text, texts)
		}
	}
	for id, text := range got {
		w.t.Errorf("row %s is there, as %q, and never was in the source", id, text)
	}
	w.checkLiveRejects(bad)
}

// checkLiveRejects checks that each rejected row is kept exactly once, as a line of JSON.
func (w *world) checkLiveRejects(bad map[int64]bool) {
	text, err := w.store.Get(context.Background(), "rejects.ndjson")
	conformance.True(w.t, err == nil || len(bad) == 0, "the rejects: %v", err)
	kept := map[int64]bool{}
	for line := range strings.Lines(string(text)) {
		var row struct {
			ID   int64
			Text string
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil || !bad[row.ID] || kept[row.ID] || row.Text != refusedText {
			w.t.Errorf("%q is kept among the rejects: %v", line, err)
		}
		kept[row.ID] = true
	}
	conformance.True(w.t, len(kept) == len(bad), "%d rejects are kept, want %d", len(kept), len(bad))
}
