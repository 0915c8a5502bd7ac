package commands

import (
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/pipeline/options"
)

// flagsOf are the flags of the options that a command has.
func flagsOf(c options.Commands) (flags []cli.Flag) {
	for _, o := range options.Of(c) {
		flags = append(flags, flagOf(o, o.Hidden || o.Unused&c != 0))
	}
	return flags
}

// flagNamed is the flag of an option.
func flagNamed(name string) cli.Flag { return flagOf(options.Find(name), options.Find(name).Hidden) }

func flagOf(o *options.Option, hidden bool) cli.Flag {
	var aliases []string
	if o.Alias != "" {
		aliases = []string{o.Alias}
	}
	switch o.Kind {
	case options.Switch:
		return &cli.BoolFlag{Name: o.Name, Aliases: aliases, Usage: o.Usage, Hidden: hidden}
	case options.Whole:
		n, _ := strconv.Atoi(o.Default) // a test reads all defaults
		return &cli.IntFlag{Name: o.Name, Usage: o.Usage, Value: n, Hidden: hidden}
	case options.Number:
		return &cli.Float64Flag{Name: o.Name, Usage: o.Usage, Hidden: hidden}
	case options.Duration:
		d, _ := time.ParseDuration(o.Default)
		return &cli.DurationFlag{Name: o.Name, Usage: o.Usage, Value: d, Hidden: hidden}
	}
	if o.Kind.Repeated() {
		return &cli.GenericFlag{Name: o.Name, Usage: o.Usage, Value: new(texts), Hidden: hidden}
	}
	return &cli.StringFlag{Name: o.Name, Aliases: aliases, Usage: o.Usage, Value: o.Default, DefaultText: o.DefaultText, Hidden: hidden}
}
