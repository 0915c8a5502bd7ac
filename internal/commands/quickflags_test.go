package commands

import (
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestQuickFlagsAreThoseOfTheHelp(t *testing.T) {
	looked := 0
	var look func(quick, whole []*cli.Command)
	look = func(quick, whole []*cli.Command) {
		for i, c := range whole {
			if len(quick[i].Flags) != len(c.Flags) {
				t.Fatalf("%s has %d flags to run it and %d in its help", c.Name, len(quick[i].Flags), len(c.Flags))
			}
			for j, f := range c.Flags {
				looked++
				q := quick[i].Flags[j]
				if _, is := q.(*quickFlag); !is || !slices.Equal(q.Names(), f.Names()) || reflect.TypeOf(bare(q)) != reflect.TypeOf(f) ||
					q.(cli.VisibleFlag).IsVisible() != f.(cli.VisibleFlag).IsVisible() {
					t.Errorf("%s --%s is %T %v when it is run, and %T %v in the help", c.Name, f.Names()[0], bare(q), q.Names(), f, f.Names())
				}
			}
			look(quick[i].Subcommands, c.Subcommands)
		}
	}
	show := newDisplay(io.Discard)
	look(quickApp(io.Discard, show, nil, nil).Commands, newApp(io.Discard, show, nil, nil).Commands)
	if looked < 500 {
		t.Errorf("looked at %d flags only", looked)
	}
	for args, may := range map[string]bool{"": true, "load": false, "load -help": true, "load x.csv -h": true, "help load": true, "load --help=true": true, "man": true, "completion fish": true} {
		if got := mayShowHelp(append([]string{"tsimport"}, strings.Fields(args)...)); got != may {
			t.Errorf("tsimport %s may show help: %v", args, got)
		}
	}
}
