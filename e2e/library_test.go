//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	gomodule "golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"example.com/tsimport/internal/conformance"
)

// clonedTree is a clone of this repository.
func clonedTree(t *testing.T) string {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "tree")
	if out, err := exec.Command("git", "clone", "--quiet", "..", tree).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return tree
}

// proxied makes the tree a version that go finds below GOPROXY, beside the modules of this machine, and returns the environment for that.
// Each commit is a version of its own: go never asks again which files a version has.
func proxied(t *testing.T) (version string, env []string) {
	t.Helper()
	tree := clonedTree(t)
	commit, err := exec.Command("git", "-C", tree, "rev-parse", "--short", "HEAD").Output()
	must(t, err)
	version = "v0.0.7-at" + strings.TrimSpace(string(commit))
	proxy := t.TempDir()
	dir := filepath.Join(proxy, module, "@v")
	must(t, os.MkdirAll(dir, 0o700))
	text, err := os.ReadFile("../go.mod")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, version+".mod"), text, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, version+".info"), fmt.Appendf(nil, `{"Version": %q}`, version), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "list"), []byte(version+"\n"), 0o600))
	f, err := os.Create(filepath.Join(dir, version+".zip"))
	must(t, err)
	must(t, errors.Join(zip.CreateFromVCS(f, gomodule.Version{Path: module, Version: version}, tree, "HEAD", ""), f.Close()))
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	must(t, err)
	downloaded := filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")
	t.Cleanup(func() { // what stays in the cache of modules is not to be found by another run
		for _, of := range []string{filepath.Join(downloaded, "..", "..", module+"@"+version), filepath.Join(downloaded, module)} {
			_ = filepath.WalkDir(of, func(path string, _ fs.DirEntry, _ error) error { return os.Chmod(path, 0o700) })
			must(t, os.RemoveAll(of))
		}
	})
	return version, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=file://"+proxy+",file://"+downloaded, "GOWORK=off", "GOSUMDB=off")
}

// module is the module's path.
const module = "example.com/tsimport"

// A program of another module takes the library from a proxy, is built without a network and loads into tsimport serve, while the
// command loads into the same table. The command says which version it is, of go install, of go run and of a release.
func TestAProgramOfAnotherModuleUsesTheLibrary(t *testing.T) {
	dir := t.TempDir()
	version, env := proxied(t)
	goes := func(args ...string) {
		t.Helper()
		c := exec.Command("go", args...)
		c.Dir, c.Env = dir, append(env, "GOBIN="+dir)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	goes("install", "-ldflags=-s -w", module+"/cmd/tsimport@"+version)
	if said, err := exec.Command(filepath.Join(dir, "tsimport"), "--version").Output(); err != nil || !strings.Contains(string(said), version) {
		t.Errorf("--version: %v, %s", err, said)
	}
	tree := clonedTree(t)
	commit, err := exec.Command("git", "-C", tree, "rev-parse", "HEAD").Output()
	must(t, err)
	built := exec.Command("bash", "packaging/dist.sh")
	built.Dir, built.Env = tree, append(os.Environ(), "BARE=1", "GOFLAGS=", "DIST="+filepath.Join(dir, "dist"), "PLATFORMS="+runtime.GOOS+"/"+runtime.GOARCH)
	if out, err := built.CombinedOutput(); err != nil {
		t.Fatalf("dist: %v\n%s", err, out)
	}
	for name, c := range map[string]*exec.Cmd{ // go run alone stamps nothing
		"go run": exec.Command("go", "run", "-buildvcs=true", "./cmd/tsimport", "--version"),
		"dist":   exec.Command(filepath.Join(dir, "dist", "tsimport-"+runtime.GOOS+"-"+runtime.GOARCH), "--version"),
	} {
		c.Dir = tree
		if said, err := c.CombinedOutput(); err != nil || !strings.Contains(string(said), "version v0.0.0-") || !strings.Contains(string(said), "revision "+string(commit[:12])) || strings.Contains(string(said), "modified") {
			t.Errorf("%s: --version: %v, %s", name, err, said)
		}
	}
	text, err := os.ReadFile("testdata/importer/main.go")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "main.go"), text, 0o600))
	goes("mod", "init", "example.com/importer")
	goes("get", module+"@"+version)
	goes("build", "-ldflags=-s -w", "-o", "importer", ".")

	s := startServe(t)
	p := s.pod(t)
	file := func(name string, rows int) string {
		return p.write(name+".csv", fileOf("meter,n", rows, func(i int) string { return fmt.Sprintf("%s-%d,%d", name, i, i) }))
	}
	command := p.start("load", file("command", 20_000), "--table", "readings", "--create", "--pk", "meter:string", "--run-dir", "command-run")
	program := exec.Command(filepath.Join(dir, "importer"), file("program", 10_000))
	program.Dir, program.Env = p.dir, append(os.Environ(), p.env...)
	out, err := program.CombinedOutput()
	conformance.Equal(t, command.wait(), 0, "the command: exit code\n%s", &command.said)
	if err != nil || string(out) != "9900 put, 10000 loaded\n" {
		t.Errorf("the program: %v\n%s", err, out)
	}
	if n := strings.Count(p.output("export", "--table", "readings"), "\n") - 1; n != 9900+10_000+20_000 {
		t.Errorf("the table has %d rows", n)
	}
}

func TestTheModuleIsGivenAnotherPath(t *testing.T) {
	tree := clonedTree(t)
	in := func(name string, args ...string) string {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir, c.Env = tree, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		out, err := c.CombinedOutput()
		conformance.MustEqual(t, err, nil, "%s %s:\n%s", name, strings.Join(args, " "), out)
		return string(out)
	}
	c := exec.Command("make", "rename", "PATH=tsimport")
	c.Dir = tree
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "want a path with a host") {
		t.Errorf("a path without a host: %v, %s", err, out)
	}
	in("make", "rename", "PATH=go.example.org/loaders/importer")
	conformance.Equal(t, in("go", "list", "-m"), "go.example.org/loaders/importer\n", "the module")
	if left, err := exec.Command("git", "-C", tree, "grep", "-F", module).CombinedOutput(); err == nil {
		t.Errorf("left:\n%s", left)
	}
	in("go", "build", "-o", filepath.Join(t.TempDir(), "tsimport"), "./cmd/tsimport")
	in("go", "vet", "./internal/arch")
	in("gofmt", "-l", ".")
}
