package ratelimit

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	lawSeeds = flag.Uint64("law-seeds", 0, "seeds of TestLaws, which shows the worst; 0 skips it")
	lawWord  = flag.String("law-cell", "", "only cells that contain this word")
	lawNames = flag.String("law", "old,new", "the laws that are compared")
	lawGrid  = flag.Bool("law-grid", false, "the whole grid in place of the 80 cells")
	lawUntil = flag.Float64("law-trace", 0, "follow one lane of the first cell for so many seconds")
	lawSeed  = flag.Uint64("law-seed", 1, "the seed that is followed")
	lawLaneN = flag.Int("law-lane", 0, "the lane that is followed")
)

// lawMaker makes what decides for the lanes of a load.
type lawMaker func(r *rand.Rand, c *lawScene) func(lane int) controller

// laws are compared by TestLaws.
var laws = map[string]lawMaker{"old": oldLaw, "new": newLaw}

func newLaw(r *rand.Rand, c *lawScene) func(int) controller {
	t := new(Table)
	return func(int) controller {
		return inTable{paced{NewPacer(PacerOptions{MaxInFlight: c.maxInFlight(), Rand: r, Alone: c.lanes == 1}), c.perRow}, t}
	}
}

// inTable is a lane of a table that may be limited.
type inTable struct {
	paced
	table *Table
}

func (l inTable) next(now time.Time, inFlight int, queued float64) (float64, time.Time, bool) {
	units, at, ok := l.paced.next(now, inFlight, queued)
	if !ok || at.After(now) {
		return units, at, ok
	}
	units = max(1, min(units, l.table.Most()))
	return units, l.table.Next(now, units), true
}

func (l inTable) sent(now time.Time, units float64) {
	l.paced.sent(now, units)
	l.table.Sent(now, units)
}

func (l inTable) answered(sent, now time.Time, units, taken float64) {
	l.paced.answered(sent, now, units, l.table.Answered(l.p, sent, now, units, taken))
}

// worstLaw is the worst of several runs, for each figure.
func worstLaw(c *lawScene, law lawMaker, seeds uint64) lawResult {
	w := lawResult{share: math.Inf(1), fair: math.Inf(1)}
	for seed := range seeds {
		x := newLawSim(c, law, seed+1).run()
		w.share, w.fair = min(w.share, x.share), min(w.fair, x.fair)
		w.refused, w.delay, w.late = max(w.refused, x.refused), max(w.delay, x.delay), max(w.late, x.late)
		w.requests = max(w.requests, x.requests)
	}
	return w
}

func chosenCells() (chosen []lawCell) {
	cells := lawCells()
	if *lawGrid {
		cells = grid()
	}
	for _, c := range cells {
		if strings.Contains(c.group+": "+c.name, *lawWord) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// TestLaws prints what the laws reach in every cell.
func TestLaws(t *testing.T) {
	if *lawSeeds == 0 {
		t.Skip("takes minutes: make laws")
	}
	cells, names := chosenCells(), strings.Split(*lawNames, ",")
	lines := make([]string, len(cells))
	next := make(chan int)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := range next {
				for _, n := range names {
					lines[i] += cells[i].figures(worstLaw(&cells[i].lawScene, laws[n], *lawSeeds))
				}
			}
		})
	}
	for i := range cells {
		next <- i
	}
	close(next)
	all.Wait()
	fmt.Printf("| cell | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	for i, c := range cells {
		fmt.Printf("| %s: %s%s |\n", c.group, c.name, lines[i])
	}
}

// figures is the share of what is possible and of the rows refused after five seconds, the delay of 95 of 100 requests in a queue, the
// smaller load's part; what does not reach what it should is bold.
func (c *lawCell) figures(w lawResult) string {
	share, refused, late, fair := c.wants()
	bold := func(miss bool, text string) string {
		if miss {
			return "**" + text + "**"
		}
		return text
	}
	line := " | " + bold(w.share < share-0.0005, fmt.Sprintf("%.3f", w.share)) + ", " + bold(w.refused > refused+0.00005, fmt.Sprintf("%.2f %%", 100*w.refused))
	if !math.IsInf(late, 1) {
		line += ", " + bold(w.late > late+0.005, fmt.Sprintf("%.2f s", w.late))
	}
	if fair > 0 {
		line += ", " + bold(w.fair < fair, fmt.Sprintf("%.0f:%.0f", 100*w.fair, 100-100*w.fair))
	}
	return line
}

// TestLawTrace follows one lane of a run.
func TestLawTrace(t *testing.T) {
	if *lawUntil == 0 {
		t.Skip()
	}
	c := chosenCells()[0]
	s := newLawSim(&c.lawScene, newLaw, *lawSeed)
	refused, taken := make([]int, len(s.lanes)), make([]int, len(s.lanes))
	s.trace = func(l int, now time.Time, r *lawRequest) {
		p := s.lanes[l].law.(inTable).p
		sec := now.Sub(s.base).Seconds()
		taken[l] += r.taken
		if sec > 5 {
			refused[l] += r.rows - r.taken
		}
		if l == *lawLaneN && sec < *lawUntil {
			fmt.Printf("%9.4f sent %9.4f rows %3d taken %3d rate %7.1f gain %6.3f %s credit %6.1f owed %.1f most %.0f since %.2f agreed %d inflight %d crowd %v %d %.0f wrong %d\n", sec, r.sent.Sub(s.base).Seconds(), r.rows, r.taken, p.rate, p.probe.gain, p.State(), p.credit.level, p.evidence.owed, p.size.most, now.Sub(p.gauge.from).Seconds(), p.evidence.agreed, s.lanes[l].inFlight, p.crowd.on, p.crowd.most, p.crowd.room, p.crowd.wrong)
		}
	}
	x := s.run()
	fmt.Println(c.name, x)
	fmt.Println(refused, taken)
	for _, l := range s.lanes {
		p := l.law.(inTable).p
		fmt.Printf("%s %.1f quota %v hair %.3f owed %.1f noise %.4f, ", p.State(), p.rate, p.quota.on, p.evidence.hair, p.evidence.owed, p.evidence.noise)
	}
	fmt.Println()
	fmt.Println(s.series)
}

// TestLoadsShareAQueueEvenlyAndKeepItShort runs cells of make laws in which a lane once took the requests of others for its way.
func TestLoadsShareAQueueEvenlyAndKeepItShort(t *testing.T) {
	cells := lawCells()
	for name, most := range map[string]struct{ late, unfair float64 }{
		"two loads: queue 8 × 1000, 5ms":        {0.2, 0.4},
		"two loads: table, queue 8 × 1000, 5ms": {0.5, 0.25},
		"table: queue 32 × 500, 5ms":            {0.3, 0.4},
	} {
		i := slices.IndexFunc(cells, func(c lawCell) bool { return c.group+": "+c.name == name })
		if i < 0 {
			t.Fatalf("no cell %s", name)
		}
		if w := worstLaw(&cells[i].lawScene, newLaw, 2); w.share < 0.98 || w.late > most.late || w.fair < most.unfair {
			t.Errorf("%s: share %.3f, the smaller load's part %.2f, delay %.2f s", name, w.share, w.fair, w.late)
		}
	}
}
