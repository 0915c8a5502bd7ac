package pipeline

import (
	"tsimport/internal/table"
	"tsimport/partitioner"
)

// When a load warns that its rows crowd in one partition-key value. It must not cry wolf at a file that is sorted by that
// key, so it waits for many rows; a load whose input ends before has nothing more to come.
const (
	crowdShare = 0.9
	crowdRows  = 16 << 10 // the first look; each later one after four times as many rows
	crowdLeast = 1000     // rows, when the input has ended
)

// crowd watches the rows as they are read: those that are written say it late, because it is the one partition that takes
// them that is slow.
type crowd struct {
	keys *partitioner.HotKeys
	rows int64
	next int64
	told bool
}

func newCrowd(t table.Type) *crowd {
	return &crowd{keys: partitioner.NewHotKeys(t), next: crowdRows}
}

// countKeys counts the partition keys of rows that were read. A dry run writes none, so these are its hot keys too.
func (d *dispatcher) countKeys(b *table.Block) {
	d.crowd.rows += int64(len(b.Rows))
	if d.crowd.told && !d.cfg.DryRun {
		return
	}
	for i := range b.Rows {
		key := table.Ref{Block: b, Index: int32(i)}.Key()
		if d.tables != nil {
			_, key = table.CutTable(key)
		}
		if !d.crowd.told {
			d.crowd.keys.Add(key)
		}
		if d.cfg.DryRun {
			d.hot.Add(key)
		}
	}
}

// warnOfCrowd tells the user, once, that nearly all rows have one partition-key value. ended says that no more rows come.
func (d *dispatcher) warnOfCrowd(ended bool) {
	c := d.crowd
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
	if d.cfg.Watch.OnHotKey != nil {
		d.cfg.Watch.OnHotKey(ReportHotKey{Column: d.report.Schema[0].Name, Value: showKey(hot[0].Value), Share: hot[0].Share}, c.rows)
	}
}
