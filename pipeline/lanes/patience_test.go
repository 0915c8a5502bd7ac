package lanes

import (
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/ratelimit"
)

func TestALaneKeepsItsRateThroughAnOutage(t *testing.T) {
	for name, c := range map[string]struct {
		every time.Duration // between two answers
		knows bool          // the rate afterwards
	}{
		"refused for longer than a second":             {120 * time.Millisecond, true},
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
				l.landed(sent, now, Answer{units: 20, Throttled: 20, Rows: 20, code: "OTSServerBusy"}, ratelimit.Backoff{})
			}
			if l.health.down != c.knows || l.health.refusing != c.knows {
				t.Fatalf("an outage: %v", l.health.down)
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
			if changed := l.landed(now, now.Add(time.Millisecond), Answer{units: 1, Accepted: 1, Final: 1, Rows: 1}, ratelimit.Backoff{}); !changed || l.health.down {
				t.Error("the lane does not notice that the partition serves again")
			}
			conformance.Equal(t, l.pacer.Rate(), 1000, "the rate after the outage")
		})
	}
}

// A process that is stopped for hours (Ctrl-Z, a paused container) has tried nothing meanwhile.
func TestAPauseMakesNoLaneHopeless(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := &lane{pacer: restless{}, trouble: trouble{patience: ratelimit.Patience{For: 15 * time.Minute}}}
	fail := func() {
		l.landed(now, now, Answer{Rows: 1, failed: 1, code: "OTSTimeout"}, ratelimit.Backoff{Base: time.Second, Max: time.Second})
	}
	for range 10 {
		fail()
	}
	for range 3 {
		if now = now.Add(5 * time.Hour); l.hopeless(now) {
			t.Fatal("the load gives up because of a pause")
		}
		fail()
	}
	for range 8 {
		now = now.Add(l.trouble.patience.LookEvery())
		l.hopeless(now)
		fail()
	}
	if !l.hopeless(now.Add(time.Second)) {
		t.Error("a lane without progress is never given up")
	}
}

func boundsAt(keys ...string) *partitioner.Map {
	var bounds []table.Value
	for _, k := range keys {
		bounds = append(bounds, table.Value{Type: table.String, Bytes: []byte(k)})
	}
	return partitioner.NewMap(bounds)
}

// The bounds of partitions that are guessed move a little each time they are looked at.
func TestALaneWhoseBoundsMoveKeepsItsRate(t *testing.T) {
	lanes := []*lane{{tally: tally{written: 10}}, {tally: tally{written: 30}}, {tally: tally{written: 20}}}
	for _, tt := range []struct {
		to   []string
		want []int
	}{
		{[]string{"h", "p"}, []int{0, 1, 2}}, // two bounds have moved
		{[]string{"g", "r"}, []int{0, 1, 2}}, // one has moved
		{[]string{"g", "k", "p"}, []int{0, 1, 1, 2}},
		{[]string{"c"}, []int{0, 2}},
		{nil, []int{0}},
	} {
		old, m := boundsAt("g", "q"), boundsAt(tt.to...)
		over := overlaps(old, m)
		for n, want := range tt.want {
			var from []int
			for i, news := range over {
				for _, j := range news {
					if j == n {
						from = append(from, i)
					}
				}
			}
			conformance.Equal(t, heirOf(old, m, n, from, lanes), lanes[want], "%q: the heir of lane %d of %d", tt.to, n, from)
		}
	}
	conformance.Equal(t, heirOf(boundsAt(), boundsAt("g"), 0, []int{0}, []*lane{{gap: true}}), nil, "a gap has an heir")
}

func TestPatienceRunsOutAlthoughBoundsMove(t *testing.T) {
	now := time.Unix(1e9, 0)
	lanes := []*lane{{}, {}}
	for _, l := range lanes {
		l.pacer, l.trouble.patience = restless{}, ratelimit.Patience{For: 15 * time.Minute}
	}
	rounds, over := 0, false
	for ; !over; rounds++ {
		if rounds > 30 {
			t.Fatal("a load whose map changes each minute never gives up")
		}
		for _, l := range lanes {
			l.landed(now, now, Answer{Rows: 1, failed: 1, code: "OTSTimeout"}, ratelimit.Backoff{Base: 1, Max: 1})
		}
		now = now.Add(time.Minute)
		for _, l := range lanes {
			over = over || l.hopeless(now)
		}
		next := []*lane{lanes[0].child(now, 0, nil, false), lanes[1].child(now, 1, nil, false)}
		for _, l := range next {
			l.takeOver(lanes)
		}
		lanes = next
	}
	if rounds < 15 {
		t.Errorf("given up after %d minutes", rounds)
	}
	taken := &lane{trouble: trouble{patience: ratelimit.Patience{For: time.Minute}}}
	heir := &lane{}
	if heir.takeOver([]*lane{lanes[0], taken}); heir.trouble.stuck {
		t.Error("a lane that took rows does not count")
	}
}
