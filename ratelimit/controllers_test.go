package ratelimit

import (
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"
)

var (
	controllerRows  = flag.Int("controller-rows", 200_000, "rows of the loads that TestRateControllers simulates")
	controllerSeeds = flag.Uint64("controller-seeds", 1, "seeds of TestRateControllers")
)

// controllerTable is the controllers that TestRateControllers compares; the last one is told the rate.
var controllerTable = []struct {
	name string
	make maker
}{
	{"retry at once", retryAtOnce},
	{"exponential backoff, full jitter", exponentialBackoff},
	{"AIMD on the window", aimdOnWindow},
	{"BBR-like", bbrLike},
	{"AIMD on the rate", aimdOnRate},
	{"metered pacing, rate unknown", meteredPacing},
	{"pacing at a known rate", knownRate(1)},
}

// score is the worst of several runs.
type score struct {
	share, throttled float64
	requests         int
}

func worst(t *testing.T, c scenario, make maker, seeds uint64) score {
	s := score{share: math.Inf(1)}
	for seed := range seeds {
		c.seed = seed + 1
		r := simulate(t, c, make).result
		s.share = min(s.share, r.share)
		s.throttled = max(s.throttled, r.throttled())
		s.requests = max(s.requests, r.requests)
	}
	return s
}

// TestRateControllers prints the controllers' figures, the worst over all seeds, and holds the pacer to being the best.
func TestRateControllers(t *testing.T) {
	for o, name := range map[order]string{scattered: "all lanes at once", shuffled: "random order"} {
		var table strings.Builder
		scores := make([]score, len(controllerTable))
		for i, l := range controllerTable {
			c := fleet(*controllerRows)
			c.order = o
			s := worst(t, c, l.make, *controllerSeeds)
			scores[i] = s
			fmt.Fprintf(&table, "| %s | %.4f | %.2f %% | %d |\n", l.name, s.share, 100*s.throttled, s.requests)
		}
		t.Logf("%d rows, %s, %d seeds; the least requests are %d\n| controller | capacity share | rows throttled | requests |\n%s",
			*controllerRows, name, *controllerSeeds, *controllerRows/200, &table)
		metered, known := scores[len(scores)-2], scores[len(scores)-1]
		for i, s := range scores[:len(scores)-2] {
			if s.throttled <= metered.throttled || s.requests <= metered.requests && s.share >= metered.share {
				t.Errorf("%s: %s is better than metered pacing: %+v, %+v", name, controllerTable[i].name, s, metered)
			}
		}
		if known.throttled >= metered.throttled || known.requests > metered.requests {
			t.Errorf("%s: knowing the rate does not help: %+v, %+v", name, known, metered)
		}
	}
}
