package ratelimit

import (
	"math/rand/v2"
	"time"
)

// Backoff is an exponential backoff with jitter: attempt n waits between half of and the whole of Base·2ⁿ⁻¹, at most
// Max. The half keeps a crowd of workers from trying again at once; the jitter keeps them from doing so together.
type Backoff struct {
	Base time.Duration
	Max  time.Duration
	Rand *rand.Rand // nil uses the process's source
}

// After returns how long to wait after the attempt-th failure in a row, counted from 1.
func (b Backoff) After(attempt int) time.Duration {
	d := b.Max
	if shift := attempt - 1; shift < 32 && b.Base<<shift < b.Max {
		d = b.Base << max(shift, 0)
	}
	half := int64(d / 2)
	if half <= 0 {
		return d
	}
	if b.Rand != nil {
		return d - time.Duration(b.Rand.Int64N(half+1))
	}
	return d - time.Duration(rand.Int64N(half+1))
}

// Patience watches progress. The zero Patience never runs out.
type Patience struct {
	For  time.Duration // without progress; 0 is for ever
	last time.Time
}

// Progress notes that something moved at now.
func (p *Patience) Progress(now time.Time) { p.last = now }

// Over reports whether nothing has moved for longer than For. The first call only starts the watch.
func (p *Patience) Over(now time.Time) bool {
	if p.last.IsZero() {
		p.last = now
	}
	return p.For > 0 && now.Sub(p.last) > p.For
}

// Left returns the time until patience runs out, and false if it never does.
func (p *Patience) Left(now time.Time) (time.Duration, bool) {
	if p.For <= 0 {
		return 0, false
	}
	return p.last.Add(p.For).Sub(now), true
}
