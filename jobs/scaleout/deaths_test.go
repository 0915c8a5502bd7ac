package scaleout

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/jobs/scaleout/runfile"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/plan"
)

func TestMain(m *testing.M) { conformance.Main(m) }

var must = conformance.Must

var everyDeath = flag.Bool("scaleout-deaths", false, "let a process die at every act, not at some")

// TestAProcessThatDiesAtAnyActIsReplaced lets a process that does a whole job die at each act in turn: before the store or the service has
// done what it was asked, or before the answer is there. Another one finishes the job.
func TestAProcessThatDiesAtAnyActIsReplaced(t *testing.T) {
	t.Parallel()
	acts := 0
	inJob(func(t *testing.T, w *world) { // one that lives counts them
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

// TestADriverThatDiesAtAnyActIsReplaced does the same with the process that plans.
func TestADriverThatDiesAtAnyActIsReplaced(t *testing.T) {
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
			if planned = err == nil; !passing(err) {
				t.Errorf("act %d: %v", at, err)
			}
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

// TestAStoreThatFailsEachActOnceLosesNothing starts a process again until its job is done: each kind of act, of each kind of object, fails once.
func TestAStoreThatFailsEachActOnceLosesNothing(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		inJob(func(t *testing.T, w *world) {
			failed, ended := map[string]bool{}, 0 // kinds of acts, and those that have ended a process
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
			if len(failed) < 30 || ended < 10 {
				t.Errorf("%d kinds of acts failed, %d of them ended the process", len(failed), ended)
			}
		})(t)
	}
}

func TestWhyATaskFailedIsSeenUntilItIsDone(t *testing.T) {
	ctx := t.Context()
	store, err := jobdir.Open(ctx, t.TempDir(), jobdir.Options{})
	must(t, err)
	p := &Plan{Version: planVersion, ID: "one", Job: &checkpoint.Job{}, Splits: []Split{{}, {}}, Shards: []Shard{{Ranges: []int{0}}}}
	if p, err = keepPlan(ctx, store, p); err != nil {
		t.Fatal(err)
	}
	j, err := newJob(store, p, Options{Owner: "a worker"})
	must(t, err)
	failed := &plan.UsageError{Message: "read oss://u:secret@b/in.csv: it has changed"}
	conformance.Equal(t, j.told(ctx, StageRead, 1, failed), error(failed), "the error became")
	for _, none := range []error{nil, jobdir.ErrLost, fmt.Errorf("write: %w", errNoSlot), &StoppedError{}, &jobdir.HeldError{}, &NotReadyError{}} {
		conformance.Equal(t, j.told(ctx, StageRead, 0, none), none, "became")
	}
	ended, end := context.WithCancel(ctx)
	end()
	_ = j.told(ended, StageWrite, 0, errors.New("an attempt that was stopped"))

	look := func() []*Failure {
		w, err := NewWatcher(ctx, store)
		must(t, err)
		s, err := w.Status(ctx)
		must(t, err)
		return s.Failures
	}
	all := look()
	if len(all) != 1 || all[0].Stage != StageRead || all[0].Index != 1 || all[0].By != "a worker" || !all[0].Permanent() || all[0].Message == failed.Message {
		t.Errorf("the failures are %+v", all)
	}
	must(t, j.commit(ctx, store, splitName(1), &splitResult{done: j.newDone("x"), Split: 1}))
	conformance.Equal(t, len(look()), 0, "a task that is done has the failures")
}

// TestTheFirstResultOfATaskCounts commits a result after that of another attempt, whose rejected records fill several lists.
func TestTheFirstResultOfATaskCounts(t *testing.T) {
	ctx := t.Context()
	store, err := jobdir.Open(ctx, t.TempDir(), jobdir.Options{})
	must(t, err)
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
	second := &splitResult{done: rejects("second", 0), Split: 3, Read: 9, Rows: 9, ExpiredCells: 5, Extents: make([]runfile.Extent, 1)}
	for _, r := range []*splitResult{first, second} {
		must(t, j.commit(ctx, store, splitName(3), r))
	}
	if diff := cmp.Diff(first, second, cmp.AllowUnexported(splitResult{})); diff != "" {
		t.Errorf("the second attempt has what the first has not committed (-first +second):\n%s", diff)
	}
	var lines []int64
	if err := j.eachReject(ctx, &second.done, func(r *keptReject, _ []byte) error {
		lines = append(lines, r.Record)
		return nil
	}); err != nil || !slices.Equal(lines, []int64{0, 1, 2, 3, 4, 5, 6}) || len(second.Rejects) < 2 {
		t.Errorf("%d lists have the records %v, %v", len(second.Rejects), lines, err)
	}
}
