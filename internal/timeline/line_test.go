package timeline

import (
	"slices"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

func add(into *int64, later int64) { *into += later }

func TestDoublingIntervalLosesNothing(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 16, 17, 1000} {
		l := New(time.Second, 8, add)
		for i := range n {
			*l.At(time.Duration(i) * time.Second)++
		}
		sum := int64(0)
		for _, p := range l.Points() {
			sum += p
		}
		conformance.True(t, len(l.Points()) <= 8 && sum == int64(n), "%d: %d points that count %d", n, len(l.Points()), sum)
		last := time.Duration(len(l.Points())) * l.Every()
		conformance.True(t, n <= 0 || last >= time.Duration(n)*time.Second && last-l.Every() < time.Duration(n)*time.Second,
			"%d seconds: the points end at %v, the interval is %v", n, last, l.Every())
	}
}

func TestPointsKeepTheirTimesAfterPause(t *testing.T) {
	l := New(time.Second, 4, add)
	*l.At(-time.Second) += 1
	*l.At(1500 * time.Millisecond) += 2
	*l.At(100 * time.Second) += 4
	conformance.True(t, l.Every() == 32*time.Second && slices.Equal(l.Points(), []int64{3, 0, 0, 4}),
		"%v every %v; want 3, 0, 0, 4 every 32s", l.Points(), l.Every())
}

func TestHeatMapFollowsKeyOrderAndSplits(t *testing.T) {
	h := NewHeat(time.Second, 2)
	first := h.Slot("", "first")
	h.Add(0, first, 5)
	late := h.Slot("t", "late")
	early := h.Slot("c", "early")
	h.Add(time.Second, late, 3)
	h.Add(time.Second, early, 2)
	conformance.Equal(t, h.Slot("t", "other text"), late, "the slot of the text after it")
	h.Add(3*time.Second, first, 1) // doubles the interval
	m := h.Map()
	conformance.MustTrue(t, slices.Equal(m.Partitions, []string{"first", "early", "late"}) && m.Every == 2*time.Second,
		"%q every %v", m.Partitions, m.Every)
	conformance.True(t, len(m.Counts) == 2 && slices.Equal(m.Counts[0], []int64{5, 2, 3}) &&
		slices.Equal(m.Counts[1], []int64{1, 0, 0}), "counts %v", m.Counts)
}
