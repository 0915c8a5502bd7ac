//go:build unix

package commands

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/tsimport/internal/conformance"
)

var neverFreed [][]byte

var crashes = map[string]func(){
	"a panic": func() { go panic("broken"); select {} },
	"SIGQUIT": func() { _ = syscall.Kill(os.Getpid(), syscall.SIGQUIT); select {} },
	"no memory": func() {
		_ = unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20})
		for {
			neverFreed = append(neverFreed, make([]byte, 64<<20))
		}
	},
}

// Schedulers treat 2 as bad usage and do not retry it. A crash is retried.
func TestCrashExitCodeIsNotBadUsage(t *testing.T) {
	const which = "TSIMPORT_TEST_CRASH"
	if crash := crashes[os.Getenv(which)]; crash != nil {
		crashLoudly()
		crash()
	}
	for name := range crashes {
		c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		c.Env, c.Dir = append(os.Environ(), which+"="+name), t.TempDir()
		err := c.Run()
		ended := new(exec.ExitError)
		conformance.MustTrue(t, errors.As(err, &ended), "%s: %v", name, err)
		status := ended.Sys().(syscall.WaitStatus)
		conformance.True(t, status.Signaled() && status.Signal() == syscall.SIGABRT && !status.CoreDump(),
			"%s: %v", name, ended)
	}
}
