package intake

import (
	"sync/atomic"

	"tsimport/partitioner"
)

// hunger is what lanes have and what is on its way to them. It belongs to one partition map.
type hunger struct {
	partitions *partitioner.Map
	queued     []atomic.Int64 // rows, as Queued was told last
	coming     []atomic.Int64 // rows of regions that are read for the lane
	enough     int64          // rows that keep a lane busy
}

// Rows that keep the lanes busy while more are read: a lane's share of all, and at least some seconds' worth.
const (
	enoughRows    = 64 << 10
	enoughForLane = 4000
)

func newHunger(m *partitioner.Map) *hunger {
	return &hunger{
		partitions: m, queued: make([]atomic.Int64, m.Len()), coming: make([]atomic.Int64, m.Len()),
		enough: int64(max(enoughForLane, enoughRows/m.Len())),
	}
}

// of returns the rows that a lane has or will have.
func (h *hunger) of(lane int) int64 { return h.queued[lane].Load() + h.coming[lane].Load() }

// Queued tells what the lanes hold: rows says it of each, and whether it is enough whatever the number. Lanes are those of
// the last map. It matters without an order only.
func (f *Flow) Queued(rows func(lane int) (n int, enough bool)) {
	h := f.hunger.Load()
	hungry := false
	for i := range h.queued {
		n, enough := rows(i)
		held := int64(n)
		if enough {
			held = max(held, h.enough)
		}
		h.queued[i].Store(held)
		hungry = hungry || held < h.enough
	}
	if hungry {
		select {
		case f.fed <- struct{}{}:
		default:
		}
	}
}
