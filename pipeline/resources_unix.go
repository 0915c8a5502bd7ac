//go:build unix

package pipeline

import (
	"runtime"
	"syscall"
)

// resources returns what the process has used so far: CPU seconds, user and system, and its peak resident memory.
func resources() (cpuSeconds float64, peakRSSBytes int64) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	unit := int64(1024) // Linux and the BSDs count in KiB
	if runtime.GOOS == "darwin" {
		unit = 1
	}
	return seconds(u.Utime) + seconds(u.Stime), int64(u.Maxrss) * unit
}
