package sim

import (
	"cmp"
	"math"
	"sync"
	"time"

	"example.com/tsimport/engine/limiter"
)

// partition is a range of keys and its simulated server. Times are Unix nanoseconds.
type partition struct {
	id         int
	start, end Key // end is unused if last is set
	last       bool

	factor float64 // share of the configured capacity
	rate   float64 // units per second; 0 means no limit
	limit  *limiter.Limiter
	since  int64 // when service with the current rate began
	until  int64 // it is unavailable until then
	down   int64 // nanoseconds of unavailability after since
	ended  int64 // when others took over its range; 0 if it is current
	bytes  int64 // bytes of the rows written to it
	sample sampler
	mark   int64 // last request that Latency counted for it

	hot      int  // consecutive seconds with enough load to split it
	splitDue bool // due for a split by size or load
	retryAt  int64

	total       Count
	first, till int64 // times of the first and last accepted rows; 0 if there are none
	seconds     []Second
}

// Count counts rows by outcome.
type Count struct {
	Rows        int64 `json:"rows"`   // passed on to the table
	Units       int64 `json:"units"`  // write capacity units of Rows
	Failed      int64 `json:"failed"` // part of Rows that the table refused as invalid
	Throttled   int64 `json:"throttled"`
	Unavailable int64 `json:"unavailable"`
}

func (c *Count) add(o Count) {
	c.Rows += o.Rows
	c.Units += o.Units
	c.Failed += o.Failed
	c.Throttled += o.Throttled
	c.Unavailable += o.Unavailable
}

// Second is a partition's count in one second of the Unix clock.
type Second struct {
	Unix int64
	Count
}

// maxSeconds is the number of Seconds that a partition keeps: an hour of activity.
const maxSeconds = 3600

func (p *partition) holds(key []byte) bool {
	return string(p.start) <= string(key) && (p.last || string(key) < string(p.end))
}

// away counts a row that arrives while the partition is unavailable.
func (p *partition) away(at int64, auto *AutoSplit) Verdict {
	p.total.Unavailable++
	p.second(at, auto).Unavailable++
	return Unavailable
}

// note counts a row as accepted if taken is set, and as throttled otherwise.
func (p *partition) note(at int64, r *Row, taken bool, auto *AutoSplit) Verdict {
	second := p.second(at, auto)
	if !taken {
		p.total.Throttled++
		second.Throttled++
		return Throttled
	}
	p.total.Rows++
	p.total.Units += int64(r.Units)
	second.Rows++
	second.Units += int64(r.Units)
	p.first = cmp.Or(p.first, at)
	p.till = at
	p.bytes += int64(r.Bytes)
	if auto.Bytes > 0 && p.bytes >= auto.Bytes {
		p.splitDue = true
	}
	return Accepted
}

// second returns the count of the second that contains at. When a second begins, it checks the last one's load.
func (p *partition) second(at int64, auto *AutoSplit) *Count {
	unix := at / 1e9
	if n := len(p.seconds); n > 0 {
		last := &p.seconds[n-1]
		if last.Unix >= unix {
			return &last.Count
		}
		if auto.Load > 0 {
			p.heat(last, unix, auto)
		}
	}
	if len(p.seconds) == maxSeconds {
		p.seconds = append(p.seconds[:0], p.seconds[maxSeconds/2:]...)
	}
	p.seconds = append(p.seconds, Second{Unix: unix})
	return &p.seconds[len(p.seconds)-1].Count
}

func (p *partition) heat(last *Second, now int64, auto *AutoSplit) {
	if float64(last.Units) < auto.Load*p.rate {
		p.hot = 0
		return
	}
	p.hot++
	if p.hot >= int(math.Ceil(auto.Sustain.Seconds())) {
		p.splitDue = true
	}
	if last.Unix+1 != now {
		p.hot = 0 // idle in between
	}
}

// serve starts the partition's service at from, or when a stop ends if that is later.
func (p *partition) serve(from int64) {
	p.since = max(p.since, p.until, from)
	p.until, p.down = p.since, 0
	p.limit.Restart(time.Unix(0, p.since))
}

// stop makes the partition unavailable until a time, at which its limit restarts.
func (p *partition) stop(at, until int64) {
	if until <= p.until {
		return
	}
	p.down += until - max(at, p.until)
	p.until = until
	p.limit.Restart(time.Unix(0, until))
}

// instanceBurst is the time whose capacity an instance saves if it is unused.
const instanceBurst = 100 * time.Millisecond

// Instance is the capacity limit over all tables of an instance. It is safe for concurrent use.
type Instance struct {
	mu    sync.Mutex
	limit *limiter.Limiter
	count InstanceCount
}

// InstanceCount counts accepted units and refused requests.
type InstanceCount struct {
	Units   int64 `json:"units"`            // of requests passed on to their tables
	Refused int64 `json:"refused_requests"` // refused with 429 OTSFlowControl
	Rows    int64 `json:"refused_rows"`     // in refused requests
}

// NewInstance makes an instance that accepts rate units per second from now on. It has no unused capacity yet.
func NewInstance(rate float64, now time.Time) *Instance {
	c := Config{Burst: instanceBurst}
	return &Instance{limit: c.limiter(min(rate, maxUnits), now.UnixNano())}
}

// Take accepts a request, or refuses it as a whole.
func (i *Instance) Take(now time.Time, units float64, rows int) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if taken, _ := limiter.Admit(now, []limiter.Row{{Units: units}}, i.limit); taken == 0 {
		i.count.Refused++
		i.count.Rows += int64(rows)
		return false
	}
	i.count.Units += int64(math.Round(units))
	return true
}

// Count returns the counts since the start or the last Reset.
func (i *Instance) Count() InstanceCount {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.count
}

// Reset resets the counts and the saved capacity.
func (i *Instance) Reset(now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.count = InstanceCount{}
	i.limit.Restart(now)
}
