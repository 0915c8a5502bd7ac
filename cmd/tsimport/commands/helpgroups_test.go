package commands

import (
	"io"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestEveryCommandAndEveryFlagOfALoadHasAGroup(t *testing.T) {
	app := newApp(io.Discard, &invocation{show: newDisplay(io.Discard)})
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
	seen := map[string]string{}
	for group, names := range commandGroups {
		for _, name := range strings.Fields(names) {
			if seen[name] != "" || findCommand(app.Commands, name) == nil {
				t.Errorf("%s, of %q, is also in %q or no command", name, group, seen[name])
			}
			seen[name] = group
		}
	}
}
