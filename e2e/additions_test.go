//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What an addition costs, and where it stands. An option is its entry in the table, its field and its use: the flag, the key of job files,
// their schema, the help, completion and what a resumed run keeps come from the entry. A command is its file and its line.
var additions = []struct{ file, after, line string }{
	{"pipeline/options/table.go", "var ofLoads = []*Option{\n", `	{Name: "results-in", Group: results, In: Load, NotEmpty: true, Values: []string{"here", "there"}, Usage: "name of the run folder: here or there"},`},
	{"pipeline/options/request.go", "type Running struct {\n", "	ResultsIn string `json:\"results-in,omitempty\"`"},
	{"pipeline/options/config.go", "		RunDir: r.RunDir,\n", ""},
	{"cmd/tsimport/commands/main.go", "			errorsCommand(in),\n", "			greetCommand(in),"},
}

func TestAnOptionOrACommandIsAddedInOnePlace(t *testing.T) {
	p, dir := newPlace(t), t.TempDir()
	replace := map[string]string{}
	for i, a := range additions {
		name, err := filepath.Abs(filepath.Join("..", a.file))
		must(t, err)
		text, err := os.ReadFile(name)
		must(t, err)
		line := a.after + a.line + "\n"
		if a.line == "" {
			line = strings.Replace(a.after, "r.RunDir", "r.RunDir + r.ResultsIn", 1) // the use
		}
		added := strings.Replace(string(text), a.after, line, 1)
		if added == string(text) {
			t.Fatalf("%s has no %q", a.file, a.after)
		}
		replace[name] = filepath.Join(dir, fmt.Sprint(i, ".go"))
		must(t, os.WriteFile(replace[name], []byte(added), 0o600))
	}
	greet, err := filepath.Abs("../cmd/tsimport/commands/greet.go")
	must(t, err)
	replace[greet], err = filepath.Abs("testdata/additions/greet.go")
	must(t, err)
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	bin := filepath.Join(dir, "tsimport")
	if out, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", bin, "../cmd/tsimport").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.write("in.csv", "id\na\n")
	p.write("job.yaml", "version: 1\nloads:\n  t: {from: in.csv, pk: id, create: true, results-in: elsewhere}\n")
	for command, want := range map[string]string{
		"greet reader": "hello, reader\n",
		"load --help":  "--results-in",
		"run --schema": `"results-in"`,
		"load --results-in --generate-bash-completion":             "here\nthere\n",
		"load in.csv --table t --create --pk id --results-in HERE": "",
		"load in.csv --table t --pk id --results-in elsewhere":     `--results-in "elsewhere": want here or there`,
		"run job.yaml": `--results-in "elsewhere": want here or there`,
	} {
		c := exec.Command(bin, strings.Fields(command)...)
		c.Dir = p.dir
		out, err := c.CombinedOutput()
		if !strings.Contains(string(out), want) || (err != nil) != strings.Contains(want, "want here") {
			t.Errorf("%s: %v, %q is missing in\n%s", command, err, want, out)
		}
	}
	p.read("here/summary.json")
}
