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
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tsimport/internal/conformance"
)

func TestMain(m *testing.M) { conformance.Main(m) }

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

// flaky is a process whose store fails each kind of act once, before or after it has done what it was asked.
type flaky struct {
	*process
	after bool

	mu     sync.Mutex
	failed map[string]bool // kinds of acts
}

var digits = regexp.MustCompile(`[0-9a-f]*[0-9][0-9a-f]*`)

// act does what the process is asked, and fails before or after that if it is the first of its kind.
func (f *flaky) act(verb, name string, do func() error) error {
	kind := verb + " " + digits.ReplaceAllString(name, "N")
	f.mu.Lock()
	fails := !f.failed[kind]
	f.failed[kind] = true
	f.mu.Unlock()
	if fails && !f.after {
		return errStore
	}
	err := do()
	if fails {
		return errors.Join(err, errStore)
	}
	return err
}

func (f *flaky) PutAbsent(ctx context.Context, name string, body []byte) error {
	return f.act("put", name, func() error { return f.process.PutAbsent(ctx, name, body) })
}

func (f *flaky) Put(ctx context.Context, name string, body []byte) error {
	return f.act("put", name, func() error { return f.process.Put(ctx, name, body) })
}

func (f *flaky) PutFile(ctx context.Context, name, file string) error {
	return f.act("put", name, func() error { return f.process.PutFile(ctx, name, file) })
}

func (f *flaky) Get(ctx context.Context, name string) (body []byte, err error) {
	err = f.act("get", name, func() (err error) { body, err = f.process.Get(ctx, name); return err })
	return body, err
}

func (f *flaky) GetRange(ctx context.Context, name string, from, n int64) (body []byte, err error) {
	err = f.act("get", name, func() (err error) { body, err = f.process.GetRange(ctx, name, from, n); return err })
	return body, err
}

func (f *flaky) List(ctx context.Context, prefix string) (names []string, err error) {
	err = f.act("list", prefix, func() (err error) { names, err = f.process.List(ctx, prefix); return err })
	return names, err
}

func (f *flaky) Delete(ctx context.Context, name string) error {
	return f.act("delete", name, func() error { return f.process.Delete(ctx, name) })
}

// TestAStoreThatFailsEachActOnceLosesNothing starts a process again until its job is done: each kind of act, of each kind of object, fails once.
func TestAStoreThatFailsEachActOnceLosesNothing(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := planned(t)
			failed, ended := map[string]bool{}, 0
			for n := range 100 {
				p := &flaky{process: w.start(fmt.Sprint("flaky ", n), 3, -1, 0), after: after, failed: failed}
				j, err := Open(p.ctx, p, Options{Load: w.config(p), Program: "test", Owner: p.name, Clock: func() time.Duration { return time.Since(w.startsAt) }})
				if err == nil {
					_, err = j.Work(p.ctx)
					err = errors.Join(err, j.Close())
				}
				if err == nil {
					break
				}
				ended++
				if !errors.Is(err, errStore) {
					t.Errorf("after %q: %v", slices.Sorted(maps.Keys(failed)), err)
				}
			}
			s, err := w.work()
			if err != nil {
				t.Fatal(err)
			}
			w.check(s)
			if len(failed) < 30 || ended < 10 {
				t.Errorf("%d kinds of acts failed, %d of them ended the process", len(failed), ended)
			}
		})
	}
}
