//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program of another module imports the library, is built without a network and loads into tsimport serve, while the command
// loads into the same table.
func TestAProgramOfAnotherModuleUsesTheLibrary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tree, err := filepath.Abs("..")
	must(t, err)
	for name, from := range map[string]string{"main.go": "testdata/importer/main.go", "go.sum": "../go.sum"} {
		text, err := os.ReadFile(from)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	module, err := os.ReadFile("../go.mod")
	must(t, err)
	// With all that the library requires in its go.mod, as go mod tidy would have it, no other module's is needed.
	requires := strings.Replace(string(module), "module tsimport\n", "module example.com/importer\n", 1)
	must(t, os.WriteFile(filepath.Join(dir, "go.mod"), fmt.Appendf(nil, "%s\nrequire tsimport v0.0.0\n\nreplace tsimport => %s\n", requires, tree), 0o600))
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", "importer", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOFLAGS=", "GOPROXY=off", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}

	s := startServe(t)
	p := s.pod(t)
	file := func(name string, rows int) string {
		return p.write(name+".csv", fileOf("meter,n", rows, func(i int) string { return fmt.Sprintf("%s-%d,%d", name, i, i) }))
	}
	command := p.start("load", file("command", 20_000), "--table", "readings", "--create", "--pk", "meter:string", "--run-dir", "command-run")
	program := exec.Command(filepath.Join(dir, "importer"), file("program", 10_000))
	program.Dir, program.Env = p.dir, append(os.Environ(), p.env...)
	out, err := program.CombinedOutput()
	if code := command.wait(); code != 0 {
		t.Errorf("the command: exit code %d\n%s", code, &command.said)
	}
	if err != nil || string(out) != "9900 put, 10000 loaded\n" {
		t.Errorf("the program: %v\n%s", err, out)
	}
	if n := strings.Count(p.output("export", "--table", "readings"), "\n") - 1; n != 9900+10_000+20_000 {
		t.Errorf("the table has %d rows", n)
	}
}
