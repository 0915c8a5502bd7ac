package partitioner

import (
	"bytes"
	"container/heap"
	"time"

	"tsimport/table"
)

// Lane is where fresh rows come from, in source order.
type Lane interface {
	Front() (table.Ref, bool)
	Advance()
	Rows() int
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
	// Supersede lets a row give way to a later one of its key while both wait. Only a Put without a condition may:
	// it replaces the whole row, so the earlier one leaves no trace.
	Supersede bool
	// Settle is how long after an Unknown outcome the attempt may still be applied.
	Settle time.Duration
	// Backoff returns how long a row waits after its n-th failed attempt.
	Backoff func(attempt int) time.Duration
	// MaxWaiting bounds the rows that wait behind a row of their key; 0 takes 10,000. Beyond it the lane stands still.
	MaxWaiting int
	// Final is called once for every row.
	Final func(r table.Ref, end End, o table.Outcome)
}

// Cutter makes batches of a lane's rows. Order belongs to the key: the cutter knows every key that is in a request,
// waits to be tried again or may still be changed by an attempt of unknown outcome; a row of such a key waits, all
// others pass it. It is not safe for concurrent use.
//
// A key is in one of four places: in a flight, in retry (until its time comes), ready (may go into the next batch),
// or settling (its row is final, but an earlier attempt may still land). A key without any of them is not known.
type Cutter struct {
	lane     Lane
	o        Options
	keys     map[uint64]*key // by hash: a collision makes a row wait for nothing, no more
	ready    []*key
	retry    timeline
	settling timeline
	flights  int // rows in flights
	waiting  int
	spare    []*key
}

// key is what is known of one ordering key.
type key struct {
	hash     uint64
	row      table.Ref   // the row whose turn it is; Block nil while settling with no row to send
	replaced []table.Ref // earlier rows that row supersedes if it is written, oldest first
	waiting  []table.Ref // later rows
	attempts int
	repeated bool      // an attempt to write row had an unknown outcome
	unsafe   time.Time // until then an attempt for this key may still be applied
	due      time.Time // when the timeline it is in lets it go
}

// New makes a cutter for one lane.
func New(lane Lane, o Options) *Cutter {
	if o.MaxWaiting == 0 {
		o.MaxWaiting = 10000
	}
	return &Cutter{lane: lane, o: o, keys: make(map[uint64]*key)}
}

// Flight is a batch on its way. Batch.Rows, Repeated and Outcomes run in parallel.
type Flight struct {
	table.Batch
	// Repeated marks rows that an earlier attempt may have applied.
	Repeated []bool
	// Retried is how many of the rows are sent again.
	Retried int
	// Outcomes is for the one who sends the batch to fill in.
	Outcomes []table.Outcome
	keys     []*key
}

// Available returns how many rows could go into a batch at now.
func (c *Cutter) Available(now time.Time) int {
	c.wake(now)
	fresh := c.lane.Rows()
	if c.waiting >= c.o.MaxWaiting {
		fresh = 0
	}
	return len(c.ready) + fresh
}

// Cut fills an empty flight and reports whether it holds any row. Rows tried before come first.
func (c *Cutter) Cut(now time.Time, f *Flight) bool {
	c.wake(now)
	taken := 0
	for _, k := range c.ready {
		if !f.Add(k.row) {
			break
		}
		f.take(k)
		taken++
	}
	c.ready = c.ready[taken:]
	for len(c.ready) == 0 && c.waiting < c.o.MaxWaiting {
		r, ok := c.lane.Front()
		if !ok {
			break
		}
		hash := r.Row().Hash
		if k := c.keys[hash]; k != nil {
			k.waiting = append(k.waiting, r)
			c.waiting++
			c.lane.Advance()
			continue
		}
		if !f.Add(r) {
			break
		}
		c.lane.Advance()
		k := c.newKey(hash, r)
		c.keys[hash] = k
		f.take(k)
	}
	c.flights += len(f.Rows)
	return len(f.Rows) > 0
}

func (f *Flight) take(k *key) {
	f.keys = append(f.keys, k)
	f.Repeated = append(f.Repeated, k.repeated)
	if k.attempts > 0 {
		f.Retried++
	}
	f.Outcomes = append(f.Outcomes, table.Outcome{Fate: table.Unknown})
}

// Reset empties the flight for the next cut.
func (f *Flight) Reset() {
	f.Batch.Reset()
	clear(f.keys)
	clear(f.Outcomes)
	f.keys, f.Repeated, f.Outcomes, f.Retried = f.keys[:0], f.Repeated[:0], f.Outcomes[:0], 0
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
			c.again(now, k)
		case table.Again:
			c.again(now, k)
		}
	}
}

func (c *Cutter) written(now time.Time, k *key, o table.Outcome) {
	for _, r := range k.replaced {
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
		k.replaced = k.replaced[:n-1]
	}
	c.next(now, k)
}

func (c *Cutter) again(now time.Time, k *key) {
	k.attempts++
	k.due = now.Add(c.o.Backoff(k.attempts))
	heap.Push(&c.retry, k)
}

// next decides where a key goes whose row has become final: a later row must not be sent while an attempt for the key
// may still be applied, for that attempt would undo it.
func (c *Cutter) next(now time.Time, k *key) {
	if now.Before(k.unsafe) {
		k.due = k.unsafe
		heap.Push(&c.settling, k)
		return
	}
	if k.row.Block == nil {
		c.promote(k)
	}
	if k.row.Block != nil {
		c.ready = append(c.ready, k)
		return
	}
	delete(c.keys, k.hash)
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
		c.waiting -= n
		return
	}
	c.turn(k, k.waiting[0])
	k.waiting[0] = table.Ref{}
	k.waiting = k.waiting[1:]
	c.waiting--
}

// empty keeps the memory of refs but none of the blocks they name.
func empty(refs []table.Ref) []table.Ref {
	clear(refs)
	return refs[:0]
}

func (c *Cutter) turn(k *key, r table.Ref) {
	k.row, k.attempts, k.repeated = r, 0, false
}

// wake moves keys whose time has come.
func (c *Cutter) wake(now time.Time) {
	for len(c.settling) > 0 && !c.settling[0].due.After(now) {
		k := heap.Pop(&c.settling).(*key)
		c.next(now, k)
	}
	for len(c.retry) > 0 && !c.retry[0].due.After(now) {
		c.ready = append(c.ready, heap.Pop(&c.retry).(*key))
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

// Retrying returns the rows that wait to be tried again.
func (c *Cutter) Retrying() int { return len(c.retry) }

// InFlight returns the rows in requests.
func (c *Cutter) InFlight() int { return c.flights }

// Unsettled reports whether an attempt of unknown outcome may still be applied after now.
func (c *Cutter) Unsettled(now time.Time) (until time.Time, any bool) {
	for _, k := range c.keys {
		if k.unsafe.After(now) && k.unsafe.After(until) {
			until, any = k.unsafe, true
		}
	}
	return until, any
}

// Idle reports whether every row that has left the lane is final and nothing settles.
func (c *Cutter) Idle() bool { return len(c.keys) == 0 }

// Remaining counts, key by key, the rows that are not final, those in the lane included.
func (c *Cutter) Remaining() int {
	n := c.lane.Rows()
	for _, k := range c.keys {
		n += len(k.replaced) + len(k.waiting)
		if k.row.Block != nil {
			n++
		}
	}
	return n
}

func (c *Cutter) newKey(hash uint64, r table.Ref) *key {
	var k *key
	if n := len(c.spare); n > 0 {
		k, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		k = new(key)
	}
	k.hash, k.row = hash, r
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
