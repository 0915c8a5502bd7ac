package ratelimit

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff is an exponential backoff with jitter: the wait after failure n is between half of Base·2ⁿ⁻¹ and all of it,
// and at most Max. The half keeps many workers from retrying at once; the jitter spreads them.
type Backoff struct {
	Base time.Duration
	Max  time.Duration
	Rand *rand.Rand // nil uses the process's source
}

// After returns the wait after the attempt-th failure in a row, counted from 1.
func (b Backoff) After(attempt int) time.Duration {
	d := b.Max
	if shift := attempt - 1; shift < 32 && b.Base<<shift < b.Max {
		d = b.Base << shift
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

// Wait waits for d. If the context ends first, it returns the context's cause.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Patience watches progress. The zero Patience never runs out.
//
// Patience counts at most a quarter of For between two calls, so that a process does not give up because it was paused.
type Patience struct {
	For time.Duration // maximum time without progress; 0 means forever

	seen  time.Time // time of the last call
	spent time.Duration
}

// Progress notes progress at now.
func (p *Patience) Progress(now time.Time) { p.seen, p.spent = now, 0 }

// Over reports whether there has been no progress for longer than For. Call it every LookEvery.
func (p *Patience) Over(now time.Time) bool {
	if p.For <= 0 {
		return false
	}
	if !p.seen.IsZero() {
		p.spent += max(0, min(now.Sub(p.seen), max(p.For/4, 1)))
	}
	p.seen = now
	return p.spent > p.For
}

// LookEvery returns the time between calls of Over; 0 means never.
func (p *Patience) LookEvery() time.Duration { return p.For / 8 }

// Spent returns the time counted without progress.
func (p *Patience) Spent() time.Duration { return p.spent }

// Inherit takes over the spent time of another Patience.
func (p *Patience) Inherit(from *Patience) { p.seen, p.spent = from.seen, from.spent }
