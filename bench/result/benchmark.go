package result

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"strings"
)

// WriteBenchmark writes the result as one line of Go's benchmark format, below the lines of configuration that benchstat
// tells results apart by. An operation is a row. Files of several runs are these texts one after the other.
func (r *Result) WriteBenchmark(w io.Writer) error {
	s := &r.Settings
	out := printer{bufio.NewWriter(w)}
	out.printf("goos: %s\ngoarch: %s\npkg: tsimport/bench/write\ntarget: %s\n", runtime.GOOS, runtime.GOARCH, strings.ReplaceAll(s.Target, "\n", " "))
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
	out.printf("BenchmarkWrite/keys=%s/size=%d/columns=%d/batch=%d/concurrency=%d/rate=%s-%d\t%d\t%.1f ns/op\t%.1f rows/s\t%.1f CU/s\t%.0f B/s",
		s.Keys, s.RowSize, s.Columns, s.BatchRows, s.Concurrency, rate, runtime.GOMAXPROCS(0), max(1, r.Totals.Rows), perRow, r.PerSecond.Rows, r.PerSecond.Units, r.PerSecond.Bytes)
	for i, q := range Quantiles {
		if i < len(r.Latency.At) {
			out.printf("\t%.0f %s-ns", r.Latency.At[i]*1e6, quantileName(q))
		}
	}
	out.printf("\t%.6f throttled/row\n", share(r.Totals.Throttled, r.Totals.RowsSent))
	return out.Flush()
}
