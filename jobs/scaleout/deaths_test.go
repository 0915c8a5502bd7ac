package scaleout

import (
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

	"example.com/tsimport/internal/conformance"
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
				if !errors.Is(err, errStore) {
					t.Errorf("after %q: %v", slices.Sorted(maps.Keys(failed)), err)
				}
			}
			w.finish()
			if len(failed) < 30 || ended < 10 {
				t.Errorf("%d kinds of acts failed, %d of them ended the process", len(failed), ended)
			}
		})(t)
	}
}
