package main

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// flagsFirst moves flags that stand behind file names to the front: the flag package stops reading flags at the first
// argument that is none. Everything behind -- stays where it is.
func flagsFirst(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	out := args[:1:1]
	rest := args[1:]
	commands, flags := app.Commands, app.Flags
	for len(rest) > 0 {
		c := findCommand(commands, rest[0])
		if c == nil {
			break
		}
		out = append(out, rest[0])
		commands, flags, rest = c.Subcommands, c.Flags, rest[1:]
	}
	if len(commands) > 0 {
		return append(out, rest...), nil // no leaf command: nothing to sort
	}
	command := out[:len(out):len(out)]
	takesValue := map[string]bool{}
	for _, f := range flags {
		_, isBool := f.(*cli.BoolFlag)
		if g, ok := f.(*cli.GenericFlag); ok {
			_, isBool = g.Value.(interface{ IsBoolFlag() bool }) // a value may be missing, so it stands behind =
		}
		for _, name := range f.Names() {
			takesValue[name] = !isBool
		}
	}
	var files []string
	for len(rest) > 0 {
		arg := rest[0]
		rest = rest[1:]
		if arg == "--" {
			files = append(files, rest...)
			break
		}
		if arg == "--help" || arg == "-h" {
			return append(command, arg), nil // with file names beside it, the library would look for help on them
		}
		if arg == "-" || !strings.HasPrefix(arg, "-") {
			files = append(files, arg)
			continue
		}
		out = append(out, arg)
		name := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
		if takesValue[name] { // a name with =value in it is no flag's name
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

// texts is the value of a flag that may be repeated: every text as it was given. The library's own kind trims spaces,
// which may be what a null looks like.
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
