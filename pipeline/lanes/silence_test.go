package lanes

import (
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/ratelimit"
)

// hushed returns flights of two lanes that have had no answers, and the number of workers added.
func hushed(workers int) (f *flights, s *Set, hired *int) {
	f, hired = newFlights(workers, 1<<20, 30*time.Second), new(int)
	f.silence.addWorker = func() { *hired++ }
	f.took = 0.01
	s = &Set{hearing: hearing{probes: 1}, Partitions: new(partitioner.Map)}
	for i := range 2 {
		s.all = append(s.all, newLane(i, nil, ratelimit.NewPacer(ratelimit.PacerOptions{Rate: 1000}), time.Minute))
	}
	return f, s, hired
}

// depart sends the next flight and returns it.
func depart(f *flights, l *lane, now time.Time) *flight {
	n := f.next()
	n.lane, n.probe = l, l.health.hung
	l.away.requests++
	if n.probe {
		l.health.probing++
	}
	f.leave(now)
	return n
}

func TestRequestMuchSlowerThanOthersIsSilent(t *testing.T) {
	begun := time.Unix(1000, 0)
	for name, tt := range map[string]struct {
		took, laneTook float64 // seconds
		probe          bool
		timeout, want  time.Duration
	}{
		"usually":                        {took: 0.01, timeout: 30 * time.Second, want: silentFor},
		"answers are slow":               {took: 3, timeout: 30 * time.Second, want: 15 * time.Second},
		"those of the lane are":          {took: 0.01, laneTook: 1, timeout: 30 * time.Second, want: 5 * time.Second},
		"there was no answer":            {timeout: 30 * time.Second, want: silentFirst},
		"a probe":                        {took: 0.01, probe: true, timeout: 30 * time.Second, want: probeFor},
		"requests may take very long":    {took: 0.01, timeout: 5 * time.Minute, want: 20 * time.Second},
		"a probe, which may take longer": {took: 0.01, probe: true, timeout: 5 * time.Minute, want: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f, s, hired := hushed(2)
			f.took, f.silence.timeout = tt.took, tt.timeout
			l := s.all[0]
			l.health.took, l.health.hung = tt.laneTook, tt.probe
			depart(f, l, begun)
			silent := f.fallSilent(begun.Add(tt.want - time.Millisecond))
			conformance.True(t, len(silent) == 0, "too early")
			// At the first check, the machine may just have been suspended.
			silent = f.fallSilent(begun.Add(tt.want))
			conformance.True(t, len(silent) == 0, "without a second look")
			silent = f.fallSilent(begun.Add(tt.want + silenceAgain))
			conformance.True(t, len(silent) == 1 && *hired == 1 && f.flying() == 0 && f.unanswered() == 1 && len(f.idle) == 2,
				"%d are silent, %d hired, %d in flight, %d places free", len(silent), *hired, f.flying(), len(f.idle))
		})
	}
}

func TestRequestThatMayWaitForConnectionIsNotSilent(t *testing.T) {
	f, s, _ := hushed(2)
	now := time.Unix(1000, 0)
	depart(f, s.all[0], now)
	depart(f, s.all[1], now)
	silent := func(room int) int {
		f.room = func() int { return room }
		now = now.Add(2 * silentFor)
		f.fallSilent(now)
		now = now.Add(2 * silentFor)
		return len(f.fallSilent(now))
	}
	conformance.True(t, silent(1) == 0 && silent(2) == 2, "%d requests are silent", f.silence.count)
}

func TestSilentRequestLimit(t *testing.T) {
	const workers = 3
	f, s, hired := hushed(workers)
	now := time.Unix(1000, 0)
	var left []*flight
	for range 20 {
		for len(f.idle) > 0 {
			left = append(left, depart(f, s.all[0], now))
		}
		now = now.Add(silentFor)
		f.fallSilent(now)
		now = now.Add(silenceAgain)
		f.fallSilent(now)
	}
	conformance.True(t, f.silence.count == silentRequests*workers && *hired == f.silence.count &&
		f.flying() == workers,
		"%d requests are silent, %d workers were hired, %d requests are in flight", f.silence.count, *hired, f.flying())
	for _, n := range left {
		f.free(n)
	}
	ends := 0
	for range len(f.out) {
		if <-f.out == nil {
			ends++
		}
	}
	conformance.True(t, f.unanswered() == 0 && len(f.idle) == workers && ends == *hired && f.bytes == 0 &&
		len(f.away) == 0,
		"%d without an answer, %d places, %d of %d workers end, %d bytes", f.unanswered(), len(f.idle), ends, *hired, f.bytes)
}

func TestSilentLaneIsProbedUntilAnswered(t *testing.T) {
	f, s, _ := hushed(4)
	a, b := s.all[0], s.all[1]
	begun := time.Unix(1000, 0)
	first := depart(f, a, begun)
	s.heardOf(b, depart(f, b, begun.Add(time.Millisecond)), time.Millisecond)
	conformance.MustTrue(t, s.fellSilent(a, first, begun.Add(silentFor)) && a.health.hung && a.health.down &&
		!b.health.hung && a.away.requests == 0 && s.mayProbe(), "%+v, %+v", a.health, b.health)
	s.hang(b, begun.Add(silentFor))
	probe := depart(f, a, begun.Add(silentFor))
	conformance.True(t, probe.probe && !s.mayProbe(), "two lanes are probed at a time")
	a.health.probing--
	s.heardOf(a, probe, time.Millisecond)
	conformance.True(t, !a.health.hung && s.hearing.hung == 1 && s.hearing.probes == 2 && s.mayProbe(),
		"%+v, %d lanes, %d probes", a.health, s.hearing.hung, s.hearing.probes)
	// The silence of an earlier request says nothing about later ones.
	conformance.True(t, !s.fellSilent(a, first, begun.Add(2*silentFor)) && !a.health.hung, "an answered lane is silent")
}

func TestAnyNumberOfSilentLanesIsProbed(t *testing.T) {
	f, s, _ := hushed(1)
	now := time.Unix(1000, 0)
	for range 200 {
		s.all = append(s.all, newLane(len(s.all), nil, ratelimit.NewPacer(ratelimit.PacerOptions{Rate: 1000}), time.Minute))
	}
	for _, l := range s.all {
		s.hang(l, now)
	}
	for i, l := range s.all {
		conformance.MustTrue(t, s.mayProbe(), "%d of %d lanes are back, and no other one may be probed", i, len(s.all))
		n := depart(f, l, now)
		l.health.probing--
		s.heardOf(l, n, time.Millisecond)
		f.free(n)
	}
	conformance.Equal(t, s.hearing.hung, 0, "hung")
	conformance.Equal(t, s.hearing.probes, 1, "probes")
}

// The measurement of a rate has one request in flight, and a silent request must not count as that one.
func TestSilentRequestsDoNotHoldUpLimitingInstance(t *testing.T) {
	c := newCeilings(optionsOf(Config{}))
	now := time.Unix(1000, 0)
	for range 3 {
		c.sent(now, "", 1, 1, 100)
		m := c.window.Sent(now, 100)
		c.silent(&m)
	}
	c.sent(now, "", 100, 100, 100)
	c.instance.Answered(now, now.Add(time.Millisecond), 100, 10)
	wait := c.instanceWait(now.Add(5*time.Second), 1)
	conformance.True(t, wait <= 0, "waits %v for an answer to none", wait)
}

func TestLateEndOfSilentRequestDoesNotSlowItsLane(t *testing.T) {
	f, s, _ := hushed(2)
	l := s.all[0]
	n := depart(f, l, time.Unix(1000, 0))
	s.fellSilent(l, n, time.Unix(1002, 0))
	l.landedLate(time.Unix(1030, 0), n, Answer{Rows: 5, failed: 5, code: "time-out"})
	conformance.True(t, l.health.notBefore.IsZero() && l.away.requests == 0 && l.trouble.stuck && l.health.failures == 1,
		"%+v", l)
	l.landedLate(time.Unix(1030, 0), n, Answer{Rows: 5, Final: 5, units: 5, Accepted: 5})
	conformance.True(t, !l.trouble.stuck && l.pacer.Rate() == 1000, "%+v", l)
}

func TestLaneKeepsRateThroughOutage(t *testing.T) {
	for name, c := range map[string]struct {
		every time.Duration // time between two answers
		knows bool          // the rate is known afterwards
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
				l.away.requests++
				l.landed(sent, now, Answer{units: 20, Throttled: 20, Rows: 20, code: "OTSServerBusy"}, ratelimit.Backoff{})
			}
			conformance.MustTrue(t, l.health.down == c.knows && l.health.refusing == c.knows, "an outage: %v", l.health.down)
			if !c.knows {
				return
			}
			units, _, ok := l.pacer.Next(now, 0, 1)
			conformance.True(t, ok && units == 1, "a probe of %g units", units)
			now = now.Add(time.Second)
			l.pacer.Sent(now, 1)
			l.away.requests++
			changed := l.landed(now, now.Add(time.Millisecond), Answer{units: 1, Accepted: 1, Final: 1, Rows: 1},
				ratelimit.Backoff{})
			conformance.True(t, changed && !l.health.down, "the lane does not notice that the partition serves again")
			conformance.Equal(t, l.pacer.Rate(), 1000, "the rate after the outage")
		})
	}
}

// A process that is suspended for hours (Ctrl-Z, a paused container) makes no attempts meanwhile.
func TestProcessPauseDoesNotExhaustPatience(t *testing.T) {
	now := time.Unix(1e9, 0)
	l := &lane{pacer: restless{}, trouble: trouble{patience: ratelimit.Patience{For: 15 * time.Minute}}}
	fail := func() {
		l.landed(now, now, Answer{Rows: 1, failed: 1, code: "OTSTimeout"},
			ratelimit.Backoff{Base: time.Second, Max: time.Second})
	}
	for range 10 {
		fail()
	}
	for range 3 {
		now = now.Add(5 * time.Hour)
		conformance.MustTrue(t, !l.stalled(now), "the load gives up because of a pause")
		fail()
	}
	for range 8 {
		now = now.Add(l.trouble.patience.LookEvery())
		l.stalled(now)
		fail()
	}
	conformance.Equal(t, l.stalled(now.Add(time.Second)), true, "a lane without progress is never given up")
}

func boundsAt(keys ...string) *partitioner.Map {
	var bounds []table.Value
	for _, k := range keys {
		bounds = append(bounds, table.Value{Type: table.String, Bytes: []byte(k)})
	}
	return partitioner.NewMap(bounds)
}

// Guessed bounds of partitions move a little with each reading.
func TestLaneWithMovedBoundsKeepsRate(t *testing.T) {
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
			conformance.Equal(t, predecessorOf(old, m, n, from, lanes), lanes[want], "%q: the predecessor of lane %d of %d",
				tt.to, n, from)
		}
	}
	conformance.Equal(t, predecessorOf(boundsAt(), boundsAt("g"), 0, []int{0}, []*lane{{gap: true}}), nil,
		"a gap has a predecessor")
}

func TestPatienceRunsOutDespiteMovingBounds(t *testing.T) {
	now := time.Unix(1e9, 0)
	lanes := []*lane{{}, {}}
	for _, l := range lanes {
		l.pacer, l.trouble.patience = restless{}, ratelimit.Patience{For: 15 * time.Minute}
	}
	rounds, over := 0, false
	for ; !over; rounds++ {
		conformance.MustTrue(t, rounds <= 30, "a load whose map changes each minute never gives up")
		for _, l := range lanes {
			l.landed(now, now, Answer{Rows: 1, failed: 1, code: "OTSTimeout"}, ratelimit.Backoff{Base: 1, Max: 1})
		}
		now = now.Add(time.Minute)
		for _, l := range lanes {
			over = over || l.stalled(now)
		}
		next := []*lane{lanes[0].child(now, 0, nil, false), lanes[1].child(now, 1, nil, false)}
		for _, l := range next {
			l.takeOver(lanes)
		}
		lanes = next
	}
	conformance.True(t, rounds >= 15, "given up after %d minutes", rounds)
	taken := &lane{trouble: trouble{patience: ratelimit.Patience{For: time.Minute}}}
	found := &lane{}
	found.takeOver([]*lane{lanes[0], taken})
	conformance.True(t, !found.trouble.stuck, "a lane that took rows does not count")
}
