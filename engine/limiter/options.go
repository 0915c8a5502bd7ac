package limiter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	TokenBucket   = "token-bucket"   // saves unused units, up to Burst of the rate; refuses the rest
	FixedWindow   = "fixed-window"   // accepts the rate's units in each Window of the clock, even all at once
	SlidingWindow = "sliding-window" // accepts the rate's units in any time as long as Window
	Queue         = "queue"          // accepts rows and answers when they are served; refuses rows with longer waits
	Concurrency   = "concurrency"    // limits the requests or units served at the same time
)

var Kinds = []string{TokenBucket, FixedWindow, SlidingWindow, Queue, Concurrency}

type Options struct {
	Kind string  // one of Kinds; "" means TokenBucket
	Rate float64 // units per second; 0 means no limit

	Burst time.Duration // token bucket: saves the units of at most this time; 0 means a second
	Full  bool          // token bucket: starts full, not empty

	Window    time.Duration // windows: length; 0 means a second
	Unaligned bool          // fixed window: starts at the first request after the last window's end

	MaxDelay time.Duration // queue: refuses rows that would wait longer; 0 means 10 s

	// Requests, for Concurrency, limits the requests served at the same time. Each takes as long as its units do at the
	// rate. If 0, the units served at the same time are limited to the rate's in Hold, and each request takes Hold.
	Requests int
	Hold     time.Duration // 0 means 0.1 s

	Whole    bool          // a request that does not fit is refused as a whole
	Steps    []Step        // changes of the rate, in order
	Spurious float64       // share of rows (or requests, if Whole) refused for no reason, 0…1
	Lag      time.Duration // buckets and windows: rows count only after this time, so refusals start and end late
	Seed     uint64        // for Spurious
}

// Step is a change of a limit's rate.
type Step struct {
	After  time.Duration // after the limit's start
	Factor float64       // of Options.Rate, until the next step
}

// longest limits durations, so that their sums cannot overflow.
const longest = 100 * time.Hour

// Check returns an error if the options are invalid.
func (o *Options) Check() error {
	if o.Kind != "" && !slices.Contains(Kinds, o.Kind) {
		return fmt.Errorf("unknown limiter %q; want one of %s", o.Kind, strings.Join(Kinds, ", "))
	}
	kind := cmp.Or(o.Kind, TokenBucket)
	for i, d := range []time.Duration{o.Burst, o.Window, o.MaxDelay, o.Hold, o.Lag} {
		if name := []string{"burst", "window", "max delay", "hold", "lag"}[i]; d < 0 || d > longest {
			return fmt.Errorf("limiter %s: the %s must be 0s to %v, not %v", kind, name, longest, d)
		}
	}
	switch {
	case !(o.Rate >= 0 && o.Rate <= 1e12):
		return fmt.Errorf("limiter %s: want a rate of 0 to 1e12 units a second", kind)
	case !(o.Spurious >= 0 && o.Spurious <= 1):
		return fmt.Errorf("limiter %s: want a share of spurious refusals from 0 to 1", kind)
	case o.Requests < 0:
		return fmt.Errorf("limiter %s: want 0 or more requests at a time", kind)
	case o.Lag > 0 && (o.Kind == Queue || o.Kind == Concurrency):
		return fmt.Errorf("limiter %s: lag is not supported, because rows count when they are served", kind)
	}
	for i, s := range o.Steps {
		if !(s.Factor > 0) || s.After < 0 || i > 0 && s.After <= o.Steps[i-1].After {
			return fmt.Errorf("limiter %s: want steps in order of their times, none before 0s, each with a factor above 0", kind)
		}
	}
	return nil
}

// filled returns the options with defaults instead of zeros.
func (o Options) filled() Options {
	o.Kind = cmp.Or(o.Kind, TokenBucket)
	o.Burst = cmp.Or(o.Burst, time.Second)
	o.Window = cmp.Or(o.Window, time.Second)
	o.MaxDelay = cmp.Or(o.MaxDelay, 10*time.Second)
	o.Hold = cmp.Or(o.Hold, 100*time.Millisecond)
	return o
}
