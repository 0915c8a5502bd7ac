package commands

import (
	"io"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestEveryCommandAndEveryFlagOfALoadHasAGroup(t *testing.T) {
	app := newApp(io.Discard, newDisplay(io.Discard), nil, nil)
	for _, c := range app.Commands {
		if c.Category == "" && c.Name != "help" {
			t.Errorf("command %s has no group", c.Name)
		}
	}
	for _, f := range findCommand(app.Commands, "load").Flags {
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
			continue
		}
		if in, ok := f.(cli.CategorizableFlag); !ok || in.GetCategory() == "" {
			t.Errorf("flag --%s of load has no group", f.Names()[0])
		}
	}
	for _, groups := range []map[string]string{commandGroups} {
		seen := map[string]string{}
		for group, names := range groups {
			for _, name := range strings.Fields(names) {
				if seen[name] != "" {
					t.Errorf("%s is in %q and %q", name, seen[name], group)
				}
				seen[name] = group
			}
		}
	}
	known := map[string]bool{}
	for _, c := range app.Commands {
		known[c.Name] = true
	}
	for name := range groupOf(commandGroups) {
		if !known[name] {
			t.Errorf("there is no command %s", name)
		}
	}
}
