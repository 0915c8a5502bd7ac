package commands

import (
	"strings"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/pipeline/options"
)

// commandGroups are the groups of commands in --help. The library sorts them by name.
var commandGroups = map[string]string{
	"Load":                 "load copy sync run work status manifests resume runs files config convert",
	"Look and compare":     "verify check inspect explain advise export table tables age",
	"Simulate and measure": "serve gen bench",
	"Help and shells":      "errors completion man",
}

// manyFlags is how many flags a command has whose help is in groups.
const manyFlags = 20

// group puts commands and flags into their groups.
func group(commands []*cli.Command) {
	for category, names := range commandGroups {
		for _, name := range strings.Fields(names) {
			findCommand(commands, name).Category = category
		}
	}
	for _, c := range commands {
		if len(c.Flags) < manyFlags {
			continue
		}
		for _, f := range c.Flags {
			if o := options.Find(f.Names()[0]); o != nil {
				setCategory(f, o.Group)
			}
		}
	}
}
