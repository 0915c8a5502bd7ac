package partitioner

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"
	"time"

	"example.com/tsimport/internal/table"
)

// Done takes back a flight whose outcomes are set.
func (c *Cutter) Done(now time.Time, f *Flight) {
	delete(c.flying, f)
	if f.AllWritten {
		if c.o.Stamps == nil && f.cuts == c.cuts && c.onWritten != nil {
			c.allWritten(now, f)
			return
		}
		for i := range f.Outcomes {
			f.Outcomes[i].Fate = table.Written
		}
		f.AllWritten = false // outcomes now carry information
	}
	written := 0
	for i, k := range f.keys {
		if f.Outcomes[i].Fate == table.Written {
			written++
			c.lanes[k.lane].written++
		}
	}
	for i, k := range f.keys {
		c.flights--
		o := f.Outcomes[i]
		if (o.Fate == table.Unknown || o.Fate == table.Again) && c.fails(k, f, &o, written > 0) {
			if o.Fate == table.Unknown {
				c.unknown(now, k, o)
			}
			c.refused(now, k, k.giveUp(o))
			continue
		}
		switch o.Fate {
		case table.Written:
			c.written(now, k, o)
		case table.Refused:
			if o.Stale && k.stamping.restamps < maxRestamps {
				k.stamping.restamps++
				k.stamping.stamp = 0
				c.again(now, k, o)
				continue
			}
			c.refused(now, k, o)
		case table.Unknown:
			c.unknown(now, k, o)
			c.again(now, k, o)
		case table.Again:
			k.stamping.stamp = k.stamping.first // it was not applied, so the retry may have a newer timestamp
			c.again(now, k, o)
		}
	}
}

// allWritten is Done for a flight whose rows were all written, if the lanes have not been recut since.
func (c *Cutter) allWritten(now time.Time, f *Flight) {
	c.lanes[f.Lane].written += int64(len(f.keys))
	c.flights -= len(f.keys)
	c.read += c.keys.near(f.keys)
	told := 0
	for i, k := range f.keys {
		if k.touched { // an untouched key has only this row, written at the first attempt
			c.onWritten(f.Rows[told:i])
			told = i + 1
			c.written(now, k, table.Outcome{Fate: table.Written})
			continue
		}
		if !c.o.Unordered {
			c.keys.remove(k.hash)
		}
		k.row = table.Ref{}
		c.keep(k)
	}
	c.onWritten(f.Rows[told:])
}

// unknown notes that the key's row may have been applied or may be applied later.
func (c *Cutter) unknown(now time.Time, k *key, o table.Outcome) {
	k.repeated, k.touched = true, true
	k.stamping.first = cmp.Or(k.stamping.first, k.stamping.stamp)
	settle := c.o.Settle
	if o.TimedOut {
		settle = cmp.Or(c.o.SettleTimedOut, settle)
	}
	if until := now.Add(settle); until.After(k.unsafe) { // an earlier attempt may be applied later than this one
		k.unsafe = until
	}
	if k.unsafe.After(c.unsafe) {
		c.unsafe = k.unsafe
	}
}

func (c *Cutter) written(now time.Time, k *key, o table.Outcome) {
	for _, r := range k.replaced {
		c.lanes[k.lane].held -= r.Memory()
		c.o.Final(r, Superseded, table.Outcome{})
	}
	o.Repeated = k.repeated && (!o.Found || c.sentAgain(k)) && (!o.Unsent || k.attempts > 0)
	o.Restamped = k.stamping.first != 0 && k.stamping.first != k.stamping.stamp
	c.stamped(k)
	c.o.Final(k.row, Written, o)
	k.replaced, k.row = empty(k.replaced), table.Ref{}
	c.next(now, k)
}

// sentAgain reports whether the key's row may have been sent again after an attempt of unknown outcome.
func (c *Cutter) sentAgain(k *key) bool {
	if c.o.Repeated || k.row.Row().Suspect() {
		return k.attempts > 0 // the previous process may have made the first attempt
	}
	return k.attempts > 1
}

// refused rejects the key's row; the row that it would have superseded takes its place.
func (c *Cutter) refused(now time.Time, k *key, o table.Outcome) {
	c.stamped(k)
	c.o.Final(k.row, Rejected, o)
	k.row = table.Ref{}
	if n := len(k.replaced); n > 0 {
		c.turn(k, k.replaced[n-1])
		c.lanes[k.lane].held -= k.row.Memory()
		k.replaced = k.replaced[:n-1]
	}
	c.next(now, k)
}

// again keeps a row for a retry: in its lane's next batch if its partition lacked capacity, otherwise after a wait.
func (c *Cutter) again(now time.Time, k *key, o table.Outcome) {
	k.attempts, k.touched = k.attempts+1, true
	settles := o.Fate == table.Unknown && c.o.SettleFirst
	if (o.Throttled || o.Unavailable && k.failing.while < aloneAfter) && !settles {
		c.makeReady(k)
		return
	}
	k.due = now.Add(c.o.Backoff(k.attempts))
	if settles && k.due.Before(k.unsafe) {
		k.due, k.settles = k.unsafe, true
		c.lanes[k.lane].settling++
	}
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

// next handles a key whose row is final. The key's next row waits while an earlier attempt, if applied, could undo it.
func (c *Cutter) next(now time.Time, k *key) {
	if now.Before(k.unsafe) && !c.o.Unordered {
		k.due = k.unsafe
		heap.Push(&c.settling, k)
		return
	}
	if c.pauses(now, k) {
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
		c.keys.remove(k.hash)
	}
	c.drop(k)
}

// promote makes a waiting row the one to send: the last one if it may supersede the others, otherwise the first.
func (c *Cutter) promote(k *key) {
	n := len(k.waiting)
	if n == 0 {
		return
	}
	last := k.waiting[n-1]
	collapse := c.o.Supersede
	for _, r := range k.waiting[:n-1] {
		// Rows of another key with the same hash wait here too, and must not be superseded.
		collapse = collapse && bytes.Equal(r.Key(), last.Key())
	}
	if collapse {
		k.replaced = append(k.replaced[:0], k.waiting[:n-1]...)
		c.turn(k, last)
		k.waiting = empty(k.waiting)
		c.lanes[k.lane].waiting -= n
		c.lanes[k.lane].held -= last.Memory()
		c.reroute(k)
		return
	}
	c.turn(k, k.waiting[0])
	c.lanes[k.lane].held -= k.row.Memory()
	k.waiting[0] = table.Ref{}
	k.waiting = k.waiting[1:]
	c.lanes[k.lane].waiting--
	c.reroute(k)
}

// reroute moves a key to the lane of its next row, which may have another key with the same hash, in another table.
func (c *Cutter) reroute(k *key) {
	lane := c.o.Route(k.row.Key())
	if lane == k.lane {
		return
	}
	held := int64(0)
	for _, r := range slices.Concat(k.waiting, k.replaced) {
		held += r.Memory()
	}
	c.lanes[k.lane].waiting -= len(k.waiting)
	c.lanes[k.lane].held -= held
	k.lane = lane
	c.lanes[k.lane].waiting += len(k.waiting)
	c.lanes[k.lane].held += held
}

// Out calls each with every row that has left its lane and is not final.
func (c *Cutter) Out(each func(table.Ref)) {
	c.out(func(k *key) {
		if k.row.Block != nil {
			each(k.row)
		}
		for _, r := range slices.Concat(k.replaced, k.waiting) {
			each(r)
		}
	})
}

// out calls one with every key that has a row in Out.
func (c *Cutter) out(one func(*key)) {
	if !c.o.Unordered {
		c.keys.each(one)
		return
	}
	for f := range c.flying {
		for _, k := range f.keys {
			one(k)
		}
	}
	for _, k := range c.retry {
		one(k)
	}
	for i := range c.lanes {
		for _, k := range c.lanes[i].ready {
			one(k)
		}
	}
}

// Settling returns the time until which an attempt may still be applied for a key without a row in Out, or false.
func (c *Cutter) Settling(now time.Time) (until time.Time, any bool) {
	for _, k := range c.settling {
		if k.row.Block == nil && k.unsafe.After(until) {
			until = k.unsafe
		}
	}
	return until, until.After(now)
}
