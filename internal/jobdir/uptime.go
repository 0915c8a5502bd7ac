package jobdir

import "time"

var started = time.Now()

// sinceStart is the clock where none is known that counts from the boot. The monotonic clock of a process may stand still while the
// machine sleeps, and the other one can be set, so the one counts that says most.
func sinceStart() time.Duration {
	now := time.Now()
	return max(now.Sub(started), now.Round(0).Sub(started.Round(0)))
}
