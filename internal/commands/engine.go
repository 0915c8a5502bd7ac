package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"tsimport/internal/jobdir"
	"tsimport/pipeline"
	"tsimport/scaleout"
)

// Engine runs the tasks of a planned load on a system that places and restarts processes. The binary that has one offers it as a --runner of load and
// copy; tsimport itself has none.
type Engine struct {
	Name  string   // of the binary, such as tsimport-beam
	Names []string // for --runner
	Flags []cli.Flag
	// Check refuses flags of the engine that it cannot do, before the load is planned.
	Check func(c *cli.Context) error
	// Run has all tasks done, and returns when the load is done or will not be. What counts is in the job directory.
	Run func(ctx context.Context, c *cli.Context, l *EngineLoad) error
}

// EngineLoad is a load that an engine is to run.
type EngineLoad struct {
	Place string // of the job directory, for Work on any machine
	Plan  *scaleout.Plan
	Watch *scaleout.Watcher
	// Env is what processes of the engine must have in their environment, unless they have it already; no secrets.
	Env map[string]string
	Say func(format string, a ...any)
}

type engineKey struct{}

// offer adds the engine to load. The context is for running the command.
func (e *Engine) offer(ctx context.Context, app *cli.App) context.Context {
	if e == nil {
		return ctx
	}
	app.Name = e.Name
	for _, f := range e.Flags {
		setCategory(f, "Many machines")
	}
	for _, name := range []string{"load", "copy"} {
		c := findCommand(app.Commands, name)
		for _, f := range c.Flags {
			if r, ok := f.(*cli.StringFlag); ok && r.Name == "runner" {
				r.Usage = fmt.Sprintf("--job-dir: run the stages by `RUNNER`: %s (docs/flink.md), or print what k8s needs (docs/kubernetes.md)", strings.Join(e.Names, " or "))
			}
		}
		c.Flags = append(c.Flags, e.Flags...)
	}
	return context.WithValue(ctx, engineKey{}, e)
}

// engineOf is the engine that this binary offers, nil if it has none, and whether --runner asks for it.
func engineOf(c *cli.Context) (e *Engine, run bool) {
	e, _ = c.Context.Value(engineKey{}).(*Engine)
	if e != nil {
		for _, name := range e.Names {
			run = run || c.String("runner") == name
		}
	}
	return e, run
}

// without leaves the engine's flags out of arguments that are kept: processes of the plan may have no engine.
func (e *Engine) without(app *cli.App, args []string) ([]string, error) {
	if e == nil {
		return args, nil
	}
	sorted, err := flagsFirst(app, append([]string{os.Args[0]}, args...))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range e.Flags {
		names = append(names, f.Names()[0])
	}
	flags, inputs := cutInputs(sorted[2:])
	kept := append([]string{sorted[1]}, withoutFlags(findCommand(app.Commands, sorted[1]).Flags, flags, names)...)
	return append(append(kept, "--"), inputs...), nil
}

// runByEngine has the tasks of a plan done by the engine.
func runByEngine(c *cli.Context, interrupts *interrupts, show *display, e *Engine, store jobdir.Store, p *scaleout.Plan, cfg *pipeline.Config) error {
	interrupts.drains()
	say := func(format string, a ...any) { say(c, show, format, a...) }
	s, err := scaleout.ReadSummary(interrupts.hard, store, p)
	if err != nil {
		return err
	}
	var failed error
	if s == nil {
		// The same command continues what was stopped, as it does without an engine.
		j, err := scaleout.Open(interrupts.hard, store, scaleout.Options{Load: *cfg, Program: program(), Say: say})
		if err != nil {
			return err
		}
		if err := errors.Join(j.Continue(interrupts.hard), j.Close()); err != nil {
			return err
		}
		w, err := scaleout.NewWatcher(interrupts.hard, store)
		if err != nil {
			return err
		}
		l := &EngineLoad{Place: store.String(), Plan: p, Watch: w, Env: map[string]string{}, Say: say}
		for _, v := range workerEnv(c) {
			l.Env[v.Name] = v.Value
		}
		failed = e.Run(interrupts.drain, c, l)
		// What counts is in the job directory, not what the engine says.
		if s, err = scaleout.ReadSummary(interrupts.hard, store, p); s == nil {
			if failed == nil && err == nil {
				err = fmt.Errorf("the engine has done all tasks, and %s has no summary: workers had another job directory, or it was changed", store)
			}
			return errors.Join(failed, err)
		}
	}
	if c.Bool("json") && err == nil {
		text, wrong := s.JSON()
		if wrong == nil {
			_, wrong = fmt.Fprintf(results(c), "%s\n", text)
		}
		err = wrong
	}
	return endWork(c, show, s, err)
}

type doKey struct{}

// Work opens a job directory as tsimport work does, and calls do with it. Args are flags of tsimport work. When ctx ends, tasks end
// gently. Signals are not taken.
func Work(ctx context.Context, args []string, stderr io.Writer, do func(ctx context.Context, j *scaleout.Job) error) error {
	show := newDisplay(stderr)
	hard, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	drain, stopGently := context.WithCancelCause(hard)
	defer context.AfterFunc(ctx, func() { stopGently(context.Cause(ctx)) })()
	interrupts := &interrupts{drain: drain, hard: hard, stopGently: stopGently, stop: stop, gentle: make(chan bool, 1)}
	app := newApp(io.Discard, show, interrupts, nil)
	full := withEnvironment(app, append([]string{os.Args[0], "work"}, args...))
	return app.RunContext(context.WithValue(hard, doKey{}, do), full)
}
