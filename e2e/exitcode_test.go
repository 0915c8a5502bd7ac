package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExitCodes ends a command with every code but those of signals, which TestSignalsStopALoad has.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	rows := func(n int) string {
		var b strings.Builder
		b.WriteString("id,n\n")
		for i := range n {
			fmt.Fprintf(&b, "%d,%d\n", i, i)
		}
		return b.String()
	}
	good, many, other := write("good.csv", rows(20)), write("many.csv", rows(20_000)), write("other.csv", rows(19)+"19,7\n")
	bad := write("bad.csv", rows(20)+"x,1\n")
	twice := write("twice.csv", rows(20)+"3,3\n")
	empty := write("empty.csv", "")
	const nobody = "http://127.0.0.1:1" // a port that was free may be another test's by now

	s := startServe(t, "--max-tables", "2")
	n := 0
	command := func(args ...string) (string, int) {
		n++
		switch args[0] {
		case "load", "verify", "check":
			args = append(args, "--pk", "id:integer")
		}
		if args[0] == "load" {
			args = append(args, "--create")
		}
		if args[0] == "load" || args[0] == "sync" {
			args = append(args, "--run-dir", filepath.Join(dir, fmt.Sprint("run", n)))
		}
		env := append(s.credentials(), "TABLESTORE_ENDPOINT="+s.URL, "TABLESTORE_INSTANCE="+s.Instance)
		_, stderr, code := runBinaryWith(t, env, args...)
		return stderr, code
	}
	for _, timeout := range []string{"2s", "1m"} { // a slow machine may take the first before there is anything to resume
		stderr, code := command("load", many, "--table", "t", "--max-rows-per-second", "100", "--timeout", timeout)
		if code != 1 || timeout == "1m" && !strings.Contains(stderr, "to resume: ") {
			t.Errorf("--timeout %s: exit code %d, want 1 and how to resume\n%s", timeout, code, stderr)
		}
		if strings.Contains(stderr, "to resume: ") {
			break
		}
	}
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{"load " + good + " --table t", 0, "finished"},
		{"verify " + many + " --table t --max-rcu 0.001 --timeout 1s", 1, "stopped by --timeout 1s"},
		{"load " + good + " --table t --retry-for 1ms --endpoint " + nobody, 1, "cannot connect"},
		{"load " + good + " --table t --nonsense", 2, "nonsense"},
		{"load " + good + " " + filepath.Join(dir, "no*.csv") + " --table t", 2, "it matches none"},
		{"load " + bad + " --table t", 3, "1 rejected"},
		{"load " + bad + " --table t --max-errors 0", 4, "error limit"},
		{"load " + good + " --table t --instance other", 5, "OTSAuthFailed"},
		{"verify " + good + " --table t --instance other", 5, "OTSAuthFailed"},
		{"export --table t --instance other", 5, "OTSAuthFailed"},
		{"table list --instance other", 5, "OTSAuthFailed"},
		{"load " + good + " --table t2", 0, ""},
		{"load " + good + " --table t3", 5, "OTSQuotaExhausted"},
		{"verify " + good + " --table t", 0, ""},
		{"verify " + other + " --table t", 6, ""},
		{"check " + twice, 0, ""},
		{"check " + twice + " --fail-on-duplicates", 6, ""},
		{"load " + filepath.Join(dir, "no*.csv") + " --table t", 7, "it matches none"},
		{"load " + filepath.Join(dir, "none.csv") + " --table t", 2, "no such file"},
		{"load " + empty + " --table t", 2, "empty"},
		{"sync " + filepath.Join(dir, "no*.csv") + " --table t --delete --pk id:integer", 7, "it matches none"},
		{"sync " + empty + " --table t --delete --pk id:integer", 3, "empty"},
	} {
		stderr, code := command(strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(stderr, tt.says) {
			t.Errorf("tsimport %s: exit code %d, want %d and %q\n%s", strings.ReplaceAll(tt.args, dir+"/", ""), code, tt.code, tt.says, stderr)
		}
	}
}
