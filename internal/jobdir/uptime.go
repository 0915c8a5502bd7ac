package jobdir

import "time"

var started = time.Now()

// Uptime is the default clock of leases. Tests of whole commands replace it with a virtual clock.
var Uptime = uptime

// sinceStart stands in for a clock since boot. It takes the larger of two times since the program started, because the
// monotonic clock may stop during sleep and the wall clock may be set back.
func sinceStart() time.Duration {
	now := time.Now()
	return max(now.Sub(started), now.Round(0).Sub(started.Round(0)))
}
