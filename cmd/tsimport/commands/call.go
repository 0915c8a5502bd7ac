package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline/options"
)

// call is a command with what it was asked for.
type call struct {
	asked
	Command *cli.Command
	Context context.Context
	App     *cli.App     // whose writers the command has
	own     *cli.Context // the command line; nil if the command was not typed: a load of a job, a run that is resumed, a part of a plan
	in      *invocation

	interrupts *interrupts
	show       *display
}

// asked are the values of options, and the arguments.
type asked interface {
	IsSet(name string) bool
	String(name string) string
	Bool(name string) bool
	Int(name string) int
	Int64(name string) int64
	Float64(name string) float64
	Duration(name string) time.Duration
	Args() cli.Args
	NArg() int
}

// typedLine are the values of a command that was typed. The library looks through all flags, with a regular expression for each, to say whether one is
// given; a load asks that of all of them.
type typedLine struct {
	*cli.Context
	given map[string]bool // by all names of a flag
}

func (l typedLine) IsSet(name string) bool { return l.given[name] }

// act makes an action of what does the command.
func (in *invocation) act(do func(*call) error) cli.ActionFunc {
	return func(c *cli.Context) error { return do(in.typed(c)) }
}

// typed is the call of a command line.
func (in *invocation) typed(c *cli.Context) *call {
	given := map[string]bool{}
	for _, name := range c.LocalFlagNames() {
		given[name] = true
	}
	return &call{asked: typedLine{c, given}, Command: c.Command, Context: c.Context, App: c.App, own: c, in: in, interrupts: in.interrupts, show: in.show}
}

// again is the call of a command that was not typed now.
func (in *invocation) again(ctx context.Context, of *options.Command, stdout io.Writer, interrupts *interrupts, show *display) *call {
	return &call{
		asked: notTyped{of}, Command: &cli.Command{Name: of.Name}, Context: ctx, App: &cli.App{Writer: stdout, ErrWriter: show}, in: in,
		interrupts: interrupts, show: show,
	}
}

// again is the call of another command in place of this one.
func (c *call) again(in *invocation, of *options.Command) *call {
	return in.again(c.Context, of, c.App.Writer, c.interrupts, c.show)
}

// command is the command that a call asks for.
func (c *call) command() (*options.Command, error) {
	if again, ok := c.asked.(notTyped); ok {
		of := *again.Command
		return &of, nil
	}
	of := &options.Command{Name: c.Command.Name, Request: options.Request{From: c.Args().Slice()}}
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		o := cmp.Or(options.For(of.Name, name), options.Find(name))
		if o == nil || !c.IsSet(name) {
			continue
		}
		if err := o.Set(of, valuesOf(c.own, f)); err != nil {
			return of, usagef("%v", err)
		}
	}
	return of, nil
}

// requestOf is what the options of a command ask for. From has its arguments.
func requestOf(c *call) (*options.Request, error) {
	of, err := c.command()
	return &of.Request, err
}

// notTyped are the values of a command that was not typed.
type notTyped struct{ *options.Command }

// value is nil if the command has no such option.
func (n notTyped) value(name string) any {
	if o := options.For(n.Name, name); o != nil {
		return o.Value(n.Command)
	}
	return nil
}

func (n notTyped) String(name string) string { s, _ := n.value(name).(string); return s }
func (n notTyped) Bool(name string) bool     { on, _ := n.value(name).(bool); return on }
func (n notTyped) Int(name string) int       { return int(n.Int64(name)) }
func (n notTyped) Int64(name string) int64 {
	switch v := n.value(name).(type) {
	case int:
		return int64(v)
	case int64:
		return v
	}
	return 0
}
func (n notTyped) Float64(name string) float64 { f, _ := n.value(name).(float64); return f }
func (n notTyped) Duration(name string) time.Duration {
	d, _ := n.value(name).(time.Duration)
	return d
}
func (n notTyped) Args() cli.Args { return arguments(n.From) }
func (n notTyped) NArg() int      { return len(n.From) }

// arguments are those of a command that was not typed.
type arguments []string

func (a arguments) Get(n int) string {
	if n < 0 || n >= len(a) {
		return ""
	}
	return a[n]
}
func (a arguments) First() string   { return a.Get(0) }
func (a arguments) Tail() []string  { return a[min(1, len(a)):] }
func (a arguments) Len() int        { return len(a) }
func (a arguments) Present() bool   { return len(a) > 0 }
func (a arguments) Slice() []string { return slices.Clone(a) }

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

// commandOf is the command of a run, by what it keeps of it: its request, or the arguments that earlier versions have kept.
func commandOf(request json.RawMessage, arguments []string) (*options.Command, error) {
	if len(request) > 0 {
		of, err := options.ReadCommand(request)
		if err != nil {
			return nil, usagef("%v; it was kept by another version of tsimport", err)
		}
		return of, nil
	}
	var of *options.Command
	in := new(invocation)
	app := &cli.App{Name: "tsimport", DisableSliceFlagSeparator: true, ExitErrHandler: func(*cli.Context, error) {}, Writer: io.Discard, ErrWriter: io.Discard}
	for name, flags := range commandsOfJobs() {
		app.Commands = append(app.Commands, &cli.Command{Name: name, Flags: append(flags, flagNamed("metrics-file")), Action: in.act(func(c *call) (err error) {
			of, err = c.command()
			return err
		})})
	}
	setUsageErrors(app)
	args, err := withoutGone(arguments)
	if err == nil {
		args, err = flagsFirst(app, append([]string{app.Name}, args...))
	}
	if err == nil {
		err = app.Run(args)
	}
	if err == nil && of == nil {
		err = errors.New("its summary does not say how it was started; give its files and flags yourself")
	}
	return of, err
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
		variable := variableOf(o.Name)
		text := os.Getenv(variable)
		if variable == "" || text == "" || !o.Shown(of.Name) || of.IsSet(o.Name) {
			continue
		}
		values := []string{text}
		if o.Kind.Repeated() {
			values = strings.Split(text, "\n")
		}
		if err := o.Set(of, values); err != nil {
			return usagef("%s: %v", variable, err)
		}
	}
	for _, g := range goneFlags {
		if g.of == "" && g.rows && os.Getenv(variableOf(g.name)) != "" {
			return usagef("%s: --%s is gone: %s", variableOf(g.name), g.name, g.instead)
		}
	}
	return nil
}

// ownCommand is the command without what the environment says.
func (c *call) ownCommand() (*options.Command, error) {
	if c.own == nil {
		return options.ReadCommand(c.in.request)
	}
	of, err := c.command()
	of.Clear(c.in.ofEnv...)
	return of, err
}

// kept is the command as it may be kept to be done again, nil if it holds a secret.
func (c *call) kept() json.RawMessage {
	of, err := c.ownCommand()
	if err != nil || c.in.kept() == nil {
		return nil
	}
	return written(of)
}

func written(of *options.Command) json.RawMessage {
	text, err := json.Marshal(of)
	if err != nil {
		panic(fmt.Sprintf("keep the request: %v", err)) // it has no values that could not be written
	}
	return text
}
