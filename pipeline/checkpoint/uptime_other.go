//go:build !linux

package checkpoint

// Now returns the zero Uptime: this system has no clock that counts from boot.
func Now() Uptime { return Uptime{} }
