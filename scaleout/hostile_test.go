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

	"tsimport/internal/exitcode"
)

// full is a store in which so many more objects fit.
type full struct {
	*process
	mu   sync.Mutex
	left int
}

var errFull = errors.New("no space left on device")

func (f *full) put() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left == 0 {
		return errFull
	}
	f.left--
	return nil
}

func (f *full) PutAbsent(ctx context.Context, name string, body []byte) error {
	if err := f.put(); err != nil {
		return err
	}
	return f.process.PutAbsent(ctx, name, body)
}

func (f *full) Put(ctx context.Context, name string, body []byte) error {
	if err := f.put(); err != nil {
		return err
	}
	return f.process.Put(ctx, name, body)
}

func (f *full) PutFile(ctx context.Context, name, file string) error {
	if err := f.put(); err != nil {
		return err
	}
	return f.process.PutFile(ctx, name, file)
}

func TestAJobDirectoryThatIsFullIsNamedAndTheLoadContinuesWithSpace(t *testing.T) {
	for _, left := range []int{0, 2, 9, 20, 40} {
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := planned(t)
				err := w.start("on a full disk", 2, -1, 0).run(func(ctx context.Context, j *Job) error {
					j.store = &full{process: j.store.(*process), left: left}
					_, err := j.Work(ctx)
					return err
				})
				refused(t, err, exitcode.Failed, errFull.Error())
				s, err := w.work()
				if err != nil {
					t.Fatal(err)
				}
				w.check(s)
			})
		})
	}
}

func TestProcessesKeepTheirTasksAtAStoreOfSecondsARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := planned(t)
		var all sync.WaitGroup
		for n := range 3 {
			p := w.start(fmt.Sprint("process ", n), uint64(n), -1, 0)
			p.slow = 4 * time.Second
			all.Go(func() {
				if err := p.run(workAll); err != nil {
					t.Errorf("%s: %v", p.name, err)
				}
			})
		}
		all.Wait()
		s, err := w.work()
		if err != nil {
			t.Fatal(err)
		}
		w.check(s)
	})
}

func TestClocksTenMinutesApartNeitherStealTasksNorKeepThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := planned(t)
		began := time.Now()
		dies := w.start("dies", 9, 60, 0)
		dies.ahead = 10 * time.Minute
		if err := dies.run(workAll); !passing(err) || err == nil {
			t.Errorf("the one that dies: %v", err)
		}
		var all sync.WaitGroup
		for n, ahead := range []time.Duration{-10 * time.Minute, 0, 10 * time.Minute} {
			p := w.start(fmt.Sprint("process ", n), uint64(n), -1, 0)
			p.ahead = ahead
			all.Go(func() {
				if err := p.run(workAll); err != nil {
					t.Errorf("%s: %v", p.name, err) // it has lost a task that it worked on
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took > 5*time.Minute {
			t.Errorf("a task of a process that is gone was taken over after %v", took)
		}
		s, err := w.work()
		if err != nil {
			t.Fatal(err)
		}
		w.check(s)
	})
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
							if failed[n] != nil {
								t.Errorf("driver %d: %v", n, failed[n])
							}
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
	synctest.Test(t, func(t *testing.T) {
		w := planned(t)
		aside := w.inputs[0] + ".aside"
		if err := os.Rename(w.inputs[0], aside); err != nil {
			t.Fatal(err)
		}
		_, err := w.work()
		refused(t, err, exitcode.Usage, "in-0.csv")
		if err := os.Rename(aside, w.inputs[0]); err != nil {
			t.Fatal(err)
		}
		s, err := w.work() // another machine
		if err != nil {
			t.Fatal(err)
		}
		w.check(s)
	})
}

// A copy that lacks any one object, or many, is finished exactly, for tasks are done again, or refused.
func TestADirectoryThatWasCopiedInPartIsFinishedExactlyOrRefused(t *testing.T) {
	for _, stage := range []string{"read", "written"} {
		t.Run(stage, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := planned(t)
				w.readAll()
				if stage == "written" {
					if err := w.start("writer", 4, -1, 0).run(func(ctx context.Context, j *Job) (err error) {
						for i := range j.Plan.Shards {
							err = errors.Join(err, j.WriteShard(ctx, i))
						}
						return err
					}); err != nil {
						t.Fatal(err)
					}
				}
				whole := maps.Clone(w.store.objects)
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
					w.store.objects = maps.Clone(whole)
					for _, name := range lack {
						delete(w.store.objects, name)
					}
					s, err := w.work()
					_, ended := w.store.objects[summaryName]
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
			})
		})
	}
}
