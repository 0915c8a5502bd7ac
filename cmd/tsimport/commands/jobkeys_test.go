package commands

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline/options"
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
			if visible, ok := f.(interface{ IsVisible() bool }); ok && visible.IsVisible() && !known[name] && options.For(command, name).Instead == "" {
				t.Errorf("%s --%s is neither a key nor says what to do instead", command, name)
			}
		}
	}
}

func TestFlagsThatDestroyComeFromNoVariable(t *testing.T) {
	for _, name := range []string{"delete", "mode", "create", "fresh"} {
		conformance.Equal(t, variableOf(name), "", "the variable of --%s", name)
	}
	t.Setenv("TSIMPORT_MAX_ERRORS", "7")
	t.Setenv("TSIMPORT_PK", "a:integer\nb")
	t.Setenv("TSIMPORT_MODE", "delete")
	t.Setenv("TSIMPORT_NOW", "2020-01-01T00:00:00Z") // of a hidden flag
	for args, want := range map[string]string{
		"":                         "[a:integer b] 7   [pk max-errors]",
		"--max-errors 1 --pk c":    "[c] 1   []",
		"--max-errors=1 --pk=c -q": "[c] 1   []",
	} {
		must(t, given(t, options.Load, flagsOf(options.Load), strings.Fields(args), func(c *call) error {
			if got := fmt.Sprint(c.given.PK, " ", c.given.MaxErrors, " ", c.given.Mode, " ", c.given.Now, " ", c.in.ofEnv); got != want {
				t.Errorf("%s: %s, want %s", args, got, want)
			}
			return nil
		}))
	}
}
