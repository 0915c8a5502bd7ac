package partitioner

import (
	"bytes"
	"container/heap"
	"math"
	"slices"
	"time"

	"tsimport/table"
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
	Rejected       // refused by the service for good
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
	// Final is called once for every row.
	Final func(r table.Ref, end End, o table.Outcome)
}

// Cutter makes batches of the lanes' rows. Order belongs to the key, not to the lane: the cutter knows every key that is
// in a request, waits to be tried again or may still be changed by an attempt of unknown outcome; a row of such a key
// waits, all others pass it. So several batches of a lane may be in flight, and the lanes may be cut anew at any time. It
// is not safe for concurrent use.
//
// A key is in one of four places: in a flight, in retry (until its time comes), ready (may go into its lane's next batch),
// or settling (its row is final, but an earlier attempt may still land). A key without any of them is not known. When rows
// are unordered, keys are not looked up: each row is a key of its own.
type Cutter struct {
	o        Options
	keys     map[uint64]*key // by hash: a collision makes a row wait for nothing, no more
	lanes    []laneKeys
	retry    timeline
	settling timeline
	flights  int // rows in flights
	ready    int
	maxHeld  int64     // bytes in a lane
	unsafe   time.Time // the latest of all keys
	spare    []*key
}

// laneKeys are the keys of a lane.
type laneKeys struct {
	ready    []*key
	promoted int   // of those, rows that waited behind one of their key
	waiting  int   // rows that wait behind a row of their key
	held     int64 // bytes of those and of the rows that others supersede
	retrying int   // rows that wait to be tried again
}

// key is what is known of one ordering key.
type key struct {
	hash     uint64
	lane     int
	row      table.Ref   // the row whose turn it is; Block nil while settling with no row to send
	replaced []table.Ref // earlier rows that row supersedes if it is written, oldest first
	waiting  []table.Ref // later rows
	attempts int
	repeated bool      // an attempt to write row had an unknown outcome
	unsafe   time.Time // until then an attempt for this key may still be applied
	due      time.Time // when the timeline it is in lets it go
	cut      *Flight   // the flight that is being filled with it, and where in it
	place    int
}

// New makes a cutter.
func New(o Options) *Cutter {
	if o.MaxWaiting == 0 {
		o.MaxWaiting = 10000
	}
	if o.Route == nil {
		o.Route = func([]byte) int { return 0 }
	}
	if o.Woken == nil {
		o.Woken = func(int) {}
	}
	return &Cutter{o: o, keys: make(map[uint64]*key), lanes: make([]laneKeys, max(1, o.Lanes)), maxHeld: math.MaxInt64}
}

// Flight is a batch on its way. Batch.Rows, Repeated and Outcomes run in parallel.
type Flight struct {
	table.Batch
	// Lane is the lane whose rows these were when the batch was cut.
	Lane int
	// Units are the write capacity units of the rows.
	Units int
	// Repeated marks rows that an earlier attempt may have applied.
	Repeated []bool
	// Retried is how many of the rows are sent again.
	Retried int
	// Outcomes is for the one who sends the batch to fill in.
	Outcomes []table.Outcome
	keys     []*key
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

// LimitWaiting bounds the memory of a lane's rows that wait behind one of their key.
func (c *Cutter) LimitWaiting(bytes int64) { c.maxHeld = max(bytes, 1) }

// Stalled reports whether the lane can take no fresh rows: too many wait behind rows of their key or to be tried again.
func (c *Cutter) Stalled(lane int) bool {
	l := &c.lanes[lane]
	return l.waiting >= c.o.MaxWaiting || l.held >= c.maxHeld || l.retrying >= maxRetrying
}

// maxRetrying bounds the rows of a lane that wait to be tried again: when the service refuses more, fresh ones wait too.
const maxRetrying = 8 * table.MaxBatchRows

// maxLookahead bounds the rows that one cut looks at beyond those it takes.
const maxLookahead = 4096

// Cut fills an empty flight with rows of the lane, of maxUnits capacity units together (one row may be more), and reports
// whether it holds any row. Rows tried before come first.
func (c *Cutter) Cut(now time.Time, lane int, q Queue, f *Flight, maxUnits float64) bool {
	l := &c.lanes[lane]
	f.Lane = lane
	taken := 0
	for _, k := range l.ready {
		if !f.add(k, maxUnits) {
			break
		}
		if k.attempts == 0 {
			l.promoted--
		}
		taken++
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
		if k := c.keys[hash]; k != nil {
			c.behind(lane, k, r, f)
			q.Advance()
			passed++
			continue
		}
		k := c.newKey(hash, lane, r)
		if !f.add(k, maxUnits) {
			c.drop(k)
			break
		}
		q.Advance()
		if !c.o.Unordered {
			c.keys[hash] = k
		}
	}
	for _, k := range f.keys {
		k.cut = nil
	}
	c.flights += len(f.Rows)
	return len(f.Rows) > 0
}

// add puts the key's row into the flight.
func (f *Flight) add(k *key, maxUnits float64) bool {
	units := k.row.Row().Units()
	if len(f.Rows) > 0 && float64(f.Units+units) > maxUnits || !f.Add(k.row) {
		return false
	}
	f.Units += units
	k.cut, k.place = f, len(f.keys)
	f.keys = append(f.keys, k)
	f.Repeated = append(f.Repeated, k.repeated)
	if k.attempts > 0 {
		f.Retried++
	}
	f.Outcomes = append(f.Outcomes, table.Outcome{Fate: table.Unknown})
	return true
}

// behind puts a row behind the one of its key. If that one is only now being put into a batch, it gives way.
func (c *Cutter) behind(lane int, k *key, r table.Ref, f *Flight) {
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

// Reset empties the flight for the next cut.
func (f *Flight) Reset() {
	f.Batch.Reset()
	clear(f.keys)
	clear(f.Outcomes)
	f.keys, f.Repeated, f.Outcomes, f.Retried, f.Units = f.keys[:0], f.Repeated[:0], f.Outcomes[:0], 0, 0
}

// Done takes a flight that has come back with its outcomes.
func (c *Cutter) Done(now time.Time, f *Flight) {
	for i, k := range f.keys {
		c.flights--
		o := f.Outcomes[i]
		switch o.Fate {
		case table.Written:
			c.written(now, k, o)
		case table.Refused:
			c.refused(now, k, o)
		case table.Unknown:
			k.repeated = true
			k.unsafe = now.Add(c.o.Settle)
			if k.unsafe.After(c.unsafe) {
				c.unsafe = k.unsafe
			}
			c.again(now, k, o)
		case table.Again:
			c.again(now, k, o)
		}
	}
}

func (c *Cutter) written(now time.Time, k *key, o table.Outcome) {
	for _, r := range k.replaced {
		c.lanes[k.lane].held -= r.Memory()
		c.o.Final(r, Superseded, table.Outcome{})
	}
	c.o.Final(k.row, Written, o)
	k.replaced, k.row = empty(k.replaced), table.Ref{}
	c.next(now, k)
}

// refused rejects the key's row; the one it would have superseded takes its place.
func (c *Cutter) refused(now time.Time, k *key, o table.Outcome) {
	c.o.Final(k.row, Rejected, o)
	k.row = table.Ref{}
	if n := len(k.replaced); n > 0 {
		c.turn(k, k.replaced[n-1])
		c.lanes[k.lane].held -= k.row.Memory()
		k.replaced = k.replaced[:n-1]
	}
	c.next(now, k)
}

// again keeps a row to be sent again: at the front of its lane if its partition had no room for it, else when its time
// comes.
func (c *Cutter) again(now time.Time, k *key, o table.Outcome) {
	k.attempts++
	if c.o.Unordered {
		k.lane = c.o.Route(k.row.Key()) // lanes may have been cut anew while it was in flight
	}
	if o.Throttled || o.Unavailable {
		c.makeReady(k)
		return
	}
	k.due = now.Add(c.o.Backoff(k.attempts))
	c.lanes[k.lane].retrying++
	heap.Push(&c.retry, k)
}

func (c *Cutter) makeReady(k *key) {
	l := &c.lanes[k.lane]
	l.ready = append(l.ready, k)
	if k.attempts == 0 {
		l.promoted++
	}
	c.ready++
	c.o.Woken(k.lane)
}

// next decides where a key goes whose row has become final: a later row must not be sent while an attempt for the key
// may still be applied, for that attempt would undo it.
func (c *Cutter) next(now time.Time, k *key) {
	if now.Before(k.unsafe) && !c.o.Unordered {
		k.due = k.unsafe
		heap.Push(&c.settling, k)
		return
	}
	if k.row.Block == nil {
		c.promote(k)
	}
	if k.row.Block != nil {
		c.makeReady(k)
		return
	}
	if !c.o.Unordered {
		delete(c.keys, k.hash)
	}
	c.drop(k)
}

// drop forgets a key.
func (c *Cutter) drop(k *key) {
	*k = key{replaced: empty(k.replaced), waiting: empty(k.waiting)}
	if len(c.spare) < 4096 {
		c.spare = append(c.spare, k)
	}
}

// promote gives the key's turn to a waiting row: the last one if it may supersede the others, else the first.
func (c *Cutter) promote(k *key) {
	n := len(k.waiting)
	if n == 0 {
		return
	}
	last := k.waiting[n-1]
	collapse := c.o.Supersede
	for _, r := range k.waiting[:n-1] {
		// Rows of another key with the same hash wait here too; they must not be taken for earlier versions.
		collapse = collapse && bytes.Equal(r.Key(), last.Key())
	}
	if collapse {
		k.replaced = append(k.replaced[:0], k.waiting[:n-1]...)
		c.turn(k, last)
		k.waiting = empty(k.waiting)
		c.lanes[k.lane].waiting -= n
		c.lanes[k.lane].held -= last.Memory()
		return
	}
	c.turn(k, k.waiting[0])
	c.lanes[k.lane].held -= k.row.Memory()
	k.waiting[0] = table.Ref{}
	k.waiting = k.waiting[1:]
	c.lanes[k.lane].waiting--
}

// empty keeps the memory of refs but none of the blocks they name.
func empty(refs []table.Ref) []table.Ref {
	clear(refs)
	return refs[:0]
}

func (c *Cutter) turn(k *key, r table.Ref) {
	k.row, k.attempts, k.repeated = r, 0, false
}

// Wake lets go of keys whose time has come.
func (c *Cutter) Wake(now time.Time) {
	for len(c.settling) > 0 && !c.settling[0].due.After(now) {
		c.next(now, heap.Pop(&c.settling).(*key))
	}
	for len(c.retry) > 0 && !c.retry[0].due.After(now) {
		k := heap.Pop(&c.retry).(*key)
		c.lanes[k.lane].retrying--
		c.makeReady(k)
	}
}

// Wait returns how long from now until a key's time comes, and false if none waits for a time.
func (c *Cutter) Wait(now time.Time) (time.Duration, bool) {
	var due time.Time
	if len(c.retry) > 0 {
		due = c.retry[0].due
	}
	if len(c.settling) > 0 && (due.IsZero() || c.settling[0].due.Before(due)) {
		due = c.settling[0].due
	}
	return max(0, due.Sub(now)), !due.IsZero()
}

// Retrying returns the rows that wait to be sent again.
func (c *Cutter) Retrying() int { return len(c.retry) + c.ready }

// InFlight returns the rows in requests.
func (c *Cutter) InFlight() int { return c.flights }

// Unsettled reports whether an attempt of unknown outcome may still be applied after now.
func (c *Cutter) Unsettled(now time.Time) (until time.Time, any bool) {
	return c.unsafe, c.unsafe.After(now)
}

// Remaining counts the rows that have left their lane and are not final.
func (c *Cutter) Remaining() int {
	n := c.flights + len(c.retry) + c.ready
	for _, k := range c.keys {
		n += len(k.replaced) + len(k.waiting)
	}
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
	old := c.lanes
	c.lanes = make([]laneKeys, lanes)
	for i := range old {
		for _, k := range old[i].ready {
			k.lane = route(k.row.Key())
			c.lanes[k.lane].ready = append(c.lanes[k.lane].ready, k)
			if k.attempts == 0 {
				c.lanes[k.lane].promoted++
			}
		}
	}
	for _, k := range c.keys {
		r, ok := k.any()
		if !ok {
			k.lane = -1 // settling: the next row of the key says it
			continue
		}
		k.lane = route(r.Key())
		c.lanes[k.lane].waiting += len(k.waiting)
		for _, r := range slices.Concat(k.waiting, k.replaced) {
			c.lanes[k.lane].held += r.Memory()
		}
	}
	for _, k := range c.retry {
		k.lane = route(k.row.Key())
		c.lanes[k.lane].retrying++
	}
}

// any returns one of the key's rows. Rows of another key with the same hash may wait behind it and belong to another lane;
// they are sent with this lane's, which the service takes as well.
func (k *key) any() (table.Ref, bool) {
	switch {
	case k.row.Block != nil:
		return k.row, true
	case len(k.waiting) > 0:
		return k.waiting[0], true
	}
	return table.Ref{}, false
}

func (c *Cutter) newKey(hash uint64, lane int, r table.Ref) *key {
	var k *key
	if n := len(c.spare); n > 0 {
		k, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		k = new(key)
	}
	k.hash, k.lane, k.row = hash, lane, r
	return k
}

// timeline orders keys by due.
type timeline []*key

func (t timeline) Len() int           { return len(t) }
func (t timeline) Less(i, j int) bool { return t[i].due.Before(t[j].due) }
func (t timeline) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timeline) Push(x any)        { *t = append(*t, x.(*key)) }
func (t *timeline) Pop() any {
	old := *t
	k := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	return k
}
