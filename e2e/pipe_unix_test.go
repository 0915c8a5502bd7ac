//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
