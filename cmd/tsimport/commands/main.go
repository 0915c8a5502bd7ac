package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
)

// Run runs the command and returns the exit code.
func Run(args []string, stdout, stderr io.Writer) int {
	// A closed stderr must not end a load, and a closed stdout ends a command with exitcode.Pipe.
	signal.Ignore(syscall.SIGPIPE)
	crashLoudly()
	show := newDisplay(stderr)
	interrupts := newInterrupts(show)
	defer interrupts.close()
	out := &checkedOutput{Writer: stdout}
	in := &invocation{args: args[min(1, len(args)):], interrupts: interrupts, show: show}
	app := newApp(out, in)
	if asksForCompletion(args) {
		if completeBasic(app, args, out) || completeValue(app, args, out) {
			return exitCode(show, out.end(nil), false)
		}
		err := out.end(app.RunContext(interrupts.hard, args))
		return exitCode(show, err, out.silent(show))
	}
	if shown, err := showHelp(app, args, out); shown {
		return exitCode(show, out.end(err), out.silent(show))
	}
	args, err := flagsFirst(app, args)
	if err == nil {
		err = checkGiven(app, args)
	}
	if formatErr := formatLog(show, args); err == nil {
		err = formatErr
	}
	if err == nil {
		onlyNamed(app, args)
		err = app.RunContext(interrupts.hard, args)
	}
	err = interrupts.codeOf(out.end(err))
	return exitCode(show, err, out.silent(show))
}

// onlyNamed drops the flags of other commands, to save the time that the library would take to process them.
func onlyNamed(app *cli.App, args []string) {
	if len(args) < 2 || app.Command(args[1]) == nil {
		return
	}
	for _, c := range app.Commands {
		if !c.HasName(args[1]) {
			c.Flags, c.Subcommands = nil, nil
		}
	}
}

// crashLoudly makes a crash end with SIGABRT (134 in shells), because the runtime's 2 means bad usage. No core is left.
func crashLoudly() {
	withoutCore()
	debug.SetTraceback("crash")
}

// exitError carries an exit code, and an error to show, or nil.
type exitError struct {
	code   int
	err    error
	fields []slog.Attr // fields for the log
}

// endsWith ends a command with a code. said is its progress and first reason, for the final line.
func endsWith(c *call, code int, err error, said string) error {
	endingOf(c).said = said
	if stopped := context.Cause(c.interrupts.drain); err == nil && stopped != nil && exitcode.Of(stopped) == code {
		err = stopped
	}
	if c.in.ending == nil && err == nil { // nothing reports said
		err = errors.New(said)
	}
	return &exitError{code: code, err: err}
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func (e *exitError) Exit() int { return e.code }

// exitCode shows the error in one line and returns its exit code. A nonzero code always has a line.
func exitCode(show *display, err error, silent bool) int {
	code := exitcode.Of(err)
	if code == exitcode.Pipe {
		return code
	}
	fields := []slog.Attr{slog.Int("exit_code", code)}
	if exit := new(exitError); errors.As(err, &exit) {
		err = exit.err
		if exit.fields != nil {
			fields = exit.fields
		}
	}
	if err == nil && code != exitcode.OK && silent {
		err = fmt.Errorf("ended with exit code %d; see tsimport errors %d", code, code)
	}
	if err == nil {
		return code
	}
	text := client.OneLine(err.Error())
	if show.log != nil {
		show.event(slog.LevelError, eventError, text, fields...)
	} else {
		show.say.Line("%s", text)
	}
	return code
}

func init() {
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Usage: "show the version"} // without -v, which is too easily typed
}

func newApp(stdout io.Writer, in *invocation) *cli.App {
	app := &cli.App{
		Name:    "tsimport",
		Version: versionText(debug.ReadBuildInfo()),
		Usage:   "load files into Alibaba Cloud Tablestore at full write capacity, without losing a row",
		Description: "Without an endpoint (--endpoint, --profile or TABLESTORE_ENDPOINT), every command uses an\n" +
			"embedded store in ./tsimport-store, which the first load creates.\n" +
			"Exit codes: 0 done, 1 failed or --timeout: try again, 2 bad usage or configuration,\n" +
			"3 finished with rejected rows or files set aside, 4 stopped by the error limit, 5 refused\n" +
			"permanently (access key, permission, table gone, quota), 6 verify found differences or check\n" +
			"colliding keys, 7 no input, 129/130/143 stopped by a signal, 141 the output was closed.",
		EnableBashCompletion:      true,
		Writer:                    stdout,
		ErrWriter:                 in.show,
		DisableSliceFlagSeparator: true, // a null text or a column name may contain a comma
		ExitErrHandler:            func(*cli.Context, error) {},
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("unknown command %q; see tsimport --help%s", c.Args().First(),
					suggest.Hint(c.Args().First(), commandNames(c.App.Commands)))
			}
			return cli.ShowAppHelp(c)
		},
		Commands: []*cli.Command{
			loadCommand(in),
			copyCommand(in),
			runCommand(in),
			workCommand(in),
			statusCommand(in),
			manifestsCommand(in),
			resumeCommand(in),
			runsCommand(in),
			configCommand(in),
			convertCommand(in),
			filesCommand(in),
			verifyCommand(in),
			syncCommand(in),
			checkCommand(in),
			inspectCommand(in),
			tablesCommand(in),
			explainCommand(in),
			adviseCommand(in),
			exportCommand(in),
			tableCommand(in),
			serveCommand(in),
			genCommand(in),
			benchCommand(in),
			ageCommand(in),
			errorsCommand(in),
			completionCommand(in),
			manCommand(in),
		},
	}
	setUsageErrors(app)
	group(app.Commands)
	return app
}

// setUsageErrors makes every command report a wrong flag in one line, without its whole help.
func setUsageErrors(app *cli.App) {
	onError := func(name string, flags []cli.Flag) cli.OnUsageErrorFunc {
		return func(_ *cli.Context, err error, _ bool) error {
			return wrongFlag(err, name, flags)
		}
	}
	app.OnUsageError = onError(app.Name, app.Flags)
	var walk func(string, []*cli.Command)
	walk = func(parent string, commands []*cli.Command) {
		for _, c := range commands {
			name := parent + " " + c.Name
			c.OnUsageError = onError(name, c.Flags)
			c.HideHelpCommand = len(c.Subcommands) == 0 // a file may be called help
			if len(c.Subcommands) > 0 && c.Action == nil {
				c.Action = func(c *cli.Context) error {
					if c.Args().Present() {
						return usagef("unknown command %q; see tsimport %s --help%s", c.Args().First(), c.Command.Name,
							suggest.Hint(c.Args().First(), commandNames(c.Command.Subcommands)))
					}
					return usagef("a command is missing; see tsimport %s --help", c.Command.Name)
				}
			}
			walk(name, c.Subcommands)
		}
	}
	walk(app.Name, app.Commands)
}

func usagef(format string, a ...any) error {
	return &plan.UsageError{Message: fmt.Sprintf(format, a...)}
}

// interrupts turns signals into contexts: the first one ends drain, and hard too unless the command has called drains;
// the second one ends hard.
type interrupts struct {
	drain, hard      context.Context
	stopGently, stop context.CancelCauseFunc
	signals          chan os.Signal
	gentle           chan bool // holds a value if the command stops gracefully when drain ends
}

func newInterrupts(show *display) *interrupts {
	hard, stop := context.WithCancelCause(context.Background())
	drain, stopGently := context.WithCancelCause(hard)
	in := &interrupts{drain: drain, hard: hard, stopGently: stopGently, stop: stop, signals: make(chan os.Signal, 2),
		gentle: make(chan bool, 1)}
	signal.Notify(in.signals, syscall.SIGTERM)
	for _, s := range []os.Signal{syscall.SIGHUP, os.Interrupt} {
		if !signal.Ignored(s) { // nohup ignores the first, shells the second for background jobs
			signal.Notify(in.signals, s)
		}
	}
	go func() {
		for s := range in.signals {
			cause := &pipeline.Interrupted{Signal: s.String(), ExitCode: exitcode.Interrupted}
			switch s {
			case syscall.SIGTERM:
				cause.ExitCode = exitcode.Terminated
			case syscall.SIGHUP:
				if drain.Err() != nil {
					continue // a terminal hanging up sends several
				}
				cause.ExitCode = exitcode.Hangup
			}
			if hard.Err() != nil {
				show.say.Line("stopped at once by another signal (%v); to resume, give the same command again", s)
				os.Exit(cause.ExitCode) // the command has ignored its context
			}
			first := drain.Err() == nil
			stopGently(cause)
			if first && len(in.gentle) > 0 {
				if show.log == nil {
					_ = show.write("\n") // ends the terminal's line with ^C
				}
				show.say.Line("stopping: finishing requests in flight; interrupt again to stop now")
				continue
			}
			stop(cause)
		}
	}()
	return in
}

// codeOf gives the error of an interrupted command the signal's exit code. Abandoned requests have errors of their own.
func (in *interrupts) codeOf(err error) error {
	stopped := new(pipeline.Interrupted)
	if code := exitcode.Of(err); code != exitcode.Failed && code != exitcode.Usage ||
		!errors.As(context.Cause(in.drain), &stopped) {
		return err
	}
	if errors.Is(err, context.Canceled) && !errors.As(err, new(*pipeline.Interrupted)) {
		err = stopped // it says why the command stopped
	}
	if exitcode.Of(err) == stopped.ExitCode {
		return err
	}
	return &exitError{code: stopped.ExitCode, err: err}
}

// limit stops the command after a duration, gracefully if possible; 0 means never. It can be resumed as after a signal.
func (in *interrupts) limit(d time.Duration) {
	if d == 0 {
		return
	}
	cause := &pipeline.Interrupted{Signal: fmt.Sprintf("--timeout %v", d), ExitCode: exitcode.Failed}
	time.AfterFunc(d, func() {
		in.stopGently(cause)
		if len(in.gentle) == 0 {
			in.stop(cause)
		}
	})
}

// drains declares that the command stops gracefully when drain ends.
func (in *interrupts) drains() {
	select {
	case in.gentle <- true:
	default: // already declared
	}
}

// ofLoad returns the interrupts of one of several loads. in ends all of them. stop releases them.
func (in *interrupts) ofLoad() (of *interrupts, stop func()) {
	hard, cancel := context.WithCancelCause(in.hard)
	drain, stopGently := context.WithCancelCause(in.drain)
	of = &interrupts{drain: drain, hard: hard, stopGently: stopGently, stop: cancel, gentle: make(chan bool, 1)}
	unhook := context.AfterFunc(in.drain, func() {
		if len(of.gentle) == 0 { // nothing is in flight
			cancel(context.Cause(in.drain))
		}
	})
	return of, func() { unhook(); stopGently(nil); cancel(nil) }
}

func (in *interrupts) close() {
	signal.Stop(in.signals)
	close(in.signals)
}
