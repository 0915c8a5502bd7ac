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

// call is a command with what it was asked for.
type call struct {
	*line                  // the command line: flags that are not options, and the arguments. Of a command that was not typed it has no flags
	given *options.Command // the options that were given
	of    *options.Command // the same, and what the others mean
	in    *invocation

	interrupts *interrupts
	show       *display
	say        words.Say // shows what --quiet hides; show.say shows the rest
}

// line is a command line; by this name its context can be asked for.
type line = cli.Context

// act makes an action of what does a command.
func (in *invocation) act(do func(*call) error) cli.ActionFunc { return in.with(0, do) }

// with makes an action of what does a command that has such options.
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

// typed is the call of a command line. It has what can be read, also if there is an error.
func (in *invocation) typed(l *line, commands options.Commands) (c *call, err error) {
	set := map[string]bool{} // the library looks through all flags, with a regular expression for each, to say whether one is given
	for _, name := range l.LocalFlagNames() {
		set[name] = true
	}
	of := &options.Command{Name: l.Command.Name, Request: options.Request{From: l.Args().Slice()}}
	for _, f := range l.Command.Flags {
		name := f.Names()[0]
		o := commands.Option(name)
		if o == nil && commands&(options.Looking|options.Check) != 0 {
			o = options.Find(name) // what looks at inputs has flags of its own that mean what those of a load do
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
	if show != nil && !of.Quiet { // nil where options are only read
		c.say = show.say
	}
	return c
}

// again is the call of a command that was not typed now: a load of a job, a run that is resumed, a part of a plan.
func (in *invocation) again(ctx context.Context, of *options.Command, stdout io.Writer, interrupts *interrupts, show *display) *call {
	arguments := flag.NewFlagSet(of.Name, flag.ContinueOnError)
	_ = arguments.Parse(append([]string{"--"}, of.From...)) // there are no flags to be wrong
	l := cli.NewContext(&cli.App{Writer: stdout}, arguments, &cli.Context{Context: ctx})
	l.Command = &cli.Command{Name: of.Name}
	return newCall(l, of, of.Full(options.Having(of.Name)), in, interrupts, show)
}

// again is the call of another command in place of this one.
func (c *call) again(in *invocation, of *options.Command) *call {
	return in.again(c.Context, of, c.App.Writer, c.interrupts, c.show)
}

// waits says that a place is waited for to which another process may write, and what is taken over then.
func (c *call) waits(place, what string) func(who string) {
	return func(who string) {
		c.say.Line("waiting: %s may write to %s; if it does not say so for %v, the %s is taken over", who, place, jobdir.Term, what)
	}
}

// command is what a call asks for, to be completed.
func (c *call) command() *options.Command {
	return new(*c.given)
}

// perform does a command that was not typed, and tells how it ends.
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
		return usagef("the command is %q, which this version does not have", c.Command.Name)
	})
}

// commandOf is the command of a run, by what it keeps of it.
func commandOf(request json.RawMessage) (*options.Command, error) {
	if len(request) == 0 {
		return nil, usagef("its run.json does not say how it was started: give its files and flags yourself")
	}
	of, err := options.ReadCommand(request)
	if err != nil {
		return nil, usagef("%v; it was kept by another version of tsimport", err)
	}
	return of, nil
}

// contradicts reports whether an option names a target beside the one that a command names.
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

// takeEnvironment has what variables of the environment say of options that the command does not. One that names its target keeps it.
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

// ownCommand is the command without what the environment says.
func (c *call) ownCommand() *options.Command {
	if c.in.own != nil {
		return new(*c.in.own)
	}
	of := c.command()
	of.Clear(c.in.ofEnv...)
	return of
}

// kept is the command as it may be kept to be done again, nil if it holds a secret.
func (c *call) kept() json.RawMessage {
	if c.in.kept() == nil {
		return nil
	}
	return written(c.ownCommand())
}

func written(of *options.Command) json.RawMessage {
	text, err := json.Marshal(of)
	if err != nil {
		panic(fmt.Sprintf("keep the request: %v", err)) // it has no values that could not be written
	}
	return text
}
