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
	*line                  // command line: flags that are not options, and arguments; without flags if not typed
	given *options.Command // options that were given
	of    *options.Command // all options: those given, and the defaults of the others
	in    *invocation

	interrupts *interrupts
	show       *display
	say        words.Say // hidden by --quiet; show.say is not
}

// line is a command line. The alias gives the embedded field of call this name.
type line = cli.Context

func (in *invocation) act(do func(*call) error) cli.ActionFunc { return in.with(0, do) }

// with returns an action that calls do for a command with these options.
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

// typed returns the call of a command line. Even with an error, the call holds the options that could be read.
func (in *invocation) typed(l *line, commands options.Commands) (c *call, err error) {
	set := map[string]bool{} // faster than asking the library, which matches regular expressions
	for _, name := range l.LocalFlagNames() {
		set[name] = true
	}
	of := &options.Command{Name: l.Command.Name, Request: options.Request{From: l.Args().Slice()}}
	for _, f := range l.Command.Flags {
		name := f.Names()[0]
		o := commands.Option(name)
		if o == nil && commands&(options.Looking|options.Check) != 0 {
			o = options.Find(name) // commands that inspect inputs have flags with the same meaning
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

// again returns the call of a command that was not typed: a load of a job, a resumed run, a part of a plan.
func (in *invocation) again(ctx context.Context, of *options.Command, stdout io.Writer, interrupts *interrupts,
	show *display) *call {
	arguments := flag.NewFlagSet(of.Name, flag.ContinueOnError)
	_ = arguments.Parse(append([]string{"--"}, of.From...)) // without flags it cannot fail
	l := cli.NewContext(&cli.App{Writer: stdout}, arguments, &cli.Context{Context: ctx})
	l.Command = &cli.Command{Name: of.Name}
	return newCall(l, of, of.Full(options.Having(of.Name)), in, interrupts, show)
}

func (c *call) again(in *invocation, of *options.Command) *call {
	return in.again(c.Context, of, c.App.Writer, c.interrupts, c.show)
}

// waits returns a function that tells the user to wait until a process that may write to place is taken over.
func (c *call) waits(place, what string) func(who string) {
	return func(who string) {
		c.say.Line("waiting: %s may write to %s; after %v of silence its %s is taken over", who, place, jobdir.Term, what)
	}
}

// command returns a copy of the call's request, which the caller may complete.
func (c *call) command() *options.Command {
	return new(*c.given)
}

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
		return usagef("the run was started by tsimport %s, a command that this version does not have; resume it with the "+
			"version that started it", c.Command.Name)
	})
}

func commandOf(request json.RawMessage) (*options.Command, error) {
	if len(request) == 0 {
		return nil, usagef("how the run was started is not recorded; give its files and flags yourself")
	}
	of, err := options.ReadCommand(request)
	if err != nil {
		return nil, usagef("how the run was started: %v; another version of tsimport may have written it", err)
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

// takeEnvironment sets options that the command does not set from environment variables, except if they contradict it.
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

// ownCommand returns the command without values from the environment.
func (c *call) ownCommand() *options.Command {
	if c.in.own != nil {
		return new(*c.in.own)
	}
	of := c.command()
	of.Clear(c.in.ofEnv...)
	return of
}

// kept returns the command in its stored form, or nil if it contains a secret.
func (c *call) kept() json.RawMessage {
	if c.in.kept() == nil {
		return nil
	}
	return written(c.ownCommand())
}

func written(of *options.Command) json.RawMessage {
	text, err := json.Marshal(of)
	if err != nil {
		panic(fmt.Sprintf("keep the request: %v", err)) // all values can be marshalled
	}
	return text
}
