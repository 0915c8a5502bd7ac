package ratelimit

import (
	"flag"
	"testing"
	"time"
)

var (
	lawRows  = flag.Int("lawrows", 200_000, "rows of a load that TestLaws simulates")
	lawSeeds = flag.Uint64("lawseeds", 1, "seeds of TestLaws")
)

// lawTable is the laws that TestLaws compares.
var lawTable = []struct {
	name     string
	make     maker
	adaptive bool
}{
	{"retry at once", retryAtOnce, true},
	{"exponential backoff, full jitter", exponentialBackoff, true},
	{"AIMD on the window", aimdOnWindow, true},
	{"BBR-like", bbrLike, true},
	{"AIMD on the rate", aimdOnRate, true},
	{"metered pacing", meteredPacing, false},
	{"known rate", knownRate(1), false},
}

func TestLaws(t *testing.T) {
	for _, o := range []order{spread64, shuffled} {
		for _, l := range lawTable {
			var worst result
			began := time.Now()
			worst.share = 2
			thr := 0.0
			for seed := range *lawSeeds {
				c := fleet(*lawRows)
				c.order, c.seed = o, seed+1
				r := simulate(t, c, l.make).result
				worst.share = min(worst.share, r.share)
				worst.requests = max(worst.requests, r.requests)
				thr = max(thr, r.throttled())
			}
			t.Logf("%d %-34s %.4f %7.3f%% %7d   %v", o, l.name, worst.share, 100*thr, worst.requests, time.Since(began))
		}
	}
}
