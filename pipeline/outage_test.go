package pipeline

import (
	"testing"
	"time"

	"tsimport/ratelimit"
)

func TestALaneKeepsItsRateThroughAnOutage(t *testing.T) {
	for name, c := range map[string]struct {
		every time.Duration // between two answers
		knows bool          // the rate afterwards
	}{
		"refused for a second":                         {100 * time.Millisecond, true},
		"refused three times at once, which is chance": {time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			l := newLane(0, nil, ratelimit.NewPacer(ratelimit.PacerOptions{Rate: 1000}), time.Minute)
			l.perRow = 1
			for range 10 {
				l.pacer.Next(now, 0, 1)
				sent := now
				l.pacer.Sent(sent, 20)
				now = now.Add(c.every)
				l.inFlight++
				l.landed(sent, now, answer{units: 20, throttled: 20, rows: 20, code: "OTSServerBusy"}, ratelimit.Backoff{})
			}
			if l.down != c.knows || l.refusing != c.knows {
				t.Fatalf("an outage: %v", l.down)
			}
			if !c.knows {
				return
			}
			units, _, ok := l.pacer.Next(now, 0, 1)
			if !ok || units != 1 {
				t.Errorf("a probe of %g units", units)
			}
			now = now.Add(time.Second)
			l.pacer.Sent(now, 1)
			l.inFlight++
			if changed := l.landed(now, now.Add(time.Millisecond), answer{units: 1, accepted: 1, final: 1, rows: 1}, ratelimit.Backoff{}); !changed || l.down {
				t.Error("the lane does not notice that the partition serves again")
			}
			if l.pacer.Rate() != 1000 {
				t.Errorf("the rate is %g after the outage", l.pacer.Rate())
			}
		})
	}
}
