package pipeline

import (
	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
)

// When a load warns that its rows crowd in one partition-key value. It must not cry wolf at a file that is sorted by that
// key, so it waits for many rows; a load whose input ends before has nothing more to come.
const (
	crowdShare = 0.9
	crowdRows  = 16 << 10 // the first look; each later one after four times as many rows
	crowdLeast = 1000     // rows, when the input has ended
)

// hotKeyWatch watches the partition keys of rows as they are read: those that are written say it late, because it is the one
// partition that takes them that is slow.
type hotKeyWatch struct {
	keys    *partitioner.HotKeys
	several bool                             // keys begin with a table
	column  string                           // of the partition key
	tell    func(ledger.ReportHotKey, int64) // may be nil
	rows    int64
	next    int64
	told    bool
}

func newCrowd(t table.Type, several bool, column string, tell func(ledger.ReportHotKey, int64)) *hotKeyWatch {
	return &hotKeyWatch{keys: partitioner.NewHotKeys(t), several: several, column: column, tell: tell, next: crowdRows}
}

// count counts the rows of a block.
func (c *hotKeyWatch) count(b *table.Block) {
	c.rows += int64(len(b.Rows))
	if c.told {
		return
	}
	c.keys.AddAll(len(b.Rows), func(i int) []byte {
		key := table.Ref{Block: b, Index: int32(i)}.Key()
		if c.several {
			_, key = table.CutTable(key)
		}
		return key
	})
}

// warn tells the user, once, that nearly all rows have one partition-key value. ended says that no more rows come.
func (c *hotKeyWatch) warn(ended bool) {
	if c.told || c.rows < c.next && !(ended && c.rows >= crowdLeast) {
		return
	}
	for c.next <= c.rows {
		c.next *= 4
	}
	hot := c.keys.Report(1)
	if len(hot) == 0 || hot[0].Share < crowdShare {
		return
	}
	c.told = true
	if c.tell != nil {
		c.tell(ledger.ReportHotKey{Column: c.column, Value: plan.ShowKey(hot[0].Value), Share: hot[0].Share}, c.rows)
	}
}
