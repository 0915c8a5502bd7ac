package partitioner

import (
	"container/heap"
	"time"
)

// Wake releases keys that are due.
func (c *Cutter) Wake(now time.Time) {
	for len(c.settling) > 0 && !c.settling[0].due.After(now) {
		c.next(now, heap.Pop(&c.settling).(*key))
	}
	for len(c.retry) > 0 && !c.retry[0].due.After(now) {
		k := heap.Pop(&c.retry).(*key)
		c.lanes[k.lane].retrying--
		if k.settles {
			k.settles = false
			c.lanes[k.lane].settling--
		}
		c.makeReady(k)
	}
}

// Wait returns the time until the next key is due, or false if none waits.
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

// Unsettled reports whether an attempt of unknown outcome may still be applied after now.
func (c *Cutter) Unsettled(now time.Time) (until time.Time, any bool) {
	return c.unsafe, c.unsafe.After(now)
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
