package sim

import "math"

// bucket is the write capacity of a partition. Times are Unix nanoseconds.
type bucket struct {
	rate   float64 // units a second; 0 is without limit
	burst  float64 // units it holds at most
	tokens float64 // below zero after a row larger than the burst
	last   int64   // tokens are those of this time
}

// rounding is what sums of floats may lack of a whole unit.
const rounding = 1e-6

// take pays units, or refuses. A row larger than the burst passes when the bucket is full and leaves it in debt, for
// else it could never pass.
func (b *bucket) take(at int64, units float64) bool {
	if b.rate <= 0 {
		return true
	}
	b.fill(at)
	if b.tokens+rounding < math.Min(units, b.burst) {
		return false
	}
	b.tokens -= units
	return true
}

func (b *bucket) fill(at int64) {
	if at <= b.last { // a clock that went back gives nothing, and takes nothing
		return
	}
	b.tokens = math.Min(b.burst, b.tokens+b.rate*float64(at-b.last)/1e9)
	b.last = at
}

// empty makes the bucket one that begins to fill at a time.
func (b *bucket) empty(at int64) { b.tokens, b.last = 0, at }
