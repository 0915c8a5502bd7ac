package commands

import (
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// notFromEnvironment are flags that destroy something or change what a command means: they must be typed.
var notFromEnvironment = []string{
	"delete", "mode", "create", "fresh", "drop-expired", "apply", "yes", "force", "accept-changed-input", "retry-rejects", "reload-changed", "schema",
	"older-than", "help", "version",
}

// olderNames are the variables of flags that had one before every flag had.
var olderNames = map[string]string{"endpoint": endpointEnv, "instance": instanceEnv}

// variableOf is the variable of the environment of a flag, "" if it has none.
func variableOf(flag string) string {
	if slices.Contains(notFromEnvironment, flag) {
		return ""
	}
	return "TSIMPORT_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment reports whether a variable says what a flag is.
func fromEnvironment(flag string) (value, variable string, ok bool) {
	for _, variable := range []string{variableOf(flag), olderNames[flag]} {
		if variable == "" {
			continue
		}
		if value := os.Getenv(variable); value != "" {
			return value, variable, true
		}
	}
	return "", "", false
}

// withEnvironment adds the flags that variables of the environment give and the arguments do not, and names them. Args are as flagsFirst
// has sorted them.
func withEnvironment(app *cli.App, args []string) (all, added []string) {
	rest := args[min(1, len(args)):]
	commands, flags, acts := app.Commands, app.Flags, false
	for len(rest) > 0 {
		c := findCommand(commands, rest[0])
		if c == nil {
			break
		}
		commands, flags, rest, acts = c.Subcommands, c.Flags, rest[1:], c.Action != nil
	}
	if !acts {
		return args, nil // it only has commands
	}
	given, inputs := rest, []string(nil)
	if i := slices.Index(rest, "--"); i >= 0 {
		given, inputs = rest[:i], rest[i+1:]
	}
	names := givenNames(flags, given)
	out := slices.Clone(args[:len(args)-len(rest)])
	for _, f := range flags {
		name := f.Names()[0]
		variable := variableOf(name)
		if v, ok := f.(cli.VisibleFlag); names[name] || variable == "" || ok && !v.IsVisible() {
			continue
		}
		value := os.Getenv(variable)
		if value == "" {
			continue
		}
		values := []string{value}
		if repeatable(f) {
			values = strings.Split(value, "\n")
		}
		added = append(added, name)
		for _, v := range values {
			out = append(out, "--"+name+"="+v)
		}
	}
	if valueFlags(flags)["format"] { // it reads inputs
		for _, g := range goneFlags {
			if value := os.Getenv(variableOf(g.name)); g.of == "" && g.rows && value != "" {
				out = append(out, "--"+g.name+"="+value) // and is answered
			}
		}
	}
	out = append(out, given...)
	if len(given) < len(rest) {
		out = append(append(out, "--"), inputs...)
	}
	return out, added
}

// givenNames are the flags that sorted arguments have, by their first names.
func givenNames(flags []cli.Flag, args []string) map[string]bool {
	first := map[string]string{}
	for _, f := range flags {
		for _, name := range f.Names() {
			first[name] = f.Names()[0]
		}
	}
	takesValue := valueFlags(flags)
	given := map[string]bool{}
	for i := 0; i < len(args); i++ {
		name, _, inOne := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		given[first[name]] = true
		if takesValue[name] && !inOne {
			i++
		}
	}
	return given
}
