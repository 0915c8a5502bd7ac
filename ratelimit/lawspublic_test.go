package ratelimit

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tsimport/internal/limiter"
)

// The best public ideas, with their published parameters, to compare with. Each lane has a controller of its own, which is to their
// favour where a client shares one over everything that it sends to. A row that is refused is sent again by a later request.
var publicLaws = map[string]lawMaker{
	"bbr":       eachLane(newBBR),
	"vegas":     eachLane(newVegas),
	"gradient2": eachLane(newGradient2),
	"aws":       eachLane(newAdaptiveRetry),
	"bigtable":  eachLane(newBatchWriteFlow),
	"cosmos":    eachLane(newCongestionAlgorithm),
}

func init() { maps.Copy(laws, publicLaws) }

func eachLane(law func(*rand.Rand, *lawScene) controller) lawMaker {
	return func(r *rand.Rand, c *lawScene) func(int) controller {
		return func(int) controller { return law(r, c) }
	}
}

// part is a lane's part of the requests that may be in flight: with more, lanes would take each other's.
func (c *lawScene) part() int { return max(1, c.workers()/c.lanes) }

// maxUnits is how many units a lane may have in flight.
func (c *lawScene) maxUnits() float64 { return maxRows * c.perRow * float64(c.part()) }

// flyingLaw limits the units in flight, as the limits of Netflix' concurrency-limits do with requests: counted in requests of 200 rows,
// one in flight would be too many.
type flyingLaw struct {
	bare
	limit, flying, most float64
}

func (l *flyingLaw) next(now time.Time, _ int, _ float64) (float64, time.Time, bool) {
	room := math.Floor(l.limit - l.flying)
	return min(room, maxRows), l.from(now), room >= 1
}

func (l *flyingLaw) sent(_ time.Time, units float64) { l.flying += units }

// vegasLaw is VegasLimit of Netflix' concurrency-limits 0.5 with its defaults; a refused row counts as a drop.
type vegasLaw struct {
	flyingLaw
	random *rand.Rand
	noLoad float64 // seconds
	probes float64 // since noLoad was last measured
	jitter float64
}

func newVegas(r *rand.Rand, c *lawScene) controller {
	return &vegasLaw{flyingLaw: flyingLaw{limit: 20, most: c.maxUnits()}, random: r, jitter: 0.5 + 0.5*r.Float64()}
}

func (l *vegasLaw) answered(sent, now time.Time, units, accepted float64) {
	flying, rtt := l.flying, now.Sub(sent).Seconds()
	l.flying -= units
	l.probes++
	switch {
	case l.jitter*30*l.limit <= l.probes:
		l.jitter, l.probes, l.noLoad = 0.5+0.5*l.random.Float64(), 0, rtt
		return
	case l.noLoad == 0 || rtt < l.noLoad:
		l.noLoad = rtt
		return
	}
	queue := math.Ceil(l.limit * (1 - l.noLoad/rtt))
	log := max(1, math.Floor(math.Log10(l.limit)))
	switch {
	case accepted < units:
		l.limit -= log
	case flying*2 < l.limit:
	case queue <= log:
		l.limit += 6 * log
	case queue < 3*log:
		l.limit += log
	case queue > 6*log:
		l.limit -= log
	}
	l.limit = max(1, min(l.most, l.limit))
}

func (l *vegasLaw) child(time.Time) controller {
	child := *l
	child.flying = 0
	return &child
}

// gradient2Law is Gradient2Limit of the same library with its defaults, but for the least limit, 20, which would be 4,000 rows a second
// at 5 ms. It looks at round trips alone.
type gradient2Law struct {
	flyingLaw
	long    float64 // seconds
	samples float64
}

func newGradient2(_ *rand.Rand, c *lawScene) controller {
	return &gradient2Law{flyingLaw: flyingLaw{limit: 20, most: c.maxUnits()}}
}

func (l *gradient2Law) answered(sent, now time.Time, units, _ float64) {
	flying, rtt := l.flying, now.Sub(sent).Seconds()
	l.flying -= units
	if l.samples++; l.samples <= 10 {
		l.long += (rtt - l.long) / l.samples
	} else {
		l.long += (rtt - l.long) * 2 / (600 + 1)
	}
	if l.long/rtt > 2 {
		l.long *= 0.9
	}
	if flying < l.limit/2 {
		return
	}
	gradient := max(0.5, min(1, l.long/rtt))
	l.limit = 0.8*l.limit + 0.2*(l.limit*gradient+4)
	l.limit = max(1, min(l.most, l.limit))
}

func (l *gradient2Law) child(time.Time) controller {
	child := *l
	child.flying = 0
	return &child
}

// adaptiveLaw is the adaptive retry mode of the AWS SDKs (botocore's retries/adaptive.py and throttling.py): CUBIC on the rate of
// requests, from the first one of which rows were refused. The back-off of the single request is left out: its rows go with others.
type adaptiveLaw struct {
	bare
	most    int
	enabled bool

	fill, tokens, capacity float64 // requests a second; requests
	filled                 time.Time

	measured, count float64 // requests a second; since the last half second
	bucket          int64   // number of the half second

	peak, zero float64
	failed     time.Time
}

func newAdaptiveRetry(_ *rand.Rand, c *lawScene) controller {
	return &adaptiveLaw{most: c.part(), fill: 0.5, capacity: 1}
}

func (l *adaptiveLaw) refill(now time.Time) {
	if !l.filled.IsZero() {
		l.tokens = min(l.capacity, l.tokens+l.fill*now.Sub(l.filled).Seconds())
	}
	l.filled = now
}

func (l *adaptiveLaw) next(now time.Time, inFlight int, _ float64) (float64, time.Time, bool) {
	at := l.from(now)
	if l.enabled {
		l.refill(now)
		if lacking := 1 - 1e-9 - l.tokens; lacking > 0 {
			at = later(at, now.Add(duration(lacking/l.fill)+1))
		}
	}
	return maxRows, at, inFlight < l.most
}

func (l *adaptiveLaw) sent(now time.Time, _ float64) {
	if l.enabled {
		l.refill(now)
		l.tokens--
	}
}

func (l *adaptiveLaw) answered(_, now time.Time, units, accepted float64) {
	l.measure(now)
	if l.failed.IsZero() {
		l.failed = now
	}
	rate := 0.0
	if accepted == units {
		dt := now.Sub(l.failed).Seconds()
		rate = 0.4*math.Pow(dt-l.zero, 3) + l.peak
	} else {
		l.peak = l.measured
		if l.enabled {
			l.peak = min(l.measured, l.fill)
		}
		l.zero = math.Cbrt(l.peak * (1 - 0.7) / 0.4)
		l.failed, l.enabled = now, true
		rate = 0.7 * l.peak
	}
	l.refill(now)
	l.fill = max(0.5, min(rate, 2*l.measured))
	l.capacity = max(1, min(rate, 2*l.measured))
	l.tokens = min(l.tokens, l.capacity)
}

func (l *adaptiveLaw) measure(now time.Time) {
	bucket := now.UnixNano() / int64(500*time.Millisecond)
	if l.bucket == 0 {
		l.bucket = bucket
	}
	l.count++
	if bucket > l.bucket {
		l.measured = 0.8*l.count/(0.5*float64(bucket-l.bucket)) + 0.2*l.measured
		l.count, l.bucket = 0, bucket
	}
}

func (l *adaptiveLaw) child(time.Time) controller {
	return &adaptiveLaw{most: l.most, fill: 0.5, capacity: 1}
}

// batchWriteFlowLaw is Bigtable's batch write flow control (RateLimitingServerStreamingCallable of java-bigtable and mutate_rows_limiter
// of google-cloud-cpp): 10 requests a second at first, times a factor of 0.7 to 1.3 every ten seconds, upwards only when the limit made
// one wait. Bigtable's servers tell the factor; here a period with refusals stands for 0.7 and one without for 1.3.
type batchWriteFlowLaw struct {
	bare
	most            int
	rate            float64 // requests a second
	at, update      time.Time
	waited, refused bool
}

func newBatchWriteFlow(_ *rand.Rand, c *lawScene) controller {
	return &batchWriteFlowLaw{most: c.part(), rate: 10}
}

func (l *batchWriteFlowLaw) next(now time.Time, inFlight int, _ float64) (float64, time.Time, bool) {
	at := later(l.from(now), l.at)
	l.waited = l.waited || at.After(now)
	return maxRows, at, inFlight < l.most
}

func (l *batchWriteFlowLaw) sent(now time.Time, _ float64) { l.at = now.Add(duration(1 / l.rate)) }

func (l *batchWriteFlowLaw) answered(_, now time.Time, units, accepted float64) {
	const period = 10 * time.Second
	if l.update.IsZero() {
		l.update = now.Add(period)
	}
	if accepted < units {
		l.refused = true
	}
	if now.Before(l.update) {
		return
	}
	switch {
	case l.refused:
		l.rate *= 0.7
	case l.waited:
		l.rate *= 1.3
	}
	l.rate = max(0.1, min(100_000, l.rate))
	l.update, l.waited, l.refused = now.Add(period), false, false
}

func (l *batchWriteFlowLaw) child(time.Time) controller {
	return &batchWriteFlowLaw{most: l.most, rate: l.rate}
}

// congestionLaw is the congestion control of Cosmos DB's bulk executors (CongestionAlgorithm of azure-sdk-for-js, as in the .NET SDK):
// requests of at most 100 operations, 1 to 20 of them at a time. After every second that requests have taken, summed up, one more, or with a
// refusal half, by 5 at most, and a second longer until the next look. What is refused is tried again after 0.1 s, in its place, as the
// service names no time.
type congestionLaw struct {
	bare
	degree            int
	wait, taken       time.Duration
	accepted, refused bool
	blocked           []time.Time // places in which a refused request waits
}

func newCongestionAlgorithm(*rand.Rand, *lawScene) controller {
	return &congestionLaw{degree: 1, wait: time.Second}
}

func (l *congestionLaw) next(now time.Time, inFlight int, _ float64) (float64, time.Time, bool) {
	l.blocked = slices.DeleteFunc(l.blocked, func(at time.Time) bool { return !at.After(now) })
	at := l.from(now)
	if inFlight >= l.degree {
		return 100, at, false
	}
	if over := inFlight + len(l.blocked) - l.degree; over >= 0 {
		slices.SortFunc(l.blocked, func(a, b time.Time) int { return cmp.Compare(a.UnixNano(), b.UnixNano()) })
		at = later(at, l.blocked[over])
	}
	return 100, at, true
}

func (l *congestionLaw) answered(sent, now time.Time, units, accepted float64) {
	l.taken += now.Sub(sent)
	l.accepted = l.accepted || accepted > 0
	if accepted < units {
		l.refused = true
		l.blocked = append(l.blocked, now.Add(100*time.Millisecond))
	}
	if l.taken < l.wait {
		return
	}
	switch {
	case l.refused:
		l.degree -= min(5, l.degree/2)
		l.wait += time.Second
	case l.accepted:
		l.degree = min(20, l.degree+1)
	}
	l.taken, l.accepted, l.refused = 0, false, false
}

func (l *congestionLaw) child(time.Time) controller {
	return &congestionLaw{degree: 1, wait: time.Second}
}

// publicCells are the cells of TestPublicLaws.
var publicCells = []string{
	"token bucket: 32 × 1000, 5ms", "token bucket: 32 × 1000, 200ms", "token bucket: 1 % of rows 8 × 1000, 5ms", "fixed window: 8 × 1000, 5ms", "sliding window: 8 × 1000, 5ms",
	"queue: 8 × 1000, 5ms", "concurrency: 4 requests 8 × 1000, 5ms", "changes: half for 30 s 8 × 1000, 5ms", "table: bucket 8 × 1000, 5ms", "two loads: bucket 8 × 1000, 5ms",
}

func TestTheCellsOfThePublicLawsAreCellsOfTheLaw(t *testing.T) {
	cells := lawCells()
	for _, name := range publicCells {
		if !slices.ContainsFunc(cells, func(c lawCell) bool { return c.group+": "+c.name == name }) {
			t.Errorf("there is no cell %q", name)
		}
	}
}

// TestPublicLaws prints a table of the law beside the public ones.
func TestPublicLaws(t *testing.T) {
	if *lawSeeds == 0 {
		t.Skip("prints a table: make laws-public")
	}
	cells := lawCells()
	names := append([]string{"new"}, slices.Sorted(maps.Keys(publicLaws))...)
	fmt.Printf("| cell | %s |\n|---|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
	for _, name := range publicCells {
		at := slices.IndexFunc(cells, func(c lawCell) bool { return c.group+": "+c.name == name })
		if at < 0 {
			t.Errorf("there is no cell %q", name)
			continue
		}
		fmt.Printf("| %s |", name)
		for _, law := range names {
			w := worstLaw(&cells[at].lawScene, laws[law], *lawSeeds)
			switch {
			case cells[at].loads > 1:
				fmt.Printf(" %.2f, %.1f %%, %.0f:%.0f |", w.share, 100*w.refused, 100*w.fair, 100-100*w.fair)
			case cells[at].lane != nil && cells[at].lane.Kind == limiter.Queue:
				fmt.Printf(" %.2f, +%.2f s |", w.share, w.delay)
			default:
				fmt.Printf(" %.2f, %.1f %% |", w.share, 100*w.refused)
			}
		}
		fmt.Println()
	}
}

func TestThePublicLawsMoveAsTheirAuthorsSay(t *testing.T) {
	scene := lawScene{lanes: 1, rtt: 10 * ms, perRow: 1}
	random := rand.New(rand.NewPCG(1, 1))
	start := time.Unix(1_000_000, 0)
	at := func(s float64) time.Time { return start.Add(duration(s)) }

	vegas := newVegas(random, &scene).(*vegasLaw)
	for i, want := range []float64{20, 26, 25} { // the least round trip, no queue, a drop
		vegas.sent(at(0), 15)
		vegas.answered(at(0), at(0.01), 15, 15*float64(1-i/2))
		if vegas.limit != want {
			t.Errorf("Vegas: limit %g after %d answers, want %g", vegas.limit, i+1, want)
		}
	}

	gradient := newGradient2(random, &scene).(*gradient2Law)
	for i, want := range []float64{20.8, 0.8*20.8 + 0.2*(20.8*0.625+4)} { // 4 more, smoothed; then 0.04 s where 0.025 s are the mean
		gradient.sent(at(0), 20)
		gradient.answered(at(0), at([]float64{0.01, 0.04}[i]), 20, 20)
		if math.Abs(gradient.limit-want) > 1e-9 {
			t.Errorf("Gradient2: limit %g after %d answers, want %g", gradient.limit, i+1, want)
		}
	}

	aws := newAdaptiveRetry(random, &scene).(*adaptiveLaw)
	for i := range 11 { // ten a second
		aws.answered(at(float64(i)/10), at(float64(i)/10), 200, 200)
	}
	aws.answered(at(1.1), at(1.1), 200, 0)
	if want := 0.7 * aws.peak; aws.fill != want || !aws.enabled || aws.peak < 8 || aws.peak > 12 {
		t.Errorf("adaptive retry: %g requests a second after a refusal at %g", aws.fill, aws.peak)
	}
	aws.answered(at(1.1+aws.zero), at(1.1+aws.zero), 200, 200)
	if aws.fill > aws.peak || aws.fill < 0.7*aws.peak && aws.fill != 2*aws.measured {
		t.Errorf("adaptive retry: %g requests a second when CUBIC is back at %g (%g measured)", aws.fill, aws.peak, aws.measured)
	}

	flow := newBatchWriteFlow(random, &scene).(*batchWriteFlowLaw)
	for i, want := range []float64{10, 13, 13, 13 * 0.7} {
		flow.waited = i == 1
		flow.answered(at(float64(i)*10), at(float64(i)*10), 200, float64(200*(1-i/3)))
		if math.Abs(flow.rate-want) > 1e-9 {
			t.Errorf("batch write flow: %g requests a second after %d periods, want %g", flow.rate, i, want)
		}
	}

	cosmos := newCongestionAlgorithm(random, &scene).(*congestionLaw)
	for i, want := range []int{2, 3, 4, 2, 2, 3} { // the refusal halves, and the next look is a second later
		cosmos.answered(at(0), at(1), 100, []float64{100, 100, 100, 50, 100, 100}[i])
		if cosmos.degree != want {
			t.Errorf("Cosmos: %d at a time after %d answers, want %d", cosmos.degree, i+1, want)
		}
	}

	bbr := newLawSim(&lawScene{lanes: 1, rtt: 20 * ms, perRow: 1, length: 20 * time.Second, lane: &limiter.Options{Kind: limiter.Queue, Rate: 1000}}, publicLaws["bbr"], 1)
	if r := bbr.run(); r.share < 0.95 || r.delay > 0.5 {
		t.Errorf("BBR: %.3f of a queue, %.2f s late", r.share, r.delay)
	}
}
