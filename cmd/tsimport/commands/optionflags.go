package commands

import (
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/pipeline/options"
)

func flagsOf(c options.Commands) (flags []cli.Flag) {
	for _, o := range options.Of(c) {
		flags = append(flags, flagOf(o, o.Hidden || o.Unused&c != 0))
	}
	return flags
}

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
		n, _ := strconv.Atoi(o.Default) // a test parses all defaults
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
	return &cli.StringFlag{Name: o.Name, Aliases: aliases, Usage: o.Usage, Value: o.Default, DefaultText: o.DefaultText,
		Hidden: hidden}
}

// libraryFlagText returns the library's help line of a flag.
var libraryFlagText = cli.FlagStringer

func init() { cli.FlagStringer = flagText }

// flagText returns the help line of a flag without the default that the library adds, if that is false or the usage
// gives a default.
func flagText(f cli.Flag) string {
	text := libraryFlagText(f)
	at := strings.LastIndex(text, " (default: ")
	if at < 0 {
		return text
	}
	before, after := text[:at], text[at:]
	end := strings.Index(after, ")") + 1
	if strings.Contains(before, "(default") || strings.HasPrefix(after, " (default: false)") {
		return before + after[end:]
	}
	return text
}

// commandGroups maps commands to their groups in --help, which the library sorts by name.
var commandGroups = map[string]string{
	"Load":                 "load copy sync run work status manifests resume runs files config convert",
	"Look and compare":     "verify check inspect explain advise export table tables age",
	"Simulate and measure": "serve gen bench",
	"Help and shells":      "errors completion man",
}

func group(commands []*cli.Command) {
	for category, names := range commandGroups {
		for _, name := range strings.Fields(names) {
			findCommand(commands, name).Category = category
		}
	}
	groupFlags(commands)
}

func groupFlags(commands []*cli.Command) {
	for _, c := range commands {
		for _, f := range c.Flags {
			if o := options.Find(f.Names()[0]); o != nil {
				setCategory(f, o.Group)
			}
		}
		groupFlags(c.Subcommands)
	}
}
