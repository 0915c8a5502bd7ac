//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAPipeWithoutAWriterDoesNotHoldUpAStop: opening the pipe would block forever.
func TestAPipeWithoutAWriterDoesNotHoldUpAStop(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(binary, "load", pipe, "--table", "t", "--pk", "id", "--store", dir+"/store")
	started := &notice{pattern: regexp.MustCompile("target: (embedded)"), seen: make(chan bool)}
	cmd.Stderr = started
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killer := time.AfterFunc(processTimeout, func() { cmd.Process.Kill() })
	defer killer.Stop()
	<-started.seen
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // its error is the exit code below
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130; stderr:\n%s", code, started.all.String())
	}
}

// shell runs a line of a shell in which T is the binary.
func shell(t *testing.T, dir, line string) (out string, code int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "T="+binary)
	text, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// TestAPipeWithoutAReaderDoesNotHoldUpAStop: opening the pipe would block.
func TestAPipeWithoutAReaderDoesNotHoldUpAStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	out, code := shell(t, dir, `printf 'id\n1\n' > in.csv; "$T" load in.csv --table t --pk id --metrics-file pipe`)
	if code != 0 || !strings.Contains(out, "nobody reads the pipe") {
		t.Errorf("metrics: exit code %d\n%s", code, out)
	}
	out, code = shell(t, dir, `"$T" export --table t -o pipe --timeout 2s`)
	if code != 1 || !strings.Contains(out, "nobody reads the pipe: ") {
		t.Errorf("export: exit code %d\n%s", code, out)
	}
}
