package result

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
)

// recorded returns the result of a run of ten seconds on two partitions, with a request of 1 to 100 ms every 10 ms.
func recorded(warmUp time.Duration, each func(*Sample)) *Result {
	r := NewRecorder(warmUp)
	slots := []int{r.Slot("", ""), r.Slot("m", "m")}
	for i := range 1000 {
		sent := time.Duration(i) * 10 * time.Millisecond
		s := &Sample{Intended: sent, Sent: sent, Done: sent + time.Duration(1+i%100)*time.Millisecond, Attempt: 1, Rows: 200,
			Written: 200, Units: 200, Bytes: 20000,
			Outcome: OK, Slot: slots[i%2], Partition: []string{"", "m"}[i%2], Last: true, WarmUp: false}
		if i%50 == 49 {
			s.Written, s.Units, s.Bytes, s.Throttled, s.Outcome, s.Code, s.Last = 150, 150, 15000, 50, Partly,
				"OTSNotEnoughCapacityUnit", false
			s.Codes = map[string]int64{s.Code: 50}
		}
		r.Add(s)
		if each != nil {
			each(s)
		}
	}
	res := r.Result(10 * time.Second)
	res.Settings = Settings{Target: "a test", Table: "t", RowSize: 100, Columns: 3, Keys: "random", BatchRows: 200,
		Concurrency: 32}
	res.Started = "2026-01-01T00:00:00Z"
	return res
}

func TestResultAddsUp(t *testing.T) {
	r := recorded(0, nil)
	conformance.True(t, r.Totals.Rows == 199_000 && r.Totals.Throttled == 1000 && r.Totals.Requests == 1000 &&
		math.Abs(r.PerSecond.Rows-19900) <= 1 && r.Codes["OTSNotEnoughCapacityUnit"] == 1000,
		"totals %+v, %v rows/s, codes %v", r.Totals, r.PerSecond.Rows, r.Codes)
	var points, parts int64
	for _, p := range r.Points {
		points += p.Rows
	}
	for _, p := range r.Partitions {
		parts += p.Rows
	}
	conformance.True(t, points == r.Totals.Rows && parts == r.Totals.Rows,
		"%d rows: %d in the points, %d in the partitions", r.Totals.Rows, points, parts)
	got := r.Service.P(.5)
	conformance.True(t, math.Abs(got-50) <= .1, "p50 %v ms, want 50", got)
	if got := r.Service.P(.9999); math.Abs(got-100) > .2 || r.Latency.Count != 980 {
		t.Errorf("p99.99 %v ms, %d batches; want 100 and 980", got, r.Latency.Count)
	}
	half := recorded(5*time.Second, nil)
	conformance.True(t, half.Totals.Rows <= 102_000 && half.Totals.Rows >= 99_000 && half.Seconds == 5 &&
		len(half.Points) == len(r.Points), "with a warm-up of half the time: %+v in %v s", half.Totals, half.Seconds)
}

func TestJSONRoundTrip(t *testing.T) {
	r := recorded(time.Second, nil)
	text := conformance.Try(json.Marshal(r)).Must(t)
	back := new(Result)
	conformance.Must(t, json.Unmarshal(text, back))
	conformance.Equal(t, cmp.Diff(r, back), "", "(-want +got)")
}

func TestSettingsPrecedeSamples(t *testing.T) {
	var file bytes.Buffer
	w := NewSampleWriter(&file)
	w.Begin(Header{Started: "2026-01-01T00:00:00Z", WarmUp: 1, Settings: recorded(0, nil).Settings})
	want := recorded(time.Second, w.Write)
	conformance.Must(t, w.Flush())
	var head Header
	lines := json.NewDecoder(&file)
	err := lines.Decode(&head)
	conformance.True(t, err == nil && head.Format == samplesFormat && head.Settings == want.Settings, "%+v, %v", head, err)
	again, slots := NewRecorder(time.Second), map[string]int{}
	var end time.Duration
	for lines.More() {
		var s Sample
		conformance.Must(t, lines.Decode(&s))
		if _, known := slots[s.Partition]; !known {
			slots[s.Partition] = again.Slot(s.Partition, s.Partition)
		}
		s.Slot, s.Last, end = slots[s.Partition], s.Rows == s.Written, max(end, s.Done)
		again.Add(&s)
	}
	got := again.Result(end)
	diff := cmp.Diff(want.Latency, got.Latency)
	conformance.True(t, diff == "" && got.Totals.Rows == want.Totals.Rows && got.Totals.Throttled == want.Totals.Throttled,
		"totals %+v, want %+v\n%s", got.Totals, want.Totals, diff)
}

func TestLatenciesAreAccurateToOnePercent(t *testing.T) {
	for us := int64(1); us < 1<<40; us = us*3/2 + 1 {
		got := rounded(us)
		conformance.True(t, math.Abs(float64(got)/float64(us)-1) <= .008, "%d µs is kept as %d", us, got)
	}
	var c Counts
	for i := range 1000 {
		c.Add(time.Duration(i+1) * time.Millisecond)
	}
	for q, want := range map[float64]float64{0: 1, .5: 500, .99: 990, 1: 1000} {
		got := c.Quantile(q)
		conformance.True(t, math.Abs(got/want-1) <= .008, "quantile %v is %v ms, want %v", q, got, want)
	}
	conformance.Equal(t, Counts(nil).Quantile(.5), 0, "the median of nothing")
}

func TestLateBatchesAreCountedInFull(t *testing.T) {
	r := NewRecorder(0)
	r.LateFrom(0, time.Microsecond, 10*time.Second) // ten million batches
	l := r.Result(10 * time.Second).Latency
	conformance.True(t, l.Count == 10_000_000 && math.Abs(l.P(.5)-5000) <= 20,
		"%d batches, p50 %v ms; want 10,000,000 and 5000", l.Count, l.P(.5))
}

func TestTextReportHasKeyFigures(t *testing.T) {
	r := recorded(time.Second, nil)
	r.Stopped = "stopped by interrupt"
	r.Steps = []Step{{Rate: 1000, Achieved: 1000, Passed: true}, {Rate: 2000, Why: "p99 40 ms"}}
	var text strings.Builder
	conformance.Must(t, r.WriteText(&text))
	for _, want := range []string{"stopped by interrupt after 10.0 s", "rows/s", "CU/s", "p99.99",
		"OTSNotEnoughCapacityUnit", "the first key", "p99 40 ms", "after a warm-up of 1.0 s"} {
		conformance.Contains(t, text.String(), want, "string")
	}
}

func TestBenchmarkLineHasNumberUnitPairs(t *testing.T) {
	var text strings.Builder
	conformance.Must(t, recorded(0, nil).WriteBenchmark(&text))
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	fields := strings.Fields(lines[len(lines)-1])
	conformance.True(t, strings.HasPrefix(fields[0], "BenchmarkWrite/keys=random/") && fields[1] == "199000" &&
		len(fields)%2 == 0 && strings.Contains(text.String(), " ns/op\t"), "%q", text.String())
}
