package partitioner

import (
	"time"

	"example.com/tsimport/internal/table"
)

// stamping holds the timestamps of a key's rows, if they get any.
type stamping struct {
	stamp    int64 // last sent timestamp of the key's row; 0 if it has none
	first    int64 // timestamp of the first attempt that may have been applied
	after    int64 // timestamp of the previous row: the next one's is above it
	restamps int   // number of new timestamps after refusals
}

// key is the state of one ordering key. Fields used for every row come first, as the others are rarely in the cache.
type key struct {
	hash     uint64
	row      table.Ref // the row to send; Block is nil while settling without one
	cut      *Flight   // the flight being filled with the row; its index there is place
	place    int
	lane     int
	attempts int
	settles  bool        // waits in retry until its attempt can no longer be applied
	repeated bool        // an attempt to write row had an unknown outcome
	touched  bool        // the fields below, attempts or repeated may differ from their values in a new key
	waiting  []table.Ref // later rows
	unsafe   time.Time   // an attempt for this key may be applied until then
	replaced []table.Ref // earlier rows that row supersedes when written, oldest first
	due      time.Time   // when its timeline releases the key
	failing  failing
	stamping stamping
}

// newKey makes a key for a row that may be sent at once.
func (c *Cutter) newKey(now time.Time, hash uint64, lane int, r table.Ref) *key {
	var k *key
	if n := len(c.spare); n > 0 {
		k, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		k = new(key)
	}
	k.hash, k.lane = hash, lane
	if c.o.Stamps == nil && !c.o.Repeated && !r.Row().Suspect() {
		k.row = r // the fields that turn sets are zero in a new key
		return k
	}
	k.touched = true
	c.turn(k, r)
	c.suspect(now, k, r)
	k.stamping.after = c.passed[hash]
	return k
}

// suspect notes that an earlier process may have sent row r. No later row of the key is sent until that has settled.
func (c *Cutter) suspect(now time.Time, k *key, r table.Ref) {
	if !r.Row().Suspect() || !now.Before(c.o.SuspectUntil) || k.unsafe.After(c.o.SuspectUntil) {
		return
	}
	if !c.o.Unordered {
		k.touched, k.unsafe = true, c.o.SuspectUntil
	}
	if c.o.SuspectUntil.After(c.unsafe) {
		c.unsafe = c.o.SuspectUntil
	}
}

func (c *Cutter) drop(k *key) {
	*k = key{replaced: empty(k.replaced), waiting: empty(k.waiting)}
	c.keep(k)
}

func (c *Cutter) keep(k *key) {
	if len(c.spare) < maxSpare {
		c.spare = append(c.spare, k)
	}
}

const maxSpare = 4096

// any returns one of the key's rows. Rows of another key with the same hash may wait after it.
func (k *key) any() (table.Ref, bool) {
	if k.row.Block == nil && len(k.waiting) > 0 {
		return k.waiting[0], true
	}
	return k.row, k.row.Block != nil
}

// empty empties refs for reuse and releases their blocks.
func empty(refs []table.Ref) []table.Ref {
	clear(refs)
	return refs[:0]
}

func (c *Cutter) turn(k *key, r table.Ref) {
	k.row, k.attempts, k.repeated, k.stamping.stamp, k.stamping.first, k.stamping.restamps = r, 0, c.o.Repeated ||
		r.Row().Suspect(), 0, 0, 0
	k.failing = failing{}
	if c.o.Stamps != nil && r.Row().Suspect() {
		k.stamping.stamp = c.o.Stamps.Kept(r)
		k.stamping.first = k.stamping.stamp
	}
}
