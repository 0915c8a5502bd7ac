package jobdir

import "time"

var started = time.Now()

// Uptime is the default clock of leases. Tests of whole commands replace it by a virtual one.
var Uptime = uptime

// sinceStart replaces a clock since boot: the larger of a clock that may stop in sleep and one that may be set back.
func sinceStart() time.Duration {
	now := time.Now()
	return max(now.Sub(started), now.Round(0).Sub(started.Round(0)))
}
