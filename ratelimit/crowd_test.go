package ratelimit

import (
	"testing"
	"time"

	"tsimport/internal/limiter"
)

func TestALimitOfWhatIsInFlightIsFilledWithoutRefusals(t *testing.T) {
	for _, c := range []lawCell{
		partition("", "1 request", at{4, 1000, 5 * ms}, limiter.Options{Kind: limiter.Concurrency, Requests: 1}),
		partition("", "4 requests", at{4, 1000, 5 * ms}, limiter.Options{Kind: limiter.Concurrency, Requests: 4}), // each takes 0.8 s for 200 rows
		partition("", "units", at{4, 1000, 5 * ms}, limiter.Options{Kind: limiter.Concurrency}),
		partition("", "units", at{1, 20000, 20 * ms}, limiter.Options{Kind: limiter.Concurrency}),
	} {
		x := newLawSim(&c.lawScene, newLaw, 1).run()
		if x.share < 0.95 || x.refused > 0.01 {
			t.Errorf("%s: share %.3f, refused %.4f", c.name, x.share, x.refused)
		}
	}
}

// The answer to 200 rows takes 0.16 s longer than one to none: that is not a queue.
func TestSlowAnswersOfALimitOfRequestsAreNotAQueue(t *testing.T) {
	c := partition("", "16 requests", at{1, 20000, 20 * ms}, limiter.Options{Kind: limiter.Concurrency, Requests: 16})
	if x := newLawSim(&c.lawScene, newLaw, 1).run(); x.share < 0.9 {
		t.Errorf("share %.3f", x.share)
	}
}

// A lane that was told too high a rate has all of its requests in the queue, and no more than come back.
func TestALaneWhoseRequestsAllWaitInAQueueSlowsDown(t *testing.T) {
	c := partition("", "queue", at{32, 100, 50 * ms}, limiter.Options{Kind: limiter.Queue})
	c.length = 40 * time.Second
	if x := newLawSim(&c.lawScene, newLaw, 1).run(); x.share < 0.93 || x.late > 0.4 {
		t.Errorf("share %.3f, 95 of 100 requests wait up to %.2f s", x.share, x.late)
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
