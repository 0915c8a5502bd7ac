package timeline

import (
	"maps"
	"slices"
	"time"
)

// Heat counts by time and partition. A partition is identified by its lower bound, so when it splits, the lower part
// keeps the counts. A Heat is not safe for concurrent use.
type Heat struct {
	line  *Line[[]int64]
	slots map[string]int // by lower bound
	shown []string       // representations of the lower bounds, by slot
}

// NewHeat makes a heat map of up to most intervals, which initially have the length every.
func NewHeat(every time.Duration, most int) *Heat {
	return &Heat{slots: map[string]int{}, line: New(every, most, func(into *[]int64, later []int64) {
		if len(*into) < len(later) {
			*into, later = later, *into
		}
		for i, n := range later {
			(*into)[i] += n
		}
	})}
}

// Slot returns the slot of the partition that begins at lower, an ordering key, which Map represents by shown.
func (h *Heat) Slot(lower, shown string) int {
	slot, known := h.slots[lower]
	if !known {
		slot = len(h.shown)
		h.slots[lower] = slot
		h.shown = append(h.shown, shown)
	}
	return slot
}

// Add adds n to the count of a slot at a time since the start.
func (h *Heat) Add(since time.Duration, slot int, n int64) {
	p := h.line.At(since)
	for len(*p) <= slot {
		*p = append(*p, 0)
	}
	(*p)[slot] += n
}

// Map holds the counts of a Heat.
type Map struct {
	Every      time.Duration
	Partitions []string  // representations of the lower bounds, in key order
	Counts     [][]int64 // counts by interval and partition
}

func (h *Heat) Map() Map {
	m := Map{Every: h.line.Every(), Counts: make([][]int64, len(h.line.Points()))}
	order := make([]int, 0, len(h.slots)) // slots in key order
	for _, lower := range slices.Sorted(maps.Keys(h.slots)) {
		slot := h.slots[lower]
		order = append(order, slot)
		m.Partitions = append(m.Partitions, h.shown[slot])
	}
	for i, p := range h.line.Points() {
		m.Counts[i] = make([]int64, len(order))
		for at, slot := range order {
			if slot < len(p) {
				m.Counts[i][at] = p[slot]
			}
		}
	}
	return m
}
