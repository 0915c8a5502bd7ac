package cost

import (
	"syscall"
	"time"
)

// threadTime is the CPU time that this thread has used, user and system.
func threadTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
