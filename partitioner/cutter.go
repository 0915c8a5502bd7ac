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

// Queue is where a lane's fresh rows come from, in source order.
type Queue interface {
	// Front returns the first row, and false when there is none that can be taken now.
	Front() (table.Ref, bool)
	// Advance takes it off.
	Advance()
}

// End is how a row became final.
type End uint8

// The ways to become final.
const (
	Written    End = iota
	Rejected       // refused by the service permanently
	Superseded     // a later row of the same key was written instead
)

// Options of a Cutter.
type Options struct {
	// Unordered says that no two rows have the same ordering key, or that their order does not matter.
	Unordered bool
	// Supersede lets a row give way to a later one of its key while both wait. Only a Put without a condition may:
	// it replaces the whole row, so the earlier one leaves no trace.
	Supersede bool
	// Settle is how long after an Unknown outcome the attempt may still be applied.
	Settle time.Duration
	// SettleTimedOut is that of an attempt that had its time-out, counted from its end; 0 takes Settle.
	SettleTimedOut time.Duration
	// SettleFirst lets a row wait for that before it is sent again: whoever sends it will look first whether it is there.
	SettleFirst bool
	// Repeated says that an earlier process may have written any of the rows.
	Repeated bool
	// Stamps makes the timestamps of cells that bring none; nil is the service's business.
	Stamps Stamps
	// Deletes says that rows may delete columns: no cell that follows may have a timestamp from before that.
	Deletes bool
	// SuspectUntil is until when what an earlier process has sent may still be applied: rows that are suspect.
	SuspectUntil time.Time
	// Backoff returns how long a row waits after its n-th failed attempt, if it failed for itself and not for its partition.
	Backoff func(attempt int) time.Duration
	// MaxWaiting bounds the rows of a lane that wait behind a row of their key; 0 takes 10,000. Beyond it the lane stands
	// still.
	MaxWaiting int
	// Lanes is the number of lanes; Route says which one an ordering key belongs to. Nil is lane 0.
	Lanes int
	Route func(key []byte) int
	// Woken is called when rows of a lane that had to wait may be sent. May be nil.
	Woken func(lane int)
	// Final is called once for every row, but those that OnWritten is told of.
	Final func(r table.Ref, end End, o table.Outcome)
}

// Cutter makes batches of the lanes' rows. Order belongs to the key, not to the lane: the cutter knows every key that is
// in a request, waits to be tried again or may still be changed by an attempt of unknown outcome; a row of such a key
// waits, all others pass it. So several batches of a lane may be in flight, and the lanes may be cut again at any time. It
// is not safe for concurrent use.
//
// A key is in one of four places: in a flight, in retry (until its time comes), ready (may go into its lane's next batch),
// or settling (its row is final, but an earlier attempt may still land). A key without any of them is not known. When rows
// are unordered, keys are not looked up: each row is a key of its own.
type Cutter struct {
	o         Options
	onWritten func(rows []table.Ref) // nil is Final for each
	keys      keyTable               // by hash: a collision makes a row wait for nothing, no more
	lanes     []laneKeys
	retry     timeline
	settling  timeline
	flying    map[*Flight]struct{}
	flights   int // rows in them
	cuts      int // how often lanes were cut again
	ready     int
	maxHeld   int64     // bytes in a lane
	unsafe    time.Time // the latest of all keys
	spare     []*key
	read      uint64           // of no meaning, but it keeps keyTable.near from being left out
	passed    map[uint64]int64 // by hash of the key, the timestamp that rows of an earlier process went up to; of Deletes
}

// laneKeys are the keys of a lane.
type laneKeys struct {
	ready    []*key
	promoted int   // of those, rows that waited behind one of their key
	waiting  int   // rows that wait behind a row of their key
	held     int64 // bytes of those and of the rows that others supersede
	retrying int   // rows that wait to be tried again
	settling int   // of those, rows in doubt, which requests were full of: they hold no fresh rows back

	written   int64 // rows, since the lanes were cut
	impatient bool  // with rows that fail alone
}

// New makes a cutter.
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

// Ready returns how many rows that waited can go into the lane's next batch.
func (c *Cutter) Ready(lane int) int { return len(c.lanes[lane].ready) }

// Promoted returns how many of them waited behind a row of their key that is final now.
func (c *Cutter) Promoted(lane int) int { return c.lanes[lane].promoted }

// Held returns the lane's rows that have left it, are in no flight and are not final.
func (c *Cutter) Held(lane int) int {
	l := &c.lanes[lane]
	return len(l.ready) + l.retrying + l.waiting
}

// Waiting returns how many of them wait behind a row of their key.
func (c *Cutter) Waiting(lane int) int { return c.lanes[lane].waiting }

// OnWritten has f called with rows that were written at the first attempt and of which there is nothing more to say, in place of Final
// for each.
func (c *Cutter) OnWritten(f func(rows []table.Ref)) { c.onWritten = f }

// LimitWaiting bounds the memory of a lane's rows that wait behind one of their key.
func (c *Cutter) LimitWaiting(bytes int64) { c.maxHeld = max(bytes, 1) }

// Stalled reports whether the lane can take no fresh rows: too many wait behind rows of their key or to be tried again.
func (c *Cutter) Stalled(lane int) bool {
	l := &c.lanes[lane]
	return l.waiting >= c.o.MaxWaiting || l.held >= c.maxHeld || l.retrying-l.settling >= maxRetrying
}

// maxRetrying bounds the rows of a lane that wait to be tried again: when the service refuses more, fresh ones wait too.
const maxRetrying = 8 * table.MaxBatchRows

// maxLookahead bounds the rows that one cut looks at beyond those it takes.
const maxLookahead = 4096

// Cut fills an empty flight with rows of the lane, of maxUnits capacity units together (one row may be more), and reports
// whether it holds any row. Rows tried before come first.
func (c *Cutter) Cut(now time.Time, lane int, q Queue, f *Flight, maxUnits float64) bool {
	l := &c.lanes[lane]
	f.Lane, f.cuts = lane, c.cuts
	taken := 0
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
			l.ready[0] = nil
			l.ready = l.ready[1:]
			c.ready--
			k.cut = nil
			c.flights++
			c.flying[f] = struct{}{}
			return true
		}
	}
	clear(l.ready[:taken])
	l.ready = l.ready[taken:]
	c.ready -= taken
	for passed := 0; len(l.ready) == 0 && !c.Stalled(lane) && passed < maxLookahead; {
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
		if c.o.SettleFirst && now.Before(k.unsafe) {
			// An earlier process may have sent it: it is looked for when that can no longer be applied.
			q.Advance()
			if !c.o.Unordered {
				c.keys.put(k)
			}
			k.due = k.unsafe
			l.retrying++
			heap.Push(&c.retry, k)
			passed++
			continue
		}
		if !f.add(k, maxUnits) {
			c.drop(k)
			break
		}
		c.stamp(k, f)
		q.Advance()
		if !c.o.Unordered {
			c.keys.put(k)
		}
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

// queueAfter makes a row wait for the one of its key. If that one is only now being put into a batch, it gives way.
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

// Retrying returns the rows that wait to be sent again.
func (c *Cutter) Retrying() int { return len(c.retry) + c.ready }

// InFlight returns the rows in requests.
func (c *Cutter) InFlight() int { return c.flights }

// Remaining counts the rows that have left their lane and are not final.
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

// Recut moves the keys to new lanes, as route says from now on.
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
		k.failing.known = false // the new lanes count again
		r, ok := k.any()
		if !ok {
			k.lane = -1 // settling: the next row of the key says it
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
