package pipeline

import (
	"runtime"
	"strings"
	"time"

	"example.com/tsimport/internal/timeline"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/lanes"
	"example.com/tsimport/pipeline/ledger"
)

// The maximum points of a load's timeline, and columns of its heat map, however long the load takes.
const (
	mostPoints  = 3600
	mostColumns = 600
)

func mergePoints(into *ledger.Point, later ledger.Point) {
	into.Read += later.Read
	into.Final += later.Final
	into.Rejected += later.Rejected
	into.Throttled += later.Throttled
	into.Unavailable += later.Unavailable
	into.Retried += later.Retried
	into.Requests += later.Requests
	into.Units += later.Units
	into.Queued = later.Queued
	into.Limited.Add(&later.Limited)
}

// timelineRecorder records the timeline. It is called once per request and once per split, so that rows cost nothing.
type timelineRecorder struct {
	counts  *ledger.Counted
	started time.Time
	points  *timeline.Line[ledger.Point]
	heat    *timeline.Heat
	meter   *bottleneck.Meter // what limits the load

	read, rejected int64 // counts at the last point
}

// newTimelineRecorder returns a recorder. processors returns the CPU seconds that the load has used or waited for.
func newTimelineRecorder(counts *ledger.Counted, started time.Time, processors func() float64) *timelineRecorder {
	// Records of earlier attempts do not count.
	r := &timelineRecorder{counts: counts, started: started, read: counts.Read, rejected: counts.Rejected,
		points: timeline.New(time.Second, mostPoints, mergePoints), heat: timeline.NewHeat(time.Second, mostColumns)}
	r.meter = bottleneck.NewMeter(bottleneck.Options{Used: processors, Processors: runtime.GOMAXPROCS(0), Each: r.limited})
	return r
}

// slots returns the heat-map row of each partition of a map.
func (r *timelineRecorder) slots(m *partitioner.Map) []int {
	slots := make([]int, m.Len())
	for i := range slots {
		shown := lanes.FirstKey(m, i)
		if t := m.Table(i); t != "" {
			shown = strings.TrimSpace(t + " " + shown)
		}
		slots[i] = r.heat.Slot(string(m.Lower(i)), shown)
	}
	return slots
}

// point returns the point of the timeline for a moment, after adding the ledger's counts since the last call.
func (r *timelineRecorder) point(now time.Time) *ledger.Point {
	l := r.counts
	p := r.points.At(now.Sub(r.started))
	p.Read += l.Read - r.read
	p.Rejected += l.Rejected - r.rejected
	r.read, r.rejected = l.Read, l.Rejected
	p.Queued = l.Read - l.Written - l.Rejected - l.Superseded - l.ConditionFailed - l.Archived
	return p
}

func (r *timelineRecorder) landed(l *lanes.Landing) {
	p := r.point(l.At)
	p.Final += int64(l.Answer.Final)
	p.Throttled += int64(l.Answer.Throttled)
	p.Unavailable += int64(l.Answer.Unavailable)
	p.Retried += int64(l.Retried)
	p.Requests += int64(l.Requests)
	p.Units += l.Answer.Accepted
	r.heat.Add(l.At.Sub(r.started), l.Slot, int64(l.Answer.Final))
}

func (r *timelineRecorder) limited(begun time.Time, s *bottleneck.Spent) {
	r.points.At(begun.Sub(r.started)).Limited.Add(s)
}

func (r *timelineRecorder) timeline() *ledger.Timeline {
	return &ledger.Timeline{Every: r.points.Every(), Points: r.points.Points(), Heat: r.heat.Map()}
}
