package commands

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

// TestMetricsOfHowCommandsEnded is about who is told; TestEveryEndingIsSaidAndCounted about what.
func TestMetricsOfHowCommandsEnded(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "a.csv", "id,n\n1,2\n2,3\n")
	put(t, "job.yaml", "version: 1\nloads:\n  one: {from: [a.csv], pk: [id:integer]}\n  two: {table: other, from: [b.csv], pk: [id:integer]}\n")
	for _, step := range []struct {
		args string
		code int
		says string
	}{
		{"load a.csv --table t --pk id:integer --type n=boolean --metrics-file m.prom", 3, ""},
		{"run job.yaml --metrics-file j.prom", 2, "b.csv"},
		{"load a.csv --table t --pk id:integer --metrics-file none/m.prom", 2, "there is no folder none"},
		{"load a.csv --table t --pk id:integer --fresh --metrics-file a.csv", 0, "warning: --metrics-file"},
	} {
		var said bytes.Buffer
		code := Run(append([]string{"tsimport"}, strings.Fields(step.args)...), io.Discard, &said)
		if code != step.code || !strings.Contains(said.String(), step.says) {
			t.Errorf("%s: exit code %d, want %d\n%s", step.args, code, step.code, said.String())
		}
	}
	for file, all := range map[string][]string{
		"m.prom": {`rows{command="load",load="",outcome="rejected",table="t"} 2`, `outcome="read",table="t"} 2`, `outcome="written",table="t"} 0`},
		"j.prom": {`exit_code{command="run",load="job",table=""} 2`, `exit_code{command="load",load="one",table="one"} 0`,
			`rows{command="load",load="one",outcome="written",table="one"} 2`, `exit_code{command="load",load="two",table="other"} 2`},
	} {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, has := range all {
			conformance.Contains(t, string(text), has, "text")
		}
	}
}

func TestALoadThatFailedAndIsThenHeldHasNotSucceeded(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "job.yaml", "version: 1\nloads:\n  one: {from: [a.csv], pk: [id], only-new: true}\n  two: {after: [one], from: [none.csv], pk: [id]}\n")
	put(t, "a.csv", "id,n\n1,2\n")
	for _, says := range []string{"; load two: ", "; load one: "} {
		var said bytes.Buffer
		if code := Run(strings.Fields("tsimport run job.yaml --quiet --metrics-file m.prom"), io.Discard, &said); code != 2 || !strings.Contains(said.String(), says) {
			t.Fatalf("exit code %d, want %q\n%s", code, says, said.String())
		}
		if err := os.Remove("a.csv"); says == "; load two: " && err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("m.prom")
	must(t, err)
	for _, metric := range []string{"success_timestamp_seconds", "exit_code"} {
		if strings.Contains(string(text), metric+`{command="load",load="two",table="two"}`) {
			t.Errorf("it was not reached\n%s", text)
		}
	}
}

// TestRowsOfTheNightBeforeDoNotCount is about loads of a job that has failed and is resumed, and about clocks: that of the process before was ahead.
func TestRowsOfTheNightBeforeDoNotCount(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "job.yaml", "version: 1\ndefaults: {create: true, only-new: true, pk: [id], type: {n: integer}}\nloads:\n  done: {from: [d-*.csv]}\n  failed: {from: [f-*.csv]}\n")
	put(t, "d-1.csv", "id,n\n1,2\n")
	for i := range 3 {
		put(t, fmt.Sprintf("f-%d.csv", i), []string{"id,n\n1,2\n", "id,m\n1,2\n"}[min(i, 1)])
	}
	run := func(code int, says string) {
		t.Helper()
		var said bytes.Buffer
		if got := Run(strings.Fields("tsimport run job.yaml"), io.Discard, &said); got != code || !strings.Contains(said.String(), says) {
			t.Fatalf("exit code %d, want %d and %q\n%s", got, code, says, said.String())
		}
	}
	run(1, "2 read, 2 written") // so many are bad that something else may be wrong
	ahead := regexp.MustCompile(`("(?:first_)?started": )"\d+`)
	for _, pattern := range []string{"tsimport-runs/*/done/run.json", "tsimport-runs/*/done/summary.json"} {
		name, err := filepath.Glob(pattern)
		must(t, err)
		text, err := os.ReadFile(name[0])
		must(t, err)
		put(t, name[0], ahead.ReplaceAllString(string(text), `$1"2999`))
	}
	put(t, "d-2.csv", "id,n\n3,4\n4,5\n")
	run(3, "2 read, 2 written, 0 rejected, 0 superseded, 2 inputs set aside")
}
