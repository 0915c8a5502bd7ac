package shuffle

import "tsimport/table"

// Lane is the queue of rows for one partition, in memory. It is not safe for concurrent use.
type Lane struct {
	blocks []*table.Block
	next   int // row of blocks[0] that is in front
	rows   int
	bytes  int
}

// Push puts the block's rows at the end of the lane. The block must not change afterwards.
func (l *Lane) Push(b *table.Block) {
	if len(b.Rows) == 0 {
		return
	}
	b.Pending = len(b.Rows)
	l.blocks = append(l.blocks, b)
	l.rows += len(b.Rows)
	l.bytes += b.Bytes()
}

// Front returns the first row of the lane.
func (l *Lane) Front() (table.Ref, bool) {
	if len(l.blocks) == 0 {
		return table.Ref{}, false
	}
	return table.Ref{Block: l.blocks[0], Index: int32(l.next)}, true
}

// Advance takes the first row off the lane.
func (l *Lane) Advance() {
	l.next++
	l.rows--
	if l.next == len(l.blocks[0].Rows) {
		l.blocks[0] = nil
		l.blocks, l.next = l.blocks[1:], 0
	}
}

// Final says that a row that has left the lane will not be asked for again.
func (l *Lane) Final(r table.Ref) {
	r.Block.Pending--
	if r.Block.Pending == 0 {
		l.bytes -= r.Block.Bytes()
	}
}

// Rows returns the rows waiting in the lane.
func (l *Lane) Rows() int { return l.rows }

// Bytes returns the memory of all blocks that have rows which are not final.
func (l *Lane) Bytes() int { return l.bytes }
