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

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		main()
	}
	conformance.NoService()
	os.Exit(m.Run())
}

// ends runs a command and checks its exit code and, if it fails, its last line. TMPDIR must be empty afterwards.
func ends(t *testing.T, code int, says string, args ...string) string {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	var stdout, stderr strings.Builder
	if got := run(t.Context(), append([]string{"tsbench"}, args...), &stdout, &stderr); got != code ||
		!strings.Contains(stderr.String()[strings.LastIndex(strings.TrimSpace(stderr.String()), "\n")+1:], says) {
		t.Errorf("%q: exit code %d, want %d and %q:\n%s", args, got, code, says, &stderr)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	conformance.True(t, err == nil && len(left) == 0, "%q: left behind: %v, %v", args, left, err)
	return stdout.String()
}

func TestInvalidMeasurementsAreRefused(t *testing.T) {
	for args, says := range map[string]string{
		"spread --only fast": "--only", "spread a.csv": "a.csv", "spread --slow x --rows 9": "slow",
		"spread --limiter leaky --rows 9": "limiter", "spread --rows 0": "--rows", "spread --limit-table -1": "--limit-table",
		"spread --splits never --rows 9": "splits", "spread --order up": "--order", "spread --pk a --rows 9": "--pk a",
		"spread --load-flag=--memory=1MiB --rows 100 --only tsimport": "--memory 1MiB: a load needs at least 16MiB",
		"client --shape 13": "--shape", "client --rows 0": "--rows", "client --rounds 0": "--rounds",
		"client --only spark": "--only", "client --only external": "--only", "client file.csv": "no arguments",
		"client --what export --only baseline": "--only", "client --what delete": "--what", "client --odd": "-odd",
		"baseline": "BENCH_COLUMNS",
	} {
		ends(t, 2, says, strings.Fields(args)...)
	}
	external := []string{"client", "--rows", "1000", "--only", "external", "--baseline-cmd"}
	ends(t, 1, "exit status 3", append(external, "exit 3")...)
	ends(t, 1, "0 rows arrived", append(external, "true")...)
}

func TestInterruptedMeasurementStopsProcesses(t *testing.T) {
	temp := t.TempDir()
	cmd := exec.Command(os.Args[0], "spread", "--rows", "50000", "--partitions", "2", "--only", "tsimport")
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	conformance.Must(t, err)
	said := bufio.NewScanner(stderr)
	for said.Scan() && said.Text() != "tsbench: tsimport: loading" {
	}
	for { // until the loader has a run folder, which means that the engine is running
		if found, err := filepath.Glob(filepath.Join(temp, "tsbench-*", "run-tsimport", "*")); err != nil || len(found) > 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	stores, err := filepath.Glob(filepath.Join(temp, "tsbench-*", "store-tsimport"))
	conformance.MustTrue(t, err == nil && len(stores) == 1, "stores: %q, %v", stores, err)
	kept := filepath.Join(t.TempDir(), "store") // found in the engine's open files
	conformance.Must(t, os.Rename(stores[0], kept))
	conformance.Must(t, cmd.Process.Signal(os.Interrupt))
	last := ""
	for said.Scan() {
		last = said.Text()
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 130 || last != "tsbench: interrupted" {
		t.Errorf("exit code %d, said last %q", cmd.ProcessState.ExitCode(), last)
	}
	left, err := os.ReadDir(temp)
	conformance.True(t, err == nil && len(left) == 0, "left behind: %v, %v", left, err)
	// A running engine would lock its store.
	out, err := exec.Command(os.Args[0], "tsimport", "table", "list", "--store", kept).CombinedOutput()
	conformance.True(t, err == nil, "%v: %s", err, out)
}
