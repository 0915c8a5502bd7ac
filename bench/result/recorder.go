package result

import (
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/timeline"
)

// A result has a point every pointEvery. The interval doubles whenever there would be more than maxPoints.
const (
	maxPoints  = 3600
	pointEvery = time.Second
)

// Recorder builds a Result from samples. It is not safe for concurrent use.
type Recorder struct {
	warmUp  time.Duration
	totals  Totals
	codes   map[string]int64
	latency histogram
	service histogram
	points  *timeline.Line[Point]
	parts   []partition // by slot
}

type partition struct {
	Partition
	lower   string
	service Counts
}

// NewRecorder returns a recorder that excludes the first warmUp of a run from totals.
func NewRecorder(warmUp time.Duration) *Recorder {
	return &Recorder{
		warmUp: warmUp, codes: map[string]int64{}, latency: newHistogram(), service: newHistogram(),
		points: timeline.New(pointEvery, maxPoints, mergePoints),
	}
}

func mergePoints(into *Point, later Point) {
	into.Rows += later.Rows
	into.Units += later.Units
	into.Bytes += later.Bytes
	into.Requests += later.Requests
	into.Retried += later.Retried
	into.Throttled += later.Throttled
	into.Refused += later.Refused
	into.Latency.Merge(later.Latency)
}

// Slot returns the index of the partition that begins at the ordering key lower. A new one is displayed as from.
func (r *Recorder) Slot(lower, from string) int {
	slot := slices.IndexFunc(r.parts, func(p partition) bool { return p.lower == lower })
	if slot < 0 {
		slot = len(r.parts)
		r.parts = append(r.parts, partition{Partition: Partition{From: from}, lower: lower})
	}
	return slot
}

// Measured reports whether a request that ends at done counts towards the totals.
func (r *Recorder) Measured(done time.Duration) bool { return done >= r.warmUp }

func (r *Recorder) Add(s *Sample) {
	p := r.points.At(s.Done)
	p.Rows += int64(s.Written)
	p.Units += s.Units
	p.Bytes += s.Bytes
	p.Requests++
	p.Throttled += int64(s.Throttled)
	p.Refused += int64(s.Rows - s.Written - s.Throttled)
	if s.Attempt > 1 {
		p.Retried += int64(s.Rows)
	}
	if s.Last {
		p.Latency.Add(s.Done - s.Intended)
	}
	if r.Measured(s.Done) {
		r.measure(s)
	}
}

func (r *Recorder) measure(s *Sample) {
	t := &r.totals
	t.Rows += int64(s.Written)
	t.Units += s.Units
	t.Bytes += s.Bytes
	t.Requests++
	t.RowsSent += int64(s.Rows)
	t.Throttled += int64(s.Throttled)
	t.Unavailable += int64(s.Unavailable)
	t.Failed += int64(s.Failed)
	if s.Attempt > 1 {
		t.Retried += int64(s.Rows)
	}
	for code, n := range s.Codes {
		r.codes[code] += n
	}
	if s.Last {
		r.latency.add(s.Done - s.Intended)
	}
	r.service.add(s.Done - s.Sent)
	p := &r.parts[s.Slot]
	p.Rows += int64(s.Written)
	p.Units += s.Units
	p.Requests++
	p.Throttled += int64(s.Throttled)
	p.service.Add(s.Done - s.Sent)
}

// Late counts the wait of a batch that was due but not written by end. Without it, the latency would look too good.
func (r *Recorder) Late(intended, end time.Duration) { r.late(intended, end, 1) }

// maxLate is the maximum number of waits that LateFrom counts individually.
const maxLate = 100_000

// LateFrom counts the waits of batches that were due from intended on, one per step, but not sent by the end.
func (r *Recorder) LateFrom(intended, step, end time.Duration) {
	if end <= intended {
		return
	}
	step = max(step, 1)
	n := int64((end - intended + step - 1) / step)
	weight := (n + maxLate - 1) / maxLate
	for i := int64(0); i < n; i += weight {
		r.late(intended+time.Duration(i)*step, end, min(weight, n-i))
	}
}

func (r *Recorder) late(intended, end time.Duration, n int64) {
	if end < intended || !r.Measured(end) {
		return
	}
	wait := end - intended
	r.points.At(end).Latency.add(wait, n)
	r.latency.addTimes(wait, n)
}

// Result returns the result of a run that ended at end, a time since its start.
func (r *Recorder) Result(end time.Duration) *Result {
	res := &Result{
		WarmUp: min(r.warmUp, end).Seconds(), Seconds: max(0, end-r.warmUp).Seconds(), Totals: r.totals, Codes: r.codes,
		Latency: r.latency.latency(), Service: r.service.latency(),
		Every: r.points.Every().Seconds(), Points: r.points.Points(), Partitions: []Partition{},
	}
	perSecond := func(n int64) float64 {
		if res.Seconds == 0 {
			return 0
		}
		return float64(n) / res.Seconds
	}
	t := &r.totals
	res.PerSecond = Rates{perSecond(t.Rows), perSecond(t.Units), perSecond(t.Bytes), perSecond(t.Requests)}
	for _, p := range slices.SortedFunc(slices.Values(r.parts),
		func(a, b partition) int { return strings.Compare(a.lower, b.lower) }) {
		p.PerSecond = perSecond(p.Rows)
		p.P50, p.P99 = p.service.Quantile(.5), p.service.Quantile(.99)
		res.Partitions = append(res.Partitions, p.Partition)
	}
	return res
}

// Points returns the counts so far, one per second or a longer interval. They are valid until the next call.
func (r *Recorder) Points() []Point { return r.points.Points() }
