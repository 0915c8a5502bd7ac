package checkpoint

import "time"

// Uptime is a moment by the clock of a machine that counts from its boot. Two processes' wall clocks cannot be compared: one
// may have been set in between.
type Uptime struct {
	Boot string        `json:"boot,omitempty"` // which boot of which machine; empty is unknown
	Up   time.Duration `json:"up,omitempty"`
}

// Now returns the present moment. Where no such clock is known it is the zero Uptime.
func Now() Uptime { return readUptime() }

// Since returns how long ago another moment was; 0 if nobody can say.
func (u Uptime) Since(then Uptime) time.Duration {
	if u.Boot == "" || u.Boot != then.Boot {
		return 0
	}
	return max(0, u.Up-then.Up)
}
