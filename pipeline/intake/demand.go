package intake

import (
	"sync/atomic"

	"tsimport/partitioner"
)

// demand is what lanes have and what is on its way to them. It belongs to one partition map.
type demand struct {
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

func newDemand(m *partitioner.Map) *demand {
	return &demand{
		partitions: m, queued: make([]atomic.Int64, m.Len()), coming: make([]atomic.Int64, m.Len()),
		enough: int64(max(enoughForLane, enoughRows/m.Len())),
	}
}

// rows returns the rows that a lane has or will have.
func (d *demand) rows(lane int) int64 { return d.queued[lane].Load() + d.coming[lane].Load() }

// Queued tells what the lanes hold: rows says it of each, and whether it is enough regardless of the number. Lanes are those of
// the last map. It matters without an order only.
func (f *Flow) Queued(rows func(lane int) (n int, enough bool)) {
	d := f.demand.Load()
	needy := false
	for i := range d.queued {
		n, enough := rows(i)
		held := int64(n)
		if enough {
			held = max(held, d.enough)
		}
		d.queued[i].Store(held)
		needy = needy || held < d.enough
	}
	if needy {
		select {
		case f.fed <- struct{}{}:
		default:
		}
	}
}
