package checkpoint

import "time"

// Uptime is a moment by a clock that counts from boot, as wall clocks of two processes cannot be compared.
type Uptime struct {
	Boot string        `json:"boot,omitempty"` // identifies machine and boot; empty means unknown
	Up   time.Duration `json:"up,omitempty"`
}

// Now returns the current moment, or the zero Uptime without such a clock.
func Now() Uptime { return readUptime() }

// Since returns the time since another moment; 0 if it is unknown.
func (u Uptime) Since(then Uptime) time.Duration {
	if u.Boot == "" || u.Boot != then.Boot {
		return 0
	}
	return max(0, u.Up-then.Up)
}
