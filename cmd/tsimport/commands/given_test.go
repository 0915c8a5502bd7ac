package commands

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
)

func TestMisusedFlagsAreRefusedInOneLine(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string]string{
		"load a.csv --table q1 --table q2": "--table takes one value but is given twice, with q1 and q2; " +
			"see tsimport load --help",
		"load --table q1 a.csv -t=q2":                       "-t takes one value but is given twice, with q1 and q2",
		"load a.csv --order none --order=last-wins":         "--order takes one value but is given twice",
		"load a.csv --max-errors 5 --max-errors 5":          "--max-errors takes one value but is given twice",
		"load a.csv --quiet=true --quiet=false":             "--quiet takes one value but is given twice",
		"load a.csv --run-dir oss://bucket/x":               "--run-dir oss://bucket/x: want a path on this machine",
		"load a.csv --returned-keys https://u:p@host/k":     "--returned-keys https://xxxxx@host/k: want a path",
		"load a.csv --store file:///tmp/x":                  "--store file:///tmp/x: want a path",
		"load a.csv --age-policy oss://bucket/p.yaml":       "--age-policy oss://bucket/p.yaml: want a path",
		"load --retry-rejects oss://bucket/run":             "--retry-rejects oss://bucket/run: want a path",
		"export --table t -o oss://bucket/x.csv":            "-o oss://bucket/x.csv: want a path",
		"export --table t -o oss:/bucket/x.csv":             "-o oss:/bucket/x.csv: want a path",
		"gen student-cards --rows 1 --output oss://b/c.csv": "--output oss://b/c.csv: want a path",
		"bench write --samples oss://b/s":                   "--samples oss://b/s: want a path",
		"serve --store oss://b/s":                           "--store oss://b/s: want a path",
		"table create t --pk a:string --ttl 86400 --ttl -1": "--ttl takes one value but is given twice, with 86400 and -1",
		"age --table t --policy a --policy b":               "--policy takes one value but is given twice",
		// A flag is named as it was typed.
		"load a --max-wcu 1k":      `--max-wcu "1k": want a number in digits, such as 1000 or 0.5; see tsimport load --help`,
		"load a --concurrency 1,0": `--concurrency "1,0": want a whole number in digits only, such as 1000; see tsimport load --help`,
		"load a --retry-for 5":     `--retry-for "5": want a duration with a unit, such as 500ms, 30s or 15m; see tsimport load --help`,
		"load a -q=7":              `-q "7": it takes no value; see tsimport load --help`,
		"table list --nope":        `flag provided but not defined: -nope; see tsimport table list --help`,
		"--nope":                   `flag provided but not defined: -nope; see tsimport --help`,
	} {
		_, got := command(t, 2, strings.Fields(args)...)
		conformance.True(t, strings.HasPrefix(got, "tsimport: "+want) && strings.Count(got, "\n") == 1,
			"%s: %q, want %q", args, got, want)
	}
	left, err := os.ReadDir(".")
	conformance.True(t, err == nil && len(left) == 0, "something was written: %v, %v", left, err)
}

func TestAddressErrorsAreTheSameInEveryCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	job := "version: 1\nloads:\n  a: {from: 'gs://b/k', table: t, store: s}\n"
	conformance.Must(t, os.WriteFile("job.yaml", []byte(job), 0o600))
	const way, copied = "gs:// cannot be read: write s3://b/k, ", "ots:// cannot be read: tsimport copy ots://shop/orders "
	for args, want := range map[string]string{
		"load gs://b/k --table t --store s": way, "inspect gs://b/k": way, "advise gs://b/k": way,
		"check gs://b/k --pk id": way, "tables gs://b/k": way,
		"verify gs://b/k --table t": way, "sync gs://b/k --table t": way, "copy gs://b/k t": way, "run job.yaml --plan": way,
		"load ots://shop/orders --table t --endpoint http://127.0.0.1:1 --instance i": copied +
			"t --endpoint=http://127.0.0.1:1 --instance=i --create ",
		"load ots://shop/orders --create --store ./s": copied +
			"TARGET --store=./s --create ", "tables ots://shop/orders": copied,
	} {
		stdout, stderr := command(t, 2, strings.Fields(args)...)
		holds(t, stdout+stderr, want)
		conformance.True(t, strings.Count(stderr, "\n") <= 1, "%s: %q", args, stderr)
	}
}

func TestRepeatableFlagsMayBeRepeated(t *testing.T) {
	app := newApp(new(bytes.Buffer), &invocation{show: newDisplay(new(bytes.Buffer))})
	for _, args := range []string{
		"load a.csv -q -q --pk a --pk b --type a=string --type b=string --exclude x --exclude y --null - --null NULL " +
			"--rename a=b --set c=d",
		"load a.csv --table t -- --table t",
		"serve --slow 1:0.5 --slow 2:0.5 --fault-kinds a --fault-kinds b",
		`load a.csv --run-dir C:\runs\x --store C:/store`,
		"nonsense --table a --table b",
	} {
		sorted, err := flagsFirst(app, append([]string{"tsimport"}, strings.Fields(args)...))
		if err == nil {
			err = checkGiven(app, sorted)
		}
		conformance.Equal(t, err, nil, "%s", args)
	}
}

func TestHelpMarksFlagsForPaths(t *testing.T) {
	others := []string{"export output", "job-dir", "files-by", "profile"}
	eachFlag(func(command string, f cli.Flag) {
		s, text := f.(*cli.StringFlag)
		name := f.Names()[0]
		if !text || slices.Contains(others, name) || slices.Contains(others, command+" "+name) || isPath(s.Usage) {
			return
		}
		for _, part := range []string{"-dir", "-file", "-profile", "output", "store", "policy", "keep", "samples", "tls-"} {
			conformance.Equal(t, strings.Contains("-"+name, part), false, "%s --%s: help without FILE or DIR", command, name)
		}
	})
}

func TestNoFlagHasTwoDefaults(t *testing.T) {
	flags := 0
	eachFlag(func(command string, f cli.Flag) {
		flags++
		if text := f.String(); strings.Count(text, "(default") > 1 || strings.Contains(text, "(default: false)") {
			t.Errorf("%s: %s", command, text)
		}
	})
	conformance.True(t, flags >= 300, "only %d flags were looked at", flags)
}

// TestPagesNameExistingFlags looks at all commands in code blocks, even if they need a service and are not run.
func TestPagesNameExistingFlags(t *testing.T) {
	known, flags := map[string]bool{}, 0
	eachFlag(func(command string, f cli.Flag) {
		known[command] = true
		for _, name := range f.Names() {
			known[command+" --"+name] = true
		}
	})
	pages := conformance.Try(filepath.Glob("../../../docs/*.md")).Must(t)
	pages = append(pages, conformance.Try(filepath.Glob("../../../docs/*/*.md")).Must(t)...)
	command := regexp.MustCompile(`(?m)^tsimport [^|#>;\n]+`)
	flag := regexp.MustCompile(` --[a-z][a-z0-9-]*`)
	for _, page := range append(pages, "../../../README.md") {
		text := strings.ReplaceAll(string(conformance.Read(t, ".", page)), "\\\n", " ")
		for _, c := range command.FindAllString(text, -1) {
			words := strings.Fields(c + " -")
			name := words[1]
			if sub := name + " " + words[2]; words[2][0] != '-' && known[sub] {
				name = sub
			}
			for _, f := range flag.FindAllString(c, -1) {
				flags++
				conformance.True(t, f == " --help" || known[name+f], "%s: tsimport %s has no flag%s", page, name, f)
			}
		}
	}
	conformance.True(t, flags >= 300, "only %d flags were looked at", flags)
}

func eachFlag(do func(command string, f cli.Flag)) {
	var walk func(parent string, commands []*cli.Command)
	walk = func(parent string, commands []*cli.Command) {
		for _, c := range commands {
			command := strings.TrimPrefix(parent+" "+c.Name, " ")
			for _, f := range c.Flags {
				do(command, f)
			}
			walk(command, c.Subcommands)
		}
	}
	walk("", newApp(io.Discard, &invocation{show: newDisplay(io.Discard)}).Commands)
}

// TestHelpShowsBasicFlagsFirst checks the help of every command, with the basic flags, all flags and each group.
func TestHelpShowsBasicFlagsFirst(t *testing.T) {
	helpOf := func(command, part string, want int) string {
		var out, errOut bytes.Buffer
		code := Run(append(append([]string{"tsimport"}, strings.Fields(command)...), "--help"+part), &out, &errOut)
		conformance.True(t, code == want, "%s --help%s: exit code %d: %s", command, part, code, errOut.String())
		for line := range strings.Lines(out.String()) {
			conformance.True(t, utf8.RuneCountInString(line) <= helpColumns+1,
				"%s --help%s: a line of more than %d columns: %s", command, part, helpColumns, line)
		}
		return out.String() + errOut.String()
	}
	flags := map[string][]string{}
	eachFlag(func(command string, f cli.Flag) {
		if v, ok := f.(cli.VisibleFlag); ok && v.IsVisible() {
			flags[command] = append(flags[command], f.Names()[0])
		}
	})
	shown := func(text string) int { return len(regexp.MustCompile(`(?m)^  --`).FindAllString(text, -1)) }
	for command, names := range flags {
		first, all := helpOf(command, "", 0), helpOf(command, "=all", 0)
		if n := shown(first); n > manyFlags || n < min(len(names), 5) {
			t.Errorf("%s --help shows %d flags of %d", command, n, len(names))
		}
		conformance.Equal(t, shown(all), len(names), "%s: flags in --help=all", command)
		for _, name := range names {
			conformance.Contains(t, all, "--"+name, "%s --help=all", command)
		}
		_, groups, more := strings.Cut(strings.Join(strings.Fields(first), " "), "those of a group: ")
		conformance.Equal(t, more, shown(first) < len(names), "%s: --help names more", command)
		for _, group := range strings.FieldsFunc(groups, func(r rune) bool { return r == ' ' || r == ',' || r == '.' }) {
			n := shown(helpOf(command, "="+group, 0))
			conformance.True(t, n != 0 && n != len(names), "%s --help=%s shows %d flags", command, group, n)
		}
	}
	conformance.Contains(t, helpOf("load", "=fils", 2), "files", "a group that there is not")
	conformance.Contains(t, helpOf("help load", "", 0), "--only-new", "help load")
	conformance.Contains(t, helpOf("load", "=all", 0), "For rare needs: --record-end,", "flags that no list shows")
	conformance.Contains(t, helpOf("", "=all", 2), "--help=all needs a command", "--help=all without a command")
	code := Run([]string{"tsimport", "--help=all", "load"}, io.Discard, io.Discard)
	conformance.Equal(t, code, 0, "--help=all before the command")
}

func TestUsersMemoryLimitIsKept(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	t.Setenv("GOMEMLIMIT", "9GiB")
	limitMemory(100<<20, false)
	conformance.Equal(t, debug.SetMemoryLimit(-1), before, "the limit, with GOMEMLIMIT set")
	t.Setenv("GOMEMLIMIT", "")
	for embedded, want := range map[bool]int64{false: plan.MemoryLimit(100 << 20),
		true: plan.MemoryLimit(100<<20) + 512<<20} {
		debug.SetMemoryLimit(math.MaxInt64)
		limitMemory(100<<20, embedded)
		conformance.Equal(t, debug.SetMemoryLimit(-1), want, "embedded %v: the limit", embedded)
	}
}

func TestOrderNoneWarnsWhereOrderMatters(t *testing.T) {
	for _, tt := range []struct {
		write pipeline.Write
		warns bool
	}{
		{pipeline.Write{Order: plan.LastWins, Mode: table.Update,
			Conditions: pipeline.Conditions{Condition: table.ExpectExist}}, false},
		{pipeline.Write{Order: plan.OrderNone}, false},
		{pipeline.Write{Order: plan.OrderNone, Mode: table.Delete}, false},
		{pipeline.Write{Order: plan.OrderNone, Mode: table.Update}, true},
		{pipeline.Write{Order: plan.OrderNone, Conditions: pipeline.Conditions{Condition: table.ExpectNotExist}}, true},
	} {
		text := orderWarning(&tt.write)
		warns := strings.Contains(text, "rows of the same key are written in any order")
		conformance.Equal(t, warns, tt.warns, "%+v: %q", tt.write, text)
	}
}

func TestEveryCommandAndEveryFlagOfALoadHasAGroup(t *testing.T) {
	app := newApp(io.Discard, &invocation{show: newDisplay(io.Discard)})
	for _, c := range app.Commands {
		conformance.True(t, c.Category != "" || c.Name == "help", "command %s has no group", c.Name)
	}
	for _, f := range findCommand(app.Commands, "load").Flags {
		if v, ok := f.(cli.VisibleFlag); ok && !v.IsVisible() {
			continue
		}
		in, ok := f.(cli.CategorizableFlag)
		conformance.True(t, ok && in.GetCategory() != "", "flag --%s of load has no group", f.Names()[0])
	}
	seen := map[string]string{}
	for group, names := range commandGroups {
		for _, name := range strings.Fields(names) {
			conformance.True(t, seen[name] == "" && findCommand(app.Commands, name) != nil,
				"%s, of %q, is also in %q or no command", name, group, seen[name])
			seen[name] = group
		}
	}
}

var updateSchema = flag.Bool("update", false, "write docs/job.schema.json")

func TestJobFileSchemaMatchesTheFlags(t *testing.T) {
	name := filepath.Join("..", "..", "..", "docs", "job.schema.json")
	want := conformance.Try(job.NewVocabulary().Schema()).Must(t)
	if *updateSchema {
		must(t, os.WriteFile(name, want, 0o644))
	}
	got, err := os.ReadFile(name)
	conformance.True(t, err == nil && bytes.Equal(got, want), "%s differs (%v); see make schema", name, err)
}

func TestEveryVisibleLoadFlagIsAKeyOrHasAHint(t *testing.T) {
	v := job.NewVocabulary()
	for _, command := range []string{job.Load, job.Copy, job.Sync, job.Export} {
		known := map[string]bool{}
		for _, k := range v.Commands[command] {
			known[k.Name] = true
		}
		app := newApp(new(bytes.Buffer), &invocation{show: newDisplay(new(bytes.Buffer))})
		for _, f := range findCommand(app.Commands, command).Flags {
			name := f.Names()[0]
			visible, ok := f.(interface{ IsVisible() bool })
			conformance.True(t, !ok || !visible.IsVisible() || known[name] || options.For(command, name).Instead != "",
				"%s --%s is neither a key nor says what to do instead", command, name)
		}
	}
}

func TestDestructiveFlagsHaveNoVariable(t *testing.T) {
	for _, name := range []string{"delete", "mode", "create", "fresh"} {
		conformance.Equal(t, variableOf(name), "", "the variable of --%s", name)
	}
	t.Setenv("TSIMPORT_MAX_ERRORS", "7")
	t.Setenv("TSIMPORT_PK", "a:integer\nb")
	t.Setenv("TSIMPORT_MODE", "delete")
	t.Setenv("TSIMPORT_NOW", "2020-01-01T00:00:00Z") // a hidden flag
	for args, want := range map[string]string{
		"":                         "[a:integer b] 7   [pk max-errors]",
		"--max-errors 1 --pk c":    "[c] 1   []",
		"--max-errors=1 --pk=c -q": "[c] 1   []",
	} {
		must(t, given(t, options.Load, flagsOf(options.Load), strings.Fields(args), func(c *call) error {
			got := fmt.Sprint(c.given.PK, " ", c.given.MaxErrors, " ", c.given.Mode, " ", c.given.Now, " ", c.in.ofEnv)
			conformance.True(t, got == want, "%s: %s, want %s", args, got, want)
			return nil
		}))
	}
}

// typos returns all texts one edit away from a word: a character removed, swapped with the next, changed or added.
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

// meant maps each typo to the words that are one edit away.
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

var everyTypo = flag.Bool("every-typo", false, "try all typos, not one in 200, or in 10 of several words")

// TestEveryTypoOfCommandsAndFlagsGetsAHint tries every typo of one edit. The error must name all words in question.
func TestEveryTypoOfCommandsAndFlagsGetsAHint(t *testing.T) {
	conformance.NotForRaces(t)
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
			flags = slices.DeleteFunc(flags, func(name string) bool { return len(name) == 1 }) // every letter is one edit away
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
	conformance.True(t, checked >= 100_000 && several >= 20, "only %d typos, %d of several words", checked, several)
	t.Logf("%d typos, %d of several words", checked, several)
}

func TestShellCompletion(t *testing.T) {
	defer func(args []string) { os.Args = args }(os.Args)
	ask := func(args ...string) string {
		var out strings.Builder
		os.Args = append([]string{"tsimport"}, args...) // the library reads them
		conformance.Equal(t, Run(os.Args, &out, io.Discard), 0, "%q: exit code", args)
		return out.String()
	}
	for args, want := range map[string]string{
		generateCompletion: "load\n", "load --max-e " + generateCompletion: "--max-errors\n",
		"table " + generateCompletion: "describe\n", "load --mode " + generateCompletion: "put\nupdate\n",
		"export --format " + generateCompletion: "archive\n", "completion bash": "complete ", "completion zsh": "compdef",
		"completion fish": "complete -c tsimport", "completion powershell": "Register-ArgumentCompleter",
		"man": ".TH tsimport 1",
	} {
		conformance.Contains(t, ask(strings.Fields(args)...), want, "%s", args)
	}
	basic := strings.Fields(ask("load", "--", generateCompletion))
	conformance.True(t, len(basic) <= 25 && slices.Contains(basic, "--pk") && !slices.Contains(basic, "--mark-column"),
		"where only dashes are typed, %d options follow: %q", len(basic), basic)
	conformance.Contains(t, ask("load", "--mark", generateCompletion), "--mark-column\n", "options by their first letters")
	conformance.Contains(t, ask("serve", "--", generateCompletion), "--listen\n", "options without basic ones")
}
