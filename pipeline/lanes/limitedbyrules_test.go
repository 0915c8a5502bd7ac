package lanes

import (
	"fmt"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/bottleneck"
)

// pausing is a pacer that allows requests from a given time on, or none before an answer.
type pausing struct {
	restless
	until *time.Time
	full  *bool
	rate  float64
}

func (p pausing) Next(time.Time, int, float64) (float64, time.Time, bool) {
	return table.MaxBatchRows, *p.until, !*p.full
}

func (p pausing) NextOf(now time.Time, n int, perRow, _ float64) (float64, time.Time, bool) {
	return p.Next(now, n, perRow)
}

func (p pausing) Rate() float64 { return p.rate }

// laneState describes a lane of a test: how many rows wait, and what delays them.
type laneState struct {
	rows              int
	paced, full, down bool
	rate              float64
}

// lanesOf returns lanes in these states, after asking each for its turn.
func lanesOf(tb testing.TB, now time.Time, states ...laneState) *Set {
	tb.Helper()
	var bounds []table.Value
	for i := range len(states) - 1 {
		bounds = append(bounds, table.Value{Type: table.String, Bytes: fmt.Appendf(nil, "k%05d", i+1)})
	}
	next := 0
	o := optionsOf(Config{Concurrency: 1})
	o.Tuning.Pacer = func() Pacer {
		state := states[next]
		next++
		until := now
		if state.paced {
			until = now.Add(time.Minute)
		}
		return pausing{until: &until, full: &state.full, rate: state.rate}
	}
	s := New(partitioner.NewMap(bounds), o)
	s.CutBy(partitioner.Options{}, nil)
	for i, state := range states {
		if state.rows > 0 {
			keys := make([]string, state.rows)
			for j := range keys {
				keys[j] = fmt.Sprintf("k%05d/%d", i, j)
			}
			s.Put(i, blockOf(new(table.Split), keys...), s.Partitions, now)
		}
		s.all[i].health.down = state.down
	}
	return s
}

func TestLimitIsWhatMostLanesWaitFor(t *testing.T) {
	now := time.Now()
	const few, many = 10, table.MaxBatchRows
	starved, ready := laneState{}, laneState{rows: many}
	paced, full, down := laneState{rows: many, paced: true}, laneState{rows: many, full: true},
		laneState{rows: many, down: true}
	for _, tt := range []struct {
		name   string
		Set    []laneState
		Limits Limits
		more   bool // more rows arrive
		want   bottleneck.Word
	}{
		{"rows come, and none waits", []laneState{starved, starved}, Limits{Reading: true}, true, bottleneck.Reader},
		{"a few wait for their partition, and more come", []laneState{{rows: few, paced: true}, starved},
			Limits{Reading: true}, true, bottleneck.Reader},
		{"a few wait for a fast partition", []laneState{{rows: few, paced: true, rate: 1000}}, Limits{Reading: true}, true,
			bottleneck.Reader},
		{"a few are many for a slow partition", []laneState{{rows: few, paced: true, rate: 10}}, Limits{Reading: true}, true,
			bottleneck.Partition},
		{"a few wait, and none come", []laneState{{rows: few, paced: true}, starved}, Limits{}, false, bottleneck.Partition},
		{"many wait", []laneState{paced, starved, starved}, Limits{Reading: true}, true, bottleneck.Partition},
		{"the partition lets no more in flight", []laneState{full, starved}, Limits{Reading: true}, true, bottleneck.Link},
		{"most lanes count", []laneState{paced, full, full}, Limits{}, false, bottleneck.Link},
		{"most lanes count, the other way round", []laneState{paced, paced, full}, Limits{}, false, bottleneck.Partition},
		{"a partition is away", []laneState{down, starved}, Limits{}, false, bottleneck.Outage},
		{"most partitions are away", []laneState{down, down, paced}, Limits{Reading: true}, true, bottleneck.Outage},
		{"a few are away", []laneState{down, paced, paced}, Limits{Reading: true}, true, bottleneck.Partition},
		{"no worker is free", []laneState{ready, paced, paced}, Limits{Blocked: bottleneck.Link}, false, bottleneck.Link},
		{"no worker is free, and none is needed", []laneState{paced, paced}, Limits{Blocked: bottleneck.Link}, false,
			bottleneck.Partition},
		{"a ceiling", []laneState{ready, paced, paced}, Limits{Blocked: bottleneck.Ceiling, Reading: true}, true,
			bottleneck.Ceiling},
		{"a ceiling, and a lane that has a few rows", []laneState{{rows: few}},
			Limits{Blocked: bottleneck.Ceiling, Reading: true}, false, bottleneck.Ceiling},
		{"memory is full of rows on their way to the disk", []laneState{starved}, Limits{}, false, bottleneck.Disk},
		{"nothing is left but the last answers", []laneState{starved}, Limits{}, false, bottleneck.Link},
	} {
		s := lanesOf(t, now, tt.Set...)
		if tt.want == bottleneck.Disk {
			s.disk.busy = 1
		}
		if tt.Limits.Blocked == bottleneck.None {
			s.choose(now, tt.more)
		} else {
			for _, l := range s.all {
				if s.ask(l, now, tt.more); l.turn.asks && !l.turn.at.After(now) {
					l.turn.stale = true // lanes are not asked while nothing can be sent
				}
			}
		}
		conformance.Equal(t, s.heldBy(now, tt.Limits), tt.want, "%s", tt.name)
	}
}

func TestIndexesAreBlamedOnlyIfMostPartitionsLag(t *testing.T) {
	now := time.Now()
	paced, going := laneState{rows: 200, paced: true}, laneState{rows: 1}
	for _, tt := range []struct {
		Set  []laneState
		want bottleneck.Word
	}{{[]laneState{paced, paced, going}, bottleneck.Index}, {[]laneState{paced, going, going}, bottleneck.Partition}} {
		s := lanesOf(t, now, tt.Set...)
		s.options.Indexes = 1
		s.choose(now, true)
		conformance.Equal(t, s.heldBy(now, Limits{Reading: true}), tt.want, "heldBy")
	}
}

func TestLongestLaneGoesFirstUnderSharedRate(t *testing.T) {
	now := time.Now()
	s := lanesOf(t, now, laneState{rows: 10}, laneState{rows: 500, paced: true}, laneState{rows: 300},
		laneState{rows: 200})
	turns := map[int]bool{}
	for range 200 {
		l, _ := s.choose(now, false)
		turns[l.index] = true
	}
	conformance.True(t, len(turns) == 3 && !turns[1], "without such a rate lanes %v had turns", turns)
	s.ceilings = newCeilings(optionsOf(Config{Rates: Rates{MaxRows: 1000}}))
	for range 20 {
		l, _ := s.choose(now, false)
		conformance.MustEqual(t, l.index, 2, "lane")
	}
	for _, l := range s.all {
		l.turn.lastSend = now.Add(time.Minute) // the others have just sent
	}
	s.all[0].turn.lastSend = now.Add(time.Minute - longestTurn)
	l, _ := s.choose(now.Add(time.Minute), false)
	conformance.True(t, l.index == 0, "lane %d goes before one that has waited for %v", l.index, longestTurn)
}

func TestLaneSlowedWithoutRefusalMayBeLimitedByLink(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		took      time.Duration // time that requests take, after short ones
		throttled time.Time
		want      bottleneck.Word
		unsure    bool
	}{{10 * time.Millisecond, time.Time{}, bottleneck.None, false},
		{10 * time.Millisecond, now.Add(-time.Minute), bottleneck.Partition, true},
		{3 * time.Second, time.Time{}, bottleneck.Link, true},
		{3 * time.Second, now.Add(-time.Second), bottleneck.Partition, false},
		{3 * time.Second, now.Add(-time.Minute), bottleneck.Link, true}} {
		s := lanesOf(t, now, laneState{rows: 300, paced: true})
		s.choose(now, false)
		s.observed.throttled = tt.throttled
		window := s.ceilings.window
		for i, took := range []time.Duration{10 * time.Millisecond, tt.took, tt.took, tt.took, tt.took} {
			at := now.Add(time.Duration(i-5) * 3 * time.Second)
			window.Landed(at.Add(took), window.Sent(at, 100_000), true)
		}
		word, unsure := s.LimitedBy(now, Limits{})
		conformance.True(t, word == tt.want && unsure == tt.unsure, "%+v: %v, unsure %v", tt, word, unsure)
	}
}

func TestUnansweredRequestsAreAnOutage(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		answers time.Duration // time that answers took; 0 means no answer
		silent  time.Duration // time since the last answer, or since the first request
		want    bottleneck.Word
	}{
		{0, 9 * time.Second, bottleneck.Link},
		{0, 10 * time.Second, bottleneck.Outage},
		{100 * time.Millisecond, 2 * time.Second, bottleneck.Link},
		{100 * time.Millisecond, 3 * time.Second, bottleneck.Outage},
		{2 * time.Second, 9 * time.Second, bottleneck.Link}, // a slow link
		{2 * time.Second, 10 * time.Second, bottleneck.Outage},
	} {
		s := lanesOf(t, now, laneState{rows: 300})
		s.flights.began(now.Add(-tt.silent - tt.answers))
		if tt.answers > 0 {
			s.flights.answered(new(flight), now.Add(-tt.silent-tt.answers), now.Add(-tt.silent))
		}
		s.flights.leave(now)
		word, _ := s.LimitedBy(now, Limits{Blocked: bottleneck.Link})
		conformance.Equal(t, word, tt.want, "answers take %v, and none has come for %v", tt.answers, tt.silent)
	}
}

func TestLimitingTableIsReportedForPacedLanes(t *testing.T) {
	now := time.Now()
	paced, ready := laneState{rows: 200, paced: true}, laneState{rows: 200}
	s := lanesOf(t, now, paced, paced, ready)
	s.choose(now, true)
	r := s.ceilings.tables.of("")
	for _, step := range []struct {
		name             string
		on, trying, held bool
		want             bottleneck.Word
	}{{"nothing is known of the table", false, false, false, bottleneck.Partition},
		{"the first trial", true, true, true, bottleneck.Partition}, {"it was found", true, false, true, bottleneck.Table},
		{"another trial", true, true, true, bottleneck.Table},
		{"it holds nothing back", true, false, false, bottleneck.Partition},
		{"it does again", true, false, true, bottleneck.Table}, {"it was given up", false, false, true, bottleneck.Partition},
		{"another first trial", true, true, true, bottleneck.Partition}} {
		r.note(step.on, step.trying, step.held)
		conformance.Equal(t, s.heldBy(now, Limits{Reading: true}), step.want, "%s", step.name)
		if got := r.word(); r.limits && got != bottleneck.Table || !r.found && got != bottleneck.Partition {
			t.Errorf("%s: a lane that waits for the table's rate: %v", step.name, got)
		}
	}
}

func TestInstanceRefusalsDoNotCountForPartition(t *testing.T) {
	b := blockOf(new(table.Split), "a", "b", "c", "d")
	f := &partitioner.Flight{Outcomes: []table.Outcome{{Fate: table.Written},
		{Fate: table.Again, Throttled: true, Code: "OTSNotEnoughCapacityUnit"},
		{Fate: table.Again, Throttled: true, Code: "OTSFlowControl"},
		{Fate: table.Again, Throttled: true, Code: "OTSFlowControl"}}}
	for i := range f.Outcomes {
		f.Rows = append(f.Rows, table.Ref{Block: b, Index: int32(i)})
	}
	a := sum(f)
	conformance.True(t, a.units == 2 && a.Accepted == 1 && a.flow == 2 && a.Throttled == 3 && a.failed == 0, "%+v", a)
}

func TestNoLoadStarvesBesideOthers(t *testing.T) {
	l := NewSharedLimits(Rates{}, 2)
	greedy, late := l.join(), l.join()
	now := time.Unix(1000, 0)
	for range 2 {
		conformance.MustEqual(t, greedy.begin(now), 0, "free requests are refused")
		greedy.sent(now, 1, 1, 1)
	}
	conformance.MustTrue(t, late.begin(now) != 0, "three requests of two")
	greedy.landed()
	select {
	case <-late.woken():
	default:
		t.Error("the load that waits was not woken")
	}
	conformance.True(t, greedy.begin(now) != 0, "the load with more requests comes before the one that waits")
	conformance.Equal(t, late.begin(now), 0, "the load that waits is refused the free request")
	late.sent(now, 1, 1, 1)
	greedy.leave()
	conformance.Equal(t, l.inFlight, 1, "in flight after a load with one more has left")
	late.landed()
	if late.leave(); l.inFlight != 0 || len(l.loads) != 0 {
		t.Errorf("%d requests and %d loads are left", l.inFlight, len(l.loads))
	}
}
