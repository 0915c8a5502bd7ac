package spread

import (
	"cmp"
	"encoding/json"
	"math"
	"time"

	"example.com/tsimport/engine/limiter"
)

// Scenario is one way to load and what came of it. Counts of rows, units and requests and all times of rows are the
// engine's; Seconds is taken around the load; LastLaneSeconds, PeakRSSBytes and Loader are the loader's own.
type Scenario struct {
	Name    string  `json:"name"`
	Error   string  `json:"error,omitempty"` // what ended the load early
	StartMS float64 `json:"start_ms"`        // of the loader, Unix
	Seconds float64 `json:"seconds"`         // from the start of the loader to its end
	Stopped bool    `json:"stopped"`         // by the time limit of baselines, before all rows were written
	counts
	Requests int64 `json:"requests"`
	RowsSent int64 `json:"rows_sent"` // in all requests, again and again
	Lost     int64 `json:"lost"`      // rows missing in the table, or that the SDK gave up on

	CapacityShare  float64 `json:"capacity_share"`
	ShareWithBurst float64 `json:"capacity_share_with_burst,omitempty"` // see measuring.shareWithBurst
	AllowedShare   float64 `json:"allowed_share,omitempty"`             // splits: see measuring.allowed
	ThrottledShare float64 `json:"throttled_share"`                     // of RowsSent
	BatchFill      float64 `json:"batch_fill"`                          // RowsSent in a request, of 200

	FirstRowSeconds    float64     `json:"first_row_seconds,omitempty"` // from the start to the first accepted row: a first pass over the input is before it
	LastLaneSeconds    float64     `json:"last_lane_seconds"`           // until the last partition had a row; 0 when one never had
	ShareFromLastLane  float64     `json:"share_from_last_lane"`        // capacity share of the time after that
	MakespanSeconds    float64     `json:"makespan_seconds"`            // from the start to the last row's acknowledgement
	IdealSeconds       float64     `json:"ideal_seconds,omitempty"`     // see measuring.ideal
	MakespanShare      float64     `json:"makespan_share,omitempty"`    // Ideal of Makespan
	PeakRSSBytes       int64       `json:"peak_rss_bytes,omitempty"`    // of the loader; the SDK's baselines share a process with the bench
	Verified           string      `json:"verified,omitempty"`
	Comparison         *Comparison `json:"comparison,omitempty"`
	Partitions         []Partition `json:"partitions"`
	Splits             []Split     `json:"splits,omitempty"`
	Loader             *Summary    `json:"loader,omitempty"`
	PreparationSeconds float64     `json:"preparation_seconds,omitempty"` // of Seconds: shuffling
}

// Partition is one partition's part in a load. Times are milliseconds from the start of the loader.
type Partition struct {
	From      json.RawMessage `json:"from"` // first partition-key value; null is below all
	Rows      int64           `json:"rows"`
	Units     int64           `json:"units"`
	Throttled int64           `json:"throttled"`
	Capacity  float64         `json:"capacity"` // units a second
	FirstMS   *float64        `json:"first_ms"` // of accepted rows
	LastMS    *float64        `json:"last_ms"`
	SinceMS   float64         `json:"since_ms"`           // it serves
	EndedMS   *float64        `json:"ended_ms,omitempty"` // it was split
	Share     float64         `json:"share"`              // of its capacity while it had rows, or during the whole load
	PerSecond []int64         `json:"per_second"`         // units in each whole second of the clock, the first is the one in which the loader started
}

// measuring turns the engine's counts into shares.
type measuring struct {
	stats   *tableStats
	uneven  bool
	limiter string
	ceiling float64 // units a second of the whole table; 0 means no limit
	start   float64 // Unix milliseconds
	end     float64 // of a load that was stopped; else 0: the last accepted row's time counts
}

// bounded is the capacity of the partitions in a time, or of the table if that is less.
func (m *measuring) bounded(capacity, ms float64) float64 {
	if m.ceiling > 0 {
		return min(capacity, m.ceiling*ms/1000)
	}
	return capacity
}

// fill computes everything that follows from the engine's counts. lastLane 0 is unknown: it is taken from the rows.
func (m *measuring) fill(s *Scenario, lastLane float64) {
	st := m.stats
	s.counts, s.Requests, s.RowsSent = st.counts, st.Requests, st.sent()
	s.ThrottledShare = ratio(float64(st.Throttled), float64(s.RowsSent))
	s.BatchFill = ratio(float64(s.RowsSent), float64(st.Requests)*batchRows)
	s.StartMS = m.start
	end := m.lastRow()
	s.MakespanSeconds = max(0, end-m.start) / 1000
	s.CapacityShare = m.share(end)
	s.FirstRowSeconds = m.firstRow()
	s.LastLaneSeconds = lastLane
	if lastLane == 0 {
		s.LastLaneSeconds = m.lastFirst()
	}
	if m.uneven || windowed(m.limiter) {
		s.ShareWithBurst = m.shareWithBurst(end)
	}
	if !m.uneven && s.LastLaneSeconds > 0 {
		s.ShareFromLastLane = m.shareFrom(m.start+s.LastLaneSeconds*1000, end)
	}
	for i := range st.Partitions {
		s.Partitions = append(s.Partitions, m.partition(&st.Partitions[i], end))
	}
}

// ideal is the time in which a perfect loader would be done: the slowest partition's rows at its capacity; where
// partitions split, the rows of all at the capacity of all that served, as where the rows belong changes. It means
// nothing before all are written.
func (m *measuring) ideal(s *Scenario, splits bool) {
	for _, p := range m.stats.Partitions {
		if p.Capacity > 0 {
			s.IdealSeconds = max(s.IdealSeconds, float64(p.Units)/p.Capacity)
		}
	}
	if m.ceiling > 0 {
		s.IdealSeconds = max(s.IdealSeconds, float64(m.stats.Units)/m.ceiling)
	}
	if splits {
		s.IdealSeconds = m.timeFor(float64(m.stats.Units))
		s.AllowedShare = m.allowed(m.lastRow())
	}
	s.MakespanShare = ratio(s.IdealSeconds, s.MakespanSeconds)
}

// allowed is the share of what the partitions that served allowed at each moment, from the start to the end: their capacity is
// summed up while they serve, whether they had rows or not.
func (m *measuring) allowed(end float64) float64 {
	return ratio(float64(m.stats.Units), m.served(m.start, end))
}

// served is what the partitions that served between two times could take.
func (m *measuring) served(from, to float64) (capacity float64) {
	for _, p := range m.stats.Partitions {
		capacity += p.Capacity * p.overlap(from, to) / 1000
	}
	return m.bounded(capacity, to-from)
}

// firstRow is when the first row was accepted, in seconds from the start; 0 when none was.
func (m *measuring) firstRow() float64 {
	first := math.Inf(1)
	for _, p := range m.stats.Partitions {
		if p.FirstMS != nil {
			first = min(first, *p.FirstMS)
		}
	}
	if math.IsInf(first, 1) {
		return 0
	}
	return max(0, first-m.start) / 1000
}

// timeFor is how many seconds after the start all partitions together could have taken the units, by halving: at most
// the time that the load took.
func (m *measuring) timeFor(units float64) float64 {
	low, high := 0.0, m.lastRow()-m.start
	for range 60 {
		middle := (low + high) / 2
		if m.served(m.start, m.start+middle) < units {
			low = middle
		} else {
			high = middle
		}
	}
	return high / 1000
}

func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

func (m *measuring) lastRow() (last float64) {
	for _, p := range m.stats.Partitions {
		if p.LastMS != nil {
			last = max(last, *p.LastMS)
		}
	}
	return max(last, m.end)
}

// share is the part of the capacity that was used. With equal partitions: of all of them from the start of the loader to
// the last row. With uneven ones a fast partition is done earlier by right, so each counts from its first to its last
// row; as an idle partition saves up a second of capacity before its first row, that can come out a little above 1.
//
// Windows let a load take what is left of the first one at once, so that a short load can come out above 1 there, too. A limit of
// the table bounds what all partitions could take together.
func (m *measuring) share(end float64) float64 {
	var units, capacity float64
	for _, p := range m.stats.Partitions {
		units += float64(p.Units)
		switch {
		case !m.uneven:
			capacity += p.Capacity * (end - m.start) / 1000
		case p.FirstMS != nil && p.LastMS != nil:
			capacity += p.Capacity * (*p.LastMS - *p.FirstMS) / 1000
		}
	}
	return ratio(units, m.bounded(capacity, m.spell(end)))
}

// spell is for how many milliseconds the table's limit counts: as long as that of its partitions.
func (m *measuring) spell(end float64) float64 {
	if !m.uneven {
		return end - m.start
	}
	first, last := math.Inf(1), 0.0
	for _, p := range m.stats.Partitions {
		if p.FirstMS != nil && p.LastMS != nil {
			first, last = min(first, *p.FirstMS), max(last, *p.LastMS)
		}
	}
	return max(0, last-first)
}

// burstMS is how much capacity a partition without rows saves up, the engine's default.
const burstMS = 1000

// windowed is whether a limiter's capacity comes in windows.
func windowed(name string) bool { return name == limiter.FixedWindow || name == limiter.SlidingWindow }

// shareWithBurst is the share against what partitions could really have taken: of uneven ones, beside what flowed in between their
// first and last row, what they had saved up before; of windows, every one that began.
func (m *measuring) shareWithBurst(end float64) float64 {
	var units, capacity float64
	for _, p := range m.stats.Partitions {
		from, to, saved := m.start, end, 0.0
		if m.uneven {
			if p.FirstMS == nil || p.LastMS == nil {
				continue
			}
			from, to = *p.FirstMS, *p.LastMS
		}
		if cmp.Or(m.limiter, limiter.TokenBucket) == limiter.TokenBucket {
			saved = min(burstMS, max(0, from-p.SinceMS))
		}
		units += float64(p.Units)
		capacity += m.possible(p.Capacity, from, to) + p.Capacity*saved/1000
	}
	if m.ceiling > 0 {
		capacity = min(capacity, m.possible(m.ceiling, end-m.spell(end), end))
	}
	return ratio(units, capacity)
}

// possible is how many units a limit can take between two times.
func (m *measuring) possible(rate, from, to float64) float64 {
	if rate <= 0 {
		return 0
	}
	l, err := limiter.New(limiter.Options{Kind: m.limiter, Rate: rate}, timeOf(from))
	if err != nil {
		return 0 // cannot be: Config.Check has refused it
	}
	return l.Possible(timeOf(from), timeOf(to))
}

func timeOf(ms float64) time.Time { return time.UnixMicro(int64(ms * 1000)) }

// lastFirst is when the last partition had its first row accepted, in seconds from the start; 0 when one had none.
func (m *measuring) lastFirst() (seconds float64) {
	for _, p := range m.stats.Partitions {
		if p.FirstMS == nil {
			if p.EndedMS == nil {
				return 0
			}
			continue
		}
		seconds = max(seconds, (*p.FirstMS-m.start)/1000)
	}
	return seconds
}

// shareFrom is the share of what the present and past partitions could take between two times. The engine counts by
// seconds of its clock; of the one in which from lies, the part after it is taken, as if rows had come evenly since the
// start.
func (m *measuring) shareFrom(from, end float64) float64 {
	var units float64
	for _, p := range m.stats.Partitions {
		for _, s := range p.Seconds {
			next := float64(s.Unix+1) * 1000
			begin := max(next-1000, m.start, p.SinceMS)
			units += float64(s.Units) * min(1, max(0, ratio(next-from, next-begin)))
		}
	}
	return ratio(units, m.served(from, end))
}

// overlap is for how many of the milliseconds between two times the partition served.
func (p *partitionStats) overlap(from, to float64) float64 {
	from = max(from, p.SinceMS)
	if p.EndedMS != nil {
		to = min(to, *p.EndedMS)
	}
	return max(0, to-from)
}

func (m *measuring) partition(p *partitionStats, end float64) Partition {
	out := Partition{
		From: p.Start, Rows: p.Rows, Units: p.Units, Throttled: p.Throttled, Capacity: p.Capacity,
		FirstMS: m.since(p.FirstMS), LastMS: m.since(p.LastMS), SinceMS: max(0, p.SinceMS-m.start), EndedMS: m.since(p.EndedMS),
		PerSecond: []int64{},
	}
	if len(out.From) == 0 {
		out.From = json.RawMessage("null")
	}
	capacity := p.Capacity * (end - m.start) / 1000
	if m.uneven {
		capacity = 0
		if p.FirstMS != nil && p.LastMS != nil {
			capacity = p.Capacity * (*p.LastMS - *p.FirstMS) / 1000
		}
	}
	out.Share = ratio(float64(p.Units), capacity)
	first := int64(math.Floor(m.start / 1000))
	for _, s := range p.Seconds {
		at := s.Unix - first
		if at < 0 || at > maxSeconds {
			continue // a clock that was set
		}
		for int64(len(out.PerSecond)) <= at {
			out.PerSecond = append(out.PerSecond, 0)
		}
		out.PerSecond[at] += s.Units
	}
	return out
}

// maxSeconds bounds the seconds kept of a load.
const maxSeconds = 1 << 20

func (m *measuring) since(ms *float64) *float64 {
	if ms == nil {
		return nil
	}
	return new(*ms - m.start)
}
