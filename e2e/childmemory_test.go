//go:build e2e && linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// measuring is set in a copy of this test binary that runs one command and prints its peak. The peak of a process includes that
// of the one that started it, and this one's heap can be large.
const measuring = "TSIMPORT_E2E_MEASURE"

// addressSpace is more than any command maps, and less than a machine has to lose.
const addressSpace = 4 << 30

func init() {
	if os.Getenv(measuring) != "" {
		os.Exit(measure())
	}
}

// measure runs the command in the arguments with a hard limit, prints its peak to file 3 and returns its exit code.
func measure() int {
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: addressSpace, Max: addressSpace}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	os.Unsetenv(measuring)
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	fmt.Fprint(os.NewFile(3, "peak"), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) // KiB, as VmHWM
	return cmd.ProcessState.ExitCode()
}

// runMeasured runs tsimport, ends it after processTimeout, and returns its peak in bytes.
func runMeasured(t testing.TB, args ...string) (peak int64, code int, out string) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	ctx, cancel := context.WithTimeout(t.Context(), processTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, append([]string{binary}, args...)...)
	cmd.Env = append(os.Environ(), measuring+"=1", "GOGC=") // as users have it
	cmd.ExtraFiles = []*os.File{w}
	text, err := cmd.CombinedOutput()
	w.Close()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var number [32]byte
	n, _ := r.Read(number[:]) // nothing came when the process was ended
	kib, err := strconv.ParseInt(strings.TrimSpace(string(number[:n])), 10, 64)
	if err != nil {
		t.Fatalf("%v gave no peak (%v):\n%.2000s", args, ctx.Err(), text)
	}
	return kib << 10, cmd.ProcessState.ExitCode(), string(text)
}

// runWithin is runMeasured of a command that takes at most so many bytes.
func runWithin(t testing.TB, most int64, args ...string) (peak int64, code int, out string) {
	t.Helper()
	for range tries {
		if peak, code, out = runMeasured(t, args...); peak <= most {
			return peak, code, out
		}
	}
	t.Errorf("%v: a peak of %d MiB, %d times, want at most %d", args, peak>>20, tries, most>>20)
	return peak, code, out
}
