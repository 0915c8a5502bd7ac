package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"tsimport/internal/suggest"
)

// typos are words one edit away from a word: a letter left out, swapped with the next, changed or put in.
func typos(word string) (all []string) {
	for i := range len(word) {
		all = append(all, word[:i]+word[i+1:])
		if i+1 < len(word) && word[i] != word[i+1] {
			all = append(all, word[:i]+word[i+1:i+2]+word[i:i+1]+word[i+2:])
		}
		for _, l := range []string{"e", "-"} {
			all = append(all, word[:i]+l+word[i+1:], word[:i]+l+word[i:])
		}
	}
	return append(all, word+"s")
}

func TestTyposOfCommandsAndFlagsAreUnderstood(t *testing.T) {
	app := newApp(io.Discard, newDisplay(io.Discard), &interrupts{}, &invocation{})
	checked, seen := 0, map[string]bool{}
	var walk func(string, []*cli.Command)
	walk = func(parent string, commands []*cli.Command) {
		names := commandNames(commands)
		for _, name := range names {
			for _, typo := range typos(name) {
				if slices.Contains(names, typo) || typo == "" {
					continue
				}
				if checked++; !slices.Contains(suggest.Nearest(typo, names), name) {
					t.Errorf("%s %s: %q, want %s", parent, typo, suggest.Hint(typo, names), name)
				}
			}
		}
		for _, c := range commands {
			walk(parent+" "+c.Name, c.Subcommands)
			var flags []string
			for _, f := range c.Flags {
				if v, ok := f.(cli.VisibleFlag); !ok || v.IsVisible() {
					flags = append(flags, f.Names()...)
				}
			}
			for _, name := range flags {
				if len(name) == 1 || seen[name] {
					continue
				}
				seen[name] = true
				for _, typo := range typos(name) {
					if slices.Contains(flags, typo) || typo == "" || typo[0] == '-' || typo == "help" {
						continue
					}
					hint := flagHint(errors.New("flag provided but not defined: -"+typo), c.Flags)
					if checked++; !strings.Contains(hint+" ", " --"+name+"?") && !strings.Contains(hint, " --"+name+" or") {
						t.Errorf("%s %s --%s: %q, want --%s", parent, c.Name, typo, hint, name)
					}
				}
			}
		}
	}
	walk("tsimport", app.Commands)
	if checked < 5_000 {
		t.Errorf("only %d typos", checked)
	}
}

func TestShellsAreToldWhatMayFollow(t *testing.T) {
	defer func(args []string) { os.Args = args }(os.Args)
	ask := func(args ...string) string {
		var out strings.Builder
		os.Args = append([]string{"tsimport"}, args...) // the library looks there
		if code := run(os.Args, &out, io.Discard); code != 0 {
			t.Errorf("%q: exit code %d", args, code)
		}
		return out.String()
	}
	for args, want := range map[string]string{
		generateCompletion: "load\n", "load --max-e " + generateCompletion: "--max-errors\n", "table " + generateCompletion: "describe\n",
		"completion bash": "complete ", "completion zsh": "compdef", "completion fish": "complete -c tsimport", "completion powershell": "Register-ArgumentCompleter",
		"man": ".TH tsimport 1",
	} {
		if got := ask(strings.Fields(args)...); !strings.Contains(got, want) {
			t.Errorf("%s: %.200q, want %q", args, got, want)
		}
	}
}
