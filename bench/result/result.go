package result

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"strings"
)

// Result is the result of one measurement. JSON names end with the unit.
type Result struct {
	Settings  Settings `json:"settings"`
	Started   string   `json:"started"`           // RFC 3339, UTC
	Stopped   string   `json:"stopped,omitempty"` // why it ended early
	Seconds   float64  `json:"seconds"`           // measured time, without the warm-up
	WarmUp    float64  `json:"warm_up_seconds"`
	Totals    Totals   `json:"totals"`
	PerSecond Rates    `json:"per_second"`
	Latency   Latency  `json:"latency"` // per batch, from its due time until its last row is written
	Service   Latency  `json:"service"` // per request, from sending it to its answer

	Codes      map[string]int64 `json:"codes,omitempty"` // rows that a request did not write, by the service's code
	Unfinished int64            `json:"unfinished"`      // rows sent but not written at the end
	Every      float64          `json:"every_seconds"`   // interval of Points
	Points     []Point          `json:"points"`          // since the start, including the warm-up
	Partitions []Partition      `json:"partitions"`      // in key order
	Steps      []Step           `json:"steps,omitempty"` // the search for the highest rate
}

// Settings repeats the configuration of the run.
type Settings struct {
	Target      string  `json:"target"`
	Table       string  `json:"table"`
	Rows        int64   `json:"rows,omitempty"`
	Duration    float64 `json:"duration_seconds,omitempty"`
	RowSize     int     `json:"row_size"`
	Columns     int     `json:"columns"`
	Keys        string  `json:"keys"`
	BatchRows   int     `json:"batch_rows"`
	Concurrency int     `json:"concurrency"`
	Rate        float64 `json:"rate,omitempty"` // requested rows per second; 0 means a closed loop
	Seed        uint64  `json:"seed"`
}

// Totals counts rows and requests in the measured time.
type Totals struct {
	Rows        int64 `json:"rows"` // written
	Units       int64 `json:"write_cu"`
	Bytes       int64 `json:"bytes"` // of rows, as the service counts them
	Requests    int64 `json:"requests"`
	RowsSent    int64 `json:"rows_sent"`
	Retried     int64 `json:"rows_retried"`
	Throttled   int64 `json:"rows_throttled"`
	Unavailable int64 `json:"rows_unavailable"`
	Failed      int64 `json:"rows_failed"` // rejected
}

// Rates are totals per second.
type Rates struct {
	Rows     float64 `json:"rows"`
	Units    float64 `json:"write_cu"`
	Bytes    float64 `json:"bytes"`
	Requests float64 `json:"requests"`
}

// Point counts the requests that ended in one interval.
type Point struct {
	Rows      int64 `json:"rows"`
	Units     int64 `json:"write_cu"`
	Bytes     int64 `json:"bytes"`
	Requests  int64 `json:"requests"`
	Retried   int64 `json:"rows_retried"`
	Throttled int64 `json:"rows_throttled"`
	Refused   int64 `json:"rows_refused"` // refused for other reasons, by any attempt
	// Latency counts the batches whose last row was written in the interval, by latency.
	Latency Counts `json:"latency"`
}

// Partition holds the counts of one partition in the measured time.
type Partition struct {
	From      string  `json:"from"` // its first key value; "" for the first partition
	Rows      int64   `json:"rows"`
	Units     int64   `json:"write_cu"`
	Requests  int64   `json:"requests"`
	Throttled int64   `json:"rows_throttled"`
	PerSecond float64 `json:"rows_per_second"`
	P50       float64 `json:"service_p50_ms"`
	P99       float64 `json:"service_p99_ms"`
}

// Step is one trial of the search for the highest rate.
type Step struct {
	Rate      float64 `json:"rate"`            // requested rows per second
	Achieved  float64 `json:"rows_per_second"` // written
	P99       float64 `json:"p99_ms"`
	Throttled float64 `json:"throttled_share"`
	Seconds   float64 `json:"seconds"`
	Passed    bool    `json:"passed"`
	Why       string  `json:"why,omitempty"` // why the step failed
}

// ThrottledShare returns the share of sent rows that were refused for lack of capacity.
func (t *Totals) ThrottledShare() float64 { return share(t.Throttled, t.RowsSent) }

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// WriteBenchmark writes the result as one line of Go's benchmark format, after configuration lines by which benchstat
// groups results. An operation is a row. The output of several runs may be concatenated.
func (r *Result) WriteBenchmark(w io.Writer) error {
	s := &r.Settings
	out := printer{bufio.NewWriter(w)}
	out.printf("goos: %s\ngoarch: %s\npkg: tsimport/bench/write\ntarget: %s\n", runtime.GOOS, runtime.GOARCH,
		strings.ReplaceAll(s.Target, "\n", " "))
	for _, unit := range []string{"rows/s", "CU/s", "B/s"} {
		out.printf("Unit %s better=higher\n", unit)
	}
	rate := "max"
	if s.Rate > 0 {
		rate = fmt.Sprintf("%.0f", s.Rate)
		if len(r.Steps) > 0 {
			rate = "found"
		}
	}
	perRow := 0.0
	if r.Totals.Rows > 0 {
		perRow = r.Seconds * 1e9 / float64(r.Totals.Rows)
	}
	out.printf("BenchmarkWrite/keys=%s/size=%d/columns=%d/batch=%d/concurrency=%d/rate=%s-%d\t%d\t%.1f ns/op\t%.1f "+
		"rows/s\t%.1f CU/s\t%.0f B/s",
		s.Keys, s.RowSize, s.Columns, s.BatchRows, s.Concurrency, rate, runtime.GOMAXPROCS(0), max(1, r.Totals.Rows), perRow,
		r.PerSecond.Rows, r.PerSecond.Units, r.PerSecond.Bytes)
	for i, q := range Quantiles {
		if i < len(r.Latency.At) {
			out.printf("\t%.0f %s-ns", r.Latency.At[i]*1e6, quantileName(q))
		}
	}
	out.printf("\t%.6f throttled/row\n", share(r.Totals.Throttled, r.Totals.RowsSent))
	return out.Flush()
}
