package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"time"

	"example.com/tsimport/engine/limiter"
)

// Row is one row of a request.
type Row struct {
	Key     []byte // partition key in the form of Key, not kept after the call
	Units   int32  // write capacity units
	Bytes   int32
	Verdict Verdict // the result; only Undecided rows are decided

	owner *partition
}

// Verdict says whether a row is served.
type Verdict uint8

const (
	Undecided Verdict = iota
	Accepted
	Throttled
	Unavailable
	Exempt // not subject to the simulation; set by the caller
)

// Table simulates one table. It is safe for concurrent use. Calls hold its only lock and wait for nothing else.
type Table struct {
	mu       sync.Mutex
	config   Config
	parts    []*partition // in key order, without gaps; the first starts below all keys
	ended    []*partition
	rng      *rand.Rand
	lastID   int
	requests int64
	clock    schedule

	limit *limiter.Limiter // of the whole table
	asked []limiter.Row    // rows of one partition; reused
}

// A table is cut by seen keys after minSeen rows, or minSeenEach per partition if more. A partition samples sampleSize
// keys to find its middle. With 256, halves were so uneven that even a shuffled file used at most 0.85 of the capacity
// of 32 partitions; the service, which knows the sizes of its files, does better.
const (
	minSeen     = 1000
	minSeenEach = 20
	sampleSize  = 4096
)

// NewTable makes a table with one partition, or the partitions of c.Sample, which serve from now on.
func NewTable(c Config, now time.Time) *Table {
	t := &Table{rng: rand.New(rand.NewPCG(c.Seed, 0))}
	t.parts = []*partition{t.adopt(&partition{last: true, factor: 1}, now.UnixNano())}
	t.Configure(c, now)
	return t
}

// adopt numbers and configures a new partition.
func (t *Table) adopt(p *partition, since int64) *partition {
	t.lastID++
	p.id = t.lastID
	p.sample.size = max(sampleSize, p.sample.size)
	t.equip(p, since)
	return p
}

// equip gives a partition its configured capacity, with an empty bucket.
func (t *Table) equip(p *partition, from int64) {
	p.rate = t.config.PartitionUnits * p.factor
	p.limit = t.config.limiter(p.rate, from)
	p.serve(from)
}

// Answers returns the table's Answers.
func (t *Table) Answers() Answers {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.config.Answers
}

// Configure replaces the configuration. Partitions remain, with empty buckets; only a single one is cut by c.Sample.
// The next write request restarts splits and moves.
func (t *Table) Configure(c Config, now time.Time) {
	c = c.filled()
	t.mu.Lock()
	defer t.mu.Unlock()
	at := now.UnixNano()
	t.config = c
	t.clock = schedule{due: never}
	t.limit = c.limiter(c.TableUnits, at)
	for _, p := range t.parts {
		p.hot, p.splitDue, p.retryAt = 0, false, 0
		t.equip(p, at)
	}
	if len(t.parts) == 1 && c.Partitions > 1 {
		t.parts[0].sample.size = max(sampleSize, minSeenEach*c.Partitions)
		if len(c.Sample) > 0 {
			t.cut(at, Quantiles(c.Sample, c.Partitions), 0)
		}
	}
	t.slowDown(at)
}

// slowDown gives the partitions the configured shares of capacity, by their current positions.
func (t *Table) slowDown(at int64) {
	for i, p := range t.parts {
		factor := 1.0
		if f, ok := t.config.Slow[i]; ok {
			factor = f
		}
		if factor == p.factor {
			continue
		}
		p.factor = factor
		t.equip(p, at)
	}
}

// Seen reports rows that were already in the table: an even sample of their keys, and the number of rows.
func (t *Table) Seen(keys []Key, rows int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range keys {
		p := t.route([]byte(k))
		p.sample.add([]byte(k), t.rng)
		p.sample.seen += rows/int64(len(keys)) - 1
	}
}

// ThrottleCode returns the code for throttled rows.
func (t *Table) ThrottleCode() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.config.ThrottleCode
}

func (t *Table) route(key []byte) *partition {
	return t.parts[sort.Search(len(t.parts)-1, func(i int) bool { return string(t.parts[i+1].start) > string(key) })]
}

// Decide decides the undecided rows of a write request, partition by partition, like a service that passes each
// partition its part of the request. It returns the delay of the answer, which a Limiter may cause.
func (t *Table) Decide(now time.Time, rows []Row) (delay time.Duration) {
	at := now.UnixNano()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin(at)
	t.advance(at)
	t.requests++
	p := t.parts[0]
	for i := range rows {
		r := &rows[i]
		if r.owner = nil; r.Verdict != Undecided {
			continue
		}
		if !p.holds(r.Key) {
			p = t.route(r.Key)
		}
		if r.owner = p; at < p.until {
			r.Verdict = p.away(at, &t.config.AutoSplit)
		}
	}
	for i := range rows {
		if rows[i].Verdict == Undecided {
			delay = max(delay, t.admit(at, rows[i:]))
		}
	}
	due := false
	for i := range rows {
		if r := &rows[i]; r.owner != nil {
			if r.Verdict == Accepted {
				r.owner.sample.add(r.Key, t.rng)
			}
			due = due || r.owner.splitDue
		}
	}
	if due {
		t.splitAll(at)
	}
	t.cutBySeen(at)
	return delay
}

// admit decides the undecided rows in the partition of rows[0], and leaves other rows alone.
func (t *Table) admit(at int64, rows []Row) (delay time.Duration) {
	p := rows[0].owner
	t.asked = t.asked[:0]
	for i := range rows {
		if r := &rows[i]; r.Verdict == Undecided && r.owner == p {
			t.asked = append(t.asked, limiter.Row{Units: float64(r.Units)})
		}
	}
	_, delay = limiter.Admit(time.Unix(0, at), t.asked, p.limit, t.limit)
	n := 0
	for i := range rows {
		r := &rows[i]
		if r.Verdict != Undecided || r.owner != p {
			continue
		}
		if r.Verdict = p.note(at, r, t.asked[n].Taken, &t.config.AutoSplit); r.Verdict == Accepted {
			p.till = max(p.till, after(at, int64(delay)))
		}
		n++
	}
	return delay
}

// Reach decides for the keys of a read whether their partitions are available.
func (t *Table) Reach(now time.Time, rows []Row) {
	at := now.UnixNano()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advance(at)
	for i := range rows {
		if r := &rows[i]; r.Verdict == Exempt {
			continue
		} else if at < t.route(r.Key).until {
			r.Verdict = Unavailable
		} else {
			r.Verdict = Accepted
		}
	}
}

// Refused records that the table refused an accepted row as invalid. Its units are spent.
func (t *Table) Refused(r *Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.owner.total.Failed++
}

// Latency draws the duration of a request. The slowest partition of its rows determines it.
func (t *Table) Latency(now time.Time, rows []Row) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.config.Latency == 0 {
		return 0
	}
	t.advance(now.UnixNano())
	t.clock.mark++
	var slowest time.Duration
	p := t.parts[0]
	for i := range rows {
		if rows[i].Verdict == Exempt {
			continue
		}
		if !p.holds(rows[i].Key) {
			p = t.route(rows[i].Key)
		}
		if p.mark == t.clock.mark {
			continue
		}
		p.mark = t.clock.mark
		slowest = max(slowest, time.Duration(float64(t.config.Latency)*(1+t.config.Jitter*(2*t.rng.Float64()-1))))
	}
	return slowest
}

// Bounds returns the keys at which partitions begin, except the first.
func (t *Table) Bounds(now time.Time) []Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advance(now.UnixNano())
	return t.bounds()
}

func (t *Table) bounds() []Key {
	bounds := make([]Key, 0, len(t.parts))
	for _, p := range t.parts[1:] {
		bounds = append(bounds, p.start)
	}
	return bounds
}

// Owner returns the permanent number of the partition that contains a key.
func (t *Table) Owner(key Key) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.route([]byte(key)).id
}

// Split adds points to the bounds. Divided partitions are replaced by children, which are unavailable at first.
func (t *Table) Split(now time.Time, points []Key, unavailable time.Duration) error {
	return t.recut(now.UnixNano(), points, true, unavailable)
}

// Cut makes the points the bounds. Partitions with an unchanged range continue unchanged.
func (t *Table) Cut(now time.Time, points []Key, unavailable time.Duration) error {
	return t.recut(now.UnixNano(), points, false, unavailable)
}

func (t *Table) recut(at int64, points []Key, add bool, unavailable time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advance(at)
	points = slices.Clone(points)
	if add {
		points = append(points, t.bounds()...)
	}
	slices.Sort(points)
	points = slices.Compact(points)
	if len(points) > 0 && points[0] == "" {
		points = points[1:] // no key is below the empty value
	}
	if len(points)+1 > MaxPartitions {
		return fmt.Errorf("%d partitions exceed the limit of %d per table", len(points)+1, MaxPartitions)
	}
	t.cut(at, points, unavailable)
	if len(t.config.Slow) > 0 {
		t.slowDown(at)
	}
	return nil
}

// Move makes a partition, numbered in key order, unavailable for a while.
func (t *Table) Move(now time.Time, partition int, unavailable time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := now.UnixNano()
	t.advance(at)
	if partition < 0 || partition >= len(t.parts) {
		return fmt.Errorf("partition %d is not in 0…%d", partition, len(t.parts)-1)
	}
	t.parts[partition].stop(at, after(at, int64(unavailable)))
	return nil
}
