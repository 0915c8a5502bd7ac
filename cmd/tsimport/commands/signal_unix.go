//go:build unix

package commands

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// stateSignals request a load's state.
var stateSignals = []os.Signal{syscall.SIGUSR1}

// withoutCore disables core dumps of this process.
func withoutCore() {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // lowering a limit is always permitted
}

// closedAtStart reports whether stdout may have been closed at the start: it is then the null device, open for reading.
func closedAtStart() bool {
	flags, err := unix.FcntlInt(os.Stdout.Fd(), unix.F_GETFL, 0)
	is, err1 := os.Stdout.Stat()
	null, err2 := os.Stat(os.DevNull)
	return err == nil && err1 == nil && err2 == nil && flags&unix.O_ACCMODE == unix.O_RDWR && os.SameFile(is, null)
}
