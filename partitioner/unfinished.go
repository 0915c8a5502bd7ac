package partitioner

import (
	"time"

	"example.com/tsimport/internal/table"
)

// Out calls each with every row that has left its lane and is not final.
func (c *Cutter) Out(each func(table.Ref)) {
	c.out(func(k *key) {
		if k.row.Block != nil {
			each(k.row)
		}
		for _, r := range k.replaced {
			each(r)
		}
		for _, r := range k.waiting {
			each(r)
		}
	})
}

// out calls one with every key of which a row is out.
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

// Settling returns until when an attempt may be applied to a key of which no row is out, and false if there is none: what
// is out says nothing of such a key.
func (c *Cutter) Settling(now time.Time) (until time.Time, any bool) {
	for _, k := range c.settling {
		if k.row.Block == nil && k.unsafe.After(until) {
			until = k.unsafe
		}
	}
	return until, until.After(now)
}
