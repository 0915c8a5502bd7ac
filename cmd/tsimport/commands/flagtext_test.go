package commands

import (
	"io"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestNoFlagHasTwoDefaults looks at the line of each flag in --help.
func TestNoFlagHasTwoDefaults(t *testing.T) {
	flags := 0
	var look func(commands []*cli.Command)
	look = func(commands []*cli.Command) {
		for _, c := range commands {
			for _, f := range c.Flags {
				flags++
				text := f.String()
				if strings.Count(text, "(default") > 1 || strings.Contains(text, "(default: false)") {
					t.Errorf("tsimport %s: %s", c.Name, text)
				}
			}
			look(c.Subcommands)
		}
	}
	look(newApp(io.Discard, newDisplay(io.Discard), nil, nil).Commands)
	if flags < 300 {
		t.Errorf("only %d flags were looked at", flags)
	}
}
