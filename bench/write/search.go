package write

import (
	"context"
	"fmt"
	"math"

	"example.com/tsimport/bench/result"
	"example.com/tsimport/internal/words"
)

// searcher finds the highest rate within the limits.
type searcher struct {
	limits Search
	// try writes at a rate for one step, and hold for the full duration. An error ends the search.
	try, hold func(ctx context.Context, rate float64) (*result.Result, error)
	say       words.Say
	// least is the lowest rate to try. At lower rates a step would end before its first batch is due. 0 means 1.
	least float64

	steps []result.Step
}

// Parameters of the search.
const (
	precision   = 0.03 // the search ends at this precision
	margin      = 0.98 // sustainable share of the throughput at which a table throttles
	mostSteps   = 40
	mostHolds   = 6
	leastServed = 0.97 // minimum share of due rows that must be written, at any latency
)

// errNoRate ends a search without a result. It names the lowest rate tried and the limit that it exceeded.
type errNoRate struct {
	rate float64
	why  string
}

func (e *errNoRate) Error() string {
	return fmt.Sprintf("find the highest rate: even %.0f rows/s exceeds the limits: %s; raise them (--max-p99, "+
		"--max-throttled)", e.rate, e.why)
}

// run finds the rate, holds it, and returns the result of holding it.
//
//  1. Double the rate until a step breaks a limit.
//  2. Try rates in between. The throughput of a throttled step is a hint of the table's capacity.
//  3. Retry the lowest rate that broke a limit. A new table has one partition and splits under load, so the rate may no
//     longer be too high; then continue from 1.
//  4. Hold the best rate. An idle partition saves up capacity, so a short step may pass at a rate that does not last;
//     then hold a lower one.
func (s *searcher) run(ctx context.Context) (*result.Result, error) {
	low, high, hint := 0.0, math.Inf(1), 0.0
	least := max(s.least, 1)
	rate, again := max(s.limits.Start, least), false // again means that high is being retried
	for len(s.steps) < mostSteps && ctx.Err() == nil {
		res, err := s.try(ctx, rate)
		if err != nil {
			return nil, err
		}
		step := s.judge(rate, res)
		switch {
		case again && !step.Passed, step.Passed && rate >= maxRate, rate <= least && !step.Passed:
			return s.end(ctx, max(low, passed(step)))
		case again:
			low, high, again = rate, math.Inf(1), false
		case step.Passed:
			low = rate
		default:
			high, hint = rate, hintOf(res)
		}
		if again = low > 0 && high/low <= 1+precision; again {
			rate = high
		} else {
			rate = max(between(low, high, hint), least)
		}
	}
	return s.end(ctx, low)
}

// passed returns the rate of a step within the limits, or 0 if it exceeded one.
func passed(s result.Step) float64 {
	if s.Passed {
		return s.Rate
	}
	return 0
}

func (s *searcher) end(ctx context.Context, low float64) (*result.Result, error) {
	if ctx.Err() == nil && low == 0 {
		last := s.steps[len(s.steps)-1]
		return nil, &errNoRate{last.Rate, last.Why}
	}
	return s.settle(ctx, low)
}

// settle holds a rate, then lower ones until one is within the limits. Their steps grow, because holding takes long.
func (s *searcher) settle(ctx context.Context, rate float64) (res *result.Result, err error) {
	held, why := rate, ""
	for i := range mostHolds {
		if ctx.Err() != nil {
			return res, context.Cause(ctx)
		}
		s.say.Line("holding %.0f rows/s", rate)
		if res, err = s.hold(ctx, rate); err != nil {
			return nil, err
		}
		step := s.judge(rate, res)
		held, why = rate, step.Why
		res.Steps = s.steps
		if step.Passed {
			return res, nil
		}
		lower := rate * (1 - precision*float64(int(1)<<min(i, 4)))
		hint := hintOf(res)
		if hint == 0 && step.Achieved < leastServed*rate {
			hint = margin * step.Achieved // writing fell behind, with or without throttling
		}
		if hint > 0 {
			lower = min(lower, max(hint, rate/2))
		}
		rate = lower
	}
	return nil, fmt.Errorf("find the highest rate: none could be held; %.0f rows/s was the last of %d tried: %s; "+
		"raise the limits (--max-p99, --max-throttled) or shorten --duration", held, mostHolds, why)
}

// hintOf estimates the table's capacity from its throughput while it throttles. It is 0 if the table does not throttle.
func hintOf(r *result.Result) float64 {
	if r.Totals.Throttled == 0 {
		return 0
	}
	return margin * r.PerSecond.Rows
}

// between returns the next rate to try.
func between(low, high, hint float64) float64 {
	switch {
	case math.IsInf(high, 1):
		return min(2*low, maxRate)
	case hint > low*(1+precision) && hint < high/(1+precision/2):
		return hint
	case low == 0:
		return max(1, high/4)
	}
	return math.Sqrt(low * high)
}

// judge records a step and whether it is within the limits.
func (s *searcher) judge(rate float64, r *result.Result) result.Step {
	step := result.Step{Rate: rate, Achieved: r.PerSecond.Rows, P99: r.Latency.P(.99),
		Throttled: r.Totals.ThrottledShare(), Seconds: r.Seconds}
	switch limit := float64(s.limits.MaxP99.Microseconds()) / 1000; {
	case r.Totals.Requests == 0:
		step.Why = "no request was answered"
	case step.Throttled > s.limits.MaxThrottled:
		step.Why = fmt.Sprintf("%.2f %% throttled (--max-throttled %.4g%%)", 100*step.Throttled, 100*s.limits.MaxThrottled)
	case limit > 0 && step.P99 > limit:
		step.Why = fmt.Sprintf("p99 %.4g ms, more than --max-p99 %v", step.P99, s.limits.MaxP99)
	case step.Achieved < leastServed*rate && float64(r.Unfinished)+rate*r.Seconds-float64(r.Totals.Rows) > 2*float64(
		r.Settings.BatchRows):
		step.Why = fmt.Sprintf("%.0f rows/s written, less than %.0f %% of those due", step.Achieved, 100*leastServed)
	default:
		step.Passed = true
	}
	s.steps = append(s.steps, step)
	verdict := "kept"
	if !step.Passed {
		verdict = "not kept: " + step.Why
	}
	s.say.Line("%.0f rows/s: %.0f written, p99 %.4g ms, %.2f %% throttled: %s", rate, step.Achieved, step.P99,
		100*step.Throttled, verdict)
	return step
}
