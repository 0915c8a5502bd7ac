package lanes

import (
	"slices"
	"sync"
	"time"

	"example.com/tsimport/ratelimit"
)

// SharedLimits limits several loads of a process together: what they send in any second, except for a larger row, and
// their requests in flight. Each load takes its part before it sends a batch. It is safe for concurrent use.
type SharedLimits struct {
	mu       sync.Mutex
	rows     sharedRate
	units    sharedRate
	bytes    sharedRate
	requests int // maximum requests in flight; 0 means no limit
	inFlight int
	loads    []*share
}

// NewSharedLimits returns limits for loads that run at the same time.
func NewSharedLimits(r Rates, requests int) *SharedLimits {
	return &SharedLimits{rows: newSharedRate(r.MaxRows), units: newSharedRate(r.MaxWCU), bytes: newSharedRate(r.MaxBytes),
		requests: requests}
}

// join returns the share of a new load. The share of nil limits is nil, which limits nothing.
func (l *SharedLimits) join() *share {
	if l == nil {
		return nil
	}
	s := &share{of: l, freed: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loads = append(l.loads, s)
	return s
}

// sharedRate is a rate that loads share. A bucket's burst may exceed it, so it also limits the last second's traffic.
type sharedRate struct {
	*ratelimit.Bucket             // nil if there is no limit
	times             []time.Time // times of the last second's batches, whose amounts are in much
	much              []float64
	sum               float64
}

func newSharedRate(rate float64) sharedRate {
	return sharedRate{Bucket: ratelimit.NewBucket(rate, ceilingBurst)}
}

func (r *sharedRate) wait(now time.Time) time.Duration {
	if r.Bucket == nil {
		return 0
	}
	n := 0
	for n < len(r.times) && now.Sub(r.times[n]) >= time.Second {
		r.sum -= r.much[n]
		n++
	}
	r.times, r.much = r.times[n:], r.much[n:]
	wait := r.Wait(now)
	if len(r.times) == 0 {
		r.sum = 0
		return wait
	}
	if r.sum+max(1, r.Rate()*ceilingBatch) > r.Rate() {
		wait = max(wait, r.times[0].Add(time.Second).Sub(now))
	}
	return wait
}

func (r *sharedRate) take(now time.Time, n float64) {
	if r.Bucket == nil {
		return
	}
	r.Take(now, n)
	r.times, r.much, r.sum = append(r.times, now), append(r.much, n), r.sum+n
}

// share is one load's share of the limits. Its methods are called by the load's dispatcher. A nil share limits nothing.
type share struct {
	of       *SharedLimits
	freed    chan struct{} // has a token when a request of another load has ended
	turn     bool          // the limits are locked, from begin to sent or end
	inFlight int
	refused  time.Time // when the load was last refused a request
}

const (
	// refusedLately is how long a load that was refused a request precedes loads with more requests.
	refusedLately = 100 * time.Millisecond
	// askAgain is the interval at which a load asks again if it is not woken.
	askAgain = 50 * time.Millisecond
)

// begin returns the time until the load may send a batch. If it is 0, the other loads wait until sent or end is called.
func (s *share) begin(now time.Time) time.Duration {
	if s == nil {
		return 0
	}
	l := s.of
	l.mu.Lock()
	wait := max(l.rows.wait(now), l.units.wait(now), l.bytes.wait(now))
	if wait == 0 && !s.mayFly(now) {
		s.refused = now
		wait = askAgain
	}
	if wait > 0 {
		l.mu.Unlock()
		return wait
	}
	s.turn = true
	return 0
}

func (s *share) mayFly(now time.Time) bool {
	l := s.of
	return l.requests == 0 || l.inFlight < l.requests && !slices.ContainsFunc(l.loads, func(o *share) bool {
		return o != s && o.inFlight < s.inFlight && !o.refused.IsZero() && now.Sub(o.refused) < refusedLately
	})
}

func (s *share) sent(now time.Time, rows int, units, bytes float64) {
	if s == nil {
		return
	}
	l := s.of
	l.rows.take(now, float64(rows))
	l.units.take(now, units)
	l.bytes.take(now, bytes)
	l.inFlight++
	s.inFlight++
	s.refused = time.Time{}
	s.end()
}

// end ends the turn that begin has begun, unless sent has ended it.
func (s *share) end() {
	if s != nil && s.turn {
		s.turn = false
		s.of.mu.Unlock()
	}
}

// landed counts a request as landed and wakes the waiting load with the fewest requests.
func (s *share) landed() {
	if s == nil {
		return
	}
	l := s.of
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	s.inFlight--
	l.wakeNext()
}

// wakeNext wakes the load with the fewest requests of those that wait for one. The limits must be locked.
func (l *SharedLimits) wakeNext() {
	var next *share
	for _, o := range l.loads {
		if !o.refused.IsZero() && (next == nil || o.inFlight < next.inFlight) {
			next = o
		}
	}
	if next != nil {
		select {
		case next.freed <- struct{}{}:
		default:
		}
	}
}

// leave gives back the share of a load that has ended.
func (s *share) leave() {
	if s == nil {
		return
	}
	l := s.of
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight -= s.inFlight
	s.inFlight = 0
	l.loads = slices.DeleteFunc(l.loads, func(o *share) bool { return o == s })
	l.wakeNext()
}

// woken returns a channel that delivers when the load may ask again.
func (s *share) woken() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.freed
}

// rates returns the limits in rows, units and bytes per second; 0 means none.
func (s *share) rates() (rows, units, bytes float64) {
	if s == nil {
		return 0, 0, 0
	}
	return s.of.rows.Rate(), s.of.units.Rate(), s.of.bytes.Rate()
}

// Woken returns a channel that delivers when another load has freed a place in flight for which this load waits.
func (s *Set) Woken() <-chan struct{} { return s.ceilings.share.woken() }
