//go:build e2e

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

// TestMain makes this test binary tsbench for the processes that its tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		main()
	}
	os.Exit(m.Run())
}

// ends runs a command in an empty folder, in which it must leave nothing, and returns what it prints. Its exit code is to be this, and a
// command that fails is to say the text at last.
func ends(t *testing.T, code int, says string, args ...string) string {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	var stdout, stderr strings.Builder
	if got := run(t.Context(), append([]string{"tsbench"}, args...), &stdout, &stderr); got != code || !strings.Contains(stderr.String()[strings.LastIndex(strings.TrimSpace(stderr.String()), "\n")+1:], says) {
		t.Errorf("%q: exit code %d, want %d and %q:\n%s", args, got, code, says, &stderr)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("%q: left behind: %v, %v", args, left, err)
	}
	return stdout.String()
}

func TestWhatCannotBeMeasuredIsRefused(t *testing.T) {
	for args, says := range map[string]string{
		"spread --only fast": "--only", "spread a.csv": "--pk", "spread --pk a a.csv b.csv": "one file", "spread --slow x": "--slow", "spread --limiter leaky": "--limiter",
		"spread --limit-table -1": "--limit-table", "spread --splits never": "-splits", "spread --splits -1s": "--splits", "spread --order up": "--order",
		"spread --pk a --rows 5 a.csv": "--rows", "spread --memory 1MiB --rows 100 --only tsimport": "--memory 1MiB: a load needs 16MiB at least",
		"spread --pk a missing.csv": "open input missing.csv: there is no such file or folder",
		"client --shape 13":         "--shape", "client --rows 0": "--rows", "client --only spark": "--only", "client file.csv": "no arguments", "client --timeout 1s": "--timeout",
		"client --timeout -1s --baseline-cmd true": "--timeout", "client --odd": "-odd", "baseline odd": "sequential",
	} {
		ends(t, 2, says, strings.Fields(args)...)
	}
	external := []string{"client", "--rows", "1000", "--only", "external", "--baseline-cmd"}
	ends(t, 1, "exit status 3", append(external, "exit 3")...)
	ends(t, 1, "0 rows arrived", append(external, "true")...)
	ends(t, 1, "did not end within --timeout 100ms", append(external, "sleep 100000; true", "--timeout", "100ms")...)
}

func TestAnInterruptedMeasurementEndsWhatItStarted(t *testing.T) {
	temp, kept := t.TempDir(), t.TempDir()
	cmd := exec.Command(os.Args[0], "spread", "--rows", "50000", "--partitions", "2", "--only", "tsimport", "--keep", kept)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	conformance.Must(t, err)
	said := bufio.NewScanner(stderr)
	for said.Scan() && said.Text() != "tsbench: tsimport: loading" {
	}
	for { // until the loader has its run: the engine serves
		if _, err := os.Stat(filepath.Join(kept, "tsimport", "run")); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	conformance.Must(t, cmd.Process.Signal(os.Interrupt))
	last := ""
	for said.Scan() {
		last = said.Text()
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 130 || last != "tsbench: interrupted" {
		t.Errorf("exit code %d, said last %q", cmd.ProcessState.ExitCode(), last)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// An engine that still ran would hold its store.
	if out, err := exec.Command(os.Args[0], "tsimport", "table", "list", "--store", filepath.Join(kept, "tsimport", "store")).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
