package limiter

import (
	"math/rand/v2"
	"time"
)

// Row is one row of a request passed to Admit.
type Row struct {
	Units float64
	Taken bool // set by Admit if the row passes
}

// Limiter is one limit over time. It is not safe for concurrent use, and times must not decrease.
type Limiter struct {
	options  Options
	capacity capacity
	model    model
	random   *rand.Rand
	now      int64
	pending  []charge // charges that do not count yet, because of Lag
}

// model implements a kind of limit. A row larger than the limit passes while nothing else uses the limit, because
// otherwise it never could. Its excess is charged to later time.
type model interface {
	restart(at int64, full bool)
	advance(at int64)        // sets the time to which fits, take and answer refer
	fits(units float64) bool // whether a row of the current request passes
	take(units float64)      // charges a row of the current request
	answer() time.Duration   // ends the current request, and returns the delay of its answer
}

type charge struct {
	at    int64
	units float64
}

// rounding is the tolerance for sums of floats.
const rounding = 1e-6

// New returns a Limiter that starts at start.
func New(o Options, start time.Time) (*Limiter, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o = o.filled()
	l := &Limiter{options: o, capacity: capacity{o.Rate, start.UnixNano(), o.Steps},
		random: rand.New(rand.NewPCG(o.Seed, 3))}
	switch c := &l.capacity; o.Kind {
	case TokenBucket:
		l.model = &bucket{capacity: c, burst: o.Burst}
	case FixedWindow:
		l.model = &fixedWindow{window: window{capacity: c, length: int64(o.Window)}, unaligned: o.Unaligned}
	case SlidingWindow:
		l.model = &slidingWindow{window{capacity: c, length: int64(o.Window)}, nil, 0}
	case Queue:
		l.model = &queue{capacity: c, most: int64(o.MaxDelay)}
	case Concurrency:
		l.model = &concurrency{capacity: c, requests: o.Requests, hold: o.Hold}
	}
	l.Restart(start)
	return l, nil
}

// Restart resets the limit to its initial state at a time. The times of the rate's Steps do not change.
func (l *Limiter) Restart(at time.Time) {
	l.pending = nil
	l.model.restart(at.UnixNano(), l.options.Full)
}

// Admit decides which rows of a request that arrives at now pass: every limit must accept a row. A row that one limit
// refuses costs the others nothing. taken is the number of rows that pass, delay the time until the answer is sent.
func Admit(now time.Time, rows []Row, limits ...*Limiter) (taken int, delay time.Duration) {
	at := now.UnixNano()
	whole := false
	for _, l := range limits {
		l.advance(at)
		whole = whole || l.options.Whole
	}
	if whole {
		taken = admitWhole(rows, limits)
	} else {
		for i := range rows {
			if rows[i].Taken = admit(rows[i].Units, limits); rows[i].Taken {
				taken++
			}
		}
	}
	if taken == 0 {
		return 0, 0
	}
	for _, l := range limits {
		if l.options.Rate > 0 {
			delay = max(delay, l.model.answer())
		}
	}
	return taken, delay
}

func admitWhole(rows []Row, limits []*Limiter) int {
	units := 0.0
	for _, r := range rows {
		units += r.Units
	}
	ok := admit(units, limits)
	for i := range rows {
		rows[i].Taken = ok
	}
	if !ok {
		return 0
	}
	return len(rows)
}

func admit(units float64, limits []*Limiter) bool {
	for _, l := range limits {
		if l.options.Spurious > 0 && l.random.Float64() < l.options.Spurious {
			return false
		}
		if l.options.Rate > 0 && !l.model.fits(units) {
			return false
		}
	}
	for _, l := range limits {
		l.charge(units)
	}
	return true
}

// advance moves the model to a time, and charges it for the accepted rows whose Lag has passed by then.
func (l *Limiter) advance(at int64) {
	if l.options.Rate <= 0 {
		return
	}
	n := 0
	for n < len(l.pending) && l.pending[n].at <= at {
		l.model.advance(l.pending[n].at)
		l.model.take(l.pending[n].units)
		n++
	}
	l.pending = l.pending[n:]
	l.model.advance(at)
	l.now = at
}

func (l *Limiter) charge(units float64) {
	switch {
	case l.options.Rate <= 0:
	case l.options.Lag > 0:
		l.pending = append(l.pending, charge{l.now + int64(l.options.Lag), units})
	default:
		l.model.take(units)
	}
}

// capacity is a rate that changes over time. Times are Unix nanoseconds.
type capacity struct {
	rate  float64
	start int64
	steps []Step
}

// span returns the rate at a time, and the time of its next change.
func (c *capacity) span(at int64) (rate float64, until int64) {
	rate, until = c.rate, 1<<63-1
	for _, s := range c.steps {
		if from := c.start + int64(s.After); from > at {
			return rate, from
		}
		rate = c.rate * s.Factor
	}
	return rate, until
}

func (c *capacity) at(at int64) float64 {
	rate, _ := c.span(at)
	return rate
}

// between returns the units that the rate gives between two times.
func (c *capacity) between(from, to int64) (units float64) {
	for from < to {
		rate, until := c.span(from)
		until = min(until, to)
		units += rate * float64(until-from) / float64(time.Second)
		from = until
	}
	return units
}

// answer returns 0, for models that answer at once.
func (c *capacity) answer() time.Duration { return 0 }

// served returns when the service of units ends if it starts at from.
func (c *capacity) served(from int64, units float64) int64 {
	for {
		rate, until := c.span(from)
		if left := rate * float64(until-from) / float64(time.Second); left < units {
			units -= left
			from = until
			continue
		}
		return from + int64(units/rate*float64(time.Second))
	}
}
