package lanes

import (
	"time"
)

const (
	// longWay is how long even the fastest answer takes where the way counts.
	longWay = 50 * time.Millisecond
	// cleanGrowth is how many times larger a request may be than the largest that was accepted.
	cleanGrowth = 4
	// savedUp is how much of its capacity a partition saves up, as far as is known.
	savedUp = time.Second
)

// said is what answers have said of what limits the lanes together.
type said struct {
	throttled time.Time // when the service last refused a row for capacity
	clean     float64   // units of the largest request of which nothing was refused
	few       bool      // connections, as of the last choice of a lane
}

// fewConnections reports whether the way is long and lanes mostly wait for a connection. Each is answered rarely then, and would take a
// minute to find out by its own answers how much it may send. And the connection carries one request in a round trip, so that only large ones fill
// it. They swamp no partition: fewer are in flight than there are partitions.
func (s *Set) fewConnections() bool {
	return s.ceilings.window.Way() >= longWay && s.ceilings.room() <= s.Sending()/2
}

// enlarge lets a lane send more where connections are few: if its partition has never refused a row, in proportion to what any of them has
// accepted, and else what its rate gives while it waited.
func (s *Set) enlarge(l *lane, now time.Time) {
	if l.tally.throttled == 0 {
		l.turn.units = max(l.turn.units, cleanGrowth*s.said.clean)
		return
	}
	l.turn.units = max(l.turn.units, l.pacer.Rate()*min(now.Sub(l.turn.lastSend), savedUp).Seconds())
}

// longestTurn is how long a lane waits for those with more rows, where connections are not few.
const longestTurn = time.Second

// turn is how long a lane waits for those with more rows: where connections are few, twice as long as all lanes take for a request each.
func (s *Set) turn() time.Duration {
	if !s.said.few {
		return longestTurn
	}
	return max(longestTurn, 2*time.Duration(s.Sending()/s.ceilings.room())*s.ceilings.window.Took())
}
