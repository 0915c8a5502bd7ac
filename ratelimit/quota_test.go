package ratelimit

import (
	"testing"
	"time"

	"tsimport/internal/limiter"
)

// TestLoadsThatShareQuotasEvenOut runs a load that has partitions for itself for ten seconds, and then shares them with another.
func TestLoadsThatShareQuotasEvenOut(t *testing.T) {
	skipUnderRace(t)
	for _, kind := range []string{limiter.FixedWindow, limiter.SlidingWindow} {
		c := shared(partition("", kind, at{8, 1000, 5 * ms}, limiter.Options{Kind: kind}))
		x := newLawSim(&c.lawScene, newLaw, 1).run()
		t.Logf("%s: %+v", kind, x)
		if x.fair < 0.4 || x.share < 0.9 {
			t.Errorf("%s: the smaller load gets %.2f, both take %.3f of what is possible", kind, x.fair, x.share)
		}
	}
}

// TestALoadAloneUsesItsQuotas is the same load without another.
func TestALoadAloneUsesItsQuotas(t *testing.T) {
	skipUnderRace(t)
	for _, kind := range []string{limiter.FixedWindow, limiter.SlidingWindow} {
		c := partition("", kind, at{8, 1000, 5 * ms}, limiter.Options{Kind: kind})
		x := newLawSim(&c.lawScene, newLaw, 1).run()
		if x.share < 0.95 || x.refused > 0.012 {
			t.Errorf("%s: %+v", kind, x)
		}
	}
}

func TestAChildReachesFurtherFromWhereItsParentWas(t *testing.T) {
	p := NewPacer(PacerOptions{Alone: true})
	p.open(time.Unix(0, 0), 1)
	p.phase, p.rate, p.probe.gain, p.quota.on = inCruise, 1000, 0.16, true
	c := p.Child(time.Unix(1, 0))
	if c.probe.gain != 0.16 || c.Rate() != 1000 || !c.quota.on {
		t.Errorf("gain %g, rate %g, quota %v", c.probe.gain, c.Rate(), c.quota.on)
	}
	p.probe.gain = -0.01
	if c := p.Child(time.Unix(1, 0)); c.probe.gain != usualGain {
		t.Errorf("a child of a parent that holds back: gain %g", c.probe.gain)
	}
}
