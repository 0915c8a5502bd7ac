package commands

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline/options"
)

// call is a command and its request.
type call struct {
	*line                  // the command line: flags that are not options, and arguments; no flags if not typed
	given *options.Command // the options that were given
	of    *options.Command // the same, with the defaults of the others
	in    *invocation

	interrupts *interrupts
	show       *display
	say        words.Say // hidden by --quiet; show.say is not
}

// line is a command line; the alias makes its context accessible by name.
type line = cli.Context

// act makes an action of a function.
func (in *invocation) act(do func(*call) error) cli.ActionFunc { return in.with(0, do) }

// with makes an action of a function for a command with these options.
func (in *invocation) with(of options.Commands, do func(*call) error) cli.ActionFunc {
	return func(l *line) error {
		if err := in.takeEnvironment(l); err != nil {
			return err
		}
		c, err := in.typed(l, of)
		run := func(c *call) error {
			if err != nil {
				return err
			}
			return do(c)
		}
		if of&options.Ending != 0 {
			return told(c, c.Command.Name, run)
		}
		return run(c)
	}
}

// typed is the call of a command line. Even with an error, it holds the options that could be read.
func (in *invocation) typed(l *line, commands options.Commands) (c *call, err error) {
	set := map[string]bool{} // the library would match all flags with a regular expression each
	for _, name := range l.LocalFlagNames() {
		set[name] = true
	}
	of := &options.Command{Name: l.Command.Name, Request: options.Request{From: l.Args().Slice()}}
	for _, f := range l.Command.Flags {
		name := f.Names()[0]
		o := commands.Option(name)
		if o == nil && commands&(options.Looking|options.Check) != 0 {
			o = options.Find(name) // commands that inspect inputs have their own flags with the meaning of a load's
		}
		if o == nil || !set[name] {
			continue
		}
		if wrong := o.Set(of, valuesOf(l, f)); wrong != nil && err == nil {
			err = usagef("%v", wrong)
		}
	}
	of.Quiet, of.JSON, of.MetricsFile = l.Bool("quiet"), l.Bool("json"), l.String("metrics-file")
	return newCall(l, of, of.Full(commands), in, in.interrupts, in.show), err
}

func newCall(l *line, given, of *options.Command, in *invocation, interrupts *interrupts, show *display) *call {
	c := &call{line: l, given: given, of: of, in: in, interrupts: interrupts, show: show}
	if show != nil && !of.Quiet { // nil if options are only read
		c.say = show.say
	}
	return c
}

// again is the call of a command that was not typed now: a load of a job, a resumed run, a part of a plan.
func (in *invocation) again(ctx context.Context, of *options.Command, stdout io.Writer, interrupts *interrupts,
	show *display) *call {
	arguments := flag.NewFlagSet(of.Name, flag.ContinueOnError)
	_ = arguments.Parse(append([]string{"--"}, of.From...)) // it has no flags
	l := cli.NewContext(&cli.App{Writer: stdout}, arguments, &cli.Context{Context: ctx})
	l.Command = &cli.Command{Name: of.Name}
	return newCall(l, of, of.Full(options.Having(of.Name)), in, interrupts, show)
}

// again is the call of another command in place of this one.
func (c *call) again(in *invocation, of *options.Command) *call {
	return in.again(c.Context, of, c.App.Writer, c.interrupts, c.show)
}

// waits announces the wait for a place that another process may write to, and what will be taken over.
func (c *call) waits(place, what string) func(who string) {
	return func(who string) {
		c.say.Line("waiting: %s may write to %s; if silent for %v, its %s is taken over", who, place, jobdir.Term, what)
	}
}

// command is the request of a call, to be completed.
func (c *call) command() *options.Command {
	return new(*c.given)
}

// perform runs a command that was not typed and reports how it ended.
func perform(c *call) error {
	return told(c, c.Command.Name, func(c *call) error {
		switch c.Command.Name {
		case job.Load:
			return load(c)
		case job.Copy:
			return copyTable(c)
		case job.Sync:
			return syncTable(c)
		case job.Export:
			return export(c)
		}
		return usagef("this version has no command %q", c.Command.Name)
	})
}

// commandOf restores the command from the request kept with a run.
func commandOf(request json.RawMessage) (*options.Command, error) {
	if len(request) == 0 {
		return nil, usagef("its run.json does not say how it was started: give its files and flags yourself")
	}
	of, err := options.ReadCommand(request)
	if err != nil {
		return nil, usagef("%v; it was written by another version of tsimport", err)
	}
	return of, nil
}

// contradicts reports whether an option names a target in addition to the command's own.
func contradicts(of *options.Command, name string) bool {
	switch name {
	case "store":
		return of.Endpoint != "" || of.Instance != "" || of.Profile != ""
	case "endpoint":
		return of.Store != "" || of.Profile != ""
	case "instance", "profile":
		return of.Store != ""
	}
	return false
}

// takeEnvironment applies environment variables to options that the command does not set. A target it names stays.
func takeEnvironment(of *options.Command) error {
	named := *of
	for _, o := range options.OfCommand(of.Name) {
		if contradicts(&named, o.Name) {
			continue
		}
		values := environmentOf(o.Name, o.Kind.Repeated())
		if values == nil || !o.Shown(of.Name) || of.IsSet(o.Name) {
			continue
		}
		if err := o.Set(of, values); err != nil {
			return usagef("%s: %v", variableOf(o.Name), err)
		}
	}
	return nil
}

// ownCommand is the command without the values from the environment.
func (c *call) ownCommand() *options.Command {
	if c.in.own != nil {
		return new(*c.in.own)
	}
	of := c.command()
	of.Clear(c.in.ofEnv...)
	return of
}

// kept is the command in the form that is stored for later; nil if it holds a secret.
func (c *call) kept() json.RawMessage {
	if c.in.kept() == nil {
		return nil
	}
	return written(c.ownCommand())
}

func written(of *options.Command) json.RawMessage {
	text, err := json.Marshal(of)
	if err != nil {
		panic(fmt.Sprintf("keep the request: %v", err)) // all its values can be marshalled
	}
	return text
}
