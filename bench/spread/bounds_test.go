package spread

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"example.com/tsimport/engine/limiter"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

func integers(values ...int64) *sample {
	s := newSample(1, maxSample)
	for _, v := range values {
		s.add(table.Value{Type: table.Integer, Int: v})
	}
	return s
}

func TestEvenValuesAreCutIntoEqualPartitions(t *testing.T) {
	s := integers()
	for i := range int64(1000) {
		for range 20 {
			s.add(table.Value{Type: table.Integer, Int: -i})
		}
	}
	bounds, parts := s.cuts(8)
	if len(bounds) != 7 || len(parts) != 8 {
		t.Fatalf("%d bounds, %d parts", len(bounds), len(parts))
	}
	for i, n := range parts {
		conformance.Equal(t, n, 2500, "partition %d: rows", i)
	}
	conformance.Equal(t, bounds[0].Int, -874, "the second partition begins")
	if got := cutNotes(parts, 8); got != nil {
		t.Errorf("notes about even partitions: %v", got)
	}
}

func TestFewOrSkewedValuesGiveFewerPartitionsAndAWord(t *testing.T) {
	for _, test := range []struct {
		values, bounds []int64
		note           string
	}{
		{nil, nil, "too few"},
		{[]int64{7, 7, 7, 7}, nil, "too few"},
		{[]int64{1, 2}, []int64{2}, "too few"},
		{[]int64{1, 9, 9, 9, 9, 9, 9, 9, 9, 9}, []int64{9}, "too few"},
		{[]int64{1, 1, 1, 1, 1, 1, 2, 3, 4}, []int64{2, 3, 4}, "uneven"},
	} {
		bounds, parts := integers(test.values...).cuts(4)
		var got []int64
		for _, b := range bounds {
			got = append(got, b.Int)
		}
		conformance.Same(t, got, test.bounds, "cuts of %v", test.values)
		conformance.Contains(t, strings.Join(cutNotes(parts, 4), "; "), test.note, "%v: notes", test.values)
	}
}

func TestCutsRiseAndTheirPartsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.StringMatching(`[ab]{0,3}`)).Draw(t, "values")
		n := rapid.IntRange(1, 40).Draw(t, "n")
		s := newSample(1, maxSample)
		for _, v := range values {
			s.add(table.Value{Type: table.String, Bytes: []byte(v)})
		}
		bounds, parts := s.cuts(n)
		if len(bounds) >= n || len(parts) != len(bounds)+1 {
			t.Fatalf("%d bounds and %d parts for %d partitions", len(bounds), len(parts), n)
		}
		for i, part := range parts {
			count := 0
			for _, v := range s.values {
				if (i == 0 || table.Compare(v, bounds[i-1]) >= 0) && (i == len(bounds) || table.Compare(v, bounds[i]) < 0) {
					count++
				}
			}
			if count != part || count == 0 && len(values) > 0 {
				t.Fatalf("part %d of %v at %v holds %d rows, said to be %d", i, values, bounds, count, part)
			}
		}
	})
}

func TestASampleKeepsItsSizeAndTakesFromEverywhere(t *testing.T) {
	s := newSample(1, 1000)
	for i := range int64(100_000) {
		s.add(table.Value{Type: table.Integer, Int: i})
	}
	late := 0
	for _, v := range s.values {
		if v.Int >= 50_000 {
			late++
		}
	}
	if len(s.values) != 1000 || late < 400 || late > 600 {
		t.Errorf("%d values, %d of the second half; want 1000 and about 500", len(s.values), late)
	}
}

func TestKeysAreReadable(t *testing.T) {
	for raw, want := range map[string]string{"null": "-inf", "": "-inf", "-5": "-5", `"a\"b"`: `a"b`, `{"binary":"AA=="}`: `{"binary":"AA=="}`} {
		conformance.Equal(t, keyText([]byte(raw)), want, "%s", raw)
	}
}

func ms(v float64) *float64 { return &v }

const startMS = 5_000_250.0 // a quarter into second 5000

// part is a partition of 100 units a second that got rows from first to last, in milliseconds from the start.
func part(id int, units int64, first, last float64) partitionStats {
	return partitionStats{
		ID: id, Capacity: 100, SinceMS: startMS, FirstMS: ms(startMS + first), LastMS: ms(startMS + last), counts: counts{Rows: units, Units: units},
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestEqualPartitionsShareOneTime(t *testing.T) {
	m := &measuring{start: startMS, stats: &tableStats{Requests: 4, counts: counts{Rows: 600, Units: 600, Throttled: 150, Unavailable: 30, Failed: 20},
		Partitions: []partitionStats{part(1, 400, 0, 4000), part(2, 200, 2000, 3000)}}}
	var s Scenario
	m.fill(&s, 0)
	m.ideal(&s, false)
	near(t, "capacity share", s.CapacityShare, 600.0/(2*100*4))
	near(t, "throttled share", s.ThrottledShare, 150.0/800)
	near(t, "batch fill", s.BatchFill, 800.0/4/200)
	near(t, "last lane", s.LastLaneSeconds, 2)
	near(t, "makespan", s.MakespanSeconds, 4)
	near(t, "ideal", s.IdealSeconds, 4)
	near(t, "makespan share", s.MakespanShare, 1)
	near(t, "share of the second", s.Partitions[1].Share, 0.5)
	near(t, "first row of the second", *s.Partitions[1].FirstMS, 2000)
}

func TestUnevenPartitionsCountFromTheirFirstToTheirLastRow(t *testing.T) {
	slow := part(2, 80, 0, 8000)
	slow.Capacity = 10
	m := &measuring{start: startMS, uneven: true, stats: &tableStats{Partitions: []partitionStats{part(1, 200, 1000, 3000), slow, {ID: 3, Capacity: 100}}}}
	near(t, "capacity share", m.share(m.lastRow()), 280.0/(200+80))
	near(t, "share with what was saved", m.shareWithBurst(0), 280.0/(200+100+80))
	var s Scenario
	m.fill(&s, 0)
	near(t, "last lane with a partition that never had a row", s.LastLaneSeconds, 0)
	near(t, "share of a partition without rows", s.Partitions[2].Share, 0)
}

func TestALimitOfTheTableBoundsWhatPartitionsCouldTake(t *testing.T) {
	m := &measuring{start: startMS, ceiling: 150, stats: &tableStats{counts: counts{Units: 600}, Partitions: []partitionStats{part(1, 300, 0, 5000), part(2, 300, 500, 4000)}}}
	var s Scenario
	m.fill(&s, 0)
	m.ideal(&s, false)
	near(t, "capacity share", s.CapacityShare, 600.0/(150*5))
	near(t, "ideal", s.IdealSeconds, 4)
	m.uneven = true
	near(t, "capacity share of uneven partitions", m.share(m.lastRow()), 600.0/(150*5))
	m.ceiling = 1000
	near(t, "capacity share below the table's limit", m.share(m.lastRow()), 600.0/(100*5+100*3.5))
}

func TestEveryWindowThatBeganCounts(t *testing.T) {
	m := &measuring{start: startMS, limiter: limiter.FixedWindow, stats: &tableStats{Partitions: []partitionStats{part(1, 350, 0, 3000), part(2, 300, 0, 2000)}}}
	var s Scenario
	m.fill(&s, 0)
	near(t, "capacity share", s.CapacityShare, 650.0/(2*100*3)) // above 1
	near(t, "share of the windows", s.ShareWithBurst, 650.0/(2*100*4))
	m.limiter = limiter.SlidingWindow
	near(t, "share of sliding windows", m.shareWithBurst(m.lastRow()), 650.0/(2*100*3))
	m.ceiling = 150
	near(t, "share of the table's windows", m.shareWithBurst(m.lastRow()), 650.0/(150*3))
}

func TestTheIdealOfSplitsIsWhenAllThatServedCouldHaveTakenAllRows(t *testing.T) {
	parent := part(1, 100, 0, 2000)
	parent.EndedMS = ms(startMS + 2000)
	children := part(2, 300, 3000, 9000)
	children.SinceMS = startMS + 3000
	children.Capacity = 200
	m := &measuring{start: startMS, uneven: true, stats: &tableStats{counts: counts{Units: 400}, Partitions: []partitionStats{parent, children}}}
	var s Scenario
	m.ideal(&s, true)
	if math.Abs(s.IdealSeconds-4) > 1e-6 { // 200 in two seconds, none in one, 200 in one
		t.Errorf("ideal %v s, want 4", s.IdealSeconds)
	}
}

func TestEmptyPartitionsAllowRowsToo(t *testing.T) {
	parent, left, right := part(1, 300, 500, 4000), part(2, 500, 4000, 9000), part(3, 0, 0, 0)
	parent.EndedMS = ms(startMS + 4000)
	left.SinceMS, right.SinceMS, right.FirstMS, right.LastMS = startMS+5000, startMS+5000, nil, nil
	m := &measuring{start: startMS, uneven: true, stats: &tableStats{counts: counts{Units: 800}, Partitions: []partitionStats{parent, left, right}}}
	s := &Scenario{}
	m.fill(s, 0)
	m.ideal(s, true)
	near(t, "share of what was allowed", s.AllowedShare, 800.0/(100*4+2*100*4))
	near(t, "first row", s.FirstRowSeconds, 0.5)
	m.ceiling = 100
	m.ideal(s, true)
	near(t, "share of what the table allowed", s.AllowedShare, 800.0/(100*9))
}

func TestAStoppedLoadCountsUntilItWasStopped(t *testing.T) {
	m := &measuring{start: startMS, end: startMS + 10_000, stats: &tableStats{Partitions: []partitionStats{part(1, 400, 0, 4000)}}}
	near(t, "capacity share", m.share(m.lastRow()), 0.4)
}

func TestTheShareFromTheLastLaneLeavesOutWhatWasBefore(t *testing.T) {
	p := part(1, 150+100, 0, 2750)
	p.Seconds = []secondStats{{5000, 75}, {5001, 75}, {5002, 100}}
	m := &measuring{start: startMS, stats: &tableStats{Partitions: []partitionStats{p}}}
	// From half a second after 5001 began: half its units and all of 5002's, in 1.5 s.
	near(t, "share", m.shareFrom(5_001_500, startMS+2750), (37.5+100)/150)
	// Half of the three quarters of second 5000 that the load was running.
	near(t, "share", m.shareFrom(5_000_625, startMS+2750), (37.5+75+100)/(100*2.375))
}

func TestNothingMeasuredGivesNoShare(t *testing.T) {
	var s Scenario
	m := &measuring{start: startMS, stats: &tableStats{Partitions: []partitionStats{{ID: 1, Capacity: 100}}}}
	m.fill(&s, 0)
	m.ideal(&s, false)
	if _, err := json.Marshal(s); err != nil {
		t.Errorf("a scenario without rows cannot be written: %v", err)
	}
	if s.CapacityShare != 0 || s.BatchFill != 0 || s.MakespanSeconds != 0 {
		t.Errorf("shares of nothing: %+v", s)
	}
}

func TestASplitIsUsedFromTheFirstFullSecond(t *testing.T) {
	parent := part(1, 50, 0, 1000)
	parent.Start, parent.End, parent.EndedMS = json.RawMessage("null"), json.RawMessage("null"), ms(startMS+1000)
	child := func(id int, from, to string) partitionStats {
		p := part(id, 0, 2000, 9000)
		p.Start, p.End, p.SinceMS = json.RawMessage(from), json.RawMessage(to), startMS+2000
		return p
	}
	stats := &tableStats{Partitions: []partitionStats{parent, child(2, "null", "7"), child(3, "7", "null")}}
	var seen []observation
	for i := range 40 { // every 100 ms: idle for half a second, then the full capacity of both
		at := float64(i) * 100
		units := int64(max(0, at-500) / 10)
		seen = append(seen, observation{startMS + 2000 + at, map[int]int64{1: 50, 2: units, 3: units}})
	}
	splits := splitsOf(stats, seen, startMS)
	if len(splits) != 1 || splits[0].UsedMS == nil {
		t.Fatalf("splits %+v", splits)
	}
	near(t, "time of the split", splits[0].AtMS, 2000)
	if got := *splits[0].UsedMS; got != 400 || string(splits[0].Bound) != "7" {
		t.Errorf("used after %v ms at %s, want 400 ms at 7: then 90 %% of a second's capacity follow", got, splits[0].Bound)
	}
	if splits = splitsOf(stats, seen[:10], startMS); splits[0].UsedMS != nil {
		t.Errorf("used after %v ms, although the load was over before", *splits[0].UsedMS)
	}
}

func TestBarsAreScaledToTheCapacity(t *testing.T) {
	for _, test := range []struct {
		perSecond []int64
		start     float64 // Unix ms
		seconds   float64
		want      string
	}{
		{nil, 0, 3, "   "},
		{[]int64{100, 50, 1, 0, 200}, 0, 5, "█▅▁ █"},
		{[]int64{25, 100, 25}, 750, 1.5, "███"}, // only a quarter of the first and the last second
		{[]int64{99}, 0, 1, "█"},
		{[]int64{87}, 0, 1, "▇"},
	} {
		if got := bar(&Partition{Capacity: 100, PerSecond: test.perSecond}, test.start, test.seconds); got != test.want {
			t.Errorf("%v is drawn as %q, want %q", test.perSecond, got, test.want)
		}
	}
	long := bar(&Partition{Capacity: 100, PerSecond: make([]int64, 3601)}, 0, 3601)
	if n := len([]rune(long)); n > barColumns || n < barColumns/2 {
		t.Errorf("an hour has %d columns", n)
	}
	bar(&Partition{Capacity: 1e-300, PerSecond: []int64{1}}, 0, 1) // must not overflow
}

func TestTheTextNamesEveryScenarioAndAtMost32Partitions(t *testing.T) {
	s := &Scenario{Name: "tsimport", Verified: "exact: 5 rows", Stopped: true, Error: "it failed", PreparationSeconds: 1, IdealSeconds: 1, LastLaneSeconds: 1, ShareWithBurst: 1}
	for i := range 40 {
		p := Partition{Capacity: 100, From: json.RawMessage(`"` + strings.Repeat("k", i) + `"`)}
		if i < 3 {
			p.EndedMS = ms(1)
		}
		s.Partitions = append(s.Partitions, p)
	}
	s.Splits = []Split{{UsedMS: ms(300)}, {}}
	var out bytes.Buffer
	must(t, (&Report{Input: "x.csv", Notes: []string{"skewed"}, Table: Table{SplitsMS: 5000}, Scenarios: []*Scenario{s, {Name: "naive", Splits: []Split{{}}}}}).WriteText(&out))
	for _, want := range []string{"x.csv", "note: skewed", "naive", "exact: 5 rows", "error: it failed", "… and 5 more", "3 partitions that were split",
		"2 splits", "0.3 s (median)", "never in 1", "or never"} {
		conformance.Contains(t, out.String(), want, "the text")
	}
	conformance.Refused(t, (&Report{}).WriteText(brokenWriter{}), "", "a text that could not be written is no error")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }
