package jobdir

import "time"

var started = time.Now()

// Uptime is the clock of leases that are given none. Tests of whole commands put a virtual one in its place.
var Uptime = uptime

// sinceStart is the clock where none is known that counts from the boot. The monotonic clock of a process may stand still while the
// machine sleeps, and the other one can be set, so the one counts that says most.
func sinceStart() time.Duration {
	now := time.Now()
	return max(now.Sub(started), now.Round(0).Sub(started.Round(0)))
}
