//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	gomodule "golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"example.com/tsimport/internal/conformance"
)

func clonedTree(t *testing.T) string {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "tree")
	out, err := exec.Command("git", "clone", "--quiet", "..", tree).CombinedOutput()
	conformance.MustTrue(t, err == nil, "%v\n%s", err, out)
	return tree
}

// proxied makes the tree a version that go finds through GOPROXY, in addition to this machine's modules, and returns
// the environment for that. Every commit is a new version, because go caches the files of a version forever.
func proxied(t *testing.T) (version string, env []string) {
	tree := clonedTree(t)
	commit := conformance.Try(exec.Command("git", "-C", tree, "rev-parse", "--short", "HEAD").Output()).Must(t)
	version = "v0.0.7-at" + strings.TrimSpace(string(commit))
	proxy := t.TempDir()
	dir := filepath.Join(proxy, module, "@v")
	must(t, os.MkdirAll(dir, 0o700))
	text := conformance.Try(os.ReadFile("../go.mod")).Must(t)
	must(t, os.WriteFile(filepath.Join(dir, version+".mod"), text, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, version+".info"), fmt.Appendf(nil, `{"Version": %q}`, version), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "list"), []byte(version+"\n"), 0o600))
	f := conformance.Try(os.Create(filepath.Join(dir, version+".zip"))).Must(t)
	must(t, errors.Join(zip.CreateFromVCS(f, gomodule.Version{Path: module, Version: version}, tree, "HEAD", ""),
		f.Close()))
	cache := conformance.Try(exec.Command("go", "env", "GOMODCACHE").Output()).Must(t)
	downloaded := filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")
	t.Cleanup(func() { // another run must not find the version in the module cache
		for _, of := range []string{filepath.Join(downloaded, "../..", module+"@"+version),
			filepath.Join(downloaded, module)} {
			_ = filepath.WalkDir(of, func(path string, _ fs.DirEntry, _ error) error { return os.Chmod(path, 0o700) })
			must(t, os.RemoveAll(of))
		}
	})
	return version, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=file://"+proxy+",file://"+downloaded, "GOWORK=off",
		"GOSUMDB=off")
}

const module = "example.com/tsimport"

// A program in another module gets the library from a proxy, is built without a network, and loads into tsimport serve
// while the command loads into the same table. The command reports its version if built by go install, go run or dist.
func TestOtherModuleUsesLibrary(t *testing.T) {
	dir := t.TempDir()
	version, env := proxied(t)
	goes := func(args ...string) {
		t.Helper()
		c := exec.Command("go", args...)
		c.Dir, c.Env = dir, append(env, "GOBIN="+dir)
		out, err := c.CombinedOutput()
		conformance.MustTrue(t, err == nil, "go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	goes("install", "-ldflags=-s -w", module+"/cmd/tsimport@"+version)
	said, err := exec.Command(filepath.Join(dir, "tsimport"), "--version").Output()
	conformance.True(t, err == nil && strings.Contains(string(said), version), "--version: %v, %s", err, said)
	tree := clonedTree(t)
	commit := conformance.Try(exec.Command("git", "-C", tree, "rev-parse", "HEAD").Output()).Must(t)
	built := exec.Command("bash", "packaging/dist.sh")
	built.Dir, built.Env = tree, append(os.Environ(), "BARE=1", "GOFLAGS=", "DIST="+filepath.Join(dir, "dist"),
		"PLATFORMS="+runtime.GOOS+"/"+runtime.GOARCH)
	out, err := built.CombinedOutput()
	conformance.MustTrue(t, err == nil, "dist: %v\n%s", err, out)
	for name, c := range map[string]*exec.Cmd{ // only go run stamps nothing
		"go run": exec.Command("go", "run", "-buildvcs=true", "./cmd/tsimport", "--version"),
		"dist":   exec.Command(filepath.Join(dir, "dist", "tsimport-"+runtime.GOOS+"-"+runtime.GOARCH), "--version"),
	} {
		c.Dir = tree
		if said, err := c.CombinedOutput(); err != nil || !strings.Contains(string(said), "version v0.0.0-") ||
			!strings.Contains(string(said), "revision "+string(commit[:12])) || strings.Contains(string(said), "modified") {
			t.Errorf("%s: --version: %v, %s", name, err, said)
		}
	}
	text := conformance.Try(os.ReadFile("testdata/importer/main.go")).Must(t)
	must(t, os.WriteFile(filepath.Join(dir, "main.go"), text, 0o600))
	goes("mod", "init", "example.com/importer")
	goes("get", module+"@"+version)
	goes("build", "-ldflags=-s -w", "-o", "importer", ".")

	s := startServe(t)
	p := s.pod(t)
	file := func(name string, rows int) string {
		return p.write(name+".csv", fileOf("meter,n", rows, func(i int) string { return fmt.Sprint(name, "-", i, ",", i) }))
	}
	const flags = " --table readings --create --pk meter:string --run-dir command-run"
	command := p.start(strings.Fields("load " + file("command", 20_000) + flags)...)
	program := exec.Command(filepath.Join(dir, "importer"), file("program", 10_000))
	program.Dir, program.Env = p.dir, append(os.Environ(), p.env...)
	out, err = program.CombinedOutput()
	conformance.Equal(t, command.wait(), 0, "the command: exit code\n%s", &command.said)
	conformance.True(t, err == nil && string(out) == "9900 put, 10000 loaded\n", "the program: %v\n%s", err, out)
	n := strings.Count(p.output("export", "--table", "readings"), "\n") - 1
	conformance.True(t, n == 9900+10_000+20_000, "the table has %d rows", n)
}

func TestModulePathCanBeChanged(t *testing.T) {
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
	left, err := exec.Command("git", "-C", tree, "grep", "-F", module).CombinedOutput()
	conformance.True(t, err != nil, "left:\n%s", left)
	in("go", "build", "-o", filepath.Join(t.TempDir(), "tsimport"), "./cmd/tsimport")
	in("go", "vet", "./internal/arch")
	in("gofmt", "-l", ".")
}

// additions lists the lines that an addition takes. An option takes an entry in the table, a field and its use. The
// entry defines flag, key in job files, schema, help, completion and resumption. A command takes a file and a line.
var additions = []struct{ file, after, line string }{
	{"pipeline/options/table.go", "var ofLoads = []*Option{\n",
		`	{Name: "results-in", Group: results, In: Load, NotEmpty: true, Values: []string{"here", "there"}, Usage: "name of the run folder: here or there"},`},
	{"pipeline/options/request.go", "type Running struct {\n", "	ResultsIn string `json:\"results-in,omitempty\"`"},
	{"pipeline/options/config.go", "		RunDir: r.RunDir,\n", ""},
	{"cmd/tsimport/commands/main.go", "			errorsCommand(in),\n", "			greetCommand(in),"},
}

func TestOptionsAndCommandsAreDefinedOnce(t *testing.T) {
	p, dir := newPlace(t), t.TempDir()
	replace := map[string]string{}
	for i, a := range additions {
		name := conformance.Try(filepath.Abs(filepath.Join("..", a.file))).Must(t)
		text := conformance.Try(os.ReadFile(name)).Must(t)
		line := a.after + a.line + "\n"
		if a.line == "" {
			line = strings.Replace(a.after, "r.RunDir", "r.RunDir + r.ResultsIn", 1) // its use
		}
		added := strings.Replace(string(text), a.after, line, 1)
		conformance.MustTrue(t, added != string(text), "%s has no %q", a.file, a.after)
		replace[name] = filepath.Join(dir, fmt.Sprint(i, ".go"))
		must(t, os.WriteFile(replace[name], []byte(added), 0o600))
	}
	greet := conformance.Try(filepath.Abs("../cmd/tsimport/commands/greet.go")).Must(t)
	replace[greet] = conformance.Try(filepath.Abs("testdata/additions/greet.go")).Must(t)
	overlay := conformance.Try(json.Marshal(map[string]any{"Replace": replace})).Must(t)
	must(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	bin := filepath.Join(dir, "tsimport")
	out, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", bin,
		"../cmd/tsimport").CombinedOutput()
	conformance.MustTrue(t, err == nil, "%v\n%s", err, out)
	p.write("in.csv", "id\na\n")
	p.write("job.yaml", "version: 1\nloads:\n  t: {from: in.csv, pk: id, create: true, results-in: elsewhere}\n")
	for command, want := range map[string]string{
		"greet reader":    "hello, reader\n",
		"load --help=all": "--results-in",
		"run --schema":    `"results-in"`,
		"load --results-in --generate-bash-completion":             "here\nthere\n",
		"load in.csv --table t --create --pk id --results-in HERE": "",
		"load in.csv --table t --pk id --results-in elsewhere":     `--results-in "elsewhere": want here or there`,
		"run job.yaml": `--results-in "elsewhere": want here or there`,
	} {
		c := exec.Command(bin, strings.Fields(command)...)
		c.Dir = p.dir
		out, err := c.CombinedOutput()
		conformance.True(t, strings.Contains(string(out), want) && (err != nil) == strings.Contains(want, "want here"),
			"%s: %v, %q is missing in\n%s", command, err, want, out)
	}
	p.read("here/summary.json")
}

// required is the environment variable that names the SDK whose test must not be skipped, as in make node.
const required = "TSIMPORT_TEST_SDK"

// runSDK runs a script of another language against a new server, whose access key is not the built-in one.
func runSDK(t *testing.T, dir, program string, args ...string) (printed string) {
	t.Helper()
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", "a-secret-of-the-test")
	s := startServe(t, "--quiet", "--instance", "sdk-test", "--access-key-id", "SDK.test-1")
	conformance.Equal(t, s.AccessKeySecret, "(from-environment)", "the ready line shows the secret")
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = slices.Concat(os.Environ(), []string{
		"TABLESTORE_ENDPOINT=" + s.URL, "TABLESTORE_INSTANCE=" + s.Instance, "TABLESTORE_ACCESS_KEY_ID=" + s.AccessKeyID,
	})
	r := begin(t, cmd)
	conformance.Equal(t, r.wait(), 0, "%s %q: exit code\n%s", program, args, &r.said)
	return r.said.String()
}

// TestLocalEngineSamplesAreTested compares the code on the page with files that other tests run.
func TestLocalEngineSamplesAreTested(t *testing.T) {
	t.Parallel()
	page := conformance.Try(os.ReadFile("../docs/how-to/local-engine.md")).Must(t)
	for language, file := range map[string]string{
		"go": "../engine/enginetest/orders_test.go", "python": "python/orders.py", "javascript": "node/orders.js",
		"java": "java/src/main/java/Orders.java",
	} {
		code := conformance.Try(os.ReadFile(file)).Must(t)
		sample := strings.Replace(string(code), "package enginetest_test\n", "package shop\n", 1)
		conformance.True(t, strings.Contains(string(page), "\n```"+language+"\n"+sample+"```\n"),
			"docs/how-to/local-engine.md does not show %s", file)
	}
}

// testSDK runs the checks and the sample of a language. It skips the test if the file installed does not exist.
func testSDK(t *testing.T, language, installed, program string, check, sample []string) {
	t.Helper()
	if _, err := os.Stat(installed); err != nil && os.Getenv(required) != language {
		t.Skipf("the SDK is not installed; make %s installs it and runs this", language)
	}
	runSDK(t, language, program, check...)
	out := runSDK(t, language, program, sample...)
	conformance.True(t, strings.HasSuffix(out, "tea\n"), "%s %q prints %q", program, sample, out)
}

func TestNodeSDKWorksWithEngine(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil && os.Getenv(required) != "node" {
		t.Skip("there is no node on this machine; make node runs this")
	}
	testSDK(t, "node", "node/node_modules/tablestore", "node", []string{"--test", "sdk.test.js"}, []string{"orders.js"})
}

func TestPythonSDKWorksWithEngine(t *testing.T) {
	python := conformance.Try(filepath.Abs("python/venv/bin/python")).Must(t)
	testSDK(t, "python", python, python, []string{"sdk_check.py"}, []string{"orders.py"})
}

func TestJavaSDKWorksWithEngine(t *testing.T) {
	java := func(class string) []string { return []string{"-cp", "target/classes:target/lib/*", class} }
	testSDK(t, "java", "java/target/classes/SdkCheck.class", "java", java("SdkCheck"), java("Orders"))
}
