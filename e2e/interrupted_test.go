package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAnInterruptedBenchEndsWhatItStarted(t *testing.T) {
	temp, keep := t.TempDir(), t.TempDir()
	for _, args := range [][]string{nil, {"--keep", keep}} {
		cmd := exec.Command(binary, append([]string{"bench", "spread", "--rows", "200000", "--partitions", "2", "--only", "tsimport"}, args...)...)
		cmd.Env = append(os.Environ(), "TMPDIR="+temp)
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		killer := time.AfterFunc(processTimeout, func() { cmd.Process.Kill() })
		lines := bufio.NewScanner(stderr)
		for lines.Scan() && lines.Text() != "tsimport: tsimport: loading" {
		}
		if args != nil {
			waitForFile(t, filepath.Join(keep, "tsimport", "run")) // the loader's: the engine serves
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		rest := ""
		for lines.Scan() {
			rest += lines.Text() + "\n"
		}
		cmd.Wait() // its error is the exit code below
		killer.Stop()
		if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(rest, "interrupt") {
			t.Errorf("exit code %d, %q; want 130", code, rest)
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
	// An engine that still ran would hold its store.
	if _, stderr, code := runBinary(t, "table", "list", "--store", filepath.Join(keep, "tsimport", "store")); code != 0 {
		t.Errorf("open the store of the interrupted bench: exit code %d, %s", code, stderr)
	}
}

// waitForFile returns when there is a file or folder of the name.
func waitForFile(t *testing.T, path string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(processTimeout); time.Now().Before(end); <-tick.C {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
	t.Fatalf("there is no %s after %v", path, processTimeout)
}

func TestAnInterruptedBenchWriteDropsItsTableAndShowsWhatItHas(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--sync", "none")
	cmd := exec.Command(binary, "bench", "write", "--endpoint", s.URL, "--instance", s.Instance, "--duration", "1h", "--rate", "2000")
	cmd.Env = append(os.Environ(), s.credentials()...)
	var stdout strings.Builder
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killer := time.AfterFunc(processTimeout, func() { cmd.Process.Kill() })
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.HasSuffix(lines.Text(), "throttled") { // the first word on how it goes
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest := ""
	for lines.Scan() {
		rest += lines.Text() + "\n"
	}
	cmd.Wait() // its error is the exit code below
	killer.Stop()
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(rest, " dropped") {
		t.Errorf("exit code %d, %q; want 130 and the table dropped", code, rest)
	}
	if !strings.Contains(stdout.String(), "stopped by interrupt after") || !strings.Contains(stdout.String(), "rows/s") {
		t.Errorf("result:\n%s", stdout.String())
	}
	if names, _, code := runBinaryWith(t, s.credentials(), "table", "list", "--endpoint", s.URL, "--instance", s.Instance, "-q"); code != 0 || names != "" {
		t.Errorf("exit code %d, tables left: %q", code, names)
	}
}
