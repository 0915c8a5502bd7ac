package shuffle

import (
	"cmp"
	"slices"

	"tsimport/shuffle/spill"
	"tsimport/table"
)

// Options of Lanes.
type Options struct {
	// Budget is the memory of blocks in bytes. Half of it is the lanes' own: each may keep its share in memory. From half of
	// it on, what lanes have beyond their share is spilled; from all of it on, no more blocks should come.
	Budget int64
	// Store keeps what is spilled; nil spills nothing.
	Store *spill.Store
}

// Lanes are the queues of all lanes. They are not safe for concurrent use; Jobs may run elsewhere.
type Lanes struct {
	o       Options
	lanes   []*Lane
	seq     uint64
	rows    int64 // in the queues, on disk included
	mem     int64 // bytes of blocks that have rows in memory which are not final
	writing int64 // bytes of them that are being written to disk
	frames  map[*frame]struct{}
	full    bool // the last write found no room, and none was given back since
	stats   Stats
}

// Stats counts what was spilled.
type Stats struct {
	SpilledRows int64
	Frames      int64 // written
	Full        int64 // writes that found no room
}

// New makes the queues of n lanes.
func New(n int, o Options) *Lanes {
	s := &Lanes{o: o, frames: map[*frame]struct{}{}}
	for range n {
		s.lanes = append(s.lanes, &Lane{all: s})
	}
	return s
}

// Lane returns the n-th lane.
func (s *Lanes) Lane(n int) *Lane { return s.lanes[n] }

// Len returns the number of lanes.
func (s *Lanes) Len() int { return len(s.lanes) }

// Rows returns the rows in all queues, on disk included.
func (s *Lanes) Rows() int64 { return s.rows }

// Bytes returns the memory of all blocks with rows that are in memory and not final.
func (s *Lanes) Bytes() int64 { return s.mem }

// Full reports whether no more blocks should come until rows have become final or were spilled.
func (s *Lanes) Full() bool { return s.mem >= s.o.Budget }

// Stats returns what was spilled so far.
func (s *Lanes) Stats() Stats { return s.stats }

// Push puts the block's rows at the end of a lane. The block must not change afterwards.
func (s *Lanes) Push(lane int, b *table.Block) {
	if len(b.Rows) == 0 {
		return
	}
	s.hold(b)
	s.seq++
	s.rows += int64(len(b.Rows))
	s.lanes[lane].push(&item{seq: s.seq, block: b, bytes: int64(b.Bytes())})
}

// PushRouted puts each row of the block at the end of the lane that route gives for its ordering key.
func (s *Lanes) PushRouted(b *table.Block, route func(key []byte) int) {
	if len(b.Rows) == 0 {
		return
	}
	s.hold(b)
	s.seq++
	s.rows += int64(len(b.Rows))
	for lane, i := range divide(&item{seq: s.seq, block: b, bytes: int64(b.Bytes())}, route) {
		s.lanes[lane].push(i)
	}
}

func (s *Lanes) hold(b *table.Block) {
	b.Pending = len(b.Rows)
	s.mem += int64(b.Bytes())
}

// release says that n rows of the block need its memory no more.
func (s *Lanes) release(b *table.Block, n int) {
	b.Pending -= n
	if b.Pending == 0 {
		s.mem -= int64(b.Bytes())
	}
}

// Final says that a row that has left its lane will not be asked for again.
func (s *Lanes) Final(r table.Ref) { s.release(r.Block, 1) }

// divide makes an item for each lane that rows of the item belong to.
func divide(i *item, route func(key []byte) int) map[int]*item {
	parts := map[int][]int32{}
	lane, run := -1, []int32(nil) // rows of a lane often come one after the other
	for _, row := range i.indices() {
		to := route(table.Ref{Block: i.block, Index: row}.Key())
		if to != lane {
			if lane >= 0 {
				parts[lane] = run
			}
			lane, run = to, parts[to]
		}
		run = append(run, row)
	}
	if lane >= 0 {
		parts[lane] = run
	}
	items := make(map[int]*item, len(parts))
	for to, rows := range parts {
		items[to] = &item{seq: i.seq, block: i.block, rows: rows, bytes: i.bytes * int64(len(rows)) / int64(i.count())}
	}
	return items
}

// Recut replaces the lanes by n others. Same says which old lane a new one has the range of, -1 for none: such a lane is
// kept as it is. The rows of all others are routed; a frame on disk waits in every new lane that over names for an old
// one, and is routed when it is read back.
func (s *Lanes) Recut(n int, same func(lane int) int, over func(old int) []int, route func(key []byte) int) {
	lanes := make([]*Lane, n)
	kept := make([]bool, len(s.lanes))
	for i := range lanes {
		if old := same(i); old >= 0 {
			lanes[i], kept[old] = s.lanes[old], true
			continue
		}
		lanes[i] = &Lane{all: s}
	}
	type queued struct {
		*item
		old int
	}
	var all []queued
	for old, l := range s.lanes {
		if !kept[old] {
			for _, i := range l.items {
				all = append(all, queued{i, old})
			}
		}
	}
	// Where lanes were joined their rows come in the order in which they were read.
	slices.SortStableFunc(all, func(a, b queued) int { return cmp.Compare(a.seq, b.seq) })
	items := make([][]*item, n)
	type place struct {
		lane  int
		frame *frame
	}
	waits := map[place]bool{} // lanes that were joined may have shared a frame
	for _, q := range all {
		if q.block != nil {
			if q.frame != nil {
				q.frame.abandoned = true
			}
			for to, part := range divide(q.item, route) {
				items[to] = append(items[to], part)
			}
			continue
		}
		q.frame.shared = true
		for _, to := range over(q.old) {
			if waits[place{to, q.frame}] {
				continue
			}
			waits[place{to, q.frame}] = true
			items[to] = append(items[to], &item{seq: q.seq, frame: q.frame})
		}
	}
	for i, l := range lanes {
		if items[i] != nil {
			l.set(items[i])
		}
	}
	s.lanes = lanes
}
