package partitioner

import (
	"time"

	"example.com/tsimport/internal/table"
)

// Stamps makes timestamps, in milliseconds, for rows whose cells have none.
type Stamps interface {
	// Next returns a timestamp above after and near the service's time.
	Next(after int64) int64
	// Wait returns the time until Next can return a timestamp above after.
	Wait(after int64) time.Duration
	// Takes reports whether the table still accepts a timestamp.
	Takes(ms int64) bool
	// Kept returns the timestamp with which an earlier process sent a suspect row, or 0 if none is known.
	Kept(r table.Ref) int64
	// Passed notes that a suspect row with possible deletions is final. They may hide cells of its key up to timestamp ms.
	Passed(r table.Ref, ms int64)
}

// maxRestamps limits how often a row gets a new timestamp because its last one may have been refused.
const maxRestamps = 3

// stamp sets the timestamp of the last row in the flight. A row that may have been applied keeps its timestamp, so it
// leaves one version. Every timestamp is above that of the key's previous row, as it is undefined which of two writes
// with the same timestamp wins, and whether a deletion hides a cell stamped earlier but written later.
func (c *Cutter) stamp(k *key, f *Flight) {
	if c.o.Stamps == nil {
		return
	}
	if k.stamping.stamp == 0 || k.stamping.stamp <= k.stamping.after || !c.o.Stamps.Takes(k.stamping.stamp) {
		k.stamping.stamp = c.o.Stamps.Next(k.stamping.after)
	}
	f.Outcomes[len(f.Outcomes)-1].Stamp = k.stamping.stamp
}

// stamped notes that later rows of the key must have timestamps above the final row's.
func (c *Cutter) stamped(k *key) {
	if c.o.Stamps == nil || k.stamping.stamp == 0 {
		return
	}
	k.stamping.after = k.stamping.stamp
	if !c.o.Deletes {
		return
	}
	k.stamping.after = c.o.Stamps.Next(k.stamping.after - 1) // the deletion has the service's time, no later than this
	if k.row.Row().Suspect() {
		if c.passed == nil {
			c.passed = map[uint64]int64{}
		}
		c.passed[k.hash] = k.stamping.after
		c.o.Stamps.Passed(k.row, k.stamping.after)
	}
}

// pauses reports whether the key's next row must wait for a new timestamp, and if so sets when the key is due.
func (c *Cutter) pauses(now time.Time, k *key) bool {
	if c.o.Stamps == nil || c.o.Unordered || k.stamping.after == 0 {
		return false
	}
	wait := c.o.Stamps.Wait(k.stamping.after)
	if wait > 0 {
		k.due = now.Add(wait)
	}
	return wait > 0
}

// Stamped calls each with every row in Out that may have been applied, and its timestamp in milliseconds.
func (c *Cutter) Stamped(each func(r table.Ref, ms int64)) {
	if c.o.Stamps == nil {
		return
	}
	c.out(func(k *key) {
		if k.row.Block != nil && k.stamping.stamp != 0 {
			each(k.row, k.stamping.stamp)
		}
		for _, r := range k.waiting {
			if !r.Row().Suspect() {
				continue
			}
			if ms := c.o.Stamps.Kept(r); ms != 0 {
				each(r, ms)
			}
		}
	})
}
