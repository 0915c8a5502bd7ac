package lanes

import "time"

const (
	// longWay is the time of the fastest answer from which on latency counts as long.
	longWay = 50 * time.Millisecond
	// cleanGrowth is the factor by which a request may exceed the largest accepted one.
	cleanGrowth = 4
	// savedUp is how long a partition is known to save up unused capacity.
	savedUp = time.Second
)

// observed holds what answers have revealed about all lanes.
type observed struct {
	throttled time.Time // when the service last refused a row for capacity
	clean     float64   // units of the largest request without a refusal
	few       bool      // there were few connections when a lane was last chosen
}

// fewConnections reports whether latency is long and lanes mostly wait for a connection. Each then gets few answers and
// learns its rate slowly, and only large requests fill a connection; few of them overload no partition.
func (s *Set) fewConnections() bool {
	return s.ceilings.window.Way() >= longWay && s.ceilings.room() <= s.Sending()/2
}

// enlarge lets a lane send more because there are few connections. If its partition has never refused a row, it may
// send a multiple of what some partition has accepted, otherwise as much as its rate allowed while it waited.
func (s *Set) enlarge(l *lane, now time.Time) {
	if l.tally.throttled == 0 {
		l.turn.units = max(l.turn.units, cleanGrowth*s.observed.clean)
		return
	}
	l.turn.units = max(l.turn.units, l.pacer.Rate()*min(now.Sub(l.turn.lastSend), savedUp).Seconds())
}

// longestTurn is how long a lane waits for lanes with more rows, unless there are few connections.
const longestTurn = time.Second

// turn returns how long a lane waits for lanes with more rows: with few connections, two requests of each.
func (s *Set) turn() time.Duration {
	if !s.observed.few {
		return longestTurn
	}
	return max(longestTurn, 2*time.Duration(s.Sending()/s.ceilings.room())*s.ceilings.window.Took())
}
