package lanes

import (
	"time"

	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/ratelimit"
)

// A service that accepts requests without answering would hold every worker until the time-out, long after it has
// recovered. So a request that is silent for much longer than usual no longer counts as in flight, and another worker
// takes its place. Its rows remain with it until it is answered or times out, so none is sent twice or overtaken. A
// lane without an answer since is probed with single rows, one lane after another, even if all lanes are silent.

const (
	silentFor   = 2 * time.Second // minimum silence of a request
	silentBegin = 3 * time.Second // minimum silence before the first answer
	silentShare = 15              // the silence is at least the time-out divided by this
	silentLarge = 2               // and this many times the transfer time, including earlier requests
	probeFor    = time.Second     // minimum silence of a probe
	probeShare  = 30              // silence of a probe is at least the time-out divided by this
	// silentProbes limits the silent probes to the number that are sent in one time-out.
	silentProbes = probeShare + 2
	// silentRequests limits the other silent requests per worker. Two outages within a time-out cause that many.
	silentRequests = 2
	// A request must be overdue at two checks in a row: after a suspended machine wakes, it first has to read answers.
	silenceAgain = 200 * time.Millisecond
)

// silence is the part of flights about unanswered requests.
type silence struct {
	timeout      time.Duration // time-out of a request
	count        int           // number of unanswered requests that no longer count as in flight
	lastAnswered time.Time     // when the last answered request was sent
	lookAt       time.Time     // when to check next whether requests are silent
	addWorker    func()        // starts another worker; nil if there are no workers
}

// hearing is the common state of lanes that get no answers.
type hearing struct {
	hung   int // number of lanes that get no answers
	probes int // how many of these lanes may be probed concurrently
}

// MostSilent returns the maximum number of silent requests.
func MostSilent(workers int) int { return silentRequests*workers + silentProbes }

// patience returns the time without an answer after which a flight counts as silent.
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

// fallSilent returns the flights that become silent now, up to the limit. It must be called again at lookAt.
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
		// The request was sent, so of the copies only the message remains.
		f.bytes -= n.bytes - n.bytes/requestCopies
		n.bytes /= requestCopies
		f.idle = append(f.idle, new(flight))
		f.silence.addWorker()
	}
	return silent
}

// FallSilent makes the load continue without silent requests. It returns tables whose partitions may have changed.
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

// fellSilent notes that a flight of the lane is silent, and reports whether that makes the whole lane silent.
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
	l.pacer.Unavailable(now) // the pacer keeps its rate
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
	s.hearing.probes = min(2*s.hearing.probes, len(s.all)) // others may be answered again, too
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

// landedLate notes the end of a silent request. That says nothing about capacity, as other requests were sent since.
func (l *lane) landedLate(now time.Time, n *flight, a Answer) {
	l.turn.stale = true
	l.tally.throttled += int64(a.Throttled)
	l.tally.unavailable += int64(a.Unavailable)
	if a.failed == a.Rows && !l.health.lastAnswered.After(n.left) {
		l.health.failures++ // one of its rows may be the cause
	}
	l.tried(now, a)
}
