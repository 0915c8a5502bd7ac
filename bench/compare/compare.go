package compare

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/aclements/go-moremath/stats"

	"tsimport/bench/result"
)

// Verdict is what can be said of a difference.
type Verdict string

// The verdicts.
const (
	Better Verdict = "better"
	Worse  Verdict = "worse"
	Same   Verdict = "no difference that is more than chance"
	TooFew Verdict = "too few samples to tell"
)

// Comparison is what two sides have in common and in what they differ.
type Comparison struct {
	A        string    `json:"a"`
	B        string    `json:"b"`
	By       string    `json:"by"` // what was compared: runs, or pieces of one run
	Samples  [2]int    `json:"samples"`
	Settings []Setting `json:"settings,omitempty"` // in which they differ
	Metrics  []Metric  `json:"metrics"`
	Alpha    float64   `json:"alpha"`
}

// Setting is something that was not the same.
type Setting struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// Metric is one number of both sides; of several runs their medians.
type Metric struct {
	Name    string   `json:"name"`
	A       float64  `json:"a"`
	B       float64  `json:"b"`
	Change  *float64 `json:"change_percent"` // from A to B; null if A is 0
	P       *float64 `json:"p"`              // probability of such a difference by chance; null where limits say it
	Low     *float64 `json:"low_percent"`    // limits of the change; null without
	High    *float64 `json:"high_percent"`
	Verdict Verdict  `json:"verdict"`
}

// leastRuns is how many runs of each side can tell anything: of three each, no result is rarer than one in ten.
const leastRuns = 4

// names of the metrics, in their order; those that begin with p are quantileMetric of result.Quantiles.
var names = []string{"rows/s", "CU/s", "B/s", "p50 ms", "p75 ms", "p90 ms", "p95 ms", "p99 ms", "p99.9 ms", "p99.99 ms", "throttled/row"}

// moreIsBetter says for each metric whether more of it is better; one that is missing is worse.
var moreIsBetter = map[string]bool{"rows/s": true, "CU/s": true, "B/s": true}

// Compare compares two sides. What happens by chance less often than alpha (0.05, say) is significant. Several runs of each
// side are compared run by run; single ones by their pieces, which says whether these two runs differ, not whether the next
// two would.
func Compare(a, b *Side, alpha float64) *Comparison {
	c := &Comparison{A: a.Name, B: b.Name, Alpha: alpha, By: "runs", Samples: [2]int{len(a.runs), len(b.runs)}}
	c.settings(a, b)
	var pieces [2][][]result.Point
	single := len(a.runs) == 1 && len(b.runs) == 1 && a.runs[0].result != nil && b.runs[0].result != nil
	if single {
		c.By = "pieces of one run"
		for i, s := range []*Side{a, b} {
			pieces[i] = blocksOf(seconds(s.runs[0].result))
			c.Samples[i] = len(pieces[i])
		}
	}
	var tails []limits
	if pieces[0] != nil && pieces[1] != nil {
		tails = bootstrap(pieces[0], pieces[1], result.Quantiles, alpha)
	}
	for _, name := range names {
		va, vb := a.values(name), b.values(name)
		if len(va) == 0 || len(vb) == 0 {
			continue
		}
		m := Metric{Name: name, A: median(va), B: median(vb), Verdict: TooFew}
		if m.A != 0 {
			change := 100 * (m.B/m.A - 1)
			m.Change = &change
		}
		switch {
		case !single:
			m.byRuns(va, vb, alpha)
		case tails == nil:
		case strings.HasPrefix(name, "p"):
			m.byLimits(tails[slices.IndexFunc(result.Quantiles, func(q float64) bool { return quantileMetric(q) == name })])
		default:
			m.judgeP(MannWhitney(m.perPiece(pieces[0]), m.perPiece(pieces[1])), alpha)
		}
		c.Metrics = append(c.Metrics, m)
	}
	return c
}

func (s *Side) values(metric string) (all []float64) {
	for _, r := range s.runs {
		if v, ok := r.values[metric]; ok {
			all = append(all, v)
		}
	}
	return all
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

func (m *Metric) byRuns(a, b []float64, alpha float64) {
	if min(len(a), len(b)) < leastRuns {
		return
	}
	m.judgeP(MannWhitney(a, b), alpha)
}

// byLimits judges a quantile by the limits of its change.
func (m *Metric) byLimits(l limits) {
	if !l.known {
		return
	}
	low, high := 100*(l.low-1), 100*(l.high-1)
	m.Low, m.High = &low, &high
	m.judge(l.low > 1 || l.high < 1, l.high < 1)
}

// perPiece is the metric of each piece.
func (m *Metric) perPiece(pieces [][]result.Point) []float64 {
	all := make([]float64, len(pieces))
	for i, piece := range pieces {
		var sum, sent float64
		for _, p := range piece {
			sent += float64(p.Rows + p.Throttled + p.Refused)
			switch m.Name {
			case "rows/s":
				sum += float64(p.Rows)
			case "CU/s":
				sum += float64(p.Units)
			case "B/s":
				sum += float64(p.Bytes)
			default:
				sum += float64(p.Throttled)
			}
		}
		per := float64(len(piece))
		if m.Name == "throttled/row" {
			per = max(sent, 1)
		}
		all[i] = sum / per
	}
	return all
}

func (m *Metric) judgeP(p, alpha float64) {
	m.P = &p
	m.judge(p < alpha, m.B < m.A)
}

func (m *Metric) judge(significant, less bool) {
	switch {
	case !significant:
		m.Verdict = Same
	case less == moreIsBetter[m.Name]:
		m.Verdict = Worse
	default:
		m.Verdict = Better
	}
}

// settings lists what was not the same, where it is known.
func (c *Comparison) settings(a, b *Side) {
	x, y := a.runs[0].result, b.runs[0].result
	if x == nil || y == nil {
		return
	}
	s, t := &x.Settings, &y.Settings
	for _, f := range []Setting{
		{"target", s.Target, t.Target}, {"bytes of a row", strconv.Itoa(s.RowSize), strconv.Itoa(t.RowSize)}, {"columns", strconv.Itoa(s.Columns), strconv.Itoa(t.Columns)},
		{"keys", s.Keys, t.Keys}, {"rows a request", strconv.Itoa(s.BatchRows), strconv.Itoa(t.BatchRows)},
		{"requests in flight", strconv.Itoa(s.Concurrency), strconv.Itoa(t.Concurrency)},
		{"rows/s due", strconv.FormatFloat(math.Round(s.Rate), 'f', 0, 64), strconv.FormatFloat(math.Round(t.Rate), 'f', 0, 64)},
		{"partitions", strconv.Itoa(len(x.Partitions)), strconv.Itoa(len(y.Partitions))}, {"seconds", fmt.Sprintf("%.0f", x.Seconds), fmt.Sprintf("%.0f", y.Seconds)},
	} {
		if f.A != f.B {
			c.Settings = append(c.Settings, f)
		}
	}
}

// WriteText writes the comparison for people.
func (c *Comparison) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "A: %s (%d %s)\nB: %s (%d %s)\n", c.A, c.Samples[0], c.By, c.B, c.Samples[1], c.By)
	for _, s := range c.Settings {
		fmt.Fprintf(t, "not the same: %s, %s in A and %s in B\n", s.Name, s.A, s.B)
	}
	fmt.Fprintf(t, "\n\tA\tB\tchange\t\t\n")
	for _, m := range c.Metrics {
		change, detail := "", ""
		if m.Change != nil {
			change = fmt.Sprintf("%+.1f %%", *m.Change)
		}
		switch {
		case m.P != nil:
			detail = fmt.Sprintf("p = %.3g", *m.P)
		case m.Low != nil:
			detail = fmt.Sprintf("%+.1f %% to %+.1f %%", *m.Low, *m.High)
		}
		fmt.Fprintf(t, "%s\t%.5g\t%.5g\t%s\t%s\t%s\n", m.Name, m.A, m.B, change, detail, m.Verdict)
	}
	fmt.Fprintf(t, "\n")
	if c.By != "runs" {
		fmt.Fprintf(t, "These two runs are compared, not what the next two would give: for that give several runs a side, A1,A2,… B1,B2,…\n")
	} else if min(c.Samples[0], c.Samples[1]) < leastRuns {
		fmt.Fprintf(t, "Of runs, each side needs %d at least, of the same settings.\n", leastRuns)
	}
	return t.Flush()
}

// MannWhitney returns the probability that two samples of one and the same distribution differ in rank as much as these or
// more, to either side, as benchstat does: the two-sided U test, exact for at most 50 values a side, or 25 with ties. It is 1
// for samples that are all alike and for one without values.
func MannWhitney(a, b []float64) float64 {
	r, err := stats.MannWhitneyUTest(a, b, stats.LocationDiffers)
	if err != nil {
		return 1
	}
	return min(1, r.P) // where U is in its middle, the library counts that place twice
}
