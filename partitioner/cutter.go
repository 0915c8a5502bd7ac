package partitioner

import (
	"bytes"
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"

	"example.com/tsimport/internal/table"
)

// Queue holds a lane's fresh rows, in source order.
type Queue interface {
	// Front returns the first row, or false if none can be taken now.
	Front() (table.Ref, bool)
	// Advance removes the row that Front returned.
	Advance()
}

// End is how a row became final.
type End uint8

const (
	Written    End = iota
	Rejected       // refused by the service permanently
	Superseded     // a later row of the same key was written instead
)

type Options struct {
	// Unordered means that ordering keys are unique, or that the order of their rows does not matter.
	Unordered bool
	// Supersede drops a row that waits together with a later one of its key. Only unconditional Puts permit that.
	Supersede bool
	// Settle is the time after an Unknown outcome in which the attempt may still be applied.
	Settle time.Duration
	// SettleTimedOut is Settle for an attempt that timed out, counted from its end; 0 means Settle.
	SettleTimedOut time.Duration
	// SettleFirst makes a row settle before it is sent again, as the sender then looks it up in the table.
	SettleFirst bool
	// Repeated means that an earlier process may have written any of the rows.
	Repeated bool
	// Stamps makes timestamps for cells without one; nil leaves them to the service.
	Stamps Stamps
	// Deletes means that rows may delete columns: no later cell of the key may have a timestamp before the deletion.
	Deletes bool
	// SuspectUntil is the time until which an earlier process's requests, which hold suspect rows, may still be applied.
	SuspectUntil time.Time
	// Backoff returns how long a row waits after its n-th failed attempt, if the failure is its own, not its partition's.
	Backoff func(attempt int) time.Duration
	// MaxWaiting is the number of rows waiting for earlier rows of their key at which a lane stalls; 0 means 10,000.
	MaxWaiting int
	// Lanes is the number of lanes; Route returns an ordering key's lane. A nil Route means lane 0.
	Lanes int
	Route func(key []byte) int
	// Woken, if not nil, is called when waiting rows of a lane may be sent.
	Woken func(lane int)
	// Final is called once for every row that OnWritten does not cover.
	Final func(r table.Ref, end End, o table.Outcome)
}

// Cutter makes batches of the lanes' rows. Order belongs to the key, not to the lane: a row waits only if its key is in
// a request, waits for a retry or may be changed by an attempt of unknown outcome. So lanes may have several batches in
// flight, and be recut. It is not safe for concurrent use.
//
// A key is in a flight, in retry (until it is due), ready (for its lane's next batch), or settling (its row is final,
// but an earlier attempt may be applied, or the next row's timestamp is not due yet). No other keys are kept. With
// Unordered, each row has a key of its own.
type Cutter struct {
	o         Options
	onWritten func(rows []table.Ref) // if nil, Final is called for each row
	keys      keyTable               // by hash: a collision only makes a row wait needlessly
	lanes     []laneKeys
	retry     timeline
	settling  timeline
	flying    map[*Flight]struct{}
	flights   int // rows in flight
	cuts      int // number of recuts
	ready     int
	maxHeld   int64     // bytes in a lane
	unsafe    time.Time // latest key.unsafe of all keys
	spare     []*key
	read      uint64           // meaningless, but it keeps keyTable.near from being optimized away
	passed    map[uint64]int64 // with Deletes, an earlier process's highest timestamp by the key's hash
}

type laneKeys struct {
	ready    []*key
	promoted int   // ready rows that waited for an earlier row of their key
	waiting  int   // rows that wait for an earlier row of their key
	held     int64 // bytes of waiting and superseded rows
	retrying int   // rows that wait for a retry
	settling int   // retrying rows of unknown outcome: they do not hold back fresh rows

	written int64 // rows written since the last recut
	stalled bool  // GiveUp found only rows that fail even alone
}

func New(o Options) *Cutter {
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 10000)
	if o.Route == nil {
		o.Route = func([]byte) int { return 0 }
	}
	if o.Woken == nil {
		o.Woken = func(int) {}
	}
	return &Cutter{o: o, flying: map[*Flight]struct{}{}, lanes: make([]laneKeys, max(1, o.Lanes)), maxHeld: math.MaxInt64}
}

// Ready returns the number of rows that wait for the lane's next batch.
func (c *Cutter) Ready(lane int) int { return len(c.lanes[lane].ready) }

// Promoted returns the number of Ready rows that waited for an earlier row with the same key.
func (c *Cutter) Promoted(lane int) int { return c.lanes[lane].promoted }

// Held returns the number of rows that have left the lane, are not in a flight and are not final.
func (c *Cutter) Held(lane int) int {
	l := &c.lanes[lane]
	return len(l.ready) + l.retrying + l.waiting
}

// Waiting returns the number of Held rows that wait for an earlier row with the same key.
func (c *Cutter) Waiting(lane int) int { return c.lanes[lane].waiting }

// OnWritten sets f, which is called instead of Final with rows written at the first attempt whose keys are untouched.
func (c *Cutter) OnWritten(f func(rows []table.Ref)) { c.onWritten = f }

// LimitWaiting limits the memory of a lane's rows that wait for an earlier row with the same key.
func (c *Cutter) LimitWaiting(bytes int64) { c.maxHeld = max(bytes, 1) }

// Stalled reports whether the lane cannot take fresh rows: too many wait for earlier rows of their key or for a retry.
func (c *Cutter) Stalled(lane int) bool {
	l := &c.lanes[lane]
	return l.waiting >= c.o.MaxWaiting || l.held >= c.maxHeld || l.retrying-l.settling >= maxRetrying
}

// maxRetrying limits a lane's rows that wait for a retry: at the limit, fresh rows wait too.
const maxRetrying = 8 * table.MaxBatchRows

// maxLookahead limits the rows that one cut examines beyond those it takes.
const maxLookahead = 4096

// Cut fills an empty flight, retries first, up to maxUnits capacity units or one row, and reports whether it has rows.
func (c *Cutter) Cut(now time.Time, lane int, q Queue, f *Flight, maxUnits float64) bool {
	l := &c.lanes[lane]
	f.Lane, f.cuts = lane, c.cuts
	taken, passed := 0, 0
	for _, k := range l.ready {
		alone := k.failing.while >= aloneAfter || k.failing.own && k.attempts >= 2*aloneAfter
		if alone && len(f.Rows) > 0 || !f.add(k, maxUnits) {
			break
		}
		c.stamp(k, f)
		if k.attempts == 0 {
			l.promoted--
		}
		taken++
		if alone {
			passed = maxLookahead // no fresh rows
			break
		}
	}
	clear(l.ready[:taken])
	l.ready = l.ready[taken:]
	c.ready -= taken
	for len(l.ready) == 0 && !c.Stalled(lane) && passed < maxLookahead {
		r, ok := q.Front()
		if !ok {
			break
		}
		hash := r.Row().Hash
		if k := c.keys.get(hash); k != nil {
			c.queueAfter(now, lane, k, r, f)
			q.Advance()
			passed++
			continue
		}
		k := c.newKey(now, hash, lane, r)
		// If an earlier process may have sent the row, it is looked up once that attempt can no longer be applied.
		settles := c.o.SettleFirst && now.Before(k.unsafe)
		if !settles && !f.add(k, maxUnits) {
			c.drop(k)
			break
		}
		q.Advance()
		if !c.o.Unordered {
			c.keys.put(k)
		}
		if !settles {
			c.stamp(k, f)
			continue
		}
		k.due = k.unsafe
		l.retrying++
		heap.Push(&c.retry, k)
		passed++
	}
	for _, k := range f.keys {
		k.cut = nil
	}
	c.flights += len(f.Rows)
	if len(f.Rows) > 0 {
		c.flying[f] = struct{}{}
	}
	return len(f.Rows) > 0
}

// queueAfter queues a row after the earlier row of its key, or supersedes that one if it is in the batch being cut.
func (c *Cutter) queueAfter(now time.Time, lane int, k *key, r table.Ref, f *Flight) {
	c.suspect(now, k, r)
	k.touched = true
	if c.o.Supersede && k.cut == f && len(k.waiting) == 0 && k.attempts == 0 && k.unsafe.IsZero() &&
		bytes.Equal(k.row.Key(), r.Key()) {
		was := k.row
		units := f.Units - was.Row().Units() + r.Row().Units()
		if units <= f.Units && f.Replace(k.place, r) {
			k.replaced = append(k.replaced, was)
			c.lanes[k.lane].held += was.Memory()
			k.row, f.Units = r, units
			return
		}
	}
	if k.lane < 0 {
		k.lane = lane
	}
	k.waiting = append(k.waiting, r)
	c.lanes[k.lane].waiting++
	c.lanes[k.lane].held += r.Memory()
}

// Retrying returns the number of rows that wait for a retry or for their lane's next batch.
func (c *Cutter) Retrying() int { return len(c.retry) + c.ready }

// InFlight returns the number of rows in requests.
func (c *Cutter) InFlight() int { return c.flights }

// Remaining returns the number of rows that have left their lane and are not final.
func (c *Cutter) Remaining() int {
	n := c.flights + len(c.retry) + c.ready
	c.keys.each(func(k *key) { n += len(k.replaced) + len(k.waiting) })
	for _, k := range c.settling {
		if k.row.Block != nil {
			n++
		}
	}
	return n
}

// Recut moves the keys to new lanes by route.
func (c *Cutter) Recut(lanes int, route func(key []byte) int) {
	c.o.Route = route
	c.cuts++
	old := c.lanes
	c.lanes = make([]laneKeys, lanes)
	for i := range old {
		for _, k := range old[i].ready {
			k.failing.known = false
			k.lane = route(k.row.Key())
			c.lanes[k.lane].ready = append(c.lanes[k.lane].ready, k)
			if k.attempts == 0 {
				c.lanes[k.lane].promoted++
			}
		}
	}
	c.keys.each(func(k *key) {
		k.failing.known = false // the new lanes count from zero
		r, ok := k.any()
		if !ok {
			k.lane = -1 // settling: the key's next row sets its lane
			return
		}
		k.lane = route(r.Key())
		c.lanes[k.lane].waiting += len(k.waiting)
		for _, r := range slices.Concat(k.waiting, k.replaced) {
			c.lanes[k.lane].held += r.Memory()
		}
	})
	for f := range c.flying {
		for _, k := range f.keys {
			k.failing.known = false
			k.lane = route(k.row.Key())
		}
	}
	for _, k := range c.retry {
		k.failing.known = false
		k.lane = route(k.row.Key())
		c.lanes[k.lane].retrying++
		if k.settles {
			c.lanes[k.lane].settling++
		}
	}
}
