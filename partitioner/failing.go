package partitioner

import (
	"cmp"
	"fmt"

	"example.com/tsimport/internal/table"
)

// A row that the service can neither accept nor refuse must not hold up the load. If it fails while other rows of its
// lane are written, it is sent alone; after enough failures it is rejected, and marked if it may have been applied.
//
// In an outage none of the lane's rows are written, so failures do not count.
const (
	// aloneAfter is the number of failures while other rows are written before a row is sent alone. A row that failed in
	// a request with written rows is sent alone after twice as many attempts.
	aloneAfter = 3
	// giveUpAfter is the number of failures alone before a row is given up: about 90 seconds with default waits.
	giveUpAfter = 30
	// giveUpLastAfter is the limit when nothing else is left to write, so that the load would otherwise fail.
	giveUpLastAfter = 5
)

// failing is a row's record of failures.
type failing struct {
	while  int  // failures while other rows of the lane were written
	own    bool // it failed in a request whose other rows were written
	alone  int  // failures when sent alone while other rows were written
	single int  // answered failures when sent alone, even if no other rows were written
	mark   int64
	known  bool // mark is valid: the lane's count of written rows at the last failure
}

// fails counts a failure of the key's row and reports whether to give it up. others means that its request wrote rows.
func (c *Cutter) fails(k *key, f *Flight, o *table.Outcome, others bool) (giveUp bool) {
	l := &c.lanes[k.lane]
	moved := others || k.failing.known && l.written > k.failing.mark
	k.failing.mark, k.failing.known = l.written, true
	if o.Throttled {
		return false // this says nothing about the row
	}
	if moved {
		k.failing.while++
	}
	k.failing.own = k.failing.own || others && o.Fate == table.Unknown
	if len(f.Rows) > 1 {
		return false
	}
	answers := o.Code != "" && !o.Unavailable // the service is up
	if answers {
		k.failing.single++
	}
	// Once nothing else is left to write, the row's earlier failures decide.
	if k.failing.while > 0 && (moved || answers && (k.failing.own || k.failing.while >= aloneAfter)) {
		k.failing.alone++
	}
	return k.failing.alone >= giveUpAfter || l.stalled && k.expendable()
}

// expendable reports whether the row has failed so often that it is given up rather than fail the load.
func (k *key) expendable() bool { return k.failing.while > 0 && k.failing.single >= giveUpLastAfter }

func (k *key) giveUp(o table.Outcome) table.Outcome {
	o.MaybeApplied = k.repeated
	o.Fate = table.Refused
	o.Code = cmp.Or(o.Code, table.CodeNoAnswer)
	o.Message = fmt.Sprintf("%s (failed %d times, at least %d of them alone, while other rows were written)", o.Message,
		k.attempts+1, max(k.failing.single, k.failing.alone))
	return o
}

// GiveUp makes the cutter less patient if only rows that fail alone are left in the lane, and reports whether it did.
func (c *Cutter) GiveUp(lane int) bool {
	l := &c.lanes[lane]
	expendable := 0
	count := func(k *key) {
		if k.lane == lane && k.row.Block != nil && k.expendable() {
			expendable++
		}
	}
	for _, k := range c.retry {
		count(k)
	}
	for _, k := range l.ready {
		count(k)
	}
	left := c.Held(lane) - l.waiting
	for f := range c.flying {
		for _, k := range f.keys {
			if count(k); k.lane == lane {
				left++
			}
		}
	}
	if l.stalled || expendable == 0 || expendable < left {
		return false
	}
	l.stalled = true
	return true
}
