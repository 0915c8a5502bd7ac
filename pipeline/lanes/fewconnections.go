package lanes

import (
	"time"
)

const (
	// longWay is the fastest answer time from which latency counts as long.
	longWay = 50 * time.Millisecond
	// cleanGrowth is the factor by which a request may exceed the largest accepted one.
	cleanGrowth = 4
	// savedUp is the time whose capacity a partition is known to save up.
	savedUp = time.Second
)

// observed holds the limits of all lanes that answers have revealed.
type observed struct {
	throttled time.Time // when the service last refused a row for capacity
	clean     float64   // units of the largest request without a refusal
	few       bool      // connections were few at the last choice of a lane
}

// fewConnections reports whether latency is long and lanes mostly wait for a connection. Each then gets few answers and
// learns its rate slowly, and only large requests fill a connection. Being few, they overload no partition.
func (s *Set) fewConnections() bool {
	return s.ceilings.window.Way() >= longWay && s.ceilings.room() <= s.Sending()/2
}

// enlarge lets a lane send more if connections are few: if its partition has never refused a row, in proportion to what
// any partition has accepted; otherwise as much as its rate has earned while it waited.
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
