package scaleout

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

var everyDeath = flag.Bool("scaleout-deaths", false, "let a process die at every act, not at some")

// TestAProcessThatDiesAtAnyActIsReplaced lets a process that does a whole job die at each act in turn: before the store or the service has
// done what it was asked, or before the answer is there. Another one finishes the job.
func TestAProcessThatDiesAtAnyActIsReplaced(t *testing.T) {
	t.Parallel()
	acts := 0
	synctest.Test(t, func(t *testing.T) { // one that lives counts them
		w := planned(t)
		p := w.start("alive", 3, 1<<30, 0)
		if err := p.run(workAll); err != nil {
			t.Fatal(err)
		}
		acts = 1<<30 - p.left
	})
	step := max(1, acts/6)
	if *everyDeath {
		step = 1
	}
	for at := 0; at < acts; at += step {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := planned(t)
				if err := w.start("dies", 3, at, 0).run(workAll); !passing(err) {
					t.Errorf("the one that dies: %v", err)
				}
				s, err := w.work()
				if err != nil {
					t.Fatal(err)
				}
				w.check(s)
			})
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
	step := 5
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
			if err := w.plan(w.start("driver", 2, -1, 0), func(*Request) {}); err != nil {
				t.Fatalf("act %d: %v", at, err)
			}
			s, err := w.work()
			if err != nil {
				t.Fatal(err)
			}
			w.check(s)
		})
		if planned {
			t.Logf("%d acts", at)
			return
		}
	}
}
