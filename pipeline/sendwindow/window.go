package sendwindow

import (
	"math"
	"time"
)

const (
	// first is the bytes in flight before the first answer, per second of the time-out: 1 Mbit/s takes 1/8 of that.
	first = 16 << 10
	// least may be in flight at any time. Less would leave a long link empty, with nothing to measure by.
	least = 64 << 10
	// parts is the number of requests in the window. Several keep the link busy while one stalls; fewer cost less.
	parts = 8
	// Requests should come back within the time-out divided by within. Pauses of a network are far shorter.
	within = 7.5
	// most is the divisor instead if the service itself is that slow.
	most = 2
)

// Window bounds the bytes in flight to those that came back within a fraction of the time-out. By Little's law requests
// then take about that long if the link is the bottleneck; otherwise the window is too large to matter.
//
// A limit that grows and shrinks by fixed steps would have to guess when to do so. The bytes delivered show it at once:
// the window of a fast link opens with its first answer, and that of a failing link closes with the next.
//
// It must be used by one goroutine.
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
	latency float64 // recent mean in seconds
}

// Mark is the state noted when a request is sent, for use when it is answered.
type Mark struct {
	sent    time.Time
	bytes   float64
	arrived float64 // bytes that had arrived when it left
	flying  float64 // bytes in flight, including it
	silent  bool
}

func New(timeout time.Duration) *Window {
	usual := time.Duration(float64(timeout) / within)
	return &Window{aim: usual, usual: usual, cap: timeout / most, size: max(first*timeout.Seconds(), least),
		base: math.MaxInt64}
}

// Open reports whether another request may leave. One may always be in flight.
func (w *Window) Open(now time.Time) bool {
	if w.count == 0 || w.flying < w.size {
		return true
	}
	w.closed = now
	return false
}

// RequestBytes limits the bytes of a request of several rows: if few (room) may be in flight, they must be large.
func (w *Window) RequestBytes(room int) int {
	return int(min(max(w.size/float64(max(1, min(room, parts))), least), math.MaxInt32))
}

// Sent notes that a request of a size has left.
func (w *Window) Sent(now time.Time, bytes int) Mark {
	w.flying += float64(bytes)
	w.count++
	return Mark{sent: now, bytes: float64(bytes), arrived: w.arrived, flying: w.flying}
}

// Silent notes that a request no longer counts as in transit, although it is unanswered: the service has it.
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

// Landed notes that a request has come back; if not answered, its outcome is unknown.
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

// adapt changes the target. A slow service looks like a slow link, but remains slow with hardly anything in flight.
func (w *Window) adapt(m Mark, took time.Duration) {
	switch {
	case m.flying <= least && took > w.aim:
		w.aim = min(2*took, w.cap)
	case took < w.usual/2:
		w.aim = w.usual
	}
}

// Rate returns the bytes answered per second, 0 while unknown.
func (w *Window) Rate() float64 { return w.rate.most() }

// Bound reports whether the link limits the load: the window has just closed, or requests far exceed its latency.
func (w *Window) Bound(now time.Time) bool {
	if w.rate.most() == 0 {
		return false
	}
	if !w.closed.IsZero() && now.Sub(w.closed) < w.aim {
		return true
	}
	return w.latency > max(4*w.base.Seconds(), 0.5)
}

// late is by how much delayed answers are slower than the fastest.
const late = 0.05 // seconds

// Way returns the time of the fastest answer, 0 while unknown.
func (w *Window) Way() time.Duration {
	if w.base == math.MaxInt64 {
		return 0
	}
	return w.base
}

// Took returns the recent mean time of answers.
func (w *Window) Took() time.Duration { return time.Duration(w.latency * float64(time.Second)) }

// Takes returns the time that the link needs for the bytes in flight, 0 while unknown.
func (w *Window) Takes() time.Duration {
	if w.rate.most() == 0 {
		return 0
	}
	return time.Duration(w.flying / w.rate.most() * float64(time.Second))
}

// Late reports whether the link or the service delays answers beyond the link's latency.
func (w *Window) Late() bool { return w.latency > w.base.Seconds()+late }

// peak is the highest rate of the last one to two periods.
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
