package commands

import (
	"errors"
	"flag"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/suggest"
)

// typos are all texts one edit away from a word: a character left out, swapped with the next, changed or put in.
func typos(word string) (all []string) {
	for i := range len(word) + 1 {
		if i < len(word) {
			all = append(all, word[:i]+word[i+1:])
		}
		if i+1 < len(word) {
			all = append(all, word[:i]+word[i+1:i+2]+word[i:i+1]+word[i+2:])
		}
		for _, l := range "abcdefghijklmnopqrstuvwxyz0123456789-" {
			all = append(all, word[:i]+string(l)+word[i:])
			if i < len(word) {
				all = append(all, word[:i]+string(l)+word[i+1:])
			}
		}
	}
	return all
}

// meant has, for each typo of words, those that it is one edit away from.
func meant(words []string) map[string][]string {
	all := map[string][]string{}
	for _, w := range words {
		for _, typo := range typos(w) {
			if typo != "" && !slices.Contains(words, typo) && !slices.Contains(all[typo], w) {
				all[typo] = append(all[typo], w)
			}
		}
	}
	return all
}

var everyTypo = flag.Bool("every-typo", false, "try all typos, which takes minutes, not one in two hundred, and one in ten of those of several words")

// TestEveryTypoOfCommandsAndFlagsIsUnderstood tries every typo of one edit: the word that it was meant to be is named and, if it may have
// been several, all of them are.
func TestEveryTypoOfCommandsAndFlagsIsUnderstood(t *testing.T) {
	app := newApp(io.Discard, &invocation{show: newDisplay(io.Discard), interrupts: &interrupts{}})
	checked, several, seen := 0, 0, map[string]bool{}
	check := func(parent, typo, before string, hintOf func() string, want []string) {
		t.Helper()
		checked++
		if !*everyTypo && checked%200 != 0 && (len(want) == 1 || checked%10 != 0) {
			return
		}
		hint := hintOf()
		if len(want) > 1 {
			several++
		}
		got := strings.Split(strings.TrimSuffix(strings.TrimPrefix(hint, "; did you mean "), "?"), " or ")
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], before)
		}
		slices.Sort(got)
		slices.Sort(want)
		conformance.Same(t, got, want, "%s %s: %q", parent, typo, hint)
	}
	var walk func(string, []*cli.Command)
	walk = func(parent string, commands []*cli.Command) {
		names := commandNames(commands)
		for typo, want := range meant(names) {
			check(parent, typo, "", func() string { return suggest.Hint(typo, names) }, want)
		}
		for _, c := range commands {
			walk(parent+" "+c.Name, c.Subcommands)
			flags := []string{"help"}
			for _, f := range c.Flags {
				if v, ok := f.(cli.VisibleFlag); !ok || v.IsVisible() {
					flags = append(flags, f.Names()...)
				}
			}
			set := strings.Join(flags, " ")
			if seen[set] || len(c.Flags) == 0 {
				continue
			}
			seen[set] = true
			flags = slices.DeleteFunc(flags, func(name string) bool { return len(name) == 1 }) // any other letter is a typo of it
			for typo, want := range meant(flags) {
				if len(typo) == 1 || strings.HasPrefix(typo, "-") || slices.Contains(want, "help") {
					continue
				}
				unknown := errors.New("flag provided but not defined: -" + typo)
				check(parent+" "+c.Name, "--"+typo, "--", func() string { return flagHint(unknown, c.Flags) }, want)
			}
		}
	}
	walk("tsimport", app.Commands)
	if checked < 100_000 || several < 20 {
		t.Errorf("only %d typos, %d of several words", checked, several)
	}
	t.Logf("%d typos, %d of several words", checked, several)
}

func TestShellsAreToldWhatMayFollow(t *testing.T) {
	defer func(args []string) { os.Args = args }(os.Args)
	ask := func(args ...string) string {
		var out strings.Builder
		os.Args = append([]string{"tsimport"}, args...) // the library looks there
		conformance.Equal(t, Run(os.Args, &out, io.Discard), 0, "%q: exit code", args)
		return out.String()
	}
	for args, want := range map[string]string{
		generateCompletion: "load\n", "load --max-e " + generateCompletion: "--max-errors\n", "table " + generateCompletion: "describe\n",
		"load --mode " + generateCompletion: "put\nupdate\n", "export --format " + generateCompletion: "archive\n",
		"completion bash": "complete ", "completion zsh": "compdef", "completion fish": "complete -c tsimport", "completion powershell": "Register-ArgumentCompleter",
		"man": ".TH tsimport 1",
	} {
		conformance.Contains(t, ask(strings.Fields(args)...), want, "%s", args)
	}
	if basic := strings.Fields(ask("load", "--", generateCompletion)); len(basic) > 25 || !slices.Contains(basic, "--pk") || slices.Contains(basic, "--mark-column") {
		t.Errorf("where only dashes are typed, %d options follow: %q", len(basic), basic)
	}
	conformance.Contains(t, ask("load", "--mark", generateCompletion), "--mark-column\n", "options of which letters are typed")
	conformance.Contains(t, ask("serve", "--", generateCompletion), "--listen\n", "the options of a command without such ones")
}
