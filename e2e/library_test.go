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
	env := append(os.Environ(), "TABLESTORE_ENDPOINT="+s.URL, "TABLESTORE_INSTANCE="+s.Instance,
		"TABLESTORE_ACCESS_KEY_ID="+s.AccessKeyID, "TABLESTORE_ACCESS_KEY_SECRET="+s.AccessKeySecret, "HOME="+dir, "XDG_CACHE_HOME="+dir)
	file := func(name string, rows int) string {
		text := []byte("meter,n\n")
		for i := range rows {
			text = fmt.Appendf(text, "%s-%d,%d\n", name, i, i)
		}
		path := filepath.Join(dir, name+".csv")
		must(t, os.WriteFile(path, text, 0o600))
		return path
	}
	command := exec.Command(binary, "load", file("command", 20_000), "--table", "readings", "--create", "--pk", "meter:string", "--run-dir", "command-run")
	command.Dir, command.Env = dir, env
	var said strings.Builder
	command.Stderr = &said
	must(t, command.Start())
	program := exec.Command(filepath.Join(dir, "importer"), file("program", 10_000))
	program.Dir, program.Env = dir, env
	out, err := program.CombinedOutput()
	if commandErr := command.Wait(); commandErr != nil {
		t.Errorf("the command: %v\n%s", commandErr, said.String())
	}
	if err != nil || string(out) != "9900 put, 10000 loaded\n" {
		t.Errorf("the program: %v\n%s", err, out)
	}
	export := exec.Command(binary, "export", "--table", "readings", "-o", "all.csv")
	export.Dir, export.Env = dir, env
	if out, err := export.CombinedOutput(); err != nil {
		t.Fatalf("export: %v\n%s", err, out)
	}
	all, err := os.ReadFile(filepath.Join(dir, "all.csv"))
	must(t, err)
	if n := strings.Count(string(all), "\n") - 1; n != 9900+10_000+20_000 {
		t.Errorf("the table has %d rows", n)
	}
}
