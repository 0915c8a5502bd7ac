package ratelimit

import (
	"testing"

	"tsimport/internal/limiter"
)

func TestALimitOfWhatIsInFlightIsFilledWithoutRefusals(t *testing.T) {
	for _, c := range []lawCell{
		partition("", "1 request", at{4, 1000, 5 * ms}, limiter.Options{Kind: limiter.Concurrency, Requests: 1}),
		partition("", "units", at{4, 1000, 5 * ms}, limiter.Options{Kind: limiter.Concurrency}),
		partition("", "units", at{1, 20000, 20 * ms}, limiter.Options{Kind: limiter.Concurrency}),
	} {
		x := newLawSim(&c.lawScene, newLaw, 1).run()
		if x.share < 0.95 || x.refused > 0.01 {
			t.Errorf("%s: share %.3f, refused %.4f", c.name, x.share, x.refused)
		}
	}
}

func TestALimitOfWhatIsInFlightThatWasNoneIsDropped(t *testing.T) {
	c := partition("", "bucket", at{1, 1000, 5 * ms}, limiter.Options{Kind: limiter.TokenBucket})
	s := newLawSim(&c.lawScene, newLaw, 1)
	p := s.lanes[0].law.(inTable).p
	p.phase, p.rate = inCruise, 100
	p.crowd.begin(s.base, 1)
	x := s.run()
	if p.crowd.on || x.share < 0.95 || x.refused > 0.01 {
		t.Errorf("in force %v, share %.3f, refused %.4f", p.crowd.on, x.share, x.refused)
	}
}
