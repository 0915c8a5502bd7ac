package sim

import (
	"slices"
	"time"
)

// maxEnded limits the number of ended partitions whose counts are kept.
const maxEnded = MaxPartitions

// cut makes the sorted points the bounds. Partitions with an unchanged range remain. The others end, and new ones
// inherit their samples of keys. A new partition serves after unavailable, with the capacity of its first predecessor
// and an empty bucket.
func (t *Table) cut(at int64, points []Key, unavailable time.Duration) {
	parts := make([]*partition, 0, len(points)+1)
	old := 0 // index of the first old partition that overlaps the new one
	for i := range len(points) + 1 {
		n := &partition{last: i == len(points)}
		if i > 0 {
			n.start = points[i-1]
		}
		if !n.last {
			n.end = points[i]
		}
		for !t.parts[old].last && t.parts[old].end <= n.start {
			old++
		}
		if o := t.parts[old]; o.start == n.start && o.last == n.last && o.end == n.end {
			parts = append(parts, o)
			continue
		}
		n.factor = t.parts[old].factor
		since := after(at, int64(unavailable))
		for _, o := range t.parts[old:] {
			if !n.last && o.start >= n.end {
				break
			}
			n.inherit(o)
			since = max(since, o.until)
		}
		parts = append(parts, t.adopt(n, since))
	}
	t.retire(at, parts)
	t.parts = parts
}

// inherit adds the share of an overlapping old partition's sample and bytes.
func (p *partition) inherit(o *partition) {
	part := o.sample.part(func(k Key) bool { return p.start <= k && (p.last || k < p.end) })
	if n := len(o.sample.keys); n > 0 {
		p.bytes += o.bytes * int64(len(part.keys)) / int64(n)
	}
	p.sample.keys = append(p.sample.keys, part.keys...)
	p.sample.seen += part.seen
	p.sample.size = max(p.sample.size, len(p.sample.keys))
}

func (t *Table) retire(at int64, next []*partition) {
	kept := make(map[*partition]bool, len(next))
	for _, p := range next {
		kept[p] = true
	}
	for _, p := range t.parts {
		if !kept[p] {
			p.ended = at
			p.sample = sampler{}
			t.ended = append(t.ended, p)
		}
	}
	if n := len(t.ended); n > maxEnded {
		t.ended = slices.Delete(t.ended, 0, n-maxEnded)
	}
}

// halve splits a partition at its middle key, and reports whether that was possible.
func (t *Table) halve(p *partition, at int64, unavailable time.Duration) bool {
	point, ok := t.middle(p)
	if !ok {
		return false
	}
	points := append(t.bounds(), point)
	slices.Sort(points)
	t.cut(at, points, unavailable)
	return true
}

// middle returns the key that halves the configured sample or, without one, the keys seen.
func (t *Table) middle(p *partition) (Key, bool) {
	from, _ := slices.BinarySearch(t.config.Sample, p.start)
	to := len(t.config.Sample)
	if !p.last {
		to, _ = slices.BinarySearch(t.config.Sample, p.end)
	}
	if point, ok := halve(t.config.Sample[from:to]); ok {
		return point, ok
	}
	return halve(p.sample.sorted())
}

// splitAll halves the partitions that are too large or too busy.
func (t *Table) splitAll(at int64) {
	for _, p := range slices.Clone(t.parts) {
		if !p.splitDue || at < p.retryAt || len(t.parts) >= t.config.AutoSplit.MaxPartitions {
			continue
		}
		if !t.halve(p, at, t.config.AutoSplit.Unavailable) {
			p.retryAt = at + int64(time.Second) // only one partition-key value so far
		}
	}
}

// cutBySeen cuts a table into its configured initial partitions once enough keys have been seen.
func (t *Table) cutBySeen(at int64) {
	n := t.config.Partitions
	if n < 2 || len(t.config.Sample) > 0 || len(t.parts) > 1 {
		return
	}
	p := t.parts[0]
	if p.sample.seen < int64(max(minSeen, minSeenEach*n)) || at < p.retryAt {
		return
	}
	p.retryAt = at + int64(time.Second)
	if points := Quantiles(p.sample.sorted(), n); len(points) > 0 {
		t.cut(at, points, 0)
		t.slowDown(at)
	}
}
