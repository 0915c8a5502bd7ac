package ratelimit

import (
	"math/rand/v2"
	"testing"
	"time"
)

// recut is a table that is cut into parts of which a load hears late: until then its only lane sends to all of them.
type recut struct {
	parts   int
	rate    float64       // units a second of each part, and of what they were cut from
	cut     time.Duration // after the load began
	heard   time.Duration // after the cut
	away    time.Duration // after the cut: nothing serves
	grown   float64       // times the rate after the cut
	apart   bool          // each batch goes to one part, as pieces of a sorted file do
	rtt     time.Duration
	most    int
	refused [2]float64 // rows: until the load heard of the cut, and in the five seconds after it
	taken   [2]float64
}

type recutPart struct {
	tokens, burst, rate float64
	at                  time.Time
}

func (s *recutPart) take(now time.Time, units float64) (taken float64) {
	s.tokens = min(s.burst, s.tokens+now.Sub(s.at).Seconds()*s.rate)
	s.at = now
	taken = min(units, float64(int(s.tokens)))
	s.tokens -= taken
	return taken
}

type recutSend struct {
	sent, back   time.Time
	lane         int
	units, taken float64
	away         bool
}

func (c *recut) run(seed uint64) {
	random := rand.New(rand.NewPCG(seed, 5))
	began := time.Unix(1_000_000, 0)
	parts := []*recutPart{{rate: c.rate, burst: c.rate, at: began}}
	lanes := []*Pacer{NewPacer(PacerOptions{MaxInFlight: c.most, Rand: random})}
	var flying []recutSend
	inFlight := []int{0}
	heardAt := began.Add(c.cut + c.heard)
	end := heardAt.Add(5 * time.Second)
	for now := began; now.Before(end); now = now.Add(time.Millisecond) {
		if len(parts) == 1 && !now.Before(began.Add(c.cut)) {
			parts = nil
			for range c.parts {
				parts = append(parts, &recutPart{rate: c.rate * c.grown, burst: c.rate * c.grown, at: now})
			}
		}
		if len(lanes) == 1 && c.parts > 1 && !now.Before(heardAt) {
			parent := lanes[0]
			lanes, inFlight = nil, nil
			for range c.parts {
				lanes, inFlight = append(lanes, parent.Child(now)), append(inFlight, 0)
			}
		}
		kept := flying[:0]
		for _, s := range flying {
			if s.back.After(now) {
				kept = append(kept, s)
				continue
			}
			lane := s.lane
			if lane >= len(lanes) || lane == 0 && s.sent.Before(heardAt) && !now.Before(heardAt) {
				continue
			}
			inFlight[lane]--
			if s.away {
				lanes[lane].Unavailable(now)
				continue
			}
			lanes[lane].Answered(s.sent, now, s.units, s.taken)
		}
		flying = kept
		for i, l := range lanes {
			for {
				units, at, ok := l.Next(now, inFlight[i], 1)
				if !ok || at.After(now) {
					break
				}
				units = float64(int(units))
				s := recutSend{sent: now, back: now.Add(time.Duration(float64(c.rtt) * (0.8 + 0.4*random.Float64()))), lane: i, units: units}
				switch {
				case !now.Before(began.Add(c.cut)) && now.Before(began.Add(c.cut+c.away)):
					s.away = true
				case len(lanes) > 1 || len(parts) == 1:
					s.taken = parts[i].take(now, units)
				case c.apart:
					s.taken = parts[random.IntN(len(parts))].take(now, units)
				default:
					for j := range int(units) {
						s.taken += parts[j%len(parts)].take(now, 1)
					}
				}
				l.Sent(now, units)
				inFlight[i]++
				flying = append(flying, s)
				of := 0
				if !now.Before(heardAt) {
					of = 1
				}
				if !now.Before(began.Add(c.cut)) && !s.away {
					c.refused[of] += units - s.taken
					c.taken[of] += s.taken
				}
			}
		}
	}
}

// TestACutOfWhichALoadHearsLate has a table cut while its load, which asks for the map of partitions every few seconds only, still takes it for one
// partition. The rate that the parts take together is that of none of them, unless each takes more than what they were cut from.
func TestACutOfWhichALoadHearsLate(t *testing.T) {
	for _, c := range []recut{
		{parts: 4, rate: 300, grown: 1},
		{parts: 2, rate: 1000, away: time.Second, heard: time.Second, grown: 1},
		{parts: 4, rate: 300, heard: 10 * time.Second, grown: 1},
		{parts: 4, rate: 1000, heard: 10 * time.Second, grown: 1},
		{parts: 10, rate: 1000, heard: 10 * time.Second, grown: 1, apart: true},
		{parts: 2, rate: 1000, heard: 10 * time.Second, grown: 4},
		{parts: 2, rate: 1000, heard: 10 * time.Second, grown: 4, apart: true},
	} {
		c.cut, c.rtt, c.most = 10*time.Second, 5*time.Millisecond, 8
		const seeds = 2
		for seed := range uint64(seeds) {
			c.run(seed)
		}
		possible := c.rate * float64(c.parts) * c.grown * 5 * seeds
		share, refused := c.taken[1]/possible, c.refused[1]/(c.refused[1]+c.taken[1])
		t.Logf("%+v: %.3f of what the parts take in the five seconds after, %.1f %% refused", c, share, 100*refused)
		if share < 0.93 || refused > 0.03 {
			t.Errorf("%+v: %.3f of what the parts take in the five seconds after, %.1f %% refused: want 0.93 and 3 %%", c, share, 100*refused)
		}
	}
}
