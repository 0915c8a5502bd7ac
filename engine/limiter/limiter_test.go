package limiter

import (
	"math"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

var start = time.Unix(1_000_000_000, 250_000_000)

func at(seconds float64) time.Time { return start.Add(time.Duration(math.Round(seconds * 1e9))) }

func limit(t *testing.T, o Options) *Limiter {
	t.Helper()
	l, err := New(o, start)
	conformance.MustEqual(t, err, nil, "error")
	return l
}

func rows(n int, units float64) []Row {
	all := make([]Row, n)
	for i := range all {
		all[i].Units = units
	}
	return all
}

// step is a request with rows of one size, and its expected result.
type step struct {
	at    float64 // seconds after start
	rows  int
	units float64
	taken int
	delay float64 // seconds
}

func check(t *testing.T, limits []*Limiter, steps []step) {
	t.Helper()
	for i, s := range steps {
		all := rows(s.rows, s.units)
		taken, delay := Admit(at(s.at), all, limits...)
		conformance.True(t, taken == s.taken && math.Abs(delay.Seconds()-s.delay) <= 1e-6,
			"step %d at %g s: %d of %d rows after %v, want %d after %g s", i, s.at, taken, s.rows, delay, s.taken, s.delay)
		marked := 0
		for _, r := range all {
			if r.Taken {
				marked++
			}
		}
		conformance.Equal(t, marked, taken, "step %d: rows are marked as taken", i)
	}
}

func TestLimitsAcceptExpectedRows(t *testing.T) {
	for name, x := range map[string]struct {
		options Options
		steps   []step
	}{
		"a bucket begins empty and holds a second": {Options{Rate: 100}, []step{
			{at: 0, rows: 1, units: 1}, {at: 0.5, rows: 200, units: 1, taken: 50}, {at: 0.5, rows: 1, units: 1},
			{at: 9, rows: 200, units: 1, taken: 100}, {at: 9.01, rows: 2, units: 1, taken: 1}}},
		"a bucket that begins full": {Options{Rate: 100, Full: true, Burst: 300 * time.Second}, []step{
			{at: 0, rows: 40_000, units: 1, taken: 30_000}, {at: 1, rows: 200, units: 1, taken: 100}}},
		"a row larger than the bucket passes a full one, which then owes": {Options{Rate: 100}, []step{
			{at: 0.9, rows: 1, units: 250}, {at: 1, rows: 2, units: 250, taken: 1}, {at: 2.49, rows: 1, units: 1},
			{at: 2.51, rows: 1, units: 1, taken: 1}}},
		"a small row passes after a large one that does not": {Options{Rate: 100, Burst: 10 * time.Second}, []step{
			{at: 1, rows: 1, units: 101}, {at: 1, rows: 1, units: 100, taken: 1}}},
		"windows of the clock": {Options{Kind: FixedWindow, Rate: 100}, []step{
			{at: 0, rows: 200, units: 1, taken: 100}, {at: 0.74, rows: 1, units: 1}, {at: 0.75, rows: 60, units: 1, taken: 60},
			{at: 1.74, rows: 60, units: 1, taken: 40}, {at: 1.75, rows: 200, units: 1, taken: 100}}},
		"a window larger rows pay for": {Options{Kind: FixedWindow, Rate: 100}, []step{
			{at: 0, rows: 2, units: 250, taken: 1}, {at: 0.75, rows: 1, units: 1}, {at: 1.75, rows: 60, units: 1, taken: 50},
			{at: 2.75, rows: 60, units: 1, taken: 60}}},
		"windows that begin with a request": {Options{Kind: FixedWindow, Rate: 100, Unaligned: true}, []step{
			{at: 0.6, rows: 200, units: 1, taken: 100}, {at: 1.59, rows: 1, units: 1}, {at: 1.7, rows: 60, units: 1, taken: 60},
			{at: 2.65, rows: 60, units: 1, taken: 40}, {at: 2.71, rows: 1, units: 1, taken: 1}}},
		"a sliding window": {Options{Kind: SlidingWindow, Rate: 100}, []step{
			{at: 0, rows: 60, units: 1, taken: 60}, {at: 0.9, rows: 60, units: 1, taken: 40}, {at: 0.99, rows: 1, units: 1},
			{at: 1, rows: 100, units: 1, taken: 60}, {at: 1.9, rows: 100, units: 1, taken: 40}}},
		"a sliding window and a larger row": {Options{Kind: SlidingWindow, Rate: 100}, []step{
			{at: 0, rows: 1, units: 250, taken: 1}, {at: 2.49, rows: 1, units: 1}, {at: 2.5, rows: 101, units: 1, taken: 100}}},
		"a queue answers later": {Options{Kind: Queue, Rate: 100, MaxDelay: 2 * time.Second}, []step{
			{at: 0, rows: 50, units: 1, taken: 50, delay: 0.5}, {at: 0.25, rows: 50, units: 1, taken: 50, delay: 0.75},
			{at: 0.25, rows: 200, units: 1, taken: 126, delay: 2.01}, {at: 10, rows: 1, units: 1, taken: 1, delay: 0.01}}},
		"requests at a time": {Options{Kind: Concurrency, Rate: 100, Requests: 2}, []step{
			{at: 0, rows: 10, units: 1, taken: 10, delay: 0.2}, {at: 0.05, rows: 5, units: 1, taken: 5, delay: 0.1},
			{at: 0.1, rows: 1, units: 1}, {at: 0.15, rows: 5, units: 1, taken: 5, delay: 0.1}}},
		"units at a time": {Options{Kind: Concurrency, Rate: 100}, []step{
			{at: 0, rows: 20, units: 1, taken: 10, delay: 0.1}, {at: 0.09, rows: 1, units: 1},
			{at: 0.1, rows: 4, units: 1, taken: 4, delay: 0.1},
			{at: 0.15, rows: 8, units: 1, taken: 6, delay: 0.1}, {at: 0.25, rows: 1, units: 50, taken: 1, delay: 0.5}}},
		"whole requests": {Options{Rate: 100, Whole: true}, []step{
			{at: 0.5, rows: 51, units: 1}, {at: 0.5, rows: 50, units: 1, taken: 50}, {at: 1.4, rows: 200, units: 1},
			{at: 1.5, rows: 200, units: 1, taken: 200}, {at: 2.49, rows: 1, units: 1}}},
		"a rate that changes": {Options{Rate: 100, Burst: 10 * time.Second,
			Steps: []Step{{time.Second, 2}, {2 * time.Second, 0.5}}}, []step{
			{at: 1, rows: 500, units: 1, taken: 100}, {at: 1.5, rows: 500, units: 1, taken: 100},
			{at: 3, rows: 500, units: 1, taken: 150}}},
		"a queue whose rate changes": {Options{Kind: Queue, Rate: 100, Steps: []Step{{time.Second, 2}}}, []step{
			{at: 0.5, rows: 150, units: 1, taken: 150, delay: 1}}},
		"what is taken counts late": {Options{Rate: 100, Lag: 2 * time.Second}, []step{
			{at: 1, rows: 200, units: 1, taken: 200}, {at: 1, rows: 100, units: 1, taken: 100},
			{at: 2.9, rows: 50, units: 1, taken: 50}, {at: 3, rows: 1, units: 1}, {at: 4.99, rows: 1, units: 1},
			{at: 5.49, rows: 1, units: 1}, {at: 5.51, rows: 2, units: 1, taken: 2}}},
		"no limit": {Options{Kind: Queue}, []step{{at: 0, rows: 100_000, units: 1, taken: 100_000}}},
	} {
		t.Run(name, func(t *testing.T) { check(t, []*Limiter{limit(t, x.options)}, x.steps) })
	}
}

func TestRefusedRowCostsOtherLimitsNothing(t *testing.T) {
	table := limit(t, Options{Rate: 150})
	one, other := limit(t, Options{Rate: 100}), limit(t, Options{Rate: 100})
	check(t, []*Limiter{one, table}, []step{{at: 1, rows: 200, units: 1, taken: 100}})
	check(t, []*Limiter{other, table}, []step{{at: 1, rows: 200, units: 1, taken: 50}})
	check(t, []*Limiter{other}, []step{{at: 1, rows: 200, units: 1, taken: 50}})
}

func TestSpuriousRefusalsHaveTheirShare(t *testing.T) {
	for _, whole := range []bool{false, true} {
		l := limit(t, Options{Spurious: 0.01, Seed: 5, Whole: whole})
		refused, requests := 0, 0
		for i := range 10_000 {
			n, _ := Admit(at(float64(i)), rows(100, 1), l)
			if refused += 100 - n; n < 100 {
				requests++
			}
		}
		conformance.True(t, refused >= 7_000 && refused <= 13_000 && whole == (refused == 100*requests),
			"whole requests %v: %d rows of 1,000,000 refused, in %d requests", whole, refused, requests)
	}
}

func TestRestartResetsLimit(t *testing.T) {
	for _, kind := range Kinds {
		l := limit(t, Options{Kind: kind, Rate: 100, Full: true, Requests: 1})
		begun, _ := Admit(start, rows(100, 1), l)
		_, _ = Admit(at(0.1), rows(300, 1), l)
		conformance.Equal(t, begun, 100, "%s", kind)
		l.Restart(at(0.2))
		again, _ := Admit(at(0.2), rows(100, 1), l)
		conformance.Equal(t, again, begun, "%s", kind)
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	for _, o := range []Options{
		{Kind: "leaky"}, {Rate: -1}, {Rate: math.NaN()}, {Spurious: 1.1}, {Requests: -1}, {Burst: -1}, {Kind: Queue, Lag: 1},
		{Steps: []Step{{0, 0}}}, {Steps: []Step{{2, 1}, {1, 1}}},
	} {
		conformance.Refused(t, conformance.ErrorOf(New(o, start)), "", "%+v is taken", o)
	}
}

func TestTokenBucketDoesNotAllocate(t *testing.T) {
	l, table, all := limit(t, Options{Rate: 1e6}), limit(t, Options{Rate: 1e6}), rows(200, 1)
	limits := []*Limiter{l, table}
	now := 0.0
	n := testing.AllocsPerRun(100, func() { now++; Admit(at(now), all, limits...) })
	conformance.True(t, n == 0, "%g allocations a request", n)
}
