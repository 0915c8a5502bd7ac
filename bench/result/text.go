package result

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"example.com/tsimport/internal/words"
)

// WriteText writes the result as text.
func (r *Result) WriteText(w io.Writer) error {
	out := printer{bufio.NewWriter(w)}
	out.printf("%s\n", r.about())
	if r.Stopped != "" {
		out.printf("%s after %.1f s; these are the results until then\n", r.Stopped, r.Seconds+r.WarmUp)
	}
	if len(r.Steps) > 0 {
		out.steps(r.Steps)
	}
	out.totals(r)
	out.latencies(r)
	out.codes(r.Codes)
	out.partitions(r.Partitions)
	return out.Flush()
}

func (r *Result) about() string {
	s := &r.Settings
	text := fmt.Sprintf("%s, table %s: rows of %d bytes in %d columns, %s keys, %d rows a request, ", s.Target, s.Table,
		s.RowSize, s.Columns, s.Keys, s.BatchRows)
	if s.Rate > 0 {
		return text + fmt.Sprintf("%s rows/s due, at most %d requests in flight", number(s.Rate), s.Concurrency)
	}
	return text + fmt.Sprintf("%d requests in flight, each after the last is answered", s.Concurrency)
}

// printer is a buffered writer with a printf method. It keeps the first error.
type printer struct{ *bufio.Writer }

func (p printer) printf(format string, a ...any) { fmt.Fprintf(p, format, a...) }

// lines writes a table. In each line, every cell ends with a tab.
func (p printer) lines(lines []string) {
	t := tabwriter.NewWriter(p, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, line := range lines {
		fmt.Fprintln(t, line)
	}
	t.Flush()
}

func (p printer) totals(r *Result) {
	t := &r.Totals
	p.printf("\n%s rows in %.1f s", number(float64(t.Rows)), r.Seconds)
	if r.WarmUp > 0 {
		p.printf(" after a warm-up of %.1f s", r.WarmUp)
	}
	p.printf("\n  %s rows/s, %s CU/s, %s/s, %s requests/s\n", number(r.PerSecond.Rows), number(r.PerSecond.Units),
		words.Bytes(int64(r.PerSecond.Bytes)), number(r.PerSecond.Requests))
	p.printf("  throttled %s rows (%.2f %% of those sent), unavailable %s, sent again %s, rejected %s, unfinished %s\n",
		number(float64(t.Throttled)), 100*t.ThrottledShare(), number(float64(t.Unavailable)), number(float64(t.Retried)),
		number(float64(t.Failed)), number(float64(r.Unfinished)))
}

func (p printer) latencies(r *Result) {
	p.printf("\n")
	head := "milliseconds\tcount\tmean\tmin\t"
	for _, q := range Quantiles {
		head += quantileName(q) + "\t"
	}
	lines := []string{head + "max\t"}
	for _, l := range []struct {
		name string
		*Latency
	}{{"latency of a batch", &r.Latency}, {"a request", &r.Service}} {
		line := fmt.Sprintf("%s\t%s\t%s\t%s\t", l.name, number(float64(l.Count)), milliseconds(l.Mean), milliseconds(l.Min))
		for _, v := range l.At {
			line += milliseconds(v) + "\t"
		}
		if len(l.At) == 0 {
			continue
		}
		lines = append(lines, line+milliseconds(l.Max)+"\t")
	}
	p.lines(lines)
}

func (p printer) steps(steps []Step) {
	p.printf("\n")
	lines := []string{"rows/s due\twritten\tp99 ms\tthrottled\tseconds\t\t"}
	for _, s := range steps {
		why := "kept"
		if !s.Passed {
			why = s.Why
		}
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%.2f %%\t%.1f\t%s\t", number(s.Rate), number(s.Achieved),
			milliseconds(s.P99), 100*s.Throttled, s.Seconds, why))
	}
	p.lines(lines)
}

func (p printer) codes(codes map[string]int64) {
	for _, code := range sorted(codes) {
		p.printf("\n%s rows: %.200s", number(float64(codes[code])), code)
	}
	if len(codes) > 0 {
		p.printf("\n")
	}
}

// shownPartitions is the number of partitions in the text. The JSON has all of them.
const shownPartitions = 40

func (p printer) partitions(all []Partition) {
	if len(all) < 2 {
		return
	}
	p.printf("\n")
	lines := []string{"partition from\trows\trows/s\tCU\tthrottled\trequests\tp50 ms\tp99 ms\t"}
	for _, q := range all[:min(len(all), shownPartitions)] {
		lines = append(lines, strings.Join(q.cells(), "\t")+"\t")
	}
	p.lines(lines)
	if n := len(all) - shownPartitions; n > 0 {
		p.printf("and %d more partitions\n", n)
	}
}

func (q *Partition) cells() []string {
	return []string{cmp.Or(q.From, "the first key"), number(float64(q.Rows)), number(q.PerSecond),
		number(float64(q.Units)), number(float64(q.Throttled)), number(float64(q.Requests)), milliseconds(q.P50),
		milliseconds(q.P99)}
}

func sorted(codes map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(codes), func(a, b string) int {
		return cmp.Or(cmp.Compare(codes[b], codes[a]), cmp.Compare(a, b))
	})
}

func quantileName(q float64) string { return "p" + strconv.FormatFloat(100*q, 'f', -1, 64) }

// milliseconds formats a duration with three significant digits.
func milliseconds(ms float64) string {
	switch {
	case ms >= 100:
		return number(ms)
	case ms >= 10:
		return strconv.FormatFloat(ms, 'f', 1, 64)
	case ms >= 1:
		return strconv.FormatFloat(ms, 'f', 2, 64)
	}
	return strconv.FormatFloat(ms, 'f', 3, 64)
}

// number formats a number with thousands separators. A fraction below 100 gets one decimal.
func number(v float64) string {
	if v != float64(int64(v)) && v < 100 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return words.Grouped(int64(math.RoundToEven(v)))
}
