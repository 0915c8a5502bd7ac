package sendwindow

import (
	"math"
	"time"
)

const (
	// first is the bytes in flight before the first answer, per second of the time-out. 1 Mbit/s takes 1/8 s for them.
	first = 16 << 10
	// least is the bytes that may always be in flight. Fewer would leave a long link empty, and show nothing about it.
	least = 64 << 10
	// parts is the number of requests in the window: several keep the link busy while one stalls, but each has a cost.
	parts = 8
	// within: requests should come back in 1/within of the time-out. Pauses of a network are far shorter.
	within = 7.5
	// most is the divisor used instead if the service itself is slow.
	most = 2
)

// Window limits the bytes in flight to what the link delivers within a fraction of the time-out. By Little's law,
// requests then take about that long if the link is the bottleneck; otherwise the window is too large to matter.
//
// A limit that grew and shrank by fixed steps would have to guess when to do so. The bytes delivered show it at once:
// the window of a fast link opens with the first answer, and the window of a failing link closes with the next.
//
// A Window is not safe for concurrent use.
type Window struct {
	aim     time.Duration // time within which requests should come back
	usual   time.Duration // aim, unless the service takes longer
	cap     time.Duration
	rate    peak
	size    float64 // limit of bytes in flight
	closed  time.Time
	flying  float64 // bytes in flight
	count   int
	arrived float64 // bytes answered so far
	base    time.Duration
	latency float64 // recent mean time of an answer, in seconds
}

// Mark is the state of the window when a request was sent, for use when it is answered.
type Mark struct {
	sent    time.Time
	bytes   float64
	arrived float64 // bytes answered before it was sent
	flying  float64 // bytes in flight, including this request
	silent  bool
}

func New(timeout time.Duration) *Window {
	usual := time.Duration(float64(timeout) / within)
	return &Window{aim: usual, usual: usual, cap: timeout / most, size: max(first*timeout.Seconds(), least),
		base: math.MaxInt64}
}

// Open reports whether another request may be sent. One may always be in flight.
func (w *Window) Open(now time.Time) bool {
	if w.count == 0 || w.flying < w.size {
		return true
	}
	w.closed = now
	return false
}

// RequestBytes returns the maximum bytes of a request with several rows, more if few requests (room) can be in flight.
func (w *Window) RequestBytes(room int) int {
	return int(min(max(w.size/float64(max(1, min(room, parts))), least), math.MaxInt32))
}

// Sent notes that a request of the given bytes was sent.
func (w *Window) Sent(now time.Time, bytes int) Mark {
	w.flying += float64(bytes)
	w.count++
	return Mark{sent: now, bytes: float64(bytes), arrived: w.arrived, flying: w.flying}
}

// Silent notes that an unanswered request no longer counts as in transit, because the service has it.
func (w *Window) Silent(m *Mark) {
	w.gone(m)
	m.silent = true
}

func (w *Window) gone(m *Mark) {
	w.flying -= m.bytes
	if w.count--; w.count == 0 {
		w.flying = 0
	}
}

// Landed notes that a request has come back, with an answer or without.
func (w *Window) Landed(now time.Time, m Mark, answered bool) {
	if !m.silent {
		w.gone(&m)
	} else if !answered {
		return
	}
	took := max(now.Sub(m.sent), time.Nanosecond)
	if answered {
		w.arrived += m.bytes
		w.base = min(w.base, took)
		w.latency += (took.Seconds() - w.latency) / 8
		w.adapt(m, took)
	}
	w.rate.add(now, (w.arrived-m.arrived)/took.Seconds(), w.aim)
	w.size = max(w.rate.most()*w.aim.Seconds(), least)
}

// adapt adapts aim to a slow service. It looks like a slow link, but is slow even with hardly anything in flight.
func (w *Window) adapt(m Mark, took time.Duration) {
	switch {
	case m.flying <= least && took > w.aim:
		w.aim = min(2*took, w.cap)
	case took < w.usual/2:
		w.aim = w.usual
	}
}

// Rate returns the bytes answered per second, or 0 while that is unknown.
func (w *Window) Rate() float64 { return w.rate.most() }

// Bound reports whether the link limits the load: the window was just full, or answers far exceed the link's latency.
func (w *Window) Bound(now time.Time) bool {
	if w.rate.most() == 0 {
		return false
	}
	if !w.closed.IsZero() && now.Sub(w.closed) < w.aim {
		return true
	}
	return w.latency > max(4*w.base.Seconds(), 0.5)
}

// late is how many seconds slower than the fastest answer a late one is.
const late = 0.05

// Way returns the time that the fastest answer took, or 0 while that is unknown.
func (w *Window) Way() time.Duration {
	if w.base == math.MaxInt64 {
		return 0
	}
	return w.base
}

// Took returns the recent mean time that answers took.
func (w *Window) Took() time.Duration { return time.Duration(w.latency * float64(time.Second)) }

// Takes returns the time that the link needs for the bytes in flight, or 0 while that is unknown.
func (w *Window) Takes() time.Duration {
	if w.rate.most() == 0 {
		return 0
	}
	return time.Duration(w.flying / w.rate.most() * float64(time.Second))
}

// Late reports whether the link or the service delays answers beyond the link's latency.
func (w *Window) Late() bool { return w.latency > w.base.Seconds()+late }

// peak tracks the highest rate of the last one to two periods.
type peak struct {
	now, before float64
	until       time.Time
}

func (p *peak) add(now time.Time, rate float64, period time.Duration) {
	if now.After(p.until) {
		p.before = p.now
		if now.Sub(p.until) > period {
			p.before = 0
		}
		p.now, p.until = 0, now.Add(period)
	}
	p.now = max(p.now, rate)
}

func (p *peak) most() float64 { return max(p.now, p.before) }
