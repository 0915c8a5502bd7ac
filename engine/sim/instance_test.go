package sim

import (
	"testing"
	"time"
)

func TestAnInstanceTakesWholeRequestsUpToItsRate(t *testing.T) {
	i := NewInstance(1000, start)
	if i.Take(start, 50, 50) {
		t.Error("an instance begins with something saved up")
	}
	taken := 0.0
	for ms := range 10_000 {
		if i.Take(at(time.Duration(ms)*time.Millisecond), 30, 10) {
			taken += 30
		}
	}
	if taken < 9_900 || taken > 10_000 {
		t.Errorf("%g units in ten seconds", taken)
	}
	c := i.Count()
	if float64(c.Units) != taken || c.Refused != 10_001-int64(taken/30) || c.Rows != 50+10*(c.Refused-1) {
		t.Errorf("%+v", c)
	}
	// A request larger than what is saved up passes when that is full, and is paid for afterwards.
	later := at(20 * time.Second)
	if !i.Take(later, 200, 200) || i.Take(later.Add(99*time.Millisecond), 1, 1) || !i.Take(later.Add(102*time.Millisecond), 1, 1) {
		t.Error("a large request")
	}
	if i.Reset(later); i.Count() != (InstanceCount{}) || i.Take(later, 1, 1) {
		t.Error("after Reset")
	}
}
