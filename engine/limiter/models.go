package limiter

import (
	"math"
	"time"
)

// bucket is a token bucket that fills at the rate.
type bucket struct {
	*capacity
	burst  time.Duration
	tokens float64 // negative after a row larger than the bucket
	now    int64
}

func (b *bucket) size() float64 { return b.at(b.now) * b.burst.Seconds() }

func (b *bucket) restart(at int64, full bool) {
	if b.tokens, b.now = 0, at; full {
		b.tokens = b.size()
	}
}

func (b *bucket) advance(at int64) {
	if at <= b.now {
		return
	}
	b.tokens += b.between(b.now, at)
	b.now = at
	b.tokens = min(b.tokens, b.size())
}

func (b *bucket) fits(units float64) bool {
	return b.tokens+rounding >= math.Min(units, b.size())
}

func (b *bucket) take(units float64) { b.tokens -= units }

type window struct {
	*capacity
	length, now int64
}

func (w *window) quota() float64 { return w.at(w.now) * float64(w.length) / float64(time.Second) }

type fixedWindow struct {
	window
	unaligned bool
	begin     int64
	used      float64
	owed      float64 // part of used: the excess of a row larger than the quota, charged to later windows
}

func (w *fixedWindow) restart(at int64, _ bool) {
	w.used, w.owed, w.now = 0, 0, at
	if w.begin = at; !w.unaligned {
		w.begin -= at % w.length
	}
}

func (w *fixedWindow) advance(at int64) {
	for at >= w.begin+w.length && w.used > 0 {
		w.begin += w.length
		w.now = w.begin
		w.used = w.owed
		w.owed = max(0, w.used-w.quota())
	}
	w.now = max(w.now, at)
	if w.used > 0 && at < w.begin+w.length {
		return
	}
	if w.begin = at; !w.unaligned {
		w.begin -= at % w.length
	}
}

func (w *fixedWindow) fits(units float64) bool {
	return w.used+units <= w.quota()+rounding || w.used == 0
}

func (w *fixedWindow) take(units float64) {
	w.used += units
	w.owed = max(w.owed, w.used-w.quota())
}

type slidingWindow struct {
	window
	taken []charge // at is when the charge stops counting; ordered by at, except for rows larger than the limit
	sum   float64
}

func (w *slidingWindow) restart(at int64, _ bool) { w.taken, w.sum, w.now = nil, 0, at }

func (w *slidingWindow) advance(at int64) {
	w.now = max(w.now, at)
	n := 0
	for n < len(w.taken) && w.taken[n].at <= w.now {
		w.sum -= w.taken[n].units
		n++
	}
	if w.taken = w.taken[n:]; len(w.taken) == 0 {
		w.sum = 0
	}
}

func (w *slidingWindow) fits(units float64) bool {
	return w.sum+units <= w.quota()+rounding || len(w.taken) == 0
}

func (w *slidingWindow) take(units float64) {
	w.sum += units
	until := w.now + max(w.length, int64(units/w.at(w.now)*float64(time.Second)))
	if n := len(w.taken); n > 0 && w.taken[n-1].at == until {
		w.taken[n-1].units += units
		return
	}
	w.taken = append(w.taken, charge{until, units})
}

// queue serves one row at a time.
type queue struct {
	*capacity
	most int64
	free int64 // when all rows taken so far are served
	now  int64
}

func (q *queue) restart(at int64, _ bool) { q.free, q.now = at, at }
func (q *queue) advance(at int64)         { q.now = max(q.now, at) }
func (q *queue) fits(float64) bool        { return q.free-q.now <= q.most }
func (q *queue) take(units float64)       { q.free = q.served(max(q.free, q.now), units) }
func (q *queue) answer() time.Duration    { return time.Duration(max(0, q.free-q.now)) }

// concurrency limits the requests or units that are served at the same time.
type concurrency struct {
	*capacity
	requests int // limit of requests; 0 limits units
	hold     time.Duration
	serving  []charge // at is when a request's service ends
	units    float64  // sum over serving
	taken    float64  // units of the current request
	now      int64
}

func (c *concurrency) restart(at int64, _ bool) { c.serving, c.units, c.taken, c.now = nil, 0, 0, at }

func (c *concurrency) advance(at int64) {
	c.now = max(c.now, at)
	kept := c.serving[:0]
	c.units = 0
	for _, s := range c.serving {
		if s.at > c.now {
			kept = append(kept, s)
			c.units += s.units
		}
	}
	c.serving = kept
}

func (c *concurrency) fits(units float64) bool {
	if c.requests > 0 {
		return c.taken > 0 || len(c.serving) < c.requests
	}
	return c.units+c.taken+units <= c.at(c.now)*c.hold.Seconds()+rounding || c.units+c.taken == 0
}

func (c *concurrency) take(units float64) { c.taken += units }

func (c *concurrency) answer() time.Duration {
	seconds := c.taken * float64(c.requests) / c.at(c.now)
	if c.requests == 0 {
		seconds = max(c.hold.Seconds(), c.taken/c.at(c.now))
	}
	d := time.Duration(seconds * float64(time.Second))
	c.serving = append(c.serving, charge{c.now + int64(d), c.taken})
	c.taken = 0
	return d
}
