package result

import (
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Quantiles lists the latency quantiles of a result, as fractions.
var Quantiles = []float64{.5, .75, .9, .95, .99, .999, .9999}

// Latency is a distribution of durations in milliseconds.
type Latency struct {
	Count int64     `json:"count"`
	Mean  float64   `json:"mean_ms"`
	Min   float64   `json:"min_ms"`
	At    []float64 `json:"percentiles_ms"` // p50, p75, p90, p95, p99, p99.9 and p99.99
	Max   float64   `json:"max_ms"`
}

// P returns the latency in milliseconds at one of Quantiles, or 0 if there is none.
func (l *Latency) P(quantile float64) float64 {
	if i := slices.Index(Quantiles, quantile); i >= 0 && i < len(l.At) {
		return l.At[i]
	}
	return 0
}

// histogram holds durations in microseconds with a precision of three decimal digits.
type histogram struct{ *hdrhistogram.Histogram }

// longestTracked is the longest duration recorded. Longer ones are recorded as this.
const longestTracked = time.Hour

func newHistogram() histogram {
	return histogram{hdrhistogram.New(1, longestTracked.Microseconds(), 3)}
}

func (h histogram) add(d time.Duration) { h.addTimes(d, 1) }

func (h histogram) addTimes(d time.Duration, n int64) {
	// RecordValues fails only if a value is out of range, and this one is clamped.
	_ = h.RecordValues(min(max(d.Microseconds(), 1), longestTracked.Microseconds()), n)
}

func (h histogram) latency() Latency {
	l := Latency{Count: h.TotalCount()}
	if l.Count == 0 {
		return l
	}
	ms := func(us int64) float64 { return float64(us) / 1000 }
	l.Mean, l.Min, l.Max = h.Mean()/1000, ms(h.Min()), ms(h.Max())
	for _, q := range Quantiles {
		l.At = append(l.At, ms(h.ValueAtQuantile(100*q)))
	}
	return l
}

// Counts is a histogram of durations in microseconds, rounded to seven binary digits, with an error of at most 0.8 %.
type Counts map[int64]int64

const countDigits = 7

func (c *Counts) Add(d time.Duration) { c.add(d, 1) }

func (c *Counts) add(d time.Duration, n int64) {
	if *c == nil {
		*c = Counts{}
	}
	(*c)[rounded(d.Microseconds())] += n
}

func rounded(us int64) int64 {
	us = max(us, 1)
	if drop := bits.Len64(uint64(us)) - countDigits; drop > 0 {
		us = (us + 1<<(drop-1)) >> drop << drop
	}
	return us
}

func (c *Counts) Merge(o Counts) {
	if *c == nil && len(o) > 0 {
		*c = Counts{}
	}
	for us, n := range o {
		(*c)[us] += n
	}
}

// Sum returns the number of durations.
func (c Counts) Sum() (n int64) {
	for _, k := range c {
		n += k
	}
	return n
}

// Quantile returns the smallest duration, in ms, that at least a share q of all do not exceed, or 0 if there are none.
func (c Counts) Quantile(q float64) float64 {
	left := int64(q*float64(c.Sum())+.999999) - 1
	for _, us := range slices.Sorted(maps.Keys(c)) {
		if left -= c[us]; left < 0 {
			return float64(us) / 1000
		}
	}
	return 0
}
