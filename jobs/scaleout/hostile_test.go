package scaleout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/engine/enginetest"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/reader/source/sourcetest"
)

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
				refused(t, err, exitcode.Refused, "AccessKeyID is disabled")
				conformance.Equal(t, errors.As(err, new(*StoppedError)), !p.denied, "%s: %v", p.name, err)
				if p.denied {
					ended = time.Now()
				}
			})
		}
		all.Wait()
		took := time.Since(ended)
		conformance.True(t, took <= time.Minute, "the other workers have ended %v later", took)
		w.finish() // by a worker that the service accepts
	})(t)
}

// TestSlowerPlannerUsesThePlan stores the same or another load just before a planner stores its own.
func TestSlowerPlannerUsesThePlan(t *testing.T) {
	for table, says := range map[string]string{"t": "", "u": "another job"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.inputs = []string{w.extra()}
			p := w.start("slower", 1, -1, 0)
			p.goesWrong(func(verb, name string, done bool) error {
				if name == PlanName && verb == "put" && !done {
					w.planned(func(r *Request) { r.Load.Target.Table = table })
				}
				return nil
			})
			made, isNew, err := Make(p.ctx, p, Request{Options: Options{Load: w.config(p), Program: "test"}, Workers: 2})
			conformance.True(t, !isNew && strings.Contains(fmt.Sprint(err), says) && (err == nil) == (says == ""), "%v", err)
			conformance.Equal(t, made.ID, conformance.Try(ReadPlan(p.ctx, w.store)).Must(t).ID, "the plan")
		})
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

// A copy of a directory that lacks objects must be refused, or finished by repeating tasks.
func TestPartialCopyOfADirectoryIsFinishedOrRefused(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		w.verify = true
		clear(w.store.Objects)
		w.planned(func(*Request) {})
		w.readAll()
		must(t, w.start("writer", 4, -1, 0).run(func(ctx context.Context, j *Job) (err error) {
			for i := range j.Plan.Shards {
				err = errors.Join(err, j.writeShard(ctx, i))
			}
			return err
		}))
		whole, kinds := maps.Clone(w.store.Objects), map[string]bool{}
		refusals, finished := 0, 0
		for _, name := range slices.Sorted(maps.Keys(whole)) {
			kind := digits.ReplaceAllString(name, "N")
			if kinds[kind] && !*everyDeath {
				continue
			}
			kinds[kind] = true
			w.store.Objects = maps.Clone(whole)
			delete(w.store.Objects, name)
			if s, err := w.work(); err == nil {
				finished++
				w.check(s)
			} else {
				refusals++
				conformance.True(t, strings.Contains(err.Error(), "memory") && !w.stored(summaryName), "without %s: %v", name, err)
			}
		}
		conformance.True(t, refusals != 0 && finished != 0, "%d refused, %d finished", refusals, finished)
	})(t)
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
		stop := j.startParts(p.ctx)
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
		err := json.Unmarshal([]byte(line), &row)
		conformance.True(w.t, err == nil && bad[row.ID] && !kept[row.ID] && row.Text == refusedText, "%q: %v", line, err)
		kept[row.ID] = true
	}
	conformance.Equal(w.t, len(kept), len(bad), "rejects that are kept")
}
