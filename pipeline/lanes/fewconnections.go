package lanes

import (
	"time"
)

const (
	// longWay is the minimum of the fastest answer time that counts as long latency.
	longWay = 50 * time.Millisecond
	// cleanGrowth is the factor by which a request may exceed the largest accepted one.
	cleanGrowth = 4
	// savedUp is the share of its capacity that a partition saves up, if known.
	savedUp = time.Second
)

// observed is the limits of all lanes that answers have revealed.
type observed struct {
	throttled time.Time // when the service last refused a row for capacity
	clean     float64   // units of the largest request without a refusal
	few       bool      // connections, as of the last choice of a lane
}

// fewConnections reports whether latency is long and lanes mostly wait for a connection. Then each gets few answers and
// learns its rate slowly, and only large requests fill a connection. They swamp no partition, being few.
func (s *Set) fewConnections() bool {
	return s.ceilings.window.Way() >= longWay && s.ceilings.room() <= s.Sending()/2
}

// enlarge lets a lane send more if connections are few: in proportion to what any partition has accepted if its own has
// never refused a row, else what its rate has earned while it waited.
func (s *Set) enlarge(l *lane, now time.Time) {
	if l.tally.throttled == 0 {
		l.turn.units = max(l.turn.units, cleanGrowth*s.observed.clean)
		return
	}
	l.turn.units = max(l.turn.units, l.pacer.Rate()*min(now.Sub(l.turn.lastSend), savedUp).Seconds())
}

// longestTurn is how long a lane waits for lanes with more rows, unless connections are few.
const longestTurn = time.Second

// turn is how long a lane waits for lanes with more rows: with few connections, twice the time for a request of each.
func (s *Set) turn() time.Duration {
	if !s.observed.few {
		return longestTurn
	}
	return max(longestTurn, 2*time.Duration(s.Sending()/s.ceilings.room())*s.ceilings.window.Took())
}
