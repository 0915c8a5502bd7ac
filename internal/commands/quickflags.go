package commands

import (
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// flagOfLibrary is what every flag of the library is, but for its group in the help.
type flagOfLibrary interface {
	cli.DocGenerationFlag
	cli.VisibleFlag
	cli.RequiredFlag
	cli.ActionableFlag
}

// quickFlag is a flag that knows its names. The library finds a flag by the names of all, and makes those by a regular expression each time:
// a quarter of the time that a load of one row takes. It has no group, since the library makes the help of each flag to sort those of a group.
type quickFlag struct {
	flagOfLibrary
	names []string // nil until it is asked for them: those of most commands nobody asks for
}

func (f *quickFlag) Names() []string {
	if f.names == nil {
		f.names = f.flagOfLibrary.Names()
	}
	return f.names
}

// bare is the library's flag, whose type says what its value is.
func bare(f cli.Flag) cli.Flag {
	if quick, ok := f.(*quickFlag); ok {
		return quick.flagOfLibrary
	}
	return f
}

func quicken(commands []*cli.Command) {
	for _, c := range commands {
		for i, f := range c.Flags {
			if of, ok := bare(f).(flagOfLibrary); ok { // some commands have their flags in common
				c.Flags[i] = &quickFlag{flagOfLibrary: of}
			}
		}
		quicken(c.Subcommands)
	}
}

// quickApp is the command for running it, without the groups of its help.
func quickApp(stdout io.Writer, show *display, interrupts *interrupts, in *invocation) *cli.App {
	app := ungrouped(stdout, show, interrupts, in)
	quicken(app.Commands)
	return app
}

// mayShowHelp reports whether arguments may ask for what has to be in groups. That of a file of such a name takes longer and is the same.
func mayShowHelp(args []string) bool {
	return len(args) < 2 || slices.ContainsFunc(args[1:], func(a string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "=")
		return slices.Contains([]string{"help", "h", "man", "completion"}, name)
	}) || asksForCompletion(args)
}
