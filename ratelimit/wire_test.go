package ratelimit

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/engine/limiter"
	"example.com/tsimport/internal/conformance"
)

var (
	wireBinary = flag.String("wire-binary", "", "tsbench binary for TestWireReachesSimulatedRates to measure, if any")
	wireSeeds  = flag.Uint64("wire-seeds", 200, "number of seeds of the simulation; the mean counts")
	wireLate   = flag.Duration("wire-late", 0, "mean lateness of simulated timers; 0 takes the measured one")
	wireRuns   = flag.Int("wire-runs", 2, "number of measurements; the mean counts")
	wireWord   = flag.String("wire-cell", "", "only limiters with this word")
)

// wireScene is a load of tsbench spread. Partitions take 1,000 units/s and are 50 ms away, so that a busy machine
// matters little.
type wireScene struct {
	kind  string
	table float64 // units per second of the whole table; 0 means no limit
}

const (
	wireLanes = 4
	wireRate  = 1000
	wireTrip  = 50 * ms
)

func (w *wireScene) rows() int {
	if w.table > 0 {
		return int(20 * w.table)
	}
	return 20 * wireLanes * wireRate
}

func (w *wireScene) capacity() float64 { return float64(w.rows()) / 20 }

func (w *wireScene) String() string {
	if w.table > 0 {
		return fmt.Sprintf("%s, and %g for the table", w.kind, w.table)
	}
	return w.kind
}

// reached holds the share of the capacity used up to the last row, and the share of sent rows that were refused.
type reached struct{ share, refused float64 }

func (r *reached) add(x reached, of float64) {
	r.share, r.refused = r.share+x.share/of, r.refused+x.refused/of
}

func (w *wireScene) simulate(seed uint64, late time.Duration) reached {
	at := at{wireLanes, wireRate, wireTrip}
	c := at.scene()
	c.length, c.even, c.late = 100*time.Second, true, late // the engine's latency does not vary
	c.lane = &limiter.Options{Kind: w.kind, Rate: wireRate}
	if w.table > 0 {
		c.table = &limiter.Options{Kind: w.kind, Rate: w.table}
	}
	lanes := &wireTurns{left: slices.Repeat([]float64{float64(w.rows() / wireLanes)}, wireLanes)}
	s := newLawSim(&c, func(r *rand.Rand, c *lawScene) func(int) controller {
		lane := theLaw(r, c)
		return func(i int) controller { return &endingLaw{lane(i).(inTable), &lanes.left[i]} }
	}, seed)
	lanes.sim, s.turns = s, lanes.send
	sent, accepted, last := 0, 0, time.Duration(0)
	s.trace = func(_ int, now time.Time, q *lawRequest) {
		if sent, accepted = sent+q.rows, accepted+q.taken; q.taken > 0 {
			last = now.Sub(s.base) - q.back
		}
	}
	s.run()
	return reached{float64(accepted) / (w.capacity() * last.Seconds()), 1 - float64(accepted)/float64(sent)}
}

// endingLaw is the controller of a lane that runs out of rows.
type endingLaw struct {
	inTable
	left *float64 // remaining rows that are not in flight
}

func (l *endingLaw) sent(now time.Time, units float64) {
	*l.left -= units
	l.inTable.sent(now, units)
}

func (l *endingLaw) answered(sent, now time.Time, units, accepted float64) {
	*l.left += units - accepted
	l.inTable.answered(sent, now, units, accepted)
}

// wireTurns picks the next lane as a load does: the one with the most rows, if the table limits them.
type wireTurns struct {
	sim   *lawSim
	left  []float64 // remaining rows of each lane
	ended [wireLanes]bool
}

// send sends everything that may be sent now and returns when to send again; zero means after the next answer.
func (w *wireTurns) send(now time.Time) (next time.Time) {
	for {
		next = time.Time{}
		var ready []int
		for i := range w.left {
			if w.left[i] == 0 {
				if w.sim.lanes[i].inFlight == 0 && !w.ended[i] {
					w.ended[i] = true
					w.law(i).table.Ended(w.law(i).p)
				}
				continue
			}
			switch _, at, ok := w.law(i).paced.next(now, w.sim.lanes[i].inFlight, w.left[i]); {
			case !ok:
			case !at.After(now):
				ready = append(ready, i)
			case next.IsZero() || at.Before(next):
				next = at
			}
		}
		if len(ready) == 0 || w.sim.free[0] == 0 {
			return next
		}
		first := ready[w.sim.random.IntN(len(ready))]
		if w.law(first).table.Limits(now) {
			first = slices.MaxFunc(ready, func(a, b int) int { return cmp.Compare(w.left[a], w.left[b]) })
		}
		units, at, ok := w.law(first).next(now, w.sim.lanes[first].inFlight, w.left[first])
		if !ok || at.After(now) {
			return at
		}
		w.sim.send(first, now, min(units, w.left[first]))
	}
}

func (w *wireTurns) law(i int) *endingLaw { return w.sim.lanes[i].law.(*endingLaw) }

// measure runs tsbench spread. Its start counts only with token buckets, which save up units meanwhile.
func (w *wireScene) measure(seed int) (r reached, err error) {
	args := []string{"spread", "--only", "tsimport", "--order", "random", "--json", "--limiter", w.kind,
		"--partitions", strconv.Itoa(wireLanes), "--partition-wcu", strconv.Itoa(wireRate), "--latency", wireTrip.String(),
		"--rows", strconv.Itoa(w.rows()), "--seed", strconv.Itoa(seed)}
	if w.table > 0 {
		args = append(args, "--limit-table", strconv.FormatFloat(w.table, 'f', -1, 64))
	}
	out, err := exec.Command(*wireBinary, args...).Output()
	if err != nil {
		return r, fmt.Errorf("run %s %s: %w", *wireBinary, strings.Join(args, " "), err)
	}
	var report struct {
		Scenarios []struct {
			Share      float64 `json:"capacity_share"`
			Refused    float64 `json:"throttled_share"`
			Makespan   float64 `json:"makespan_seconds"`
			Partitions []struct {
				First float64 `json:"first_ms"`
			}
		}
	}
	if err := json.Unmarshal(out, &report); err != nil || len(report.Scenarios) != 1 {
		return r, fmt.Errorf("read %s: %w", out, err)
	}
	s := &report.Scenarios[0]
	if w.kind != limiter.TokenBucket {
		first := math.Inf(1)
		for _, p := range s.Partitions {
			first = min(first, p.First/1000)
		}
		s.Share *= s.Makespan / (s.Makespan - first)
	}
	return reached{s.Share, s.Refused}, nil
}

// watchTimers measures the mean delay of this machine's timers until the returned function is called.
func watchTimers() func() time.Duration {
	done, late := make(chan struct{}), make(chan time.Duration)
	go func() {
		var sum, n time.Duration
		for {
			began := time.Now()
			select {
			case <-time.After(5 * ms):
				sum, n = sum+time.Since(began)-5*ms, n+1
			case <-done:
				late <- sum / max(1, n)
				return
			}
		}
	}()
	return func() time.Duration { close(done); return <-late }
}

func TestWireReachesSimulatedRates(t *testing.T) {
	if *wireBinary == "" {
		t.Skip("takes minutes: make wire")
	}
	var table strings.Builder
	fmt.Fprint(&table, "| `--limiter` | timers late | share simulated | share measured | refused simulated | refused "+
		"measured |\n|---|---|---|---|---|---|\n")
	for _, units := range []float64{0, 2000} {
		for _, kind := range limiter.Kinds {
			w := wireScene{kind, units}
			if !strings.Contains(w.String(), *wireWord) {
				continue
			}
			var simulated, measured reached
			clock := watchTimers()
			for run := range *wireRuns {
				m := conformance.Try(w.measure(run + 1)).Must(t)
				measured.add(m, float64(*wireRuns))
				t.Logf("%s: run %d: share %.3f, refused %.1f %%", &w, run+1, m.share, 100*m.refused)
			}
			late := cmp.Or(*wireLate, clock())
			for seed := range *wireSeeds {
				x := w.simulate(seed+1, late)
				simulated.add(x, float64(*wireSeeds))
				t.Logf("%s, timers %v late: seed %d: share %.3f, refused %.1f %%", &w, late, seed+1, x.share, 100*x.refused)
			}
			fmt.Fprintf(&table, "| %s | %.1f ms | %.3f | %.3f | %.1f %% | %.1f %% |\n", &w, late.Seconds()*1000, simulated.share,
				measured.share, 100*simulated.refused, 100*measured.refused)
			conformance.True(t, *wireRuns == 0 || math.Abs(simulated.share-measured.share) <= 0.03, "%s: the shares differ", &w)
		}
	}
	fmt.Print(&table)
}

// If a window is used up at once, its rate is not the few units accepted before its second is over.
func TestQuotaIsMeasuredOverOneSecond(t *testing.T) {
	w := wireScene{kind: limiter.SlidingWindow}
	for seed := range uint64(10) {
		r := w.simulate(seed+1, 8*ms)
		conformance.True(t, r.share >= 0.7, "seed %d: share %.3f", seed+1, r.share)
	}
}

// The last lanes of a load into a table with a common limit get all of its rate.
func TestLanesTakeShareOfEndedLanes(t *testing.T) {
	for kind, want := range map[string]float64{limiter.TokenBucket: 0.92, limiter.FixedWindow: 0.82,
		limiter.SlidingWindow: 0.8} {
		const seeds = 6
		w, mean := wireScene{kind: kind, table: 2000}, 0.0
		for seed := range uint64(seeds) {
			mean += w.simulate(seed+1, ms).share / seeds
		}
		conformance.True(t, mean >= want, "%s: share %.3f on average, want %.2f", &w, mean, want)
	}
}

// possible returns the units that a limit could accept and answer from start to end, including those of a full bucket.
func possible(o limiter.Options, start, end time.Time) (units float64) {
	steps := append([]limiter.Step{{Factor: 1}}, o.Steps...)
	begins := func(step int) time.Time {
		if step < len(steps) {
			if at := start.Add(steps[step].After); at.Before(end) {
				return at
			}
		}
		return end
	}
	if o.Kind != limiter.FixedWindow && o.Kind != limiter.SlidingWindow {
		for i, s := range steps {
			units += o.Rate * s.Factor * begins(i+1).Sub(begins(i)).Seconds()
		}
		return units
	}
	length, from := cmp.Or(o.Window, time.Second), start
	if o.Kind == limiter.FixedWindow && !o.Unaligned {
		from = from.Add(-time.Duration(from.UnixNano() % int64(length)))
	}
	for ; from.Before(end); from = from.Add(length) {
		most := 0.0 // a window may accept units at the highest rate within it
		for i, s := range steps {
			if at := begins(i); at.Before(end) && at.Before(from.Add(length)) && begins(i+1).After(from) {
				most = max(most, o.Rate*s.Factor)
			}
		}
		units += most * length.Seconds()
	}
	return units
}

// TestLimitersKeepTheirCapacity sends every limiter more than its capacity, in small requests, for ten seconds.
func TestLimitersKeepTheirCapacity(t *testing.T) {
	start := time.Unix(1_000_000_000, 250_000_000)
	for _, o := range []limiter.Options{{}, {Kind: limiter.FixedWindow}, {Kind: limiter.FixedWindow, Unaligned: true},
		{Kind: limiter.SlidingWindow}, {Kind: limiter.Queue, MaxDelay: 50 * time.Millisecond}, {Kind: limiter.Concurrency},
		{Kind: limiter.Concurrency, Requests: 4}} {
		o.Rate, o.Steps = 1000, []limiter.Step{{After: 4 * time.Second, Factor: 0.5}, {After: 6 * time.Second, Factor: 2}}
		l := conformance.Try(limiter.New(o, start)).Must(t)
		taken, last, rows := 0, start, make([]limiter.Row, 10)
		for i := range rows {
			rows[i].Units = 1
		}
		for at := start; at.Before(start.Add(10 * time.Second)); at = at.Add(time.Millisecond) {
			n, delay := limiter.Admit(at, rows, l)
			if taken += n; n > 0 {
				last = at.Add(delay)
			}
		}
		share := float64(taken) / possible(o, start, last)
		conformance.True(t, share <= 1.001 && share >= 0.98, "%+v: %d in %v, %.4f of it", o, taken, last.Sub(start), share)
	}
}
