package pipeline

import (
	"testing"
	"time"

	"tsimport/internal/table"
	"tsimport/partitioner"
)

func TestTheTimelineCountsWhatTheLedgerDoes(t *testing.T) {
	start := time.Now()
	report := &Report{ReportTime: ReportTime{Started: start.UTC()}}
	r := newTimelineRecorder(report, idle)
	one := &lane{}
	r.recut([]*lane{one}, partitioner.NewMap(nil))
	report.Read, report.Rejected = 1000, 3
	r.point(start)
	report.Written = 200
	r.landed(start.Add(time.Second), one, answer{final: 200, accepted: 200, rows: 200}, 0, 1)
	// The partition splits; an answer to the old lane comes later than that.
	a, b := &lane{}, &lane{}
	r.recut([]*lane{a, b}, partitioner.NewMap([]table.Value{{Type: table.Integer, Int: 5}}))
	report.Written = 600
	r.landed(start.Add(2*time.Second), one, answer{final: 150, throttled: 50, accepted: 150, rows: 200}, 10, 2)
	r.landed(start.Add(2*time.Second), b, answer{final: 250, accepted: 500, rows: 250}, 0, 1)
	tl := r.timeline()
	want := []Point{{Read: 1000, Rejected: 3, Queued: 997}, {Final: 200, Requests: 1, Units: 200, Queued: 797}, {Final: 400, Throttled: 50, Retried: 10, Requests: 3, Units: 650, Queued: 397}}
	if len(tl.Points) != 3 || tl.Points[0] != want[0] || tl.Points[1] != want[1] || tl.Points[2] != want[2] {
		t.Errorf("points %+v, want %+v", tl.Points, want)
	}
	h := tl.Heat
	if len(h.Partitions) != 2 || h.Partitions[0] != "" || h.Partitions[1] != "5" || h.Counts[1][0] != 200 || h.Counts[2][0] != 150 || h.Counts[2][1] != 250 {
		t.Errorf("heat %+v", h)
	}
}

func TestTheTimelineOfADayIsBounded(t *testing.T) {
	start := time.Now()
	report := &Report{ReportTime: ReportTime{Started: start}}
	r := newTimelineRecorder(report, idle)
	l := &lane{}
	r.recut([]*lane{l}, partitioner.NewMap(nil))
	for s := range 86400 {
		report.Written++
		r.landed(start.Add(time.Duration(s)*time.Second), l, answer{final: 1}, 0, 1)
	}
	tl := r.timeline()
	sum := int64(0)
	for _, p := range tl.Points {
		sum += p.Final
	}
	if len(tl.Points) > mostPoints || len(tl.Heat.Counts) > mostColumns || sum != 86400 || tl.Every != 32*time.Second {
		t.Errorf("%d points every %v, %d columns, %d rows", len(tl.Points), tl.Every, len(tl.Heat.Counts), sum)
	}
}

func BenchmarkRecorder(b *testing.B) {
	start := time.Now()
	r := newTimelineRecorder(&Report{ReportTime: ReportTime{Started: start}}, idle)
	l := &lane{}
	r.recut([]*lane{l}, partitioner.NewMap(nil))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		r.landed(start.Add(time.Duration(n)*time.Millisecond), l, answer{final: 200, rows: 200}, 0, 1)
	}
}
