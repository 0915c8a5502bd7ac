package sim

import (
	"slices"
	"time"
)

// Stats are a table's counts since it is simulated, or since Reset.
type Stats struct {
	Count
	Requests   int64 // writes
	Partitions []PartitionStats
}

// PartitionStats are one partition's, present or ended.
type PartitionStats struct {
	Number     int // lasting
	Position   int // in key order, -1 when it has ended
	Start, End Key
	First      bool          // Start is below all keys
	Last       bool          // End is above all keys
	Capacity   float64       // units a second, 0 means no limit
	Since      time.Time     // it serves with this capacity
	Until      time.Time     // it does not serve, when that is later
	Down       time.Duration // it did not serve, or will not, since then
	Ended      time.Time     // zero is not
	FirstRow   time.Time     // accepted; zero is none
	LastRow    time.Time
	Count
	Seconds []Second
}

// Stats are the counts at present: the ended partitions first, then the others in key order.
func (t *Table) Stats(now time.Time) Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advance(now.UnixNano())
	s := Stats{Requests: t.requests}
	for _, p := range t.ended {
		s.Partitions = append(s.Partitions, p.stats(-1))
		s.Count.add(p.total)
	}
	for i, p := range t.parts {
		s.Partitions = append(s.Partitions, p.stats(i))
		s.Count.add(p.total)
	}
	return s
}

func (p *partition) stats(position int) PartitionStats {
	return PartitionStats{
		Number: p.id, Position: position, Start: p.start, End: p.end, First: p.start == "", Last: p.last, Capacity: p.rate,
		Since: unixTime(p.since), Until: unixTime(p.until), Down: time.Duration(p.down), Ended: unixTime(p.ended), FirstRow: unixTime(p.first), LastRow: unixTime(p.till),
		Count: p.total, Seconds: slices.Clone(p.seconds),
	}
}

func unixTime(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// Reset forgets the counts and the ended partitions; partitions and buckets stay.
func (t *Table) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests, t.ended = 0, nil
	for _, p := range t.parts {
		p.total, p.first, p.till, p.seconds = Count{}, 0, 0, nil
	}
}
