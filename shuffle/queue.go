package shuffle

import (
	"math/rand/v2"

	"example.com/tsimport/internal/table"
)

// item is a part of a lane's queue: rows of one block in memory, or the rows of a frame on disk.
type item struct {
	block *table.Block // nil while the rows are only on disk
	rows  []int32      // indices in the block; nil means all
	next  int          // index of the first remaining row, in rows or in the block
	bytes int64        // the rows' share of the block's memory
	frame *frame       // being written if block is set; otherwise it holds the rows

	// The item has all waiting rows of the split's records [from, to) with these keys.
	keys     *table.KeyRange
	from, to uint32
	begun    bool // rows have left: the item now starts at its next row
}

func newItem(b *table.Block, keys *table.KeyRange) *item {
	i := &item{block: b, bytes: int64(b.Bytes()), keys: keys, from: b.From, to: b.To}
	if i.to == 0 {
		i.to = b.Place(int32(len(b.Rows)-1)) + 1
	}
	return i
}

// start returns the first record that the item still covers.
func (i *item) start() uint32 {
	switch {
	case !i.begun:
		return i.from
	case i.rows != nil:
		return i.block.Place(i.rows[i.next])
	}
	return i.block.Place(int32(i.next))
}

func (i *item) count() int {
	if i.block == nil {
		return 0
	}
	if i.rows == nil {
		return len(i.block.Rows) - i.next
	}
	return len(i.rows) - i.next
}

func (i *item) indices() []int32 {
	if i.rows != nil {
		return i.rows[i.next:]
	}
	all := make([]int32, i.count())
	for n := range all {
		all[n] = int32(i.next + n)
	}
	return all
}

// Queue is one lane's queue of rows.
type Queue struct {
	idle  bool // no rows leave it for now
	all   *Lanes
	items []*item // in order, the front first
	mem   int     // number of items in memory at the front
	ready int     // rows in them
	bytes int64   // memory of these rows
	rest  int64   // bytes of memory of the items after them

	keys     *table.KeyRange                     // keys of rows pushed from now on; nil means unknown
	narrowed map[*table.KeyRange]*table.KeyRange // other ranges, cut to this lane
	writing  int64                               // bytes of memory of items that are being written to disk
	turns    int                                 // rows that have left the front block in this turn
	settled  int64                               // if not 0, no run of this many bytes can be spilled until a change
}

// Front returns the lane's first row, or false if there is none or it is on disk.
func (l *Queue) Front() (table.Ref, bool) {
	if l.ready == 0 {
		return table.Ref{}, false
	}
	i := l.items[0]
	if i.rows == nil {
		return table.Ref{Block: i.block, Index: int32(i.next)}, true
	}
	return table.Ref{Block: i.block, Index: i.rows[i.next]}, true
}

// Rows counts the rows in the lane, in memory and on disk. Frames from before a recut may include other lanes' rows.
func (l *Queue) Rows() (n int64) {
	for _, i := range l.items {
		if i.block != nil {
			n += int64(i.count())
		} else {
			n += int64(i.frame.rows)
		}
	}
	return n
}

// Advance removes the first row.
func (l *Queue) Advance() {
	l.all.rows--
	i := l.items[0]
	i.next++
	i.begun = true
	l.ready--
	if i.count() > 0 {
		if l.all.o.Unordered && len(i.block.Rows) >= turnedRows {
			l.turn()
		}
		return
	}
	if i.frame != nil {
		i.frame.abandoned = true // all of its rows left before it was written
	}
	l.bytes -= i.bytes
	l.items[0] = nil
	l.items = l.items[1:]
	l.turns = 0 // the order of small blocks is already spread over the keys
	l.mem--
	if l.mem == 0 {
		l.reach()
	}
}

// Unordered rows of blocks with turnedRows rows or more leave in runs of turnRows, at random from turnItems blocks.
const (
	turnRows   = 20
	turnItems  = 128
	turnedRows = 200
)

// turn brings another block to the front once the front block has had its turn.
func (l *Queue) turn() {
	if l.turns++; l.turns < turnRows {
		return
	}
	l.turns = 0
	n := rand.IntN(min(l.mem, turnItems))
	if l.items[n].frame == nil && l.items[0].frame == nil { // items being written must not change
		l.items[0], l.items[n] = l.items[n], l.items[0]
	}
}

func (l *Queue) push(i *item) {
	l.settled = 0
	l.items = append(l.items, i)
	switch {
	case l.mem == len(l.items)-1 && i.block != nil:
		l.mem++
		l.ready += i.count()
		l.bytes += i.bytes
	case i.block != nil:
		l.rest += i.bytes
	}
}

// reach updates the counts of items in memory at the front.
func (l *Queue) reach() {
	l.settled = 0
	for l.mem < len(l.items) && l.items[l.mem].block != nil {
		i := l.items[l.mem]
		l.mem++
		l.ready += i.count()
		l.bytes += i.bytes
		l.rest -= i.bytes
	}
}

// Ready returns the number of rows that can be taken now.
func (l *Queue) Ready() int { return l.ready }

// Bytes returns the memory of the rows that can be taken now.
func (l *Queue) Bytes() int64 { return l.bytes }

// More reports whether rows on disk wait after the rows that can be taken now.
func (l *Queue) More() bool { return l.mem < len(l.items) }

// Coming reports whether the next rows on disk are being read back.
func (l *Queue) Coming() bool { return l.More() && l.items[l.mem].frame.reading }

func (l *Queue) set(items []*item) {
	*l = Queue{all: l.all, items: items, keys: l.keys, narrowed: l.narrowed}
	for _, i := range items {
		if i.block != nil {
			l.rest += i.bytes
		}
	}
	l.reach()
}
