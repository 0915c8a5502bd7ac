package client

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// headerHTTPDate is the date header of any HTTP server. The service's own headerDate is more precise.
const headerHTTPDate = "Date"

// Clock computes the service's time from the dates of its responses. The zero Clock returns this machine's time until
// it has seen enough responses. It is safe for concurrent use.
//
// If a response with date D and precision p is received at r, and its request was sent at s, the service's clock is
// ahead by D−r to D+p−s. The clock uses the range on which most of the last responses agree (Marzullo's algorithm), so
// a single wrong date has no effect. Setting this machine's clock has no effect either, because times are monotonic.
type Clock struct {
	mu      sync.Mutex
	base    time.Time // wall and monotonic time of the first response
	samples []sample  // newest last
	last    atomic.Int64
	agreed  atomic.Pointer[offsets]
}

// sample says, according to one response, how far the service's clock is ahead of base plus the time since base.
type sample struct {
	offsets
	at time.Duration // time of receipt since base
}

type offsets struct {
	from, to time.Duration
	base     time.Time
}

const (
	keptSamples = 64
	// leastSamples is the number of responses needed to know the time. As many in a row overrule older ones after a pause.
	leastSamples = 3
	sampleEvery  = 20 * time.Millisecond
	sampleFor    = 5 * time.Minute // clocks drift apart by some ms in this time
)

// Answered records the date of a response whose request was begun at sent and whose header was read at received.
func (c *Clock) Answered(h http.Header, sent, received time.Time) {
	if c == nil || c.agreed.Load() != nil && received.UnixNano()-c.last.Load() < int64(sampleEvery) &&
		received.UnixNano() >= c.last.Load() {
		return
	}
	date, precision, ok := dateOf(h)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.base.IsZero() {
		c.base = sent
	}
	c.last.Store(received.UnixNano())
	local := func(t time.Time) time.Time { return c.base.Round(0).Add(t.Sub(c.base)) }
	s := sample{at: received.Sub(c.base)}
	s.from, s.to = date.Sub(local(received)), date.Add(precision).Sub(local(sent))
	old := slices.IndexFunc(c.samples, func(o sample) bool { return s.at-o.at <= sampleFor })
	if old < 0 {
		old = len(c.samples)
	}
	c.samples = append(c.samples[min(old, max(0, len(c.samples)-leastSamples)):], s)
	if n := len(c.samples) - keptSamples; n > 0 {
		c.samples = slices.Delete(c.samples, 0, n)
	}
	c.agree()
}

func (c *Clock) agree() {
	n := len(c.samples)
	if n < leastSamples {
		return
	}
	best, votes := overlap(c.samples)
	newest, all := overlap(c.samples[n-leastSamples:])
	if all == leastSamples && (newest.to < best.from || newest.from > best.to) {
		c.samples = slices.Clone(c.samples[n-leastSamples:])
		best, votes = newest, all
	} else if 2*votes <= n {
		return // keep the previous result
	}
	best.base = c.base
	c.agreed.Store(&best)
}

// overlap returns the range that most samples have in common, and the number of these samples.
func overlap(samples []sample) (best offsets, votes int) {
	for _, s := range samples {
		// The best range starts where the range of some sample starts.
		n, to := 0, time.Duration(1<<63-1)
		for _, o := range samples {
			if o.from <= s.from && s.from <= o.to {
				n++
				to = min(to, o.to)
			}
		}
		if n > votes {
			best, votes = offsets{from: s.from, to: to}, n
		}
	}
	return best, votes
}

// dateOf returns a response's time and its precision: the true time may be later by up to the precision.
func dateOf(h http.Header) (date time.Time, precision time.Duration, ok bool) {
	if text := h.Get(headerDate); text != "" {
		if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
			if strings.Contains(text, ".") {
				return t, time.Millisecond, true
			}
			return t, time.Second, true
		}
	}
	t, err := http.ParseTime(h.Get(headerHTTPDate))
	return t, time.Second, err == nil
}

// Range returns the earliest and latest possible time of the service's clock at t. Both are t if they are unknown.
func (c *Clock) Range(t time.Time) (earliest, latest time.Time, known bool) {
	if !c.Measured() {
		return t, t, false
	}
	r := c.agreed.Load()
	local := r.base.Round(0).Add(t.Sub(r.base))
	return local.Add(r.from), local.Add(r.to), true
}

// Now returns the service's time, or this machine's time while the service's is unknown.
func (c *Clock) Now() time.Time {
	earliest, latest, _ := c.Range(time.Now())
	return earliest.Add(latest.Sub(earliest) / 2)
}

// Lag returns how far this machine's clock lags the service's: negative if it is ahead, 0 if unknown or too imprecise.
func (c *Clock) Lag() (by time.Duration, known bool) {
	now := time.Now()
	earliest, latest, known := c.Range(now)
	now = now.Round(0)
	if !known || !earliest.After(now) && !latest.Before(now) {
		return 0, known
	}
	return earliest.Add(latest.Sub(earliest) / 2).Sub(now), true
}

// SkewWarning returns a warning if this machine's clock is off by more than a second, otherwise "".
func (c *Clock) SkewWarning() string {
	by, known := c.Lag()
	if !known || by.Abs() <= time.Second {
		return ""
	}
	side := "behind"
	if by < 0 {
		side = "ahead of"
	}
	return fmt.Sprintf("this machine's clock is %v %s the service's; set it. The service's time is used where it matters",
		by.Abs().Round(100*time.Millisecond), side)
}

// AskTime sends the few requests after which the clock knows the service's time. If the service does not respond, or
// its responses have no date, the clock keeps this machine's time.
func (a *Admin) AskTime(clock *Clock) {
	for i := 0; i < leastSamples && !clock.Measured() && a.Context.Err() == nil; i++ {
		_ = answered(func() error {
			// A refusal for a missing table or permission also has a date.
			_, err := a.Client.DescribeTable(&tablestore.DescribeTableRequest{TableName: "tsimport_clock"})
			return err
		})
	}
}

// Measured reports whether there were enough responses to know the service's time.
func (c *Clock) Measured() bool { return c != nil && c.agreed.Load() != nil }
