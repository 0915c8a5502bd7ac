package pipeline

import (
	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
)

// A load looks for a hot partition-key value only after many rows, as a file sorted by it must not raise an alarm.
const (
	hotKeyShare   = 0.9
	firstLookRows = 16 << 10 // rows before the first look; each later one is after four times as many
	leastLookRows = 1000     // minimum rows for a look when the input has ended

	largeRows = 1 << 20 // rows between looks at the bytes of the largest value
)

// hotKeyWatch watches partition keys as rows are read. Written rows would show a hot key late: its partition is slow.
type hotKeyWatch struct {
	keys    *partitioner.HotKeys
	several bool                             // keys begin with the name of their table
	column  string                           // the partition-key column
	tell    func(ledger.ReportHotKey, int64) // may be nil
	rows    int64
	next    int64 // rows at the next look
	told    bool  // the user was told of a value with nearly all rows
	large   bool  // the user was told of a value with too many bytes
	looked  int64 // rows at the last look at bytes
}

func newHotKeyWatch(t table.Type, several bool, column string, tell func(ledger.ReportHotKey, int64)) *hotKeyWatch {
	return &hotKeyWatch{keys: partitioner.NewHotKeys(t), several: several, column: column, tell: tell, next: firstLookRows}
}

func (c *hotKeyWatch) count(b *table.Block) {
	c.rows += int64(len(b.Rows))
	if c.told && c.large {
		return
	}
	c.keys.AddAll(len(b.Rows), func(i int) (key []byte, size int) {
		row := table.Ref{Block: b, Index: int32(i)}
		if key = row.Key(); c.several {
			_, key = table.CutTable(key)
		}
		return key, row.Row().Size()
	})
}

// warn tells the user of a partition-key value with nearly all rows, and of one with too many bytes, once each.
func (c *hotKeyWatch) warn(ended bool) {
	c.warnOfBytes(ended)
	if c.told || c.rows < c.next && !(ended && c.rows >= leastLookRows) {
		return
	}
	for c.next <= c.rows {
		c.next *= 4
	}
	if hot := c.keys.Report(1); len(hot) > 0 && hot[0].Share >= hotKeyShare {
		c.told = true
		c.say(hot[0])
	}
}

func (c *hotKeyWatch) warnOfBytes(ended bool) {
	if c.large || c.rows < c.looked+largeRows && !ended {
		return
	}
	c.looked = c.rows
	if h, ok := c.keys.Largest(); ok && h.Bytes > table.LargestValue {
		c.large = true
		c.say(h)
	}
}

func (c *hotKeyWatch) say(h partitioner.HotKey) {
	if c.tell != nil {
		c.tell(reportHotKey(c.column, h), c.rows)
	}
}

func reportHotKey(column string, h partitioner.HotKey) ledger.ReportHotKey {
	r := ledger.ReportHotKey{Column: column, Value: plan.ShowKey(h.Value), Share: h.Share}
	if h.Bytes > table.LargestValue {
		r.Bytes = h.Bytes
	}
	return r
}
