package sim

import (
	"slices"
	"time"
)

// maxEnded limits the replaced partitions remembered with their counts.
const maxEnded = MaxPartitions

// cut makes the sorted points the bounds. A partition with an unchanged range stays; the others end, and new ones take
// over what is known of their keys. They serve after unavailable, with full capacity and empty buckets.
func (t *Table) cut(at int64, points []Key, unavailable time.Duration) {
	parts := make([]*partition, 0, len(points)+1)
	old := 0 // the first old partition that reaches into the new one
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

// inherit takes over the share of an overlapping old partition's sample and bytes.
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

// halve splits a partition in the middle of its known keys, and reports whether it could.
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

// middle is the key that halves the configured sample, or else the keys seen.
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
			p.retryAt = at + int64(time.Second) // one partition-key value, so far
		}
	}
}

// cutBySeen cuts a table that was to have initial partitions, once enough rows have shown where.
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
