package conformance

import "time"

// Restless is a pacer that never waits. A ratelimit.Pacer would mistake random faults of tests for a lack of capacity.
type Restless struct{}

func (Restless) Next(now time.Time, _ int, _ float64) (float64, time.Time, bool) {
	return 200, now, true // a batch of the most rows
}
func (r Restless) NextOf(now time.Time, n int, perRow, _ float64) (float64, time.Time, bool) {
	return r.Next(now, n, perRow)
}
func (Restless) Sent(time.Time, float64)               {}
func (Restless) Answered(_, _ time.Time, _, _ float64) {}
func (Restless) Unavailable(time.Time)                 {}
func (Restless) SetMaxInFlight(int)                    {}
func (Restless) Rate() float64                         { return 0 }
func (Restless) State() string                         { return "restless" }
