package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the scripts in testdata/script, which show a typical use of each command.
func TestScripts(t *testing.T) { runScripts(t, "testdata/script") }

// runScripts runs the scripts in a folder, each in an empty folder with tsimport in PATH and $EXAMPLES set. There,
// `exitcode N cmd…` checks an exit code, and `json FILE name=value…` checks numbers and strings in a JSON object.
func runScripts(t *testing.T, folder string) {
	t.Parallel()
	examples := conformance.Try(filepath.Abs("../examples")).Must(t)
	testscript.Run(t, testscript.Params{
		Dir: folder,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("EXAMPLES", examples)
			env.Setenv("TMPDIR", env.WorkDir)
			env.Setenv("GOGC", os.Getenv("GOGC"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exitcode": exitCode, "json": checkJSON,
			"repeat": repeatText,
			"serve":  func(ts *testscript.TestScript, neg bool, args []string) { serveStore(t, ts, neg, args) }},
	})
}

func expect(ts *testscript.TestScript, holds bool, format string, args ...any) {
	if !holds {
		ts.Fatalf(format, args...)
	}
}

func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	expect(ts, !neg && len(args) >= 2, "usage: exitcode N command…")
	err := ts.Exec(args[1], args[2:]...)
	code, exit := 0, new(exec.ExitError)
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	expect(ts, fmt.Sprint(code) == args[0], "exit code %d, want %s", code, args[0])
}

func checkJSON(ts *testscript.TestScript, neg bool, args []string) {
	expect(ts, !neg && len(args) >= 2, "usage: json FILE name=value…")
	var object map[string]any
	err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &object)
	expect(ts, err == nil, "%s: %v", args[0], err)
	for _, a := range args[1:] {
		name, want, _ := strings.Cut(a, "=")
		got, ok := object[name]
		expect(ts, ok, "%s has no %s", args[0], name)
		expect(ts, want == "" || fmt.Sprint(got) == want, "%s: %s is %v, want %s", args[0], name, got, want)
	}
}

// repeatText writes PREFIX, TEXT repeated N times, and SUFFIX to FILE. In these, \n means a line end.
func repeatText(ts *testscript.TestScript, neg bool, args []string) {
	expect(ts, !neg && len(args) == 5, "usage: repeat FILE PREFIX N TEXT SUFFIX")
	var n int
	_, err := fmt.Sscan(args[2], &n)
	ts.Check(err)
	unescape := strings.NewReplacer(`\n`, "\n", `\r`, "\r").Replace
	text := unescape(args[1]) + strings.Repeat(unescape(args[3]), n) + unescape(args[4])
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}

// serveStore runs `tsimport serve` on a store until the script ends, and sets TABLESTORE_* for later commands.
func serveStore(t *testing.T, ts *testscript.TestScript, neg bool, args []string) {
	expect(ts, !neg && len(args) >= 1, "usage: serve STORE [flag…]")
	s := startServe(t, append([]string{"--store", ts.MkAbs(args[0])}, args[1:]...)...)
	ts.Defer(func() { s.stop(t) })
	ts.Setenv("TABLESTORE_ENDPOINT", s.URL)
	ts.Setenv("TABLESTORE_INSTANCE", s.Instance)
	ts.Setenv("TABLESTORE_ACCESS_KEY_ID", s.AccessKeyID)
	ts.Setenv("TABLESTORE_ACCESS_KEY_SECRET", s.AccessKeySecret)
}

// TestExitCodes ends commands with every exit code except those for signals. TestEveryEndingIsReportedAndCounted tests
// other causes of these codes.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	s := startServe(t)
	p := newPlace(t, s.env()...)
	rows := func(n int) string { return fileOf("id,n", n, func(i int) string { return fmt.Sprintf("%d,%d", i, i) }) }
	for name, text := range map[string]string{"good.csv": rows(20), "many.csv": rows(2000), "other.csv": rows(19) +
		"19,7\n", "bad.csv": rows(20) + "x,1\n"} {
		p.write(name, text)
	}
	n := 0
	load := func(args ...string) []string {
		n++
		return append(strings.Fields(fmt.Sprint("load --table t --create --pk id:integer --run-dir run", n)), args...)
	}
	for _, timeout := range []string{"2s", "1m"} { // on a slow machine the first may end before anything can be resumed
		said := p.ends(1, load("many.csv", "--max-rows-per-second", "20", "--timeout", timeout))
		if strings.Contains(said, "to resume: ") {
			break
		}
		conformance.True(t, timeout != "1m", "it is not said how to resume: %s", said)
	}
	p.ends(0, load("good.csv"), "finished")
	const nobody = "http://127.0.0.1:1" // a formerly free port may now be another test's
	p.ends(1, load("good.csv", "--retry-for", "1ms", "--endpoint", nobody), "cannot connect")
	p.ends(2, load("good.csv", "--nonsense"), "nonsense")
	p.ends(3, load("bad.csv"), "1 rejected")
	p.ends(4, load("bad.csv", "--max-errors", "0"), "error limit")
	p.ends(5, []string{"table", "list", "--instance", "other"}, "OTSAuthFailed")
	p.ends(6, []string{"verify", "other.csv", "--table", "t"})
	p.ends(7, load("no*.csv"), "it matches none")
}

// TestBinaryReportsItsBuild checks the version of a binary built in a clone, because bug reports need it.
func TestBinaryReportsItsBuild(t *testing.T) {
	t.Parallel()
	if info, err := os.Stat("../.git"); err != nil || !info.IsDir() {
		t.Skip("not a clone, or a worktree, which go build does not stamp")
	}
	if flags, err := exec.Command("go", "env", "GOFLAGS").Output(); err != nil ||
		strings.Contains(string(flags), "-buildvcs=false") {
		t.Skipf("go build is told not to stamp, or cannot say (%v): GOFLAGS=%s", err, flags)
	}
	head, err := exec.Command("git", "-C", "..", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Skipf("git does not say what is checked out: %v", err)
	}
	newPlace(t).ends(0, []string{"--version"}, "revision "+strings.TrimSpace(string(head))[:12], "go1.", runtime.GOOS+"/"+
		runtime.GOARCH)
}
