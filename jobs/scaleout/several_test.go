package scaleout

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/pipeline/checkpoint"
	gocmp "github.com/google/go-cmp/cmp"
)

// manyLoads holds loads that only take time: some seconds of one process, or less if several processes help.
type manyLoads struct {
	*world
	loads *Loads

	mu      sync.Mutex
	left    map[string]int // remaining seconds
	codes   map[string]int // exit codes of loads; those above 3 stop the load
	fails   map[string]error
	begun   []string       // loads in the order of their beginning
	reading map[string]int // number of workers with a load of a source
	most    int            // maximum of reading
	lastEnd time.Time      // end of the last second of work
}

func newManyLoads(t *testing.T, seconds map[string]int, change func(*OneLoad)) *manyLoads {
	m := &manyLoads{world: newWorld(t), left: seconds, codes: map[string]int{}, reading: map[string]int{}}
	l := &Loads{Program: "test", Identity: "this", File: "job.yaml", Workers: 8}
	for name := range seconds {
		one := OneLoad{Name: name}
		if change != nil {
			change(&one)
		}
		l.Loads = append(l.Loads, one)
		p := &Plan{Version: planVersion, Program: "test", ID: "plan of " + name, Job: new(checkpoint.Job), Direct: true,
			Splits: make([]Split, 1)}
		text := conformance.Try(json.Marshal(p)).Must(t)
		must(t, m.store.PutAbsent(t.Context(), FolderOf(name)+"/"+PlanName, text))
	}
	m.loads = conformance.Try(KeepLoads(t.Context(), m.store, l)).Must(t)
	return m
}

func (m *manyLoads) work(p *process) (*LoadsSummary, error) {
	s, err := OpenSeveral(p, m.loads, Options{Program: "test", Owner: p.name,
		Clock: func() time.Duration { return p.ahead + time.Since(m.startsAt) }})
	if err != nil {
		return nil, err
	}
	return s.Work(p.ctx, func(ctx context.Context, load string) error { return m.do(ctx, p, load) })
}

func (m *manyLoads) do(ctx context.Context, p *process, load string) error {
	source := m.loads.Loads[slices.IndexFunc(m.loads.Loads, func(l OneLoad) bool { return l.Name == load })].Source
	m.mu.Lock()
	if !slices.Contains(m.begun, load) {
		m.begun = append(m.begun, load)
	}
	m.reading[source]++
	m.most = max(m.most, m.reading["one"])
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.reading[source]--
	}()
	if err := m.fails[load]; err != nil {
		return err
	}
	for {
		m.mu.Lock()
		left := m.left[load]
		m.left[load]--
		m.mu.Unlock()
		if left <= 0 {
			break
		}
		time.Sleep(time.Second)
		m.mu.Lock()
		if p.ctx.Err() != nil {
			m.left[load]++ // this second is lost
		} else if m.lastEnd.Before(time.Now()) {
			m.lastEnd = time.Now()
		}
		m.mu.Unlock()
		if p.ctx.Err() != nil {
			return errDied
		}
	}
	store := jobdir.Below(p, FolderOf(load))
	if code := m.codes[load]; code > exitcode.Rejects && code != exitcode.Differences {
		why := &StoppedError{Why: "it is refused", Code: code}
		return errors.Join(putJSON(ctx, store.Put, stopName, why), why)
	}
	sum := &Summary{done: done{Version: planVersion, Plan: "plan of " + load, By: p.name, Rejected: 3},
		ExitCode: m.codes[load], SummaryCounts: SummaryCounts{Read: 5, Written: 5}}
	if err := putJSON(ctx, store.PutAbsent, summaryName, sum); !errors.Is(err, jobdir.ErrExists) {
		return err
	}
	return nil
}

// TestWorkersShareTheLoadsOfAJob loads 200 tables with 8 workers, one of which is killed.
func TestWorkersShareTheLoadsOfAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 200))
		seconds, total := map[string]int{"large": 600}, 600
		for n := range 199 {
			took := 5 + rnd.IntN(60)
			seconds[fmt.Sprintf("t%03d", n)] = took
			total += took
		}
		m := newManyLoads(t, seconds, func(l *OneLoad) {
			if l.Name != "large" && l.Name < "t010" {
				l.Source, l.Most = "one", 2
			}
			if l.Name == "t199" || l.Name == "t050" {
				l.After = []string{"t049"}
			}
		})
		began := time.Now()
		var all sync.WaitGroup
		var ended atomic.Int32
		for n := range 8 {
			p := m.start(fmt.Sprint("worker ", n), uint64(n), -1, 0)
			if n == 0 {
				time.AfterFunc(100*time.Second, func() { p.kill(errDied) })
				all.Go(func() { _, _ = m.work(p) })
				continue
			}
			all.Go(func() {
				s := conformance.Try(m.work(p)).Must(t)
				conformance.True(t, len(s.Loads) == 200 && s.ExitCode == exitcode.OK && s.Loads[7].Read == 5,
					"%d loads, exit code %d", len(s.Loads), s.ExitCode)
				if s.Here {
					ended.Add(1)
				}
			})
		}
		all.Wait()
		conformance.Equal(t, ended.Load(), 1, "processes that have ended the job")
		conformance.True(t, m.most == 2, "%d workers had loads of one database at a time, want 2", m.most)
		conformance.True(t, slices.Index(m.begun, "t050") >= slices.Index(m.begun, "t049"), "t050 has begun before t049")
		least := time.Duration(total) * time.Second / 7 // the eighth worker was killed early
		conformance.True(t, m.lastEnd.Sub(began) <= least*115/100, "it ended at %v, at best after %v", m.lastEnd, least)
	})
}

// The successors of a stopped load must not run before the job is continued.
func TestStoppedLoadEndsTheJobAfterTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManyLoads(t, map[string]int{"a": 1, "b": 1, "c": 30}, func(l *OneLoad) {
			if l.Name == "b" {
				l.After = []string{"a"}
			}
		})
		m.codes["a"], m.codes["c"] = exitcode.Refused, exitcode.Rejects
		_, err := m.work(m.start("first", 1, -1, 0))
		var stopped *StoppedError
		conformance.True(t, errors.As(err, &stopped) && stopped.Exit() == exitcode.Refused && m.left["c"] <= 0 &&
			!slices.Contains(m.begun, "b"), "%v; begun: %q", err, m.begun)
		conformance.Equal(t, err.Error(), "the job was stopped: load a: it is refused (by its workers); tsimport resume "+
			"continues it", "the error")
		for _, after := range []bool{false, true} {
			m.faults(after, "none", func(p *process) error {
				must(t, m.store.Put(t.Context(), stopName, nil))
				s := conformance.Try(OpenSeveral(p, m.loads, Options{Program: "test", Load: m.config(nil)})).Must(t)
				return s.Continue(p.ctx)
			})
		}
		m.left["a"] = 1
		p := m.start("second", 2, -1, 0)
		conformance.True(t, errors.As(conformance.ErrorOf(m.work(p)), &stopped), "it is not stopped again")
		delete(m.store.Objects, FolderOf("a")+"/"+stopName) // as a higher error limit does
		m.codes["a"], m.left["a"] = exitcode.OK, 1
		done := conformance.Try(m.work(p)).Must(t)
		conformance.True(t, done.ExitCode == exitcode.Rejects && done.Here && len(m.begun) == 3,
			"%+v; begun: %q", done, m.begun)
		again := conformance.Try(m.work(m.start("third", 3, -1, 0))).Must(t)
		conformance.Equal(t, again.Here || again.ExitCode != exitcode.Rejects, false, "a later process has ended the job")
	})
}

// The input of a failed load may be missing only on this machine, so another process may succeed.
func TestFailedLoadDoesNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loads := map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1, "after f": 1}
		m := newManyLoads(t, loads, func(l *OneLoad) {
			if l.Name == "after f" {
				l.After = []string{"f"}
			}
		})
		planOfG := FolderOf("g") + "/" + PlanName
		text := conformance.Try(m.store.Get(t.Context(), planOfG)).Must(t)
		must(t, m.store.Put(t.Context(), planOfG, []byte(`{"version": 1}`))) // damaged
		m.fails = map[string]error{"e": errors.New("its table is locked"), "f": progress.Unfitf("its input has changed")}
		_, err := m.work(m.start("one", 1, -1, 0))
		refused(t, err, exitcode.Failed, "its table is locked")
		conformance.True(t, len(m.begun) == 7 && !slices.Contains(m.begun, "after f"), "begun: %q", m.begun)
		m.fails = nil
		must(t, m.store.Put(t.Context(), planOfG, text))
		done := conformance.Try(m.work(m.start("two", 2, -1, 0))).Must(t)
		conformance.Equal(t, done.ExitCode, exitcode.OK, "how the job ends")
	})
}

// A stop of the job must also stop a load that had begun before.
func TestJobStopStopsTheCurrentLoad(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		whole := newWorld(t).store
		j := conformance.Try(w.start("worker", 2, -1, 0).open()).Must(t)
		j.o.Whole = whole
		time.AfterFunc(time.Second, func() { must(t, whole.Put(t.Context(), stopName, nil)) })
		at := time.Now()
		err := j.watched(t.Context(), nil, func(context.Context) error {
			<-j.draining().Done()
			return context.Cause(j.draining())
		})
		refused(t, err, exitcode.Failed, "there is an object stop")
		conformance.True(t, time.Since(at) <= 2*stopEvery, "it took %v", time.Since(at))
		_, err = j.Work(t.Context())
		refused(t, errors.Join(err, j.Close()), exitcode.Failed,
			"there is an object stop (by a person); tsimport resume continues it")
	})(t)
}

func TestLoadAfterAnUnsuccessfulOneIsNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManyLoads(t, map[string]int{"a": 1, "b": 1, "c": 1}, func(l *OneLoad) {
			if l.Name != "a" {
				l.After = []string{string(l.Name[0] - 1)}
			}
		})
		m.codes["a"] = exitcode.Differences
		done := conformance.Try(m.work(m.start("one", 1, -1, 0))).Must(t)
		slices.SortFunc(done.Loads, func(a, b LoadDone) int { return strings.Compare(a.Name, b.Name) })
		notRun := LoadDone{Name: "b", State: "not run", ExitCode: exitcode.Differences, Why: "load a did not succeed"}
		after := notRun
		after.Name, after.Why = "c", "load b did not succeed"
		conformance.Equal(t, gocmp.Diff(&LoadsSummary{Version: planVersion, Plan: m.loads.ID, By: "one", Ended: done.Ended,
			Here: true, ExitCode: exitcode.Differences, Loads: []LoadDone{{Name: "a", State: "finished", Rejected: 3,
				ExitCode: exitcode.Differences, SummaryCounts: SummaryCounts{Read: 5, Written: 5}}, notRun, after}}, done), "",
			"the end (-want +got)")
	})
}

// TestStoreFaultsLoseNoLoad is TestStoreFaultsLoseNothing for many loads.
func TestStoreFaultsLoseNoLoad(t *testing.T) {
	for _, after := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := newManyLoads(t, map[string]int{"a": 1, "b": 1}, func(l *OneLoad) {
				if l.Source, l.Most = "one", 2; l.Name == "b" {
					l.After = []string{"a"}
				}
			})
			m.faults(after, "delete (claims|sources)/|put ended/", func(p *process) error {
				return conformance.ErrorOf(m.work(p))
			})
			for _, in := range []*world{m.world, newWorld(t)} {
				in.faults(after, "none", func(p *process) error {
					again := *m.loads
					return cmp.Or(conformance.ErrorOf(CheckLoads(p.ctx, p, &again)),
						conformance.ErrorOf(KeepLoads(p.ctx, p, &again)))
				})
			}
		})
	}
}

func TestJobDirectoryOfAnotherJobIsRefused(t *testing.T) {
	m := newManyLoads(t, map[string]int{"a": 1}, nil)
	for name, l := range map[string]*Loads{"another job": {Program: "test", Identity: "other"},
		"another version": {Program: "later", Identity: "this"},
		"other loads":     {Program: "test", Identity: "this", Loads: []OneLoad{{Name: "a"}, {Name: "b"}}},
		"another order":   {Program: "test", Identity: "this", Loads: []OneLoad{{Name: "a", After: []string{"b"}}}}} {
		refused(t, conformance.ErrorOf(KeepLoads(t.Context(), m.store, l)), exitcode.Usage, "")
		conformance.True(t, conformance.ErrorOf(CheckLoads(t.Context(), m.store, l)) != nil, "%s is not refused", name)
	}
	_, err := OpenSeveral(m.store, m.loads, Options{Program: "later"})
	refused(t, err, exitcode.Usage, "the same version")
	kept, err := KeepLoads(t.Context(), m.store, &Loads{Program: "test", Identity: "this", Loads: []OneLoad{{Name: "a"}}})
	must(t, err)
	conformance.Equal(t, kept.ID, m.loads.ID, "the job of a command that is given again")
	for _, name := range []string{PlanName, summaryName, "notes.txt"} {
		store := newWorld(t).store
		must(t, store.Put(t.Context(), "loads/a/"+PlanName, nil)) // by a command that was killed
		must(t, conformance.ErrorOf(CheckLoads(t.Context(), store, new(Loads))))
		must(t, store.Put(t.Context(), name, nil))
		_, err = CheckLoads(t.Context(), store, new(Loads))
		refused(t, err, exitcode.Usage, "there is "+name)
	}
	for says, s := range map[string]*LoadsSummary{"a newer version": {Version: planVersion + 1, Plan: m.loads.ID},
		"belongs to another job": {Version: planVersion, Plan: "other"}} {
		must(t, putJSON(t.Context(), m.store.Put, summaryName, s))
		refused(t, conformance.ErrorOf(m.work(m.start("one", 1, -1, 0))), exitcode.Usage, says)
	}
}
