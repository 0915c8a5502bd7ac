package checkpoint

import "time"

// Uptime is a moment by a clock that counts from boot: the wall clock may be set between two processes.
type Uptime struct {
	Boot string        `json:"boot,omitempty"` // identifies the machine and its boot; "" means unknown
	Up   time.Duration `json:"up,omitempty"`
}

// Since returns the time since another moment, or 0 if that is unknown.
func (u Uptime) Since(then Uptime) time.Duration {
	if u.Boot == "" || u.Boot != then.Boot {
		return 0
	}
	return max(0, u.Up-then.Up)
}
