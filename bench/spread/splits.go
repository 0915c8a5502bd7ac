package spread

import (
	"bytes"
	"context"
	"encoding/json"
	"time"
)

// Split is a partition that became two. Times are milliseconds.
type Split struct {
	AtMS  float64         `json:"at_ms"` // from the start of the loader until the children serve
	From  json.RawMessage `json:"from"`  // of the partition that was
	Bound json.RawMessage `json:"bound"` // between the children
	// UsedMS is from when the children serve until a second begins in which 90 % of their capacity is used; null when
	// that never was.
	UsedMS *float64 `json:"to_90_ms"`
}

// usedFrom is the share of the children's capacity that counts as in use, usedOver the time it is looked at.
const (
	usedFrom   = 0.9
	usedOverMS = 1000
)

// observation is the units that each partition had taken by a time.
type observation struct {
	atMS  float64
	units map[int]int64
}

// observeEvery is finer than the seconds that the engine counts by, which are too coarse for how fast a split is used.
const observeEvery = 100 * time.Millisecond

// observe asks the engine for its counts until ctx ends.
func observe(ctx context.Context, e *engine) (seen []observation) {
	tick := time.NewTicker(observeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return seen
		case <-tick.C:
		}
		stats, now, err := e.stats(ctx)
		if err != nil {
			continue // ctx has ended, or the load is about to find out
		}
		o := observation{now, make(map[int]int64, len(stats.Partitions))}
		for _, p := range stats.Partitions {
			o.units[p.ID] = p.Units
		}
		seen = append(seen, o)
	}
}

// splitsOf are the splits among the partitions, with how long their children's capacity lay idle.
func splitsOf(stats *tableStats, seen []observation, start float64) (splits []Split) {
	for i := range stats.Partitions {
		parent := &stats.Partitions[i]
		if parent.EndedMS == nil {
			continue
		}
		left, right := children(stats, parent)
		if left == nil {
			continue
		}
		s := Split{AtMS: left.SinceMS - start, From: parent.Start, Bound: right.Start}
		if used, ok := usedAfter(left, right, seen); ok {
			s.UsedMS = &used
		}
		splits = append(splits, s)
	}
	return splits
}

// children are the two partitions that share what was the parent's range.
func children(stats *tableStats, parent *partitionStats) (left, right *partitionStats) {
	for i := range stats.Partitions {
		l := &stats.Partitions[i]
		if l.ID == parent.ID || !bytes.Equal(l.Start, parent.Start) || l.SinceMS < *parent.EndedMS {
			continue
		}
		for j := range stats.Partitions {
			r := &stats.Partitions[j]
			if bytes.Equal(r.End, parent.End) && bytes.Equal(l.End, r.Start) && r.SinceMS >= *parent.EndedMS {
				return l, r
			}
		}
	}
	return nil, nil
}

// usedAfter is how many milliseconds after two partitions began to serve a stretch of usedOverMS begins in which they
// took usedFrom of their capacity.
func usedAfter(a, b *partitionStats, seen []observation) (float64, bool) {
	since := max(a.SinceMS, b.SinceMS)
	points := []observation{{atMS: since}}
	for _, o := range seen {
		if o.atMS > since {
			points = append(points, o)
		}
	}
	units := func(o observation) float64 { return float64(o.units[a.ID] + o.units[b.ID]) }
	j := 0
	for i := range points {
		for j < len(points) && points[j].atMS-points[i].atMS < usedOverMS {
			j++
		}
		if j == len(points) {
			return 0, false
		}
		seconds := (points[j].atMS - points[i].atMS) / 1000
		if units(points[j])-units(points[i]) >= usedFrom*(a.Capacity+b.Capacity)*seconds {
			return points[i].atMS - since, true
		}
	}
	return 0, false
}
