package ratelimit

import (
	"math"
	"time"
)

// Bucket is a token bucket that may go into debt: a taker waits until it is out of debt, then takes all it needs. So a
// take may exceed the burst, and later ones wait longer. A nil Bucket never waits. It is not safe for concurrent use.
type Bucket struct {
	rate  float64 // tokens per second
	burst float64 // maximum tokens kept
	level float64
	at    time.Time
}

// NewBucket returns a bucket that gains rate tokens per second and holds at most the inflow of burst. It begins empty
// and without debt, so a run keeps to the rate from its first second. It is nil unless rate is positive and finite.
func NewBucket(rate float64, burst time.Duration) *Bucket {
	if !(rate > 0) || math.IsInf(rate, 1) {
		return nil
	}
	return &Bucket{rate: rate, burst: rate * max(burst, 0).Seconds()}
}

// Wait returns the time from now until the bucket is out of debt.
func (b *Bucket) Wait(now time.Time) time.Duration {
	if b == nil {
		return 0
	}
	b.fill(now)
	if b.level >= 0 {
		return 0
	}
	return duration(-b.level / b.rate)
}

// Take takes n tokens, into debt if necessary.
func (b *Bucket) Take(now time.Time, n float64) {
	if b == nil || !(n > 0) || math.IsInf(n, 1) {
		return
	}
	b.fill(now)
	b.level -= n
}

// Rate returns the inflow in tokens per second, or 0 for the nil Bucket.
func (b *Bucket) Rate() float64 {
	if b == nil {
		return 0
	}
	return b.rate
}

func (b *Bucket) fill(now time.Time) {
	if b.at.IsZero() {
		b.at = now
	}
	if d := now.Sub(b.at); d > 0 {
		b.level = min(b.burst, b.level+d.Seconds()*b.rate)
		b.at = now
	}
}

// longest is the longest wait returned; the caller then asks again.
const longest = time.Hour

// duration converts seconds to a Duration, rounded up so that a waiter does not wake slightly too early and ask again.
func duration(seconds float64) time.Duration {
	if !(seconds < longest.Seconds()) {
		return longest
	}
	return time.Duration(math.Ceil(max(seconds, 0) * float64(time.Second)))
}
