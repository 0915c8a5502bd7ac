package commands

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// commandGroups are the groups of commands in --help. The library sorts them by name.
var commandGroups = map[string]string{
	"Load":                 "load copy sync run work status manifests resume runs files config convert",
	"Look and compare":     "verify check inspect explain advise export table tables age",
	"Simulate and measure": "serve gen bench",
	"Help and shells":      "errors completion man",
}

// flagGroups are the groups of flags in the --help of a command that has many. Flags of no group come first.
var flagGroups = map[string]string{
	"Table and service": "endpoint instance profile store request-timeout table max-tables age-policy create ttl max-versions rename-index sync",
	"Files": "format dialect delimiter quote escape comment record-end no-header skip-lines names encoding ragged trim null quoted-null empty quoted-empty " +
		"flatten source-table path-columns limit",
	"Databases":                   "query require-snapshot",
	"Keys, columns and types":     "pk set columns exclude rename type types on-null missing version-column",
	"Which rows, and how":         "mode condition when drop-expired order",
	"Auto-increment and counters": "returned-keys mark-column look-first at-least-once",
	"Rates, requests and memory": "concurrency batch-bytes max-wcu max-rows-per-second max-bytes-per-second compress memory " +
		"max-rcu retry-for settle",
	"Loads that come again": "only-new reload-changed fail-if-nothing-new files-by settle-files done-marker state fresh accept-changed-input retry-rejects run-dir",
	"Many machines":         "job-dir workers",
	"Results":               "verify dry-run max-errors json quiet status timeout metrics-file",
}

// manyFlags is how many flags a command has whose help is in groups.
const manyFlags = 20

// group puts commands and flags into their groups.
func group(commands []*cli.Command) {
	of := groupOf(commandGroups)
	ofFlag := groupOf(flagGroups)
	for _, c := range commands {
		c.Category = of[c.Name]
		if len(c.Flags) < manyFlags {
			continue
		}
		for _, f := range c.Flags {
			if in, ok := f.(cli.CategorizableFlag); !ok || in.GetCategory() == "" {
				setCategory(f, ofFlag[f.Names()[0]])
			}
		}
	}
}

// groupOf has the group of each name.
func groupOf(groups map[string]string) map[string]string {
	of := map[string]string{}
	for group, names := range groups {
		for _, name := range strings.Fields(names) {
			of[name] = group
		}
	}
	return of
}
