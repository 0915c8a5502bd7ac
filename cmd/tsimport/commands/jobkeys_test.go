package commands

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/jobs/job"
)

var updateSchema = flag.Bool("update", false, "write docs/job.schema.json")

func TestTheSchemaOfJobFilesIsThatOfTheFlags(t *testing.T) {
	name := filepath.Join("..", "..", "..", "docs", "job.schema.json")
	want, err := jobVocabulary().Schema()
	must(t, err)
	if *updateSchema {
		must(t, os.WriteFile(name, want, 0o644))
	}
	got, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not that of the flags (%v); write it with make schema", name, err)
	}
}

func TestEveryVisibleFlagOfALoadIsAKeyOrSaysWhatToDo(t *testing.T) {
	v := jobVocabulary()
	for _, command := range []string{job.Load, job.Copy, job.Sync, job.Export} {
		known := map[string]bool{}
		for _, k := range v.Commands[command] {
			known[k.Name] = true
		}
		for _, f := range findCommand(newApp(new(bytes.Buffer), &invocation{show: newDisplay(new(bytes.Buffer))}).Commands, command).Flags {
			name := f.Names()[0]
			if visible, ok := f.(interface{ IsVisible() bool }); ok && visible.IsVisible() && !known[name] && notAKey(name) == "" {
				t.Errorf("%s --%s is neither a key nor says what to do instead", command, name)
			}
		}
	}
}

func TestFlagsThatDestroyComeFromNoVariable(t *testing.T) {
	for _, name := range []string{"delete", "mode", "create", "fresh"} {
		if v := variableOf(name); v != "" {
			t.Errorf("--%s comes from %s", name, v)
		}
	}
	t.Setenv("TSIMPORT_MAX_ERRORS", "7")
	t.Setenv("TSIMPORT_PK", "a:integer\nb")
	t.Setenv("TSIMPORT_MODE", "delete")
	t.Setenv("TSIMPORT_NOW", "2020-01-01T00:00:00Z") // of a hidden flag
	app := newApp(new(bytes.Buffer), &invocation{show: newDisplay(new(bytes.Buffer))})
	for given, want := range map[string]string{
		"load a.csv":                          "load --pk=a:integer --pk=b --max-errors=7 -- a.csv",
		"load a.csv --max-errors 1 --pk c":    "load --max-errors 1 --pk c -- a.csv",
		"load a.csv --max-errors=1 --pk=c -q": "load --max-errors=1 --pk=c -q -- a.csv",
		"table list":                          "table list",
		"table":                               "table",
	} {
		args, err := flagsFirst(app, append([]string{"tsimport"}, strings.Fields(given)...))
		must(t, err)
		args, _ = withEnvironment(app, args)
		if got := strings.Join(args[1:], " "); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}
