package jobdir

import "time"

var started = time.Now()

// Uptime is the default clock of leases. Tests of whole commands replace it by a virtual one.
var Uptime = uptime

// sinceStart is the clock for systems without a clock since boot: the larger of two, as one may stop and one be set.
func sinceStart() time.Duration {
	now := time.Now()
	return max(now.Sub(started), now.Round(0).Sub(started.Round(0)))
}
