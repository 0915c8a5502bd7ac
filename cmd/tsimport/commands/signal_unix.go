//go:build unix

package commands

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// stateSignals ask a load for its state.
var stateSignals = []os.Signal{syscall.SIGUSR1}

// withoutCore has the system dump no core of this process.
func withoutCore() {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // less than it has may always be asked for
}

// closedAtStart reports whether stdout may have been closed when the process began: it is the null device then, open for reading, too.
func closedAtStart() bool {
	flags, err := unix.FcntlInt(os.Stdout.Fd(), unix.F_GETFL, 0)
	is, err1 := os.Stdout.Stat()
	null, err2 := os.Stat(os.DevNull)
	return err == nil && err1 == nil && err2 == nil && flags&unix.O_ACCMODE == unix.O_RDWR && os.SameFile(is, null)
}
