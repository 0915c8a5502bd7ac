//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAPipeWithoutAWriterDoesNotHoldUpAStop: opening the pipe would block forever.
func TestAPipeWithoutAWriterDoesNotHoldUpAStop(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if err := syscall.Mkfifo(p.path("pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	r := p.start("load", "pipe", "--table", "t", "--pk", "id", "--store", "store")
	r.says("target: embedded", 1)
	r.signal(os.Interrupt)
	if code := r.wait(); code != 130 {
		t.Errorf("exit code %d, want 130:\n%s", code, &r.said)
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
