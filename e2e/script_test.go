package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs what users type, a happy path for each command: the files in testdata/script.
func TestScripts(t *testing.T) { runScripts(t, "testdata/script") }

// runScripts runs the scripts of a folder. Each begins in an empty folder with tsimport on the path. $EXAMPLES is the repository's
// examples folder; `exitcode N cmd…` runs a command and checks its exit code; `json FILE name=value…` checks numbers and texts of a
// JSON object.
func runScripts(t *testing.T, folder string) {
	t.Parallel()
	examples, err := filepath.Abs("../examples")
	must(t, err)
	testscript.Run(t, testscript.Params{
		Dir: folder,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("EXAMPLES", examples)
			env.Setenv("TMPDIR", env.WorkDir)
			env.Setenv("GOGC", os.Getenv("GOGC"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exitcode": exitCode, "json": checkJSON, "repeat": repeatText, "serve": serveStore},
	})
}

func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N command…")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if err != nil {
		var got interface{ ExitCode() int }
		var ok bool
		if got, ok = err.(interface{ ExitCode() int }); !ok {
			ts.Fatalf("%v", err)
		}
		code = got.ExitCode()
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func checkJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: json FILE name=value…")
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &object); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	for _, a := range args[1:] {
		name, want, _ := strings.Cut(a, "=")
		got, ok := object[name]
		if !ok {
			ts.Fatalf("%s has no %s", args[0], name)
		}
		if want != "" && fmt.Sprint(got) != want {
			ts.Fatalf("%s: %s is %v, want %s", args[0], name, got, want)
		}
	}
}

// repeatText writes FILE as PREFIX, then N times TEXT, then SUFFIX; \n is a line end.
func repeatText(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 5 {
		ts.Fatalf("usage: repeat FILE PREFIX N TEXT SUFFIX")
	}
	var n int
	_, err := fmt.Sscan(args[2], &n)
	ts.Check(err)
	unescape := strings.NewReplacer(`\n`, "\n", `\r`, "\r").Replace
	text := unescape(args[1]) + strings.Repeat(unescape(args[3]), n) + unescape(args[4])
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}

// serveStore runs `tsimport serve` on a store until the script ends and sets TABLESTORE_* for the commands that follow.
func serveStore(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: serve STORE [flag…]")
	}
	s, err := launch(append([]string{"--store", ts.MkAbs(args[0])}, args[1:]...)...)
	ts.Check(err)
	ts.Defer(func() {
		if err := s.terminate(); err != nil {
			ts.Fatalf("%v", err)
		}
	})
	ts.Setenv("TABLESTORE_ENDPOINT", s.URL)
	ts.Setenv("TABLESTORE_INSTANCE", s.Instance)
	ts.Setenv("TABLESTORE_ACCESS_KEY_ID", s.AccessKeyID)
	ts.Setenv("TABLESTORE_ACCESS_KEY_SECRET", s.AccessKeySecret)
}
