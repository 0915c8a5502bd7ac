package sim

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Stats holds a table's counts since its simulation began, or since Reset.
type Stats struct {
	Count
	Requests   int64 // write requests
	Partitions []PartitionStats
}

// PartitionStats describes one partition, current or ended, with its counts.
type PartitionStats struct {
	Number     int           // permanent
	Position   int           // in key order; -1 if it has ended
	Start, End Key           // an empty Start is below all keys
	Last       bool          // End is above all keys
	Capacity   float64       // units per second; 0 means no limit
	Since      time.Time     // when service with this Capacity began
	Until      time.Time     // unavailable until then
	Down       time.Duration // total unavailability after Since
	Ended      time.Time     // zero if it is current
	FirstRow   time.Time     // accepted; zero if none
	LastRow    time.Time
	Count
	Seconds []Second
}

// Stats returns the counts so far: ended partitions first, then the others in key order.
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
		Number: p.id, Position: position, Start: p.start, End: p.end, Last: p.last, Capacity: p.rate,
		Since: unixTime(p.since), Until: unixTime(p.until), Down: time.Duration(p.down), Ended: unixTime(p.ended),
		FirstRow: unixTime(p.first), LastRow: unixTime(p.till), Count: p.total, Seconds: slices.Clone(p.seconds),
	}
}

func unixTime(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// Reset resets the counts and drops ended partitions. Partitions and buckets do not change.
func (t *Table) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests, t.ended = 0, nil
	for _, p := range t.parts {
		p.total, p.first, p.till, p.seconds = Count{}, 0, 0, nil
	}
}

// sampler keeps a random sample of keys, to find their middle. It draws how many keys to skip, so most are cheap.
type sampler struct {
	keys [][]byte
	size int   // maximum number of kept keys
	seen int64 // number of keys seen; estimated after a split
	next int64 // value of seen at which the next key is kept
}

func (s *sampler) add(key []byte, rng *rand.Rand) {
	s.seen++
	if s.seen < s.next {
		return
	}
	if len(s.keys) < s.size {
		s.keys = append(s.keys, bytes.Clone(key))
	} else {
		i := rng.IntN(len(s.keys))
		s.keys[i] = append(s.keys[i][:0], key...)
	}
	s.next = s.seen + 1
	if p := float64(s.size) / float64(s.seen); p < 1 {
		s.next += int64(math.Log(1-rng.Float64()) / math.Log1p(-p))
	}
}

// part returns a sampler of the keys that keep selects.
func (s *sampler) part(keep func(Key) bool) (p sampler) {
	p.size = s.size
	for _, k := range s.keys {
		if keep(Key(k)) {
			p.keys = append(p.keys, bytes.Clone(k))
		}
	}
	if len(s.keys) > 0 {
		p.seen = s.seen * int64(len(p.keys)) / int64(len(s.keys))
	}
	return p
}

func (s *sampler) sorted() []Key {
	keys := make([]Key, len(s.keys))
	for i, k := range s.keys {
		keys[i] = Key(k)
	}
	slices.Sort(keys)
	return keys
}
