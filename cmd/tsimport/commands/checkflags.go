package commands

import (
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/reader/input"
)

// checkGiven refuses two mistakes that the flag package ignores: a single-value flag given twice, where the last would
// silently win, and an address for a local path, which would become a folder here. Args must be sorted by flagsFirst.
func checkGiven(app *cli.App, args []string) error {
	_, flags, rest := namedCommand(app, args)
	byName := map[string]cli.Flag{}
	for _, f := range flags {
		for _, name := range f.Names() {
			byName[name] = f
		}
	}
	takesValue := valueFlags(flags)
	given := map[string]string{} // values by the flag's first name
	for i := 0; i < len(rest) && rest[i] != "--"; i++ {
		typed, value, inOne := strings.Cut(rest[i], "=")
		name := strings.TrimPrefix(strings.TrimPrefix(typed, "-"), "-")
		f := byName[name]
		if f == nil {
			return nil // the flag package reports it
		}
		if takesValue[name] && !inOne {
			if i++; i == len(rest) {
				return nil
			}
			value = rest[i]
		}
		if !inOne && !takesValue[name] {
			continue // repeating a switch changes nothing
		}
		first := f.Names()[0]
		if before, twice := given[first]; twice && !repeatable(f) {
			return usagef("%s takes one value but is given twice, with %s and %s; see %s --help", typed, redacted(before),
				redacted(value), strings.Join(append([]string{app.Name}, args[1:len(args)-len(rest)]...), " "))
		}
		given[first] = value
		if err := checkPath(f, typed, value); err != nil {
			return err
		}
	}
	return nil
}

// checkPath refuses an address as the value of a path flag.
func checkPath(f cli.Flag, typed, value string) error {
	if s, ok := f.(*cli.StringFlag); ok && isPath(s.Usage) && isAddress(value) {
		return usagef("%s %s: want a path on this machine, not an address", typed, redacted(value))
	}
	return nil
}

func redacted(value string) string { return suggest.Arg(input.Redact(value)) }

func repeatable(f cli.Flag) bool {
	switch f := f.(type) {
	case *cli.StringSliceFlag:
		return true
	case *cli.GenericFlag:
		_, many := f.Value.(*texts)
		return many
	}
	return false
}

// isPath reports whether an option's help declares its value a path.
func isPath(usage string) bool {
	return slices.ContainsFunc([]string{"`FILE`", "`DIR`", "`FOLDER`"},
		func(word string) bool { return strings.Contains(usage, word) })
}

// addresses matches the beginning of addresses such as oss://bucket/name, but not a drive letter with its colon.
var addresses = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+:/`)

func isAddress(text string) bool { return addresses.MatchString(text) }
