package lanes

import (
	"time"

	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/ratelimit"
)

// A service that accepts requests without answering would hold every worker until the time-out, long after it has
// recovered. So a request that is silent for much longer than usual no longer counts as in flight, and another worker
// takes its place. It keeps its rows until it is answered or times out, so that none is sent twice or overtaken. A lane
// without an answer since is probed with single rows, one lane at a time; if no lane gets answers, all are.

const (
	silentFor   = 2 * time.Second // minimum silence of a request
	silentBegin = 3 * time.Second // minimum before the first answer
	silentShare = 15              // the minimum is at least the time-out divided by this
	silentLarge = 2               // and this many times its transfer time, including earlier requests
	probeFor    = time.Second     // minimum silence of a probe
	probeShare  = 30              // the minimum of a probe is at least the time-out divided by this
	// silentProbes limits the silent probes to the number sent in one time-out.
	silentProbes = probeShare + 2
	// silentRequests limits the other silent requests per worker: two outages in a time-out make that many.
	silentRequests = 2
	// A suspended machine has answers to read before it may declare silence, so it must find silence twice in a row.
	silenceAgain = 200 * time.Millisecond
)

// silence is what flights know about unanswered requests.
type silence struct {
	timeout      time.Duration // of a request
	count        int           // unanswered requests that no longer count as in flight
	lastAnswered time.Time     // when the last answered request left
	lookAt       time.Time     // when more may fall silent
	addWorker    func()        // starts another worker; nil without workers
}

// hearing is the common state of lanes that get no answers.
type hearing struct {
	hung   int // lanes that get no answers
	probes int // how many of these may be probed concurrently
}

// MostSilent limits the silent requests.
func MostSilent(workers int) int { return silentRequests*workers + silentProbes }

// patience is how long a flight is awaited before it counts as silent.
func (f *flights) patience(n *flight) time.Duration {
	usual := max(time.Duration(silentMeans*max(f.took, n.lane.health.took)*float64(time.Second)), silentLarge*n.onLink)
	if n.probe {
		return max(probeFor, f.silence.timeout/probeShare, usual)
	}
	if usual == 0 {
		return max(silentBegin, f.silence.timeout/silentShare)
	}
	return max(silentFor, f.silence.timeout/silentShare, usual)
}

// fallSilent returns the flights that become silent now, up to the limit. Call it again at lookAt.
func (f *flights) fallSilent(now time.Time) (silent []*flight) {
	if now.Before(f.silence.lookAt) || f.silence.addWorker == nil {
		return nil
	}
	f.silence.lookAt = now.Add(min(silentFor, probeFor))
	if f.unanswered() > f.room() {
		return nil // some requests wait for a connection
	}
	for n := range f.away {
		switch due := n.left.Add(f.patience(n)); {
		case due.After(now):
			n.overdue = false
			f.silence.lookAt = ratelimit.Earlier(f.silence.lookAt, due)
		case f.silence.count+len(silent) >= MostSilent(f.most) || !n.probe &&
			f.silence.count+len(silent) >= silentRequests*f.most:
		case n.overdue:
			silent = append(silent, n)
		default:
			n.overdue = true
			f.silence.lookAt = ratelimit.Earlier(f.silence.lookAt, now.Add(silenceAgain))
		}
	}
	for _, n := range silent {
		delete(f.away, n)
		n.silent = true
		f.silence.count++
		// The request has left: of the copies only the message remains.
		f.bytes -= n.bytes - n.bytes/requestCopies
		n.bytes /= requestCopies
		f.idle = append(f.idle, new(flight))
		f.silence.addWorker()
	}
	return silent
}

// FallSilent continues without the unanswered requests. It returns tables whose partitions may have changed.
func (s *Set) FallSilent(now time.Time) (changed []string) {
	for _, n := range s.flights.fallSilent(now) {
		s.ceilings.silent(&n.mark)
		if s.fellSilent(n.lane, n, now) {
			changed = append(changed, n.table)
		}
		if !s.flights.silence.lastAnswered.After(n.left) {
			for _, l := range s.all {
				s.hang(l, now)
			}
		}
	}
	return changed
}

// fellSilent notes that a flight of the lane is silent, and reports whether the whole lane now is.
func (s *Set) fellSilent(l *lane, n *flight, now time.Time) (hung bool) {
	l.away.requests--
	l.away.rows -= len(n.Rows)
	l.turn.stale = true
	if n.probe {
		l.health.probing--
		s.hearing.probes = 1
	}
	return !l.health.lastAnswered.After(n.left) && s.hang(l, now)
}

// hang notes that a lane gets no answers, and reports whether that is new.
func (s *Set) hang(l *lane, now time.Time) bool {
	if l.health.hung || l.gap {
		return false
	}
	l.health.hung, l.health.down, l.turn.stale = true, true, true
	s.hearing.hung++
	l.pacer.Unavailable(now) // keeps its rate
	return true
}

// heardOf notes that a flight of the lane was answered, in time or late.
func (s *Set) heardOf(l *lane, n *flight, took time.Duration) {
	l.health.lastAnswered = keep.Later(l.health.lastAnswered, n.left)
	l.health.took = meanOf(l.health.took, took)
	if !l.health.hung {
		return
	}
	l.health.hung, l.turn.stale = false, true
	s.hearing.probes = min(2*s.hearing.probes, len(s.all)) // others may also be back
	if s.countHung(); s.hearing.hung == 0 {
		s.hearing.probes = 1
	}
}

func (s *Set) countHung() {
	s.hearing.hung = 0
	for _, l := range s.all {
		if l.health.hung {
			s.hearing.hung++
		}
	}
}

// mayProbe reports whether another lane may be probed.
func (s *Set) mayProbe() bool {
	if s.hearing.hung == 0 {
		return false
	}
	n := 0
	for _, l := range s.all {
		n += l.health.probing
	}
	return n < s.hearing.probes
}

// landedLate notes the end of a silent request. It says nothing about capacity, as others have been sent since.
func (l *lane) landedLate(now time.Time, n *flight, a Answer) {
	l.turn.stale = true
	l.tally.throttled += int64(a.Throttled)
	l.tally.unavailable += int64(a.Unavailable)
	if a.failed == a.Rows && !l.health.lastAnswered.After(n.left) {
		l.health.failures++ // a row may be the cause
	}
	l.tried(now, a)
}
