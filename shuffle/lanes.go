package shuffle

import (
	"slices"

	"example.com/tsimport/internal/spill"
	"example.com/tsimport/internal/table"
)

type Options struct {
	// Budget is the memory for blocks in bytes. Half of it is divided among the lanes, and each may keep its share in
	// memory. Above half, rows beyond the lanes' shares are spilled. Once it is used up, no more blocks should be pushed.
	Budget int64
	// Store holds spilled rows; if nil, no rows are spilled.
	Store *spill.Store
	// Unordered lets rows leave out of order. If a partition is then split at its median, both halves fill equally.
	Unordered bool
	// Free is called with a reusable block when all its rows are final; nil leaves it to the garbage collector.
	Free func(*table.Block)
}

// Lanes holds the queues of all lanes. It is not safe for concurrent use, but its Jobs may run in other goroutines.
type Lanes struct {
	o       Options
	lanes   []*Queue
	rows    int64 // number of rows in the queues, including rows on disk
	mem     int64 // bytes of blocks with rows in memory that are not final
	writing int64 // bytes being written to disk
	full    bool  // the last write failed, and no frame has been freed since
	idle    int   // number of idle lanes
	spilled int64 // rows spilled so far
}

func New(n int, o Options) *Lanes {
	s := &Lanes{o: o}
	for range n {
		s.lanes = append(s.lanes, &Queue{all: s})
	}
	return s
}

func (s *Lanes) Len() int { return len(s.lanes) }

func (s *Lanes) Lane(n int) *Queue { return s.lanes[n] }

// Rows returns the number of rows in all queues, including rows on disk.
func (s *Lanes) Rows() int64 { return s.rows }

// Bytes returns the memory of all blocks with rows that are in memory and not final.
func (s *Lanes) Bytes() int64 { return s.mem }

// Full reports whether no more blocks should be pushed until rows are final or spilled. One block is always allowed.
func (s *Lanes) Full() bool { return s.mem > 0 && s.mem >= s.o.Budget }

// Saturated reports whether every lane holds so many rows that reading should wait: rows that have left the processor's
// caches cost up to twice as much to send. If the input is sorted, some lane is short of rows and reading never waits.
func (s *Lanes) Saturated() bool {
	enough := s.enough()
	fed := false
	for _, l := range s.lanes {
		// Even with little memory, there must be rows for a few full batches.
		if !l.idle && (l.bytes < enough || l.ready < fedRows && l.bytes < 2*table.MaxBatchBytes) {
			return false
		}
		fed = fed || !l.idle
	}
	return fed
}

// SetIdle sets for every lane whether it is idle: no rows leave it, and none are read for it. New lanes are not idle.
func (s *Lanes) SetIdle(idle func(lane int) bool) {
	s.idle = 0
	for i, l := range s.lanes {
		if l.idle = idle(i); l.idle {
			s.idle++
		}
	}
}

const fedRows = 4 * table.MaxBatchRows

// enough returns how many bytes of rows keep a lane busy while others are read: rows of several lanes come in runs.
func (s *Lanes) enough() int64 {
	if len(s.lanes)-s.idle == 1 {
		return min(s.share()/4, fedAlone)
	}
	return s.share() / 8
}

const fedAlone = 8 << 20

// needsRows reports whether a lane has almost no rows in memory, which is the only reason to spill rows of others.
func (s *Lanes) needsRows() bool {
	little := s.enough() / 2
	return slices.ContainsFunc(s.lanes, func(l *Queue) bool { return !l.idle && l.bytes < little })
}

// DiskFull reports whether rows remain in memory because the disk seems full: the last write failed.
func (s *Lanes) DiskFull() bool { return s.full }

// TryDisk lets the disk be tried again.
func (s *Lanes) TryDisk() { s.full = false }

// SpilledRows returns the number of rows spilled so far.
func (s *Lanes) SpilledRows() int64 { return s.spilled }

// Push appends the block's rows to a lane. The block must not change afterwards.
func (s *Lanes) Push(lane int, b *table.Block) {
	if len(b.Rows) == 0 {
		return
	}
	s.hold(b)
	s.rows += int64(len(b.Rows))
	s.lanes[lane].push(newItem(b, s.lanes[lane].keys))
}

// PushRouted appends each row of the block to its lane by route. The block has all rows in keys of its records.
func (s *Lanes) PushRouted(b *table.Block, keys *table.KeyRange, route func(key []byte) int) {
	if len(b.Rows) == 0 {
		return
	}
	s.hold(b)
	s.rows += int64(len(b.Rows))
	for lane, i := range divide(newItem(b, keys), route) {
		s.lanes[lane].push(s.lanes[lane].narrow(i))
	}
}

func (s *Lanes) hold(b *table.Block) {
	b.Pending = len(b.Rows)
	s.mem += int64(b.Bytes())
}

// release notes that n rows of the block no longer need its memory.
func (s *Lanes) release(b *table.Block, n int) {
	b.Pending -= n
	if b.Pending == 0 {
		s.mem -= int64(b.Bytes())
		if b.Reusable && s.o.Free != nil {
			s.o.Free(b)
		}
	}
}

// Final notes that a row that has left its lane is no longer needed.
func (s *Lanes) Final(r table.Ref) { s.release(r.Block, 1) }

func (s *Lanes) AllFinal(rows []table.Ref) {
	for len(rows) > 0 {
		n := 1 // rows of a block usually leave together
		for n < len(rows) && rows[n].Block == rows[0].Block {
			n++
		}
		s.release(rows[0].Block, n)
		rows = rows[n:]
	}
}

// divide divides an item into one for each lane that gets some of its rows.
func divide(i *item, route func(key []byte) int) map[int]*item {
	parts := map[int][]int32{}
	lane, run := -1, []int32(nil) // consecutive rows often belong to one lane
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
		items[to] = &item{
			block: i.block, rows: rows, bytes: i.bytes * int64(len(rows)) / int64(i.count()), keys: i.keys,
			from: i.start(), to: i.to,
		}
	}
	return items
}

// Recut replaces the lanes by n others. same returns the old lane that a new lane keeps because it has the same range,
// or -1. The rows of all other old lanes are routed. A frame on disk waits in every new lane that over returns for the
// old one, and is routed when it is read back. keys returns the keys of a new lane; it may be nil.
func (s *Lanes) Recut(n int, same func(lane int) int, over func(old int) []int, route func(key []byte) int,
	keys func(lane int) *table.KeyRange) {
	lanes := make([]*Queue, n)
	kept := make([]bool, len(s.lanes))
	for i := range lanes {
		if old := same(i); old >= 0 {
			lanes[i], kept[old] = s.lanes[old], true
			continue
		}
		lanes[i] = &Queue{all: s}
		if keys != nil {
			lanes[i].keys = keys(i)
		}
	}
	parts := make([][][]*item, n) // items of each new lane, by old lane
	for old, l := range s.lanes {
		if kept[old] || len(l.items) == 0 {
			continue
		}
		for to, items := range l.divide(over(old), route) {
			parts[to] = append(parts[to], items)
		}
	}
	for i, l := range lanes {
		for _, items := range parts[i] {
			for _, it := range items {
				l.narrow(it)
			}
		}
		if parts[i] != nil {
			l.set(join(parts[i]))
		}
	}
	s.lanes = lanes
}

// divide divides the lane's items among the new lanes and keeps their order.
func (l *Queue) divide(over []int, route func(key []byte) int) map[int][]*item {
	divided := map[int][]*item{}
	for _, i := range l.items {
		if i.block == nil {
			i.frame.shared = true
			for _, to := range over {
				divided[to] = append(divided[to], &item{frame: i.frame})
			}
			continue
		}
		if i.frame != nil {
			i.frame.abandoned = true
		}
		for to, part := range divide(i, route) {
			divided[to] = append(divided[to], part)
		}
	}
	return divided
}

// join makes one queue of several. Their keys differ, so any order that keeps each queue's own will do; but a shared
// frame, of which all queues have the same order, must be queued once, after all items before it in each queue.
func join(queues [][]*item) (joined []*item) {
	if len(queues) == 1 {
		return queues[0]
	}
	var until func(q int, f *frame)
	until = func(q int, f *frame) {
		for len(queues[q]) > 0 {
			i := queues[q][0]
			if f != nil && i.block == nil && i.frame == f {
				return
			}
			queues[q] = queues[q][1:]
			if i.block == nil {
				for other := range queues {
					if slices.ContainsFunc(queues[other], func(o *item) bool { return o.block == nil && o.frame == i.frame }) {
						until(other, i.frame)
						queues[other] = queues[other][1:]
					}
				}
			}
			joined = append(joined, i)
		}
	}
	for q := range queues {
		until(q, nil)
	}
	return joined
}
