package sketch

import (
	"fmt"
	"math"
	"testing"

	"example.com/tsimport/internal/conformance"
)

func TestDistinctValuesAreCountedWithinThreePercent(t *testing.T) {
	for _, n := range []int{0, 1, 10, 60, 1000, 16384, 50000, 100000, 1000000} {
		var d Distinct
		for range 2 { // a repeated value changes nothing
			for i := range n {
				d.Add(Mix(uint64(i)))
			}
		}
		got := d.Count()
		conformance.True(t, math.Abs(float64(got)-float64(n)) <= 0.03*float64(n), "%d values are counted as %d", n, got)
	}
}

func TestDistinctTextsAreCountedWithinThreePercent(t *testing.T) {
	var d Distinct
	const n = 200000
	for i := range n {
		d.Add(Hash(fmt.Appendf(nil, "user-%d", i)))
	}
	got := d.Count()
	conformance.True(t, math.Abs(float64(got)-n) <= 0.03*n, "%d texts are counted as %d", n, got)
	conformance.True(t, Hash([]byte("a\x00")) != Hash([]byte("a")) && Hash(nil) != Hash([]byte{0}), "hashes with a zero")
}

func TestMostFrequentValueIsFoundAmongManyOthers(t *testing.T) {
	top := NewTop(maxCounters)
	add := func(text string) { top.Add(Hash([]byte(text)), []byte(text)) }
	for i := range 100000 {
		add(fmt.Sprint(i))
		if i%10 == 0 {
			add("hot")
		}
		if i%20 == 0 {
			add("warm")
		}
	}
	values := top.Values(2)
	conformance.MustTrue(t, string(values[0].Value) == "hot" && string(values[1].Value) == "warm",
		"most frequent: %q, %q", values[0].Value, values[1].Value)
	n := values[0].Count
	conformance.True(t, n >= 10000-115000/maxCounters && n <= 10000, "hot came 10000 times and is counted %d times", n)
	conformance.Equal(t, top.Seen(), 115000, "values seen")
}

func TestFewValuesAreCountedExactly(t *testing.T) {
	top := NewTop(maxCounters)
	for i := range 1000 {
		text := fmt.Sprint(i % 7)
		if hash := Hash([]byte(text)); !top.Known(hash) {
			top.Add(hash, []byte(text))
		}
	}
	values := top.Values(10)
	conformance.True(t, len(values) == 7 && values[0].Count == 143 && values[6].Count == 142, "counted %+v", values)
}
