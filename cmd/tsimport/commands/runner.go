package commands

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/scaleout"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
)

// Runner runs the tasks of a planned load on a system that places and restarts processes. The binary that has one offers it as a --runner of load and
// copy; tsimport itself has none.
type Runner struct {
	Name  string   // of the binary, such as tsimport-beam
	Names []string // for --runner
	Flags []cli.Flag
	// Check refuses flags of the runner that it cannot do, before the load is planned.
	Check func(c *cli.Context) error
	// Run has all tasks done, and returns when the load is done or will not be. What counts is in the job directory.
	Run func(ctx context.Context, c *cli.Context, l *RunnerLoad) error
}

// RunnerLoad is a load that a runner is to run.
type RunnerLoad struct {
	Place string // of the job directory, for Work on any machine
	Plan  *scaleout.Plan
	Watch *scaleout.Watcher
	// Env is what processes of the runner must have in their environment, unless they have it already; no secrets.
	Env map[string]string
	// Hard ends when nothing is to be waited for any more.
	Hard context.Context
	Say  words.Say
}

// flags are those of the runner, and the one that asks for it.
func (r *Runner) flags() []cli.Flag {
	return append([]cli.Flag{&cli.StringFlag{Name: "runner", Usage: "--job-dir: have the stages run by `RUNNER`: " + strings.Join(r.Names, " or ") + " (docs/flink.md)"}}, r.Flags...)
}

// offer adds the runner to load.
func (r *Runner) offer(app *cli.App) {
	if r == nil {
		return
	}
	app.Name = r.Name
	for _, f := range r.flags() {
		setCategory(f, "Many machines")
	}
	for _, name := range []string{"load", "copy"} {
		c := findCommand(app.Commands, name)
		c.Flags = append(c.Flags, r.flags()...)
	}
}

// runnerOf is the runner that this binary offers, nil if it has none, and whether --runner asks for it.
func runnerOf(c *call) (r *Runner, run bool, err error) {
	if r = c.in.runner; r == nil || !c.IsSet("runner") {
		return r, false, nil
	}
	if name := c.String("runner"); !slices.Contains(r.Names, name) {
		return r, false, usagef("--runner %q: want %s", name, strings.Join(r.Names, " or "))
	}
	return r, true, nil
}

// runByRunner has the tasks of a plan done by the runner.
func runByRunner(c *call, r *Runner, store jobdir.Store, p *scaleout.Plan, cfg *pipeline.Config) error {
	c.interrupts.drains()
	s, err := scaleout.ReadSummary(c.interrupts.hard, store, p)
	if err != nil {
		return err
	}
	var failed error
	if s == nil {
		// The same command continues what was stopped, as it does without a runner.
		j, err := scaleout.Open(c.interrupts.hard, store, scaleout.Options{Load: *cfg, Program: program(), Say: c.say})
		if err != nil {
			return err
		}
		if err := errors.Join(j.Continue(c.interrupts.hard), j.Close()); err != nil {
			return err
		}
		w, err := scaleout.NewWatcher(c.interrupts.hard, store)
		if err != nil {
			return err
		}
		l := &RunnerLoad{Place: store.String(), Plan: p, Watch: w, Env: map[string]string{}, Hard: c.interrupts.hard, Say: c.say}
		for _, v := range workerEnv(p) {
			l.Env[v.Name] = v.Value
		}
		failed = r.Run(c.interrupts.drain, c.line, l)
		// What counts is in the job directory, not what the runner says.
		if s, err = scaleout.ReadSummary(c.interrupts.hard, store, p); s == nil {
			return errors.Join(failed, err, missingSummary(failed == nil && err == nil, "the runner has done all tasks", store))
		}
	}
	if c.of.JSON && err == nil {
		err = printJSON(c, s)
	}
	return endWork(c, s, err)
}

// Work opens a job directory as tsimport work does, and calls do with it. When ctx ends, tasks end gently. Signals are not taken.
func Work(ctx context.Context, place string, stderr io.Writer, do func(ctx context.Context, j *scaleout.Job) error) error {
	show := newDisplay(stderr)
	hard, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	drain, stopGently := context.WithCancelCause(hard)
	defer context.AfterFunc(ctx, func() { stopGently(context.Cause(ctx)) })()
	interrupts := &interrupts{drain: drain, hard: hard, stopGently: stopGently, stop: stop, gentle: make(chan bool, 1)}
	of := &options.Command{Name: "work"}
	if err := takeEnvironment(of); err != nil {
		return err
	}
	c := new(invocation).again(hard, of, io.Discard, interrupts, show)
	return told(c, of.Name, func(c *call) error { return workOn(c, place, &workTask{index: -1, do: do}) })
}
