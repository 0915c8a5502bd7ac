package cost

import (
	"syscall"
	"time"
)

// threadTime is the CPU time that this thread has used.
func threadTime() time.Duration { return usedBy(syscall.RUSAGE_THREAD) }
