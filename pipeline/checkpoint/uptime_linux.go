package checkpoint

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time since boot, including sleep, or zero if unknown. Boot names the boot, host and time namespace.
func Now() Uptime {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Uptime{}
	}
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &at); err != nil {
		return Uptime{}
	}
	space, _ := os.Readlink("/proc/self/ns/time") // old kernels have no time namespaces
	host, err := os.Hostname()
	if err != nil {
		return Uptime{}
	}
	return Uptime{Boot: strings.Join([]string{strings.TrimSpace(string(boot)), host, space}, " "),
		Up: time.Duration(at.Nano())}
}
