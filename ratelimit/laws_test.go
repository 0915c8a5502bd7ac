package ratelimit

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/engine/limiter"
	"example.com/tsimport/internal/conformance"
)

var (
	lawSeeds = flag.Uint64("law-seeds", 0, "number of seeds of TestLaws, which reports the worst; 0 skips it")
	lawWord  = flag.String("law-cell", "", "only cells that contain this word")
	lawGrid  = flag.Bool("law-grid", false, "the whole grid instead of the 86 cells")
	update   = flag.Bool("update", false, "record the runs anew")
)

// lawMaker makes the controllers of a load's lanes.
type lawMaker func(r *rand.Rand, c *lawScene) func(lane int) controller

func theLaw(r *rand.Rand, c *lawScene) func(int) controller {
	t := new(Table)
	return func(int) controller {
		p := NewPacer(PacerOptions{MaxInFlight: c.maxInFlight(), Rand: r, Alone: c.lanes == 1})
		return inTable{&paced{p: p, perRow: c.perRow}, t}
	}
}

// inTable is a lane of a table that may be limited.
type inTable struct {
	*paced
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

// worstLaw runs a scene with several seeds and returns the worst of each figure.
func worstLaw(c *lawScene, seeds uint64) lawResult {
	w := lawResult{share: math.Inf(1), fair: math.Inf(1)}
	for seed := range seeds {
		x := newLawSim(c, theLaw, seed+1).run()
		w.share, w.fair = min(w.share, x.share), min(w.fair, x.fair)
		w.refused, w.delay, w.late = max(w.refused, x.refused), max(w.delay, x.delay), max(w.late, x.late)
		w.requests, w.rows = max(w.requests, x.requests), x.rows
	}
	return w
}

func TestLaws(t *testing.T) {
	if *lawSeeds == 0 {
		t.Skip("takes minutes: make laws")
	}
	cells := lawCells()
	if *lawGrid {
		cells = grid()
	}
	lines := make([]string, len(cells))
	next := make(chan int)
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := range next {
				lines[i] = cells[i].figures(worstLaw(&cells[i].lawScene, *lawSeeds))
			}
		})
	}
	for i, c := range cells {
		if strings.Contains(c.group+": "+c.name, *lawWord) {
			next <- i
		}
	}
	close(next)
	all.Wait()
	fmt.Print("| cell | reached |\n|---|---|\n")
	for i, c := range cells {
		if lines[i] != "" {
			fmt.Printf("| %s: %s | %s |\n", c.group, c.name, lines[i])
		}
	}
}

// TestControllerRepeatsRecordedRuns runs each cell briefly with one seed. Any change of the controller changes some of
// the recorded figures; if the change is intended, its author runs the test with -update.
func TestControllerRepeatsRecordedRuns(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("recorded on amd64; other processors round differently")
	}
	var runs strings.Builder
	for _, c := range lawCells() {
		brief := max(5*time.Second, time.Duration(30_000/c.capacity()*float64(time.Second)))
		if c.group == "changes" {
			brief = 135 * time.Second // the last change comes after two minutes
		}
		c.length = min(c.length, brief)
		x := newLawSim(&c.lawScene, theLaw, 1).run()
		fmt.Fprintf(&runs, "%s: %s: %d requests, %.0f units, %.6f refused, %.6f s queued\n", c.group, c.name, x.requests,
			x.rows*c.perRow, x.begins, x.delay)
	}
	const name = "testdata/runs.golden"
	if *update {
		conformance.Must(t, os.WriteFile(name, []byte(runs.String()), 0o644))
	}
	recorded, err := os.ReadFile(name)
	conformance.Must(t, err)
	if diff := cmp.Diff(strings.Split(string(recorded), "\n"), strings.Split(runs.String(), "\n")); diff != "" {
		t.Errorf("runs differ (-recorded +now):\n%s", diff)
	}
}

// capacity is the number of units per second that the limiters of a cell admit.
func (c *lawCell) capacity() float64 {
	if c.table != nil {
		return c.table.Rate
	}
	return c.lane.Rate * float64(c.lanes)
}

// figures formats the shares of units used and rows refused, the delay's 95th percentile, and the smaller load's part.
func (c *lawCell) figures(w lawResult) string {
	share, refused, late, fair := c.wants()
	bold := func(miss bool, text string) string {
		if miss {
			return "**" + text + "**"
		}
		return text
	}
	line := bold(w.share < share-0.0005, fmt.Sprintf("%.3f", w.share)) + ", " +
		bold(w.refused > refused+0.00005, fmt.Sprintf("%.2f %%", 100*w.refused))
	if !math.IsInf(late, 1) {
		line += ", " + bold(w.late > late+0.005, fmt.Sprintf("%.2f s", w.late))
	}
	if fair > 0 {
		line += ", " + bold(w.fair < fair, fmt.Sprintf("%.0f:%.0f", 100*w.fair, 100-100*w.fair))
	}
	return line
}

// One of the eight partitions has a tenth of the others' rate, or one unit per second.
func TestSlowPartitionSlowsOnlyItself(t *testing.T) {
	for _, part := range []float64{0.1, 0.001} {
		c := partition("", "bucket", at{8, 1000, 5 * ms}, limiter.Options{Kind: limiter.TokenBucket}).lasting(
			100 * time.Second)
		c.uneven = part
		s := newLawSim(&c.lawScene, theLaw, 1)
		s.run()
		slow, others := s.lanes[0].rows/(100_000*part), 0.0
		for _, l := range s.lanes[1:] {
			others += l.rows / 700_000
		}
		t.Logf("%v: %.3f and %.3f of what is possible", part, slow, others)
		conformance.True(t, slow >= 0.9 && others >= 0.99, "%v: %.3f and %.3f of what is possible", part, slow, others)
	}
}

// A lane without throttles has its full window in flight as soon as the first answers have come.
func TestPartitionWithoutLimitGetsFullWindow(t *testing.T) {
	for _, x := range []struct {
		inFlight int
		rtt      time.Duration
	}{{8, 5 * ms}, {32, 5 * ms}, {64, 50 * ms}} {
		c := lawScene{lanes: 1, rtt: x.rtt, even: true, length: 5 * time.Second, perRow: 1, slots: x.inFlight,
			lane: &limiter.Options{}}
		share := newLawSim(&c, theLaw, 1).run().rows / maxRows / float64(x.inFlight) * x.rtt.Seconds() / c.length.Seconds()
		t.Logf("%d in flight, %v: %.3f", x.inFlight, x.rtt, share)
		conformance.True(t, share >= 0.8, "%d in flight, %v: %.3f of what is possible", x.inFlight, x.rtt, share)
	}
}

// TestControlReachesTargets runs cells that occur in practice, including cells that once regressed.
func TestControlReachesTargets(t *testing.T) {
	t.Parallel()
	bucket := limiter.Options{Kind: limiter.TokenBucket, Burst: time.Second}
	full, small, tiny, up, down := bucket, bucket, bucket, bucket, bucket
	full.Full, small.Burst, tiny.Burst = true, 250*ms, 100*ms
	up.Steps = steps(10*time.Second, 8)
	down.Steps = steps(10*time.Second, 0.4, limiter.Step{After: 20 * time.Second, Factor: 1})
	fixed, sliding, queue := limiter.Options{Kind: limiter.FixedWindow}, limiter.Options{Kind: limiter.SlidingWindow},
		limiter.Options{Kind: limiter.Queue}
	units := limiter.Options{Kind: limiter.Concurrency}
	requests := func(n int) limiter.Options { return limiter.Options{Kind: limiter.Concurrency, Requests: n} }
	fleet, alone := at{32, 1000, 5 * ms}, at{1, 20000, 20 * ms}
	of := func(name string, a at, o limiter.Options, change func(*lawScene)) lawCell {
		c := partition("", name, a, o).lasting(20 * time.Second)
		if change != nil {
			change(&c.lawScene)
		}
		return c
	}
	rows := func(units float64) func(*lawScene) { return func(c *lawScene) { c.perRow = units } }
	lasting := func(d time.Duration) func(*lawScene) { return func(c *lawScene) { c.length = d } }
	fed := func(c *lawScene) { c.fed = 500 }
	for _, c := range []struct {
		lawCell
		share, refused float64
		requests       float64 // number of requests as a multiple of the minimum
		late           float64 // seconds; 0 means not checked
		fair           float64
	}{
		{of("unknown", fleet, bucket, nil), 0.99, 0.002, 1.1, 0, 0},
		{of("full at the start", fleet, full, nil), 0.985, 0.002, 1.15, 0, 0},
		{of("far", at{32, 1000, 50 * ms}, bucket, nil), 0.985, 0.003, 1.1, 0, 0},
		{of("further", at{32, 1000, 200 * ms}, bucket, nil), 0.98, 0.006, 1.3, 0, 0},
		{of("small", fleet, small, nil), 0.985, 0.002, 1.1, 0, 0},
		{of("tiny", fleet, tiny, nil), 0.97, 0.01, 3, 0, 0},
		{of("few workers", fleet, bucket, func(c *lawScene) { c.slots = 4 }), 0.99, 0.002, 1.1, 0, 0},
		{of("starved", fleet, bucket, fed), 0.48, 0.0005, 2, 0, 0},
		{of("rows of 7", fleet, bucket, rows(7)), 0.98, 0.005, 5, 0, 0},
		{of("rows of 100", fleet, bucket, rows(100)), 0.96, 0.04, 80, 0, 0},
		{of("rows larger than the bucket", fleet, bucket, rows(3000)), 0.9, 0.85, 1800, 0, 0},
		{of("fast", at{4, 10_000, 5 * ms}, bucket, nil), 0.99, 0.001, 1.1, 0, 0},
		{of("very fast", at{1, 1e5, 5 * ms}, bucket, lasting(10*time.Second)), 0.99, 0.002, 1.1, 0, 0},
		{of("eight times", at{8, 1000, 5 * ms}, up, lasting(time.Minute)), 0.85, 0.01, 1.1, 0, 0},
		{of("0.4 for a while", at{8, 1000, 5 * ms}, down, lasting(40*time.Second)), 0.88, 0.025, 1.8, 0, 0},
		{of("window", at{8, 1000, 5 * ms}, fixed, lasting(time.Minute)), 0.96, 0.012, 6, 0, 0},
		{of("sliding window", at{8, 1000, 5 * ms}, sliding, lasting(time.Minute)), 0.96, 0.012, 4, 0, 0},
		{of("a request at a time", at{4, 1000, 5 * ms}, requests(1), lasting(time.Minute)), 0.98, 0.002, 1.2, 0, 0},
		{of("4 requests of 0.8 s", at{4, 1000, 5 * ms}, requests(4), lasting(time.Minute)), 0.96, 0.002, 1.3, 0, 0},
		{of("units", at{4, 1000, 5 * ms}, units, lasting(time.Minute)), 0.97, 0.002, 2.5, 0, 0},
		{of("units", alone, units, lasting(time.Minute)), 0.96, 0.001, 1.1, 0, 0},
		{of("answers to many rows take longer", alone, requests(16), lasting(time.Minute)), 0.9, 0.02, 1.1, 0, 0},
		{of("all in a queue", at{32, 100, 50 * ms}, queue, lasting(40*time.Second)), 0.93, 0, 40, 0.3, 0},
		{shared(partition("", "queue", at{8, 1000, 5 * ms}, queue)), 0.98, 0, 8, 0.2, 0.4},
		{shared(overTable("", "table, queue", at{8, 1000, 5 * ms}, queue)), 0.98, 0, 8, 0.5, 0.25},
		{overTable("", "table, queue", at{32, 500, 5 * ms}, queue), 0.98, 0, 8, 0.3, 0},
		{shared(partition("", "window", at{8, 1000, 5 * ms}, fixed)), 0.9, 0.03, 10, 0, 0.4},
		{shared(partition("", "sliding window", at{8, 1000, 5 * ms}, sliding)), 0.9, 0.03, 8, 0, 0.3},
	} {
		w := worstLaw(&c.lawScene, 1)
		most := w.rows / maxRows * c.requests
		t.Logf("%s: share %.4f, refused %.4f, %.2f times the least requests, %.2f s, %.2f", c.name, w.share, w.refused,
			float64(w.requests)/w.rows*maxRows, w.late, w.fair)
		conformance.True(t, w.share >= c.share && w.refused <= c.refused && (c.late == 0 || w.late <= c.late) &&
			w.fair >= c.fair && float64(w.requests) <= most,
			"%s: share %.4f, refused %.4f, %d requests, %.2f s, the smaller load's part %.2f", c.name, w.share, w.refused,
			w.requests, w.late, w.fair)
	}
}

func TestFalseInFlightLimitIsDropped(t *testing.T) {
	c := partition("", "bucket", at{1, 1000, 5 * ms}, limiter.Options{Kind: limiter.TokenBucket})
	s := newLawSim(&c.lawScene, theLaw, 1)
	p := s.lanes[0].law.(inTable).p
	p.phase, p.rate = inCruise, 100
	p.others.inFlight.begin(s.base, 1)
	x := s.run()
	conformance.True(t, !p.others.inFlight.on && x.share >= 0.95 && x.refused <= 0.01,
		"in force %v, share %.3f, refused %.4f", p.others.inFlight.on, x.share, x.refused)
}

// First answers that stall by chance make the service seem slow, but only until later answers arrive.
func TestChanceLatenessSlowsNoLane(t *testing.T) {
	const first = 6
	for stalled := range 1 << first {
		c := lawScene{lanes: 1, rtt: 200 * ms, even: true, length: time.Minute, perRow: 1}
		c.takes = func(n int, units float64) time.Duration {
			took := time.Duration(units) * 30 * time.Microsecond
			if n < first && stalled>>n&1 == 1 {
				took += 400 * ms
			}
			return took
		}
		s := newLawSim(&c, func(*rand.Rand, *lawScene) func(int) controller {
			p := NewPacer(PacerOptions{Rand: rand.New(rand.NewPCG(1, 2))})
			return func(int) controller { return &hasty{paced: paced{p: p, perRow: 1}} }
		}, 1)
		s.run()
		rows := 0.0 // per second, in the last ten seconds
		for _, units := range s.series[50:60] {
			rows += units / 10
		}
		conformance.True(t, rows >= 4000, "answers %0*b of the first stall: %.0f rows a second at last", first, stalled, rows)
	}
}

// hasty is a lane that now and then sends more than the pacer allows.
type hasty struct {
	paced
	requests int
}

func (l *hasty) next(now time.Time, inFlight int, queued float64) (float64, time.Time, bool) {
	units, at, ok := l.paced.next(now, inFlight, queued)
	if l.requests%10 == 9 {
		units = max(units, 100)
	}
	return units, at, ok
}

func (l *hasty) sent(now time.Time, units float64) {
	l.requests++
	l.paced.sent(now, units)
}

// The refused share includes the first five seconds, and timers may be late.
func TestDetectingWindowCostsLittle(t *testing.T) {
	for _, late := range []time.Duration{0, 20 * ms} {
		c := partition("", "", at{32, 1000, 5 * ms}, limiter.Options{Kind: limiter.FixedWindow})
		c.length, c.late = 20*time.Second, late
		for seed := range uint64(4) {
			x := newLawSim(&c.lawScene, theLaw, seed+1).run()
			t.Logf("timers late by %v: share %.4f, refused %.4f, after five seconds %.4f", late, x.share, x.begins, x.refused)
			conformance.True(t, x.share >= 0.9 && x.begins <= 0.07 && x.refused <= 0.02,
				"timers late by %v: share %.4f, refused %.4f, after five seconds %.4f", late, x.share, x.begins, x.refused)
		}
	}
}

var constantsWord = flag.String("constants", "", "constants with this word, for TestConstantsHaveTests; . is all")

// unjudged lists constants whose halving or doubling fails no test here, each with its purpose.
var unjudged = map[string]string{
	"longest":     "a bound of waiting times",
	"recentMost":  "a bound of memory",
	"maxRefill":   "bounds the pause before a partition that accepts next to nothing is tried again",
	"measureTime": "sizes the requests of a repeated measurement; the first has no rate to go by",
	"longSample":  "ends a measurement of few rows, which cruise corrects soon (correctSlow)",
	"idleRows":    "keeps a partition that accepts a row now and then from being mistaken for a window",
	"reliefGain":  "how soon a lane finds what others had: judged by loads (TestLastLaneTakesOverRequests)",
	"provedAfter": "tells a bucket that had saved something up from a rate that has grown",
	"cutHeard":    "how far back the lowest rate of a split partition is searched for",
}

// TestConstantsHaveTests halves and doubles each constant of the control and prints which tests of this package fail.
func TestConstantsHaveTests(t *testing.T) {
	if *constantsWord == "" {
		t.Skip("takes hours: make constants")
	}
	word := regexp.MustCompile(*constantsWord)
	names := conformance.Try(filepath.Glob("*.go")).Must(t)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text := conformance.Try(os.ReadFile(name)).Must(t)
		for _, c := range constantsOf(t, name, text) {
			if !word.MatchString(c.name) {
				continue
			}
			half, twice := c.failed(t, name, text, "/2"), c.failed(t, name, text, "*2")
			fmt.Printf("%s %s: half: %s; twice: %s\n", name, c.name, half, twice)
			if why := unjudged[c.name]; half+twice == "" && why == "" {
				t.Errorf("%s: %s may be half or twice as large, and no test fails", name, c.name)
			}
		}
	}
}

// constant is a constant of the control and the position of its value in the file.
type constant struct {
	name     string
	from, to int
}

func constantsOf(t *testing.T, name string, text []byte) (all []constant) {
	files := token.NewFileSet()
	f := conformance.Try(parser.ParseFile(files, name, text, 0)).Must(t)
	for _, d := range f.Decls {
		if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.CONST {
			for _, s := range d.Specs {
				if s := s.(*ast.ValueSpec); len(s.Values) == 1 && s.Type == nil {
					all = append(all, constant{s.Names[0].Name, files.Position(s.Values[0].Pos()).Offset,
						files.Position(s.Values[0].End()).Offset})
				}
			}
		}
	}
	return all
}

// failed returns the names of the tests that fail when the constant is changed.
func (c *constant) failed(t *testing.T, name string, text []byte, change string) string {
	dir := t.TempDir()
	changed, overlay, binary := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"),
		filepath.Join(dir, "ratelimit.test")
	changedText := slices.Concat(text[:c.from], []byte("("), text[c.from:c.to], []byte(")"+change), text[c.to:])
	conformance.Must(t, os.WriteFile(changed, changedText, 0o600))
	path := conformance.Try(filepath.Abs(name)).Must(t)
	replace := conformance.Try(json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})).Must(t)
	conformance.Must(t, os.WriteFile(overlay, replace, 0o600))
	if out, err := exec.Command("go", "test", "-c", "-overlay", overlay, "-o", binary).CombinedOutput(); err != nil {
		return "does not build: " + strings.Join(strings.Fields(string(out)), " ")
	}
	out, err := exec.Command(binary, "-test.timeout", "5m").CombinedOutput()
	var failed []string
	for _, m := range regexp.MustCompile(`(?m)^--- FAIL: (\w+)`).FindAllStringSubmatch(string(out), -1) {
		failed = append(failed, m[1])
	}
	if err != nil && failed == nil {
		failed = []string{"ended early"} // a panic, or a test that never ends
	}
	return strings.Join(failed, ", ")
}
