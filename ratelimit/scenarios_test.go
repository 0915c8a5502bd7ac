package ratelimit

import (
	"testing"
	"time"
)

var underRace bool

// skipUnderRace leaves the long loads out where they take ten times as long and show nothing that TestRateControllers does not: all
// of them run the same goroutines.
func skipUnderRace(t *testing.T) {
	if underRace {
		t.Skip("virtual loads are for builds without the race detector")
	}
}

// bounds is what a scenario must reach.
type bounds struct {
	share, throttled float64
	requests         float64 // as a multiple of rows/200
}

func (b bounds) check(t *testing.T, c scenario, make maker) {
	t.Helper()
	s := worst(t, c, make, *controllerSeeds)
	t.Logf("capacity share %.4f, throttled %.3f %%, %d requests for %d rows", s.share, 100*s.throttled, s.requests, c.rows)
	if s.share < b.share || s.throttled > b.throttled || float64(s.requests) > b.requests*float64(c.rows)/200 {
		t.Errorf("share %.4f, throttled %.4f, %d requests: want %+v", s.share, s.throttled, s.requests, b)
	}
}

func TestAnUnknownRateIsFoundAndKept(t *testing.T) {
	skipUnderRace(t)
	for _, o := range []order{scattered, shuffled} {
		c := fleet(1_000_000)
		c.order = o
		bounds{0.995, 0.005, 1.05}.check(t, c, meteredPacing)
		bounds{0.995, 0.0005, 1.02}.check(t, c, knownRate(1))
	}
}

func TestAWrongKnownRateCostsLittleWhenTooHigh(t *testing.T) {
	skipUnderRace(t)
	bounds{0.995, 0.01, 1.2}.check(t, fleet(1_000_000), knownRate(1.3))
}

func TestFullBucketsAtTheStartAreUsed(t *testing.T) {
	skipUnderRace(t)
	c := fleet(500_000)
	c.full = true
	bounds{1.02, 0.015, 1.15}.check(t, c, meteredPacing)
}

func TestAPartitionAtATenthSlowsOnlyItself(t *testing.T) {
	skipUnderRace(t)
	c := fleet(300_000)
	c.rates[0] = 100
	for _, make := range []maker{meteredPacing, knownRate(1)} {
		w := simulate(t, c, make)
		slow, others := slowAndOthers(w)
		t.Logf("makespan %.4f of the ideal, the others' share %.4f", slow, others)
		if slow > 1.01 || others < 0.99 {
			t.Errorf("makespan %.4f of the ideal, the others' share %.4f", slow, others)
		}
	}
}

func TestAPartitionOfOneUnitASecondIsNotDelayed(t *testing.T) {
	skipUnderRace(t)
	c := fleet(32 * 300)
	c.rates[0] = 1
	for seed := range uint64(10) {
		c.seed = seed
		metered, _ := slowAndOthers(simulate(t, c, meteredPacing))
		known, _ := slowAndOthers(simulate(t, c, knownRate(1)))
		t.Logf("makespan %.4f of the ideal, %.4f at a known rate", metered, known)
		if max(metered, known) > 1.03 {
			t.Errorf("seed %d: makespan %.4f of the ideal, %.4f at a known rate", seed, metered, known)
		}
	}
}

// slowAndOthers is the makespan of the first partition against its ideal, and the capacity share of the others.
func slowAndOthers(w *world) (slow, others float64) {
	var units, capacity float64
	var last time.Time
	for _, s := range w.shards[1:] {
		units, capacity, last = units+s.accepted, capacity+s.rate, later(last, s.lastAck)
	}
	first := w.shards[0]
	return first.lastAck.Sub(w.began).Seconds() * first.rate / first.accepted, units / (capacity * last.Sub(w.began).Seconds())
}

func TestChildrenOfASplitAreUsedAtOnce(t *testing.T) {
	skipUnderRace(t)
	for _, make := range []maker{meteredPacing, knownRate(1)} {
		c := fleet(2_000_000)
		c.rates, c.splits, c.stop = []float64{1000}, 5, 65*time.Second
		w := simulate(t, c, make)
		longest, splits := time.Duration(0), 0
		for _, s := range w.shards {
			if len(s.children) == 2 {
				longest, splits = max(longest, untilUsed(s)), splits+1
			}
		}
		t.Logf("%d splits, at most %v until a second at 90 %% of the new capacity begins", splits, longest)
		if splits != 31 || longest > 500*time.Millisecond {
			t.Errorf("%d splits; a second at 90 %% of the new capacity begins %v after the children serve", splits, longest)
		}
	}
}

// untilUsed is when the first second begins in which a partition's children accept nine tenths of what they can.
func untilUsed(s *shard) time.Duration {
	acks := append(append([]ack(nil), s.children[0].acks...), s.children[1].acks...)
	for d := time.Duration(0); d < 5*time.Second; d += 10 * time.Millisecond {
		units := 0.0
		for _, a := range acks {
			if at := a.at.Sub(s.back); at >= d && at < d+time.Second {
				units += a.units
			}
		}
		if units >= 0.9*2*s.rate {
			return d
		}
	}
	return time.Hour
}

func TestALongWayCostsLittle(t *testing.T) {
	skipUnderRace(t)
	c := fleet(500_000)
	c.rtt, c.workers = 50*time.Millisecond, 64
	bounds{0.985, 0.015, 1.1}.check(t, c, meteredPacing)
	bounds{0.985, 0.001, 1.02}.check(t, c, knownRate(1))
	c.rtt, c.workers = 200*time.Millisecond, 128
	bounds{0.96, 0.03, 1.4}.check(t, c, meteredPacing)
	bounds{0.96, 0.002, 1.02}.check(t, c, knownRate(1))
}

func TestASmallBucketDoesNotOverflow(t *testing.T) {
	skipUnderRace(t)
	c := fleet(500_000)
	c.burst = 0.25
	bounds{0.98, 0.01, 1.1}.check(t, c, meteredPacing)
	c.burst = 0.1
	bounds{0.97, 0.02, 2.8}.check(t, c, meteredPacing)
	bounds{0.97, 0.01, 2.8}.check(t, c, knownRate(1))
}

func TestAQuotaPerSecondOfTheClockIsUsed(t *testing.T) {
	skipUnderRace(t)
	c := fleet(500_000)
	c.fixedWindow = true
	bounds{0.95, 0.1, 4}.check(t, c, meteredPacing) // half of that in the first second, while a lane keeps asking
	bounds{0.96, 0.03, 1.1}.check(t, c, knownRate(1))
}

func TestACeilingOfTheTableIsUsedWithoutStarvingALane(t *testing.T) {
	skipUnderRace(t)
	c := fleet(500_000)
	c.ceiling = 16000 // half of the partitions' sum, so that 0.5 is all there is
	bounds{0.33, 0.12, 6}.check(t, c, meteredPacing)
}

func TestFewWorkersAreEnough(t *testing.T) {
	skipUnderRace(t)
	c := fleet(500_000)
	c.workers = 4
	bounds{0.99, 0.01, 1.1}.check(t, c, meteredPacing)
}

func TestStarvedLanesDoNotThrottle(t *testing.T) {
	skipUnderRace(t)
	c := fleet(500_000)
	c.readRate = 16000
	bounds{0.48, 0.005, 2}.check(t, c, meteredPacing)
	bounds{0.47, 0.0005, 2}.check(t, c, knownRate(1))
}

func TestRowsOfSeveralUnitsArePacedInUnits(t *testing.T) {
	skipUnderRace(t)
	c := fleet(1_000_000 / 7)
	c.perRow = 7
	bounds{0.99, 0.02, 5}.check(t, c, meteredPacing)
	c = fleet(10_000)
	c.perRow = 100
	bounds{0.98, 0.10, 60}.check(t, c, meteredPacing)
}

func TestRowsLargerThanTheBucketPassOneByOne(t *testing.T) {
	skipUnderRace(t)
	c := fleet(1_000)
	c.perRow = 3000
	bounds{0.85, 0.85, 1500}.check(t, c, meteredPacing)
}

func TestFastPartitionsAreUsed(t *testing.T) {
	skipUnderRace(t)
	c := fleet(3_000_000)
	for i := range c.rates {
		c.rates[i] = 10_000
	}
	c.workers, c.readRate = 64, 1e7
	bounds{0.98, 0.01, 1.1}.check(t, c, meteredPacing)
	c = fleet(2_000_000)
	c.rates, c.readRate = []float64{1e5}, 1e7
	bounds{0.98, 0.01, 1.1}.check(t, c, meteredPacing)
}

func TestAPartitionWithoutACapGetsAllThatMayBeInFlight(t *testing.T) {
	skipUnderRace(t)
	for _, x := range []struct {
		inFlight int
		rtt      time.Duration
	}{{8, 5 * time.Millisecond}, {8, 2 * time.Millisecond}, {32, 5 * time.Millisecond}, {64, 50 * time.Millisecond}} {
		c := fleet(2_000_000)
		c.rates, c.readRate = []float64{unlimited}, 1e9
		c.rtt, c.workers, c.maxInFlight = x.rtt, x.inFlight, x.inFlight
		w := simulate(t, c, meteredPacing)
		ideal := time.Duration(c.rows/200/x.inFlight) * x.rtt
		lost := w.lastAck - ideal
		t.Logf("%d in flight, %v: %v, %v more than the ideal", x.inFlight, x.rtt, w.lastAck, lost)
		if w.throttledRows > 0 || lost > spread+30*x.rtt+ideal/20 {
			t.Errorf("%d in flight, %v: %v where %v is the ideal", x.inFlight, x.rtt, w.lastAck, ideal)
		}
	}
}

func TestACapacityThatChangesIsFollowed(t *testing.T) {
	skipUnderRace(t)
	for _, x := range []struct {
		name      string
		factor    func(seconds float64) float64
		share     float64
		throttled float64
	}{
		{"doubles after 10 s", func(s float64) float64 { return step(s > 10, 2) }, 0.93, 0.01},
		{"eight times after 10 s", func(s float64) float64 { return step(s > 10, 8) }, 0.80, 0.01},
		{"0.4 from 10 s to 20 s", func(s float64) float64 { return step(s > 10 && s < 20, 0.4) }, 0.91, 0.02},
	} {
		c := fleet(2_500_000)
		c.rates, c.stop = c.rates[:8], 40*time.Second
		c.factor = func(d time.Duration) float64 { return x.factor(d.Seconds()) }
		w := simulate(t, c, meteredPacing)
		capacity := 0.0
		for s := 0.0; s < 40; s += 0.001 {
			capacity += 0.001 * 8000 * x.factor(s)
		}
		share := float64(w.acceptedRows) / capacity
		t.Logf("%s: share %.4f, throttled %.3f %%", x.name, share, 100*w.throttled())
		if share < x.share || w.throttled() > x.throttled {
			t.Errorf("%s: share %.4f, throttled %.4f", x.name, share, w.throttled())
		}
	}
}

func step(now bool, factor float64) float64 {
	if now {
		return factor
	}
	return 1
}
