//go:build unix

package cost

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// cpuTime is the CPU time that this process has used.
func cpuTime() time.Duration { return usedBy(syscall.RUSAGE_SELF) }

// usedBy is CPU time, user and system, of what getrusage(2) knows by the number; 0 if it does not say.
func usedBy(who int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// endWithChildren makes a command end with all that it has started: killing a shell alone would leave its program running.
func endWithChildren(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}

// peakRSS is the most memory that a process that has ended had.
func peakRSS(p *os.ProcessState) int64 {
	u, ok := p.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss)
	}
	return int64(u.Maxrss) << 10
}
