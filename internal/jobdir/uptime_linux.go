package jobdir

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime returns the time since boot, including sleep. This clock cannot be set.
func uptime() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
		return sinceStart()
	}
	return time.Duration(at.Nano())
}
