//go:build unix

package pipeline

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// Resources returns the CPU seconds (user and system) that the process has used so far, and its peak resident memory.
func Resources() (cpuSeconds float64, peakRSSBytes int64) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	unit := int64(1024) // Linux and the BSDs count in KiB
	if runtime.GOOS == "darwin" {
		unit = 1
	}
	peakRSSBytes = int64(u.Maxrss) * unit
	// On Linux, Maxrss includes the process before exec, when it was a copy of its parent.
	if text, err := os.ReadFile("/proc/self/status"); err == nil {
		if own, ok := highWater(text); ok {
			peakRSSBytes = own
		}
	}
	return processorUse(&u), peakRSSBytes
}

func processorUse(u *syscall.Rusage) float64 {
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(u.Utime) + seconds(u.Stime)
}

// processors returns the CPU seconds that the process has used or was ready to use.
func processors() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // on an error, u has zeros
	return processorUse(&u) + processorWait()
}

// highWater finds the peak resident memory in bytes in Linux's /proc/PID/status.
func highWater(status []byte) (bytesPeak int64, ok bool) {
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, "VmHWM:"); found {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return n * 1024, err == nil
		}
	}
	return 0, false
}

// processorWait returns how many seconds threads of this process were ready without a processor; 0 if unknown.
func processorWait() (seconds float64) {
	threads, _ := os.ReadDir("/proc/self/task") // Linux
	var text [128]byte
	for _, t := range threads {
		// os.ReadFile needs three times as many system calls, as it offers each file to the poller.
		file, err := syscall.Open("/proc/self/task/"+t.Name()+"/schedstat", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		n, err := syscall.Read(file, text[:])
		_ = syscall.Close(file)
		fields := strings.Fields(string(text[:max(0, n)])) // nanoseconds of CPU and of waiting, turns
		if err != nil || len(fields) < 2 {
			continue
		}
		if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			seconds += float64(n) / 1e9
		}
	}
	return seconds
}
