//go:build !linux

package cost

import "time"

// threadTime is not known on this system.
func threadTime() time.Duration { return 0 }
