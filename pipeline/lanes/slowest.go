package lanes

import (
	"cmp"
	"math"
	"slices"
	"time"

	"example.com/tsimport/pipeline/ledger"
)

// Constants for sampling the lanes to find the slowest one.
const (
	sampleEvery = 250 * time.Millisecond
	rateMemory  = 5 * time.Second // approximate time over which a lane's rate is measured
)

// A partition is named as the slowest if the waiting time of its rows reaches all of these limits.
const (
	slowestLeast = time.Second
	slowestShare = 0.25 // as a share of the load's time
	slowestRatio = 2    // as a multiple of the median of the partitions
)

// Count sets the numbers of partitions, and the slowest one, in the report.
func (s *Set) Count(r *ledger.ReportPartitions, start time.Time) {
	r.Partitions = s.Sending()
	for _, l := range s.all {
		if !l.turn.begun.IsZero() && !l.gap {
			r.PartitionsUsed++
			r.LastLaneSeconds = max(r.LastLaneSeconds, l.turn.begun.Sub(start).Seconds())
		}
	}
	r.Slowest = s.slowest(time.Since(start))
}

// Sample samples each lane's waiting rows, at intervals. It returns the seconds that the slowest lane needs, if known.
func (s *Set) Sample(now time.Time) (left float64, ok bool) {
	passed := now.Sub(s.sampled)
	if passed < sampleEvery {
		return 0, false
	}
	if s.sampled.IsZero() {
		passed = 0
	}
	s.sampled = now
	for i, l := range s.all {
		if l.gap {
			continue
		}
		rows := l.queue.Rows() + int64(s.Cutter.Held(i))
		l.sample(passed, rows)
		if l.backlog.rate > 0 {
			left = max(left, float64(rows)/l.backlog.rate)
		}
	}
	return left, true
}

// backlog measures how long rows have waited in a lane, and how fast they left meanwhile.
type backlog struct {
	sampled int64         // number of rows that were final at the last sample
	waited  bool          // rows waited at the last sample
	waiting time.Duration // how long rows have waited
	rate    float64       // recent rows per second while rows waited; 0 means unknown
}

// sample takes the number of rows that wait in the lane, and the time passed since the last sample. Only time with
// waiting rows shows the partition's speed. One that accepts nothing for a while is expected to recover its speed.
func (l *lane) sample(passed time.Duration, rows int64) {
	waited := l.backlog.waited
	l.backlog.waited = rows > 0
	accepted := l.tally.written - l.backlog.sampled
	l.backlog.sampled = l.tally.written
	if !waited || passed <= 0 {
		return
	}
	l.backlog.waiting += passed
	if l.health.down || l.trouble.stuck {
		return
	}
	rate := float64(accepted) / passed.Seconds()
	if l.backlog.rate == 0 {
		l.backlog.rate = rate
		return
	}
	l.backlog.rate += (rate - l.backlog.rate) * (1 - math.Exp(-passed.Seconds()/rateMemory.Seconds()))
}

// slowest returns the partition whose rows waited by far the longest, or nil if there is no such partition.
func (s *Set) slowest(elapsed time.Duration) *ledger.ReportSlowest {
	used := slices.DeleteFunc(slices.Clone(s.all), func(l *lane) bool { return l.gap || l.turn.begun.IsZero() })
	if len(used) < 2 {
		return nil
	}
	slices.SortStableFunc(used, func(a, b *lane) int { return cmp.Compare(b.backlog.waiting, a.backlog.waiting) })
	top, others := used[0], used[len(used)/2].backlog.waiting
	if top.backlog.waiting < slowestLeast || top.backlog.waiting.Seconds() < slowestShare*elapsed.Seconds() ||
		top.backlog.waiting < slowestRatio*others {
		return nil
	}
	return &ledger.ReportSlowest{Partition: top.index, Table: top.table, From: FirstKey(s.Partitions, top.index),
		Rows: top.tally.written, Waiting: top.backlog.waiting.Seconds(),
		OthersWaiting: others.Seconds(), Throttled: top.tally.throttled, Unavailable: top.tally.unavailable}
}
