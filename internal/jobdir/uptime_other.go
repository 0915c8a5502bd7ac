//go:build !linux

package jobdir

import "time"

func uptime() time.Duration { return sinceStart() }
