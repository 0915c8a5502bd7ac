package ratelimit

import (
	"math"
	"math/rand/v2"
	"time"
)

// bbrLaw is BBR version 1 as Linux has it (net/ipv4/tcp_bbr.c): the largest delivery rate of ten rounds, the least round trip of ten
// seconds, paced with the gains 2/ln 2 until three rounds bring less than a quarter more, its inverse until the queue is gone, then 5/4,
// 3/4 and six times 1, each for a round trip; twice the product in flight at most. A batch, a fifth of a second's rows, is what a packet
// is to TCP: a phase lasts as long as one takes, at least. What is refused is lost; BBR looks at losses only to find a policer.
type bbrLaw struct {
	bare
	random *rand.Rand
	flying float64

	delivered   float64
	deliveredAt time.Time
	requests    []bbrRequest // in flight

	rounds [10]float64 // the largest delivery rate in each of the last rounds
	round  int
	ends   float64 // delivered when the round ends

	trip   float64 // the least round trip, seconds
	tripAt time.Time

	mode   int
	full   float64
	flat   int
	police bbrPolicer
	phase  int
	since  time.Time // of the phase, or of the probe of the round trip
	credit time.Time // when the next batch may leave
}

type bbrRequest struct {
	sent, deliveredAt time.Time
	delivered         float64
}

const (
	bbrStartup = iota
	bbrDrain
	bbrProbe
	bbrTrip
)

var bbrGains = [8]float64{1.25, 0.75, 1, 1, 1, 1, 1, 1}

func newBBR(r *rand.Rand, _ *lawScene) controller { return &bbrLaw{random: r} }

func (l *bbrLaw) bandwidth() float64 {
	most := 0.0
	for _, r := range l.rounds {
		most = max(most, r)
	}
	return most
}

// bbrPolicer is the long-term rate that BBR keeps to, for 48 rounds, when two intervals in a row of 4 to 16 rounds, each of which ends with
// a loss and lost a fifth of what it delivered, came to the same rate within an eighth.
type bbrPolicer struct {
	lost              float64 // all the time
	sampling          bool
	from              time.Time
	delivered, before float64 // and lost, at from
	rounds            int
	rate              float64 // of the last interval
	inUse             bool
}

func (p *bbrPolicer) begin(now time.Time, delivered float64) {
	p.from, p.delivered, p.before, p.rounds = now, delivered, p.lost, 0
}

func (p *bbrPolicer) reset() { *p = bbrPolicer{lost: p.lost} }

// see takes an answer; over is true when the rate was used for long enough.
func (p *bbrPolicer) see(now time.Time, delivered, lost float64, newRound bool) (over bool) {
	p.lost += lost
	if newRound {
		p.rounds++
	}
	switch {
	case p.inUse:
		if p.rounds >= 48 {
			p.reset()
			return true
		}
		return false
	case !p.sampling:
		if lost > 0 {
			p.sampling = true
			p.begin(now, delivered)
		}
		return false
	case p.rounds < 4:
		return false
	case p.rounds > 16:
		p.reset()
		return false
	}
	sum, seconds := delivered-p.delivered, now.Sub(p.from).Seconds()
	if lost == 0 || sum == 0 || seconds == 0 || (p.lost-p.before)*256 < 50*sum {
		return false
	}
	rate := sum / seconds
	if p.rate > 0 && math.Abs(rate-p.rate) <= p.rate/8 {
		p.rate, p.inUse, p.rounds = (rate+p.rate)/2, true, 0
		return false
	}
	p.rate = rate
	p.begin(now, delivered)
	return false
}

// gain is of the pacing, and of what may be in flight.
func (l *bbrLaw) gain() (pacing, flying float64) {
	const high = 2 / math.Ln2
	switch l.mode {
	case bbrStartup:
		return high, high
	case bbrDrain:
		return 1 / high, high
	case bbrTrip:
		return 1, 0
	}
	return bbrGains[l.phase], 2
}

// pace is the rate of sending; before the first answer ten packets in a millisecond, as TCP has it.
func (l *bbrLaw) pace() float64 {
	gain, _ := l.gain()
	if l.police.inUse {
		return l.police.rate
	}
	if b := l.bandwidth(); b > 0 {
		return gain * b
	}
	return 10 / 0.001
}

func (l *bbrLaw) batch() float64 {
	if l.bandwidth() == 0 {
		return 10
	}
	return max(1, min(maxRows, math.Round(0.2*l.bandwidth())))
}

func (l *bbrLaw) next(now time.Time, _ int, _ float64) (float64, time.Time, bool) {
	_, gain := l.gain()
	window := max(4*l.batch(), gain*l.bandwidth()*l.trip)
	return l.batch(), later(l.from(now), l.credit), l.flying+l.batch() <= window
}

func (l *bbrLaw) sent(now time.Time, units float64) {
	if l.flying == 0 {
		l.deliveredAt = now
	}
	l.flying += units
	l.requests = append(l.requests, bbrRequest{now, l.deliveredAt, l.delivered})
	l.credit = later(l.credit, now).Add(duration(units / l.pace()))
}

func (l *bbrLaw) answered(sent, now time.Time, units, accepted float64) {
	l.flying -= units
	at := 0
	for !l.requests[at].sent.Equal(sent) {
		at++
	}
	r := l.requests[at]
	l.requests = append(l.requests[:at], l.requests[at+1:]...)
	l.delivered += accepted
	l.deliveredAt = now

	newRound := r.delivered >= l.ends
	if newRound {
		l.ends = l.delivered
		l.round++
		l.rounds[l.round%len(l.rounds)] = 0
	}
	if d := now.Sub(r.deliveredAt).Seconds(); d > 0 && accepted > 0 {
		best := &l.rounds[l.round%len(l.rounds)]
		*best = max(*best, (l.delivered-r.delivered)/d)
	}
	trip := now.Sub(sent).Seconds()
	expired := now.Sub(l.tripAt) > 10*time.Second
	if l.trip == 0 || trip <= l.trip || expired {
		l.trip, l.tripAt = trip, now
	}
	if l.police.see(now, l.delivered, units-accepted, newRound) && l.mode == bbrProbe {
		l.probe(now)
	}
	l.steer(now, newRound, expired)
}

func (l *bbrLaw) steer(now time.Time, newRound, expired bool) {
	switch l.mode {
	case bbrStartup:
		if !newRound {
			return
		}
		if b := l.bandwidth(); b >= 1.25*l.full {
			l.full, l.flat = b, 0
		} else if l.flat++; l.flat >= 3 {
			l.mode = bbrDrain
		}
	case bbrDrain:
		if l.flying <= max(l.batch(), l.bandwidth()*l.trip) {
			l.probe(now)
		}
	case bbrTrip:
		if now.Sub(l.since) >= 200*time.Millisecond {
			l.probe(now)
		}
	case bbrProbe:
		if expired {
			l.mode, l.since = bbrTrip, now
		} else if now.Sub(l.since).Seconds() >= max(l.trip, l.batch()/max(1, l.bandwidth())) {
			l.phase, l.since = (l.phase+1)%len(bbrGains), now
		}
	}
}

// probe begins the cycle of gains, anywhere but in the phase that drains.
func (l *bbrLaw) probe(now time.Time) {
	l.mode, l.phase, l.since = bbrProbe, (2+l.random.IntN(7))%len(bbrGains), now
}

func (l *bbrLaw) child(time.Time) controller { return &bbrLaw{random: l.random} }
