package shuffle

import (
	"fmt"
	"slices"

	"example.com/tsimport/internal/spill"
	"example.com/tsimport/internal/table"
)

// frame is a run of a lane's rows that is on disk or is being written or read back.
type frame struct {
	parts  []part
	rows   int
	bytes  int64 // uncompressed
	handle spill.Frame

	abandoned bool // its rows left or were recut while it was being written, so it is dropped once written
	reading   bool // a Job reads it back
	shared    bool // its rows may belong to several lanes
}

// part is one split's rows in a frame.
type part struct {
	split    *table.Split
	rows     int
	keys     *table.KeyRange
	from, to uint32
}

// Limits of a frame's size, which is otherwise half of a lane's share of the memory.
const (
	minFrameBytes = 1 << 10
	maxFrameBytes = 1 << 20
)

// share returns each lane's part of the memory, in bytes.
func (s *Lanes) share() int64 { return s.o.Budget / 2 / int64(max(1, len(s.lanes)-s.idle)) }

// Job is the writing or reading of a frame. A Worker may run it in any goroutine; the job is then passed to Done.
type Job struct {
	frame *frame
	lane  *Queue
	items []*item // items to write; their rows do not change while the job runs
	rows  [][]int32
	bytes int64

	blocks []*table.Block // read back
	err    error
}

// Next returns the next job, or nil.
func (s *Lanes) Next() *Job {
	if s.o.Store == nil {
		return nil
	}
	if j := s.nextRead(); j != nil {
		return j
	}
	return s.nextWrite()
}

// nextRead reads rows back for a lane with at most half its share in memory; above the budget, only for one with none.
func (s *Lanes) nextRead() *Job {
	var best *Queue
	for _, l := range s.lanes {
		if !l.More() || l.items[l.mem].frame.reading {
			continue
		}
		if l.ready > 0 && (s.mem >= s.o.Budget || l.bytes > s.share()/2) {
			continue
		}
		if best == nil || l.ready < best.ready {
			best = l
		}
	}
	if best == nil {
		return nil
	}
	f := best.items[best.mem].frame
	f.reading = true
	return &Job{frame: f}
}

// nextWrite spills from the lane that exceeds its share the most, if another lane is short of rows.
func (s *Lanes) nextWrite() *Job {
	if s.full || s.mem-s.writing <= s.o.Budget/2 || !s.needsRows() {
		return nil
	}
	size := min(max(s.share()/2, minFrameBytes), maxFrameBytes)
	least := size / 2
	if s.mem >= s.o.Budget {
		least = 1 // a small frame is better than none
	}
	var best *Queue
	var from, to int
	most := int64(0)
	for _, l := range s.lanes {
		extra := l.bytes + l.rest - l.writing - s.share()
		if extra <= most || l.settled > 0 && least >= l.settled {
			continue
		}
		if f, t, ok := l.spillable(size, least, s.share()); ok {
			best, most, from, to = l, extra, f, t
		} else {
			l.settled = least
		}
	}
	if best == nil {
		return nil
	}
	return s.write(best, from, to)
}

// spillable returns the first run of items that are only in memory, beyond the lane's share, of about size bytes and at
// least least. Runs chosen from the front follow one another without gaps; from the end they would leave short pieces.
func (l *Queue) spillable(size, least, share int64) (from, to int, ok bool) {
	from = 1 // the first item may be in use by a cut
	for kept := int64(0); from < len(l.items) && kept < share && l.items[from-1].block != nil; from++ {
		kept += l.items[from-1].bytes
	}
	for ; from < len(l.items); from = max(to, from+1) {
		bytes := int64(0)
		for to = from; to < len(l.items) && bytes < size; to++ {
			i := l.items[to]
			if i.block == nil || i.frame != nil {
				break
			}
			bytes += i.bytes
		}
		if bytes >= least {
			return from, to, true
		}
	}
	return 0, 0, false
}

func (s *Lanes) write(l *Queue, from, to int) *Job {
	f := &frame{}
	j := &Job{lane: l, frame: f, items: slices.Clone(l.items[from:to])}
	for _, i := range j.items {
		rows := i.indices()
		i.frame = f
		i.block.Reusable = false // its rows may become final meanwhile
		j.bytes += i.bytes
		j.rows = append(j.rows, rows)
		f.parts = append(f.parts, part{split: i.block.Split, rows: len(rows), keys: i.keys, from: i.start(), to: i.to})
		f.rows += len(rows)
	}
	s.writing += j.bytes
	l.writing += j.bytes
	return j
}

// Worker runs jobs and reuses memory between them. Each goroutine needs its own.
type Worker struct{ packed []byte }

func (w *Worker) Run(store *spill.Store, j *Job) {
	if j.items == nil {
		j.blocks, j.err = read(store, j.frame)
		return
	}
	w.packed = w.packed[:0]
	for n, i := range j.items {
		w.packed = i.block.AppendPacked(w.packed, j.rows[n])
	}
	j.frame.bytes = int64(len(w.packed))
	j.frame.handle, j.err = store.Write(w.packed)
}

func read(store *spill.Store, f *frame) ([]*table.Block, error) {
	packed, err := store.Read(f.handle, make([]byte, 0, f.bytes))
	if err != nil {
		return nil, err
	}
	var blocks []*table.Block
	for _, p := range f.parts {
		var b *table.Block
		if b, packed, err = table.Unpack(p.split, packed, p.rows); err != nil {
			return nil, fmt.Errorf("read spilled rows of %s: %w", p.split.Source, err)
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// Done takes a job that has run. It returns an error if rows cannot be read back; a failed write keeps them in memory.
func (s *Lanes) Done(j *Job, route func(key []byte) int) error {
	if j.items == nil {
		return s.loaded(j, route)
	}
	s.written(j)
	return nil
}

// WriteError returns why the job's rows could not be written, or nil. The run continues regardless.
func (j *Job) WriteError() error {
	if j.items == nil {
		return nil
	}
	return j.err
}

// written frees the memory of rows that are on disk now.
func (s *Lanes) written(j *Job) {
	s.writing -= j.bytes
	j.lane.writing -= j.bytes
	j.lane.settled = 0
	f := j.frame
	// If rows have left from the front meanwhile, the frame cannot replace the items.
	if j.err != nil || f.abandoned || !j.whole() {
		for _, i := range j.items {
			i.frame = nil
		}
		if j.err != nil {
			s.full = true
		} else {
			s.free(f)
		}
		return
	}
	l := j.lane
	at := 0
	for l.items[at] != j.items[0] {
		at++
	}
	for _, i := range j.items {
		s.release(i.block, i.count())
	}
	if at < l.mem {
		for _, i := range l.items[at:l.mem] {
			l.ready -= i.count()
			l.bytes -= i.bytes
			l.rest += i.bytes
		}
		l.mem = at
	}
	for _, i := range j.items {
		l.rest -= i.bytes
	}
	l.items = slices.Concat(l.items[:at], []*item{{frame: f}}, l.items[at+len(j.items):])
	s.spilled += int64(f.rows)
}

// whole reports whether no row of the job's items has left its lane since the job began.
func (j *Job) whole() bool {
	for n, i := range j.items {
		if i.count() != len(j.rows[n]) {
			return false
		}
	}
	return true
}

// loaded replaces a frame by its rows, once they are read back.
func (s *Lanes) loaded(j *Job, route func(key []byte) int) error {
	if j.err != nil {
		return j.err
	}
	f := j.frame
	byLane := map[int][]*item{} // items of a shared frame
	var all []*item
	for n, b := range j.blocks {
		s.hold(b)
		p := f.parts[n]
		i := &item{block: b, bytes: int64(b.Bytes()), keys: p.keys, from: p.from, to: p.to}
		if !f.shared {
			all = append(all, i)
			continue
		}
		for lane, part := range divide(i, route) {
			byLane[lane] = append(byLane[lane], part)
		}
	}
	placed := 0
	for n, l := range s.lanes {
		at := l.find(f)
		if at < 0 {
			continue
		}
		items := all
		if f.shared {
			items = byLane[n]
		}
		for _, i := range items {
			placed += l.narrow(i).count()
			l.rest += i.bytes
		}
		l.items = slices.Concat(l.items[:at], items, l.items[at+1:])
		l.reach()
	}
	if placed != f.rows {
		return fmt.Errorf("read spilled rows back: %d of %d rows have a lane; this is a bug in tsimport", placed, f.rows)
	}
	s.free(f)
	return nil
}

// find returns the index of a frame on disk in the lane's items, or -1.
func (l *Queue) find(f *frame) int {
	for n := l.mem; n < len(l.items); n++ {
		if l.items[n].frame == f && l.items[n].block == nil {
			return n
		}
	}
	return -1
}

func (s *Lanes) free(f *frame) {
	s.o.Store.Free(f.handle)
	s.full = false
}
