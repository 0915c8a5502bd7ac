package result

import (
	"fmt"
	"math"
	"strconv"

	"tsimport/internal/page"
)

// Page is the result as a web page.
func (r *Result) Page() *page.Page {
	p := &page.Page{Title: "Writing to " + r.Settings.Table, Lead: []string{r.about() + "."}, Facts: r.facts()}
	switch {
	case r.Stopped != "":
		p.State, p.Tone = r.Stopped, page.Warning
	case r.Totals.Failed > 0:
		p.State, p.Tone = "rows were refused", page.Bad
	}
	if r.WarmUp > 0 {
		p.Shades = []page.Shade{{From: 0, To: r.WarmUp, Name: "warm-up"}}
	}
	p.Charts = r.charts()
	if r.Latency.Count > 0 {
		p.Tail = &page.Tail{Title: "Latency by percentile", Quantiles: TailQuantiles[:len(r.Latency.Tail)], Series: []page.Series{
			{Name: "batch, from when it was due", Values: inSeconds(r.Latency.Tail)},
			{Name: "request", Values: inSeconds(r.Service.Tail[:min(len(r.Service.Tail), len(r.Latency.Tail))])},
		}}
	}
	if len(r.Partitions) > 1 {
		h := &page.Heat{Title: "Rows written by partition", Unit: "rows/s", Every: r.Heat.Every, Counts: r.Heat.Counts}
		for _, q := range r.Partitions {
			h.Partitions = append(h.Partitions, q.From)
		}
		p.Heat = h
	}
	p.Tables = r.tables()
	return p
}

func inSeconds(ms []float64) []float64 {
	all := make([]float64, len(ms))
	for i, v := range ms {
		all[i] = v / 1000
	}
	return all
}

func (r *Result) facts() []page.Fact {
	t := &r.Totals
	return []page.Fact{
		{Name: "rows a second", Value: number(math.Round(r.PerSecond.Rows)), Note: fmt.Sprintf("%s in %.1f s", number(float64(t.Rows)), r.Seconds)},
		{Name: "capacity units a second", Value: number(math.Round(r.PerSecond.Units))},
		{Name: "bytes a second", Value: Bytes(r.PerSecond.Bytes), Note: "as the service counts them"},
		{Name: "latency, p99", Value: milliseconds(r.Latency.P(.99)) + " ms", Note: "p50 " + milliseconds(r.Latency.P(.5)) + " ms, p99.99 " + milliseconds(r.Latency.P(.9999)) + " ms"},
		{Name: "throttled", Value: fmt.Sprintf("%.2f %%", 100*t.ThrottledShare()), Note: number(float64(t.Throttled)) + " rows"},
		{Name: "requests", Value: number(float64(t.Requests)), Note: number(float64(t.Retried)) + " rows sent again"},
	}
}

func (r *Result) charts() []page.Chart {
	n := len(r.Points)
	over := func(value func(*Point) float64) []float64 {
		all := make([]float64, n)
		for i := range r.Points {
			all[i] = value(&r.Points[i])
		}
		return all
	}
	perSecond := func(count func(*Point) int64) []float64 {
		return over(func(p *Point) float64 { return float64(count(p)) / r.intervalOf(p) })
	}
	quantile := func(q float64) []float64 {
		return over(func(p *Point) float64 {
			if len(p.Latency) == 0 {
				return math.NaN()
			}
			return p.Latency.Quantile(q) / 1000
		})
	}
	charts := []page.Chart{
		{Title: "Rows a second", Every: r.Every, Series: []page.Series{
			{Name: "written", Values: perSecond(func(p *Point) int64 { return p.Rows })},
			{Name: "throttled", Values: perSecond(func(p *Point) int64 { return p.Throttled })},
		}},
		{Title: "Latency of a batch", Unit: "s", Every: r.Every, Log: true, Series: []page.Series{
			{Name: "p50", Values: quantile(.5)}, {Name: "p99", Values: quantile(.99)}, {Name: "max", Values: quantile(1)},
		}},
		{Title: "Requests a second", Every: r.Every, Series: []page.Series{
			{Name: "requests", Values: perSecond(func(p *Point) int64 { return p.Requests })},
		}},
	}
	add := func(name string, when bool, values []float64) {
		if when {
			charts[0].Series = append(charts[0].Series, page.Series{Name: name, Values: values})
		}
	}
	add("refused otherwise", r.Totals.Unavailable+r.Totals.Failed > 0, perSecond(func(p *Point) int64 { return p.Refused }))
	add("capacity units", r.Totals.Units > r.Totals.Rows, perSecond(func(p *Point) int64 { return p.Units }))
	if r.Settings.Rate > 0 {
		due := make([]float64, n)
		for i := range due {
			due[i] = r.Settings.Rate
		}
		charts[0].Series = append(charts[0].Series, page.Series{Name: "due", Values: due})
	}
	return charts
}

// intervalOf is how long a point lasted: the last one ends with the run.
func (r *Result) intervalOf(p *Point) float64 {
	if p != &r.Points[len(r.Points)-1] {
		return r.Every
	}
	last := r.WarmUp + r.Seconds - float64(len(r.Points)-1)*r.Every
	return min(max(last, r.Every/20), r.Every)
}

func (r *Result) tables() []page.Table {
	s := &r.Settings
	settings := [][]string{
		{"target", s.Target}, {"table", s.Table}, {"row", fmt.Sprintf("%d bytes in %d attribute columns", s.RowSize, s.Columns)}, {"keys", s.Keys},
		{"rows a request", strconv.Itoa(s.BatchRows)}, {"requests in flight", strconv.Itoa(s.Concurrency)}, {"seed", strconv.FormatUint(s.Seed, 10)}, {"started", r.Started},
	}
	if s.Rate > 0 {
		settings = append(settings, []string{"rows/s due", number(s.Rate)})
	}
	latency := page.Table{Title: "Percentiles, milliseconds", Columns: []string{"", "batch", "request"}, Numbers: []bool{false, true, true}}
	for i, q := range Quantiles {
		if i < len(r.Latency.At) && i < len(r.Service.At) {
			latency.Rows = append(latency.Rows, []string{quantileName(q), milliseconds(r.Latency.At[i]), milliseconds(r.Service.At[i])})
		}
	}
	latency.Rows = append(latency.Rows, []string{"max", milliseconds(r.Latency.Max), milliseconds(r.Service.Max)})
	latency.Note = "A batch counts from when it was due until its last row was written, tries and waiting included; a request from sending it to its answer."
	tables := []page.Table{latency, {Title: "Settings", Rows: settings}}
	if len(r.Steps) > 0 {
		t := page.Table{Title: "Search for the highest rate", Columns: []string{"rows/s due", "written", "p99 ms", "throttled", ""}, Numbers: []bool{true, true, true, true}}
		for _, st := range r.Steps {
			why := "kept"
			if !st.Passed {
				why = st.Why
			}
			t.Rows = append(t.Rows, []string{number(math.Round(st.Rate)), number(math.Round(st.Achieved)), milliseconds(st.P99), fmt.Sprintf("%.2f %%", 100*st.Throttled), why})
		}
		tables = append(tables, t)
	}
	if len(r.Partitions) > 0 {
		t := page.Table{Title: "Partitions", Columns: []string{"from", "rows", "rows/s", "CU", "throttled", "requests", "p50 ms", "p99 ms"}, Numbers: []bool{false, true, true, true, true, true, true, true}}
		for i := range r.Partitions {
			t.Rows = append(t.Rows, r.Partitions[i].cells())
		}
		tables = append(tables, t)
	}
	if len(r.Codes) > 0 {
		t := page.Table{Title: "Rows not written at an attempt", Columns: []string{"code", "rows"}, Numbers: []bool{false, true}}
		for _, code := range sorted(r.Codes) {
			t.Rows = append(t.Rows, []string{code, number(float64(r.Codes[code]))})
		}
		tables = append(tables, t)
	}
	return tables
}
