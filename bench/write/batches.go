package write

import (
	"strconv"
	"sync/atomic"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/partitioner"
)

// batch holds the rows of one request, all in one partition.
type batch struct {
	rows  *table.Block
	first int64 // number of the run's rows before this batch
	lower string
	shown string // first key value of the partition
}

// Upper bounds of a request's overhead in bytes, per row and per request.
const (
	rowOverhead     = 32
	requestOverhead = 512
)

// cutter divides generated rows into batches of one partition each. Only done is safe for concurrent use.
type cutter struct {
	rows       *rows
	most       int   // rows in a batch
	left       int64 // number of rows still to make; -1 means unlimited
	cut        int64 // number of rows in batches so far
	partitions *atomic.Pointer[partitioner.Map]
	m          *partitioner.Map
	open       []*table.Block // by partition
	full       []*batch       // filled by new partitions
	one        table.Block    // the row being assigned to a partition
	free       chan *table.Block
}

// newCutter returns a cutter of n rows into batches of at most batchRows. An n of 0 means no limit.
func newCutter(r *rows, n int64, batchRows int, partitions *atomic.Pointer[partitioner.Map], concurrency int) *cutter {
	c := &cutter{rows: r, most: batchRows, left: n, partitions: partitions, free: make(chan *table.Block, 2*concurrency)}
	if n == 0 {
		c.left = -1
	}
	c.m = partitions.Load()
	c.open = make([]*table.Block, c.m.Len())
	return c
}

// next returns the next batch, or nil after the last row.
func (c *cutter) next() (*batch, error) {
	if m := c.partitions.Load(); m != c.m {
		c.recut(m)
	}
	if len(c.full) > 0 {
		b := c.full[0]
		c.full = c.full[1:]
		return b, nil
	}
	for c.left != 0 {
		c.one.Reset()
		if err := c.rows.next(&c.one); err != nil {
			return nil, err
		}
		if c.left > 0 {
			c.left--
		}
		row := table.Ref{Block: &c.one}
		i := c.m.Find(row.Key())
		b := c.block(i)
		b.Copy(&c.one, firstRow)
		if len(b.Rows) >= c.room(row.Row()) {
			return c.close(i), nil
		}
	}
	for i, b := range c.open {
		if b != nil && len(b.Rows) > 0 {
			return c.close(i), nil
		}
	}
	return nil, nil
}

var firstRow = []int32{0}

// room returns the number of rows like r that fit in a batch: requests have a byte limit, too.
func (c *cutter) room(r *table.Row) int {
	return max(1, min(c.most, table.MaxBatchBytes/r.Size(), (table.MaxBodyBytes-requestOverhead)/(r.Bytes()+rowOverhead)))
}

func (c *cutter) block(i int) *table.Block {
	if c.open[i] == nil {
		select {
		case c.open[i] = <-c.free:
			c.open[i].Reset()
		default:
			c.open[i] = new(table.Block)
		}
	}
	return c.open[i]
}

func (c *cutter) close(i int) *batch {
	b := &batch{rows: c.open[i], first: c.cut, lower: string(c.m.Lower(i)), shown: lowerText(c.m, i)}
	c.cut += int64(len(b.rows.Rows))
	c.open[i] = nil
	return b
}

// recut assigns rows that are not in a complete batch to new partitions.
func (c *cutter) recut(m *partitioner.Map) {
	old := c.open
	c.m, c.open = m, make([]*table.Block, m.Len())
	for _, b := range old {
		if b == nil {
			continue
		}
		for i := range b.Rows {
			row := table.Ref{Block: b, Index: int32(i)}
			lane := m.Find(row.Key())
			to := c.block(lane)
			to.Copy(b, []int32{row.Index})
			if len(to.Rows) >= c.room(row.Row()) {
				c.full = append(c.full, c.close(lane))
			}
		}
	}
}

func (c *cutter) done(b *batch) {
	select {
	case c.free <- b.rows:
	default:
	}
}

// lowerText returns the first key value of a partition as text, or "" for the first partition.
func lowerText(m *partitioner.Map, i int) string {
	v, ok := m.LowerValue(i)
	switch {
	case !ok:
		return ""
	case v.Type == table.Integer:
		return strconv.FormatInt(v.Int, 10)
	}
	return table.Show(v.Bytes)
}
