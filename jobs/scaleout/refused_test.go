package scaleout

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/condition"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/source/sourcetest"
)

// inJob returns a test, in virtual time, of a world with a job of several splits and shards.
func inJob(test func(t *testing.T, w *world)) func(*testing.T) {
	return func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.makeInputs(rand.New(rand.NewPCG(4, 1)))
			w.planned(func(*Request) {})
			test(t, w)
		})
	}
}

func (w *world) planned(change func(*Request)) {
	w.t.Helper()
	must(w.t, w.plan(w.start("driver", 1, -1, 0), change))
}

func (w *world) plan(p *process, change func(*Request)) error {
	r := Request{Options: Options{Load: w.config(p), Program: "test", Owner: p.name}, Workers: 2, SplitSize: 4000}
	change(&r)
	_, _, err := Make(p.ctx, p, r)
	return err
}

func (w *world) work() (s *Summary, err error) {
	err = w.start("worker", 2, -1, 0).run(func(ctx context.Context, j *Job) (err error) {
		j.o.Say = func(_ words.Kind, line string) {
			conformance.True(w.t, !strings.Contains(line, "although"), "a part that has done its work warns: %s", line)
		}
		s, err = j.Work(ctx)
		return err
	})
	return s, err
}

func (w *world) finish() *Summary {
	w.t.Helper()
	s := conformance.Try(w.work()).Must(w.t)
	w.check(s)
	return s
}

func refused(t *testing.T, err error, code int, says string) {
	t.Helper()
	conformance.True(t, err != nil && strings.Contains(err.Error(), says) && exitcode.Of(err) == code,
		"%v (exit code %d), want %q and %d", err, exitcode.Of(err), says, code)
}

// replacing is a store that ignores the condition of puts, so that two processes could hold one lease.
type replacing struct{ *process }

func (r replacing) PutAbsent(ctx context.Context, name string, body []byte) error {
	return r.Put(ctx, name, body)
}

func TestStoreWithoutConditionalPutsIsRefused(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		p := w.start("driver", 9, -1, 0)
		_, _, err := Make(p.ctx, replacing{p}, Request{Options: Options{Load: w.config(p)}, Workers: 2})
		refused(t, err, exitcode.Usage, "conditional puts have no effect")
	})(t)
}

func TestUnsupportedOptionsAreRefusedByName(t *testing.T) {
	for name, change := range map[string]func(*pipeline.Config){
		"--mode increment":         func(c *pipeline.Config) { c.Write.Mode = table.Increment },
		"--mode update":            func(c *pipeline.Config) { c.Write.Mode = table.Update },
		"--condition":              func(c *pipeline.Config) { c.Write.Condition = table.ExpectExist },
		"--when":                   func(c *pipeline.Config) { c.Write.When = new(condition.When) },
		"--if-unchanged":           func(c *pipeline.Config) { c.Write.Unchanged = true },
		"--limit":                  func(c *pipeline.Config) { c.Limits.Records = 5 },
		"--state":                  func(c *pipeline.Config) { c.Checkpoint.State = new(jobdir.Mirror) },
		"--accept-changed-input":   func(c *pipeline.Config) { c.Resume.AcceptChanged = true },
		"--dry-run":                func(c *pipeline.Config) { c.DryRun = true },
		"embedded store":           func(c *pipeline.Config) { c.Target.Place = "a store" },
		"--table with":             func(c *pipeline.Config) { c.Target.Table = "t_{month(at)}" },
		"numbers need one process": func(c *pipeline.Config) { c.Write.Marks.ReturnedKeys = "keys.csv" },
		"--since":                  func(c *pipeline.Config) { c.Read.Merges = true },
		"an embedded store":        func(c *pipeline.Config) { c.Target.Absent = true },
		"--define":                 func(c *pipeline.Config) { c.Target.Asked.Columns = "a" },
		"--mode changes":           func(c *pipeline.Config) { c.Write.Mode = table.Changes },
		"service numbers need":     func(c *pipeline.Config) { c.Write.Marks.AtLeastOnce = true },
		"the service numbers":      func(c *pipeline.Config) { c.Write.Marks.LookFirst = true },
		"--only-new":               func(c *pipeline.Config) { c.Resume.Known = struct{ keep.Known }{} },
		"standard input":           func(c *pipeline.Config) { c.Inputs = []string{"-"} },
		"--order none": func(c *pipeline.Config) {
			c.Write.Mode, c.Write.Order, c.Read.Sources = table.Update, plan.OrderNone, sourcetest.NewKeyed("", 1)
		},
		"--order none and without --verify": func(c *pipeline.Config) {
			c.Write.Mode, c.Write.Order, c.Compared = table.Update, plan.OrderNone, true
		},
	} {
		cfg := pipeline.Config{Inputs: []string{"a.csv"}, Target: plan.Target{Table: "t"}}
		must(t, Check(&cfg))
		change(&cfg)
		refused(t, Check(&cfg), exitcode.Usage, name)
	}
}

func TestUnusableDirectoryIsRefusedByName(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world)
		code   int
		says   string
	}{
		"no plan": {func(w *world) { delete(w.store.Objects, PlanName) }, exitcode.Usage, "is not a job directory"},
		"damaged": {func(w *world) { w.store.Objects[PlanName] = "{" }, exitcode.Usage, "plan.json of memory is damaged"},
		"newer":   {func(w *world) { w.replace(PlanName, `"version": 1`, `"version": 2`) }, exitcode.Usage, "newer version"},
		"another": {func(w *world) { w.replace(PlanName, `"program": "test"`, `"program": "other"`) }, exitcode.Usage,
			"must have the same version"},
		"a changed input": {func(w *world) { w.file("in-0.csv", "id,what\nk1,changed\n") }, exitcode.Usage, "in-0.csv was"},
		"a missing input": {func(w *world) { must(w.t, os.Remove(w.inputs[0])) }, exitcode.Usage, "in-0.csv"},
		"a result of another job": {func(w *world) {
			w.store.Objects[splitName(0)] = `{"version":1,"plan":"other"}`
		}, exitcode.Usage, "belongs to another job"},
		"a table made again": {func(w *world) {
			target := w.config(nil).Target
			must(w.t, w.admin().Drop("t"))
			time.Sleep(2 * time.Second)
			must(w.t, w.admin().Create("t", target.Key, target.Define))
		}, exitcode.Refused, "table t was dropped and created again"},
		"a stop": {func(w *world) { w.store.Objects[stopName] = "" }, exitcode.Failed, "there is an object stop"},
	} {
		t.Run(name, inJob(func(t *testing.T, w *world) {
			c.change(w)
			_, err := w.work()
			refused(t, err, c.code, c.says)
			rows := w.rows()
			conformance.True(t, len(rows) == 0, "%d rows were written", len(rows))
		}))
	}
}

func TestPlansForOneProcessAreRefused(t *testing.T) {
	for says, p := range map[string]*plan.Plan{
		"key column n: rows must be numbered": {Schema: &table.Schema{Numbered: 1, Key: []table.KeyColumn{{}, {Name: "n"}}}},
		"pipe can be read only once": {Schema: new(table.Schema), Sources: []*plan.Source{{},
			{Name: "pipe", Chain: func() source.Chain { return source.Chain{} }}}},
		"no input has a record": {Schema: new(table.Schema), Empty: true},
	} {
		refused(t, checkPlan(p), exitcode.Usage, says)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inputs = []string{w.file("in.csv", "id,what\n")}
		refused(t, w.plan(w.start("driver", 1, -1, 0), func(*Request) {}), exitcode.Usage, "no input has a record")
	})
}

func (w *world) replace(name, from, to string) {
	w.t.Helper()
	text := w.store.Objects[name]
	conformance.MustTrue(w.t, strings.Contains(text, from), "%s has no %q", name, from)
	w.store.Objects[name] = strings.Replace(text, from, to, 1)
}

func TestDirectoryOfAnotherLoadIsRefused(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		p := w.start("another", 5, -1, 0)
		refused(t, w.plan(p, func(r *Request) { r.Load.Write.Mode = table.Delete }), exitcode.Usage,
			"--mode was put and is delete now")
		refused(t, w.plan(p, func(r *Request) { r.Program = "other" }), exitcode.Usage, "must have the same version")
		delete(w.store.Objects, PlanName)
		w.store.Objects[splitName(0)] = "{}"
		refused(t, w.plan(p, func(*Request) {}), exitcode.Usage, "it is not empty")
	})(t)
}

func TestSeamsOfJoinedFilesDoNotStopAJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.inputs = []string{w.file("in.csv", "id,what\nk1,a\nid,what\nk2,b\nid,what\n")}
		w.want, w.good, w.rejects = map[string]string{"k1": "a", "k2": "b"}, 2, []string{"id,what\n", "id,what\n"}
		w.planned(func(r *Request) { r.Load.Limits.MaxErrors = ledger.MaxErrors{} })
		w.finish()
	})
}

// TestSplitWrittenMeanwhileIsNotWrittenAgain lets another process end the job just before a process takes its lease.
func TestSplitWrittenMeanwhileIsNotWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, done := newWorld(t), false
		w.order = plan.OrderNone
		w.makeInputs(rand.New(rand.NewPCG(4, 1)))
		w.planned(func(*Request) {})
		p := w.start("late", 1, -1, 0)
		p.wire = func(r *http.Request) (time.Duration, bool) {
			conformance.True(t, r.URL.Path != "/BatchWriteRow", "it writes a row after the end of the job")
			return 0, false
		}
		p.goesWrong(func(verb, name string, _ bool) error {
			if !done && verb == "put" && strings.HasPrefix(name, splitFolder(0)+"/lease") {
				done = true
				w.finish()
			}
			return nil
		})
		must(t, p.run(func(ctx context.Context, j *Job) error { return j.stages()[0].do(ctx, 0) }))
		s := conformance.Try(conformance.Try(NewWatcher(t.Context(), w.store)).Must(t).Status(t.Context())).Must(t)
		conformance.True(t, done && len(s.Stages) == 1 && s.Written == int64(len(w.want)) && s.WriteRate > 0 &&
			s.Read == s.Written+s.Rejected && s.ExitCode != nil, "the status of the job that was ended: %+v", s)
	})
}

// A paused attempt that wakes up after another attempt has done the task must not continue.
func TestAttemptEndsWhenItsTaskIsDone(t *testing.T) {
	inJob(func(t *testing.T, w *world) {
		must(t, w.start("a late process", 1, -1, 0).run(func(ctx context.Context, j *Job) error {
			return j.watched(ctx, j.isRead(0), func(context.Context) error {
				if _, err := w.work(); err != nil { // another process does all tasks in the meantime
					return err
				}
				<-j.draining().Done()
				return errors.New("it was drained")
			})
		}))
		conformance.Equal(t, w.stored(summaryName), true, "the task was done")
	})(t)
}
