package scaleout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
)

var errFull = errors.New("no space left on device")

func TestAJobDirectoryThatIsFullIsNamedAndTheLoadContinuesWithSpace(t *testing.T) {
	for _, left := range []int{0, 2, 9, 20, 40} {
		t.Run(fmt.Sprint(left), inJob(func(t *testing.T, w *world) {
			p := w.start("on a full disk", 2, -1, 0)
			err := p.run(func(ctx context.Context, j *Job) error {
				p.goesWrong(func(verb, _ string, done bool) error {
					if verb != "put" || done {
						return nil
					}
					if left--; left < 0 { // so many more objects fit
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

// together lets three processes, changed as set says, do the job at the same time.
func (w *world) together(set func(n int, p *process)) {
	w.t.Helper()
	var all sync.WaitGroup
	for n := range 3 {
		p := w.start(fmt.Sprint("process ", n), uint64(n), -1, 0)
		set(n, p)
		all.Go(func() {
			if err := p.run(workAll); err != nil {
				w.t.Errorf("%s: %v", p.name, err) // it has lost a task that it worked on
			}
		})
	}
	all.Wait()
}

func TestProcessesKeepTheirTasksAtAStoreOfSecondsARequest(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		w.together(func(_ int, p *process) { p.slow = 4 * time.Second })
		w.finish()
	})(t)
}

func TestClocksTenMinutesApartNeitherStealTasksNorKeepThem(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		began := time.Now()
		dies := w.start("dies", 9, 60, 0)
		dies.ahead = 10 * time.Minute
		if err := dies.run(workAll); !passing(err) || err == nil {
			t.Errorf("the one that dies: %v", err)
		}
		w.together(func(n int, p *process) { p.ahead = time.Duration(n-1) * 10 * time.Minute })
		if took := time.Since(began); took > 5*time.Minute {
			t.Errorf("a task of a process that is gone was taken over after %v", took)
		}
		w.finish()
	})(t)
}

func TestOfTwoDriversAtOnceOneMakesThePlan(t *testing.T) {
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
					if isNew[0] == isNew[1] {
						t.Errorf("new: %v, %v", isNew, failed)
					}
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

func TestAnInputThatOneMachineLacksStopsThatMachineAlone(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		aside := w.inputs[0] + ".aside"
		must(t, os.Rename(w.inputs[0], aside))
		_, err := w.work()
		refused(t, err, exitcode.Usage, "in-0.csv")
		must(t, os.Rename(aside, w.inputs[0]))
		w.finish() // another machine
	})(t)
}

// A copy that lacks any one object, or many, is finished exactly, for tasks are done again, or refused.
func TestADirectoryThatWasCopiedInPartIsFinishedExactlyOrRefused(t *testing.T) {
	for _, stage := range []string{"read", "written"} {
		t.Run(stage, inJob(func(t *testing.T, w *world) {
			w.readAll()
			if stage == "written" {
				must(t, w.start("writer", 4, -1, 0).run(func(ctx context.Context, j *Job) (err error) {
					for i := range j.Plan.Shards {
						err = errors.Join(err, j.WriteShard(ctx, i))
					}
					return err
				}))
			}
			whole := maps.Clone(w.store.Objects)
			refusals, finished := 0, 0
			names := slices.Sorted(maps.Keys(whole))
			var missing [][]string
			kinds := map[string]bool{}
			for _, name := range names { // one of each kind, or all
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
			if refusals == 0 || finished == 0 {
				t.Errorf("%d refused, %d finished", refusals, finished)
			}
			t.Logf("%d objects, %d copies: %d were refused, %d finished", len(whole), len(missing), refusals, finished)
		}))
	}
}

// readAll reads all splits.
func (w *world) readAll() {
	w.t.Helper()
	must(w.t, w.start("reader", 3, -1, 0).run(func(ctx context.Context, j *Job) (err error) {
		for i := range j.Plan.Splits {
			err = errors.Join(err, j.ReadSplit(ctx, i))
		}
		return err
	}))
}

func TestAFailureOfAPartOfAProcessEndsTheProcessAndIsReported(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		w.readAll()
		p := w.start("worker", 5, -1, 0)
		j, err := p.open()
		must(t, err)
		if n := j.Plan.atATime(); n < 2 {
			t.Fatalf("the process writes %d shards at a time", n)
		}
		p.goesWrong(func(verb, name string, done bool) error {
			if verb == "put" && !done && strings.HasSuffix(name, reducedName) {
				return errStore
			}
			return nil
		})
		before := j.o.Drain
		stop, err := j.besides(p.ctx)
		must(t, err)
		<-j.o.Drain.Done() // what this part does ends
		conformance.Is(t, j.rest(p.ctx), errStore, "the process continues")
		conformance.Is(t, stop(), errStore, "the parts have failed")
		conformance.Equal(t, j.o.Drain, before, "the process cannot work any more")
		p.goesWrong(nil)
		s, err := j.Work(p.ctx)
		must(t, err)
		w.check(s)
		conformance.Equal(t, j.Close(), nil, "Close")
	})(t)
}
