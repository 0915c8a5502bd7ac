package commands

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/pipeline/options"
)

// flagsFirst moves flags before file names, because the flag package stops at those. Arguments after -- do not move.
func flagsFirst(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	named, flags, rest := namedCommand(app, args)
	out := args[: len(args)-len(rest) : len(args)-len(rest)]
	if named == nil || named.Action == nil {
		return args, nil // the command only has subcommands
	}
	command := out[:len(out):len(out)]
	takesValue := valueFlags(flags)
	var files []string
	for len(rest) > 0 {
		arg := rest[0]
		rest = rest[1:]
		if arg == "--" {
			files = append(files, rest...)
			break
		}
		if arg == "--help" || arg == "-h" {
			return append(command, arg), nil // the library would take file names for commands that need help
		}
		if arg == "-" || !strings.HasPrefix(arg, "-") {
			files = append(files, arg)
			continue
		}
		out = append(out, arg)
		name := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
		if takesValue[name] { // a name with =value is not a flag's name
			if len(rest) == 0 {
				return nil, usagef("flag needs a value: %s", arg)
			}
			out = append(out, rest[0])
			rest = rest[1:]
		}
	}
	if len(files) == 0 {
		return out, nil
	}
	return append(append(out, "--"), files...), nil
}

// namedCommand returns the command that the arguments name (nil if none), its flags, and the arguments after its name.
func namedCommand(app *cli.App, args []string) (named *cli.Command, flags []cli.Flag, rest []string) {
	commands, flags, rest := app.Commands, app.Flags, args[min(1, len(args)):]
	for len(rest) > 0 {
		c := findCommand(commands, rest[0])
		if c == nil {
			break
		}
		named, commands, flags, rest = c, c.Subcommands, c.Flags, rest[1:]
	}
	return named, flags, rest
}

// valueFlags reports, by name, whether each flag takes a value.
func valueFlags(flags []cli.Flag) map[string]bool {
	takesValue := map[string]bool{}
	for _, f := range flags {
		_, isBool := f.(*cli.BoolFlag)
		for _, name := range f.Names() {
			takesValue[name] = !isBool
		}
	}
	return takesValue
}

// wrongValue matches the flag package's message for an invalid value, which shows a single dash and no valid value.
var wrongValue = regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-([^ :]+): (.*)$`)

// notDefined matches the flag package's message for an unknown flag.
var notDefined = regexp.MustCompile(`^flag provided but not defined: -(.+)$`)

// flagHint suggests flags for a mistyped one.
func flagHint(err error, flags []cli.Flag) string {
	m := notDefined.FindStringSubmatch(err.Error())
	if m == nil {
		return ""
	}
	var names []string
	for _, f := range append(flags[:len(flags):len(flags)], cli.HelpFlag) {
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
			continue
		}
		for _, n := range f.Names() {
			if len(n) > 1 { // any letter is one edit from another
				names = append(names, n)
			}
		}
	}
	near := suggest.Nearest(strings.TrimPrefix(m[1], "-"), names)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean --" + strings.Join(near, " or --") + "?"
}

func commandNames(commands []*cli.Command) (names []string) {
	for _, c := range commands {
		if !c.Hidden {
			names = append(names, c.Names()...)
		}
	}
	return names
}

func flagErrorText(err error, flags []cli.Flag) string {
	m := wrongValue.FindStringSubmatch(err.Error())
	if m == nil {
		return err.Error()
	}
	dash := func(name string) string { return strings.Repeat("-", min(len(name), 2)) + name }
	value, name, why := m[1], m[2], m[3]
	for _, f := range flags {
		if !slices.Contains(f.Names(), name) {
			continue
		}
		switch f.(type) {
		case *cli.BoolFlag:
			why = "it takes no value"
		case *cli.IntFlag, *cli.Int64Flag, *cli.Uint64Flag:
			why = "want " + options.Whole.Wants()
		case *cli.Float64Flag:
			why = "want " + options.Number.Wants()
		case *cli.DurationFlag:
			why = "want " + options.Duration.Wants()
		}
	}
	return fmt.Sprintf("%s %s: %s", dash(name), value, why)
}

func wrongFlag(err error, command string, flags []cli.Flag) error {
	return usagef("%s; see %s --help%s", flagErrorText(err, flags), command, flagHint(err, flags))
}

// texts holds the unmodified values of a repeatable flag. The library's type trims spaces, which may be a null marker.
type texts []string

func (t *texts) Set(text string) error { *t = append(*t, text); return nil }
func (t *texts) String() string        { return strings.Join(*t, " ") }

func textsFlag(name, usage string) cli.Flag {
	return &cli.GenericFlag{Name: name, Usage: usage, Value: new(texts)}
}

func textsOf(c *cli.Context, name string) []string {
	if t, ok := c.Generic(name).(*texts); ok {
		return *t
	}
	return nil
}

func findCommand(commands []*cli.Command, name string) *cli.Command {
	for _, c := range commands {
		if c.HasName(name) {
			return c
		}
	}
	return nil
}

// valuesOf returns the values of a flag that is set, one per occurrence.
func valuesOf(c *cli.Context, f cli.Flag) []string {
	name := f.Names()[0]
	if repeatable(f) {
		return textsOf(c, name)
	}
	return []string{fmt.Sprint(c.Value(name))}
}
