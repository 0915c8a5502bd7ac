package shuffle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/spill"
	"example.com/tsimport/internal/table"
)

// run uses the queues at random: rows arrive, leave, are spilled and read back, and lanes are recut.
type run struct {
	t     *testing.T
	rnd   *rand.Rand
	lanes *Lanes
	store *spill.Store
	cuts  []int // keys below cuts[i] are not in lanes above i
	jobs  []*Job
	left  []int          // numbers of rows, in the order in which they left
	last  map[uint16]int // number of the last row of a key that left
	in    int
	held  []table.Ref
}

func newRun(t *testing.T, seed uint64, lanes int, o Options, disk spill.Options) *run {
	t.Helper()
	if disk.Dir == "" {
		disk.Dir = t.TempDir()
	}
	store := conformance.Try(spill.Open(disk)).Must(t)
	t.Cleanup(func() { conformance.Equal(t, store.Close(), nil, "Close") })
	o.Store = store
	return &run{t: t, rnd: rand.New(rand.NewPCG(seed, 2)), store: store, lanes: New(lanes, o), last: map[uint16]int{}}
}

func (r *run) work() *Job {
	r.t.Helper()
	j := r.lanes.Next()
	if j == nil {
		return nil
	}
	new(Worker).Run(r.store, j)
	conformance.Must(r.t, r.lanes.Done(j, r.route))
	return j
}

// keys is the number of ordering keys, each of two bytes.
const keys = 64

func (r *run) route(key []byte) int {
	n, _ := slices.BinarySearch(r.cuts, int(binary.BigEndian.Uint16(key))+1)
	return n
}

// block makes a block of rows with keys of the lanes from lo to hi.
func (r *run) block(lo, hi int) *table.Block {
	b := &table.Block{Split: &table.Split{Source: "t", FirstRecord: int64(r.in)}}
	for i := range 1 + r.rnd.IntN(30) {
		start := len(b.Data)
		b.Data = binary.BigEndian.AppendUint16(b.Data, uint16(lo+r.rnd.IntN(hi-lo)))
		body := len(b.Data)
		b.Data = binary.BigEndian.AppendUint32(b.Data, uint32(r.in))
		b.Data = append(b.Data, make([]byte, r.rnd.IntN(300))...)
		b.Append(start, body, 1, table.Span{Record: uint32(i)}, nil)
		r.in++
	}
	return b
}

func (r *run) cut() {
	n := r.rnd.IntN(6)
	old := append([]int{0}, append(slices.Clone(r.cuts), keys)...)
	r.cuts = r.cuts[:0]
	for range n {
		r.cuts = append(r.cuts, 1+r.rnd.IntN(keys-1))
	}
	slices.Sort(r.cuts)
	r.cuts = slices.Compact(r.cuts)
	bounds := append([]int{0}, append(slices.Clone(r.cuts), keys)...)
	r.lanes.Recut(len(bounds)-1, func(lane int) int {
		for o := range len(old) - 1 {
			if old[o] == bounds[lane] && old[o+1] == bounds[lane+1] {
				return o
			}
		}
		return -1
	}, func(o int) (over []int) {
		for lane := range len(bounds) - 1 {
			if bounds[lane] < old[o+1] && bounds[lane+1] > old[o] {
				over = append(over, lane)
			}
		}
		return over
	}, r.route, func(lane int) *table.KeyRange { return keysBetween(bounds[lane], bounds[lane+1]) })
}

func (r *run) take() {
	n := r.rnd.IntN(len(r.lanes.lanes))
	l := r.lanes.Lane(n)
	for range 1 + r.rnd.IntN(40) {
		ref, ok := l.Front()
		if !ok {
			return
		}
		conformance.MustEqual(r.t, r.route(ref.Key()), n, "lane")
		l.Advance()
		key, row := binary.BigEndian.Uint16(ref.Key()), int(binary.BigEndian.Uint32(ref.Body()))
		if before, ok := r.last[key]; ok && before > row && !r.lanes.o.Unordered {
			r.t.Fatalf("row %d of key %d left after row %d", row, key, before)
		}
		r.last[key] = row
		r.left = append(r.left, row)
		r.held = append(r.held, ref)
	}
}

func (r *run) finish(n int) {
	for range min(n, len(r.held)) {
		i := r.rnd.IntN(len(r.held))
		r.lanes.Final(r.held[i])
		r.held = slices.Delete(r.held, i, i+1)
	}
}

func (r *run) disk() {
	var w Worker
	for len(r.jobs) < 3 {
		j := r.lanes.Next()
		if j == nil {
			break
		}
		w.Run(r.store, j)
		r.jobs = append(r.jobs, j)
	}
	if len(r.jobs) > 0 {
		i := r.rnd.IntN(len(r.jobs))
		j := r.jobs[i]
		r.jobs = slices.Delete(r.jobs, i, i+1)
		conformance.Must(r.t, r.lanes.Done(j, r.route))
	}
}

func TestRowsOfKeyLeaveInOrderWhenSpilledOrRecut(t *testing.T) {
	spilled := int64(0)
	for seed := range uint64(36) {
		disk := spill.Options{}
		if seed%3 == 0 {
			disk.MaxBytes = 8 << 10 // at most two frames, so that the disk is full most of the time
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := newRun(t, seed, 1, Options{Budget: 1 + rand.New(rand.NewPCG(seed, 3)).Int64N(1<<16), Unordered: seed%4 == 1},
				disk)
			r.life()
			spilled += r.lanes.SpilledRows()
			r.check()
			conformance.Equal(t, r.store.Usage().Frames, 0, "frames are left on disk")
		})
	}
	conformance.True(t, spilled >= 1200, "%d rows were spilled: the test tests nothing", spilled)
}

func (r *run) life() {
	for steps := 0; steps < 300 || r.lanes.Rows() > 0 || len(r.jobs) > 0; steps++ {
		conformance.MustTrue(r.t, steps <= 20_000, "%d rows never leave", r.lanes.Rows())
		switch choice := r.rnd.IntN(10); {
		case choice < 4 && steps < 300:
			if r.lanes.Full() {
				break
			}
			lane := r.rnd.IntN(len(r.lanes.lanes))
			bounds := append([]int{0}, append(slices.Clone(r.cuts), keys)...)
			b := r.block(bounds[lane], bounds[lane+1])
			if choice == 0 {
				r.lanes.PushRouted(b, nil, r.route)
			} else {
				r.lanes.Push(lane, b)
			}
		case choice == 4 && r.rnd.IntN(4) == 0:
			r.cut()
		case choice < 7:
			r.take()
		case choice == 7:
			r.finish(1 + r.rnd.IntN(100))
		default:
			r.disk()
		}
		conformance.MustEqual(r.t, r.lanes.Rows()+int64(len(r.left)), int64(r.in),
			"%d rows came, %d left, %d are said to wait", r.in, len(r.left), r.lanes.Rows())
		r.recount()
	}
	r.finish(len(r.held))
}

// recount checks the counts of each lane.
func (r *run) recount() {
	for _, l := range r.lanes.lanes {
		var ready int
		var bytes, rest int64
		for n, i := range l.items {
			if n < l.mem {
				ready, bytes = ready+i.count(), bytes+i.bytes
			} else {
				rest += i.bytes
			}
		}
		conformance.MustTrue(r.t, l.ready == ready && l.bytes == bytes && l.rest == rest,
			"a lane counts %d rows, %d and %d bytes; it has %d, %d and %d", l.ready, l.bytes, l.rest, ready, bytes, rest)
	}
}

func (r *run) check() {
	conformance.True(r.t, r.lanes.Bytes() == 0, "%d bytes are still counted", r.lanes.Bytes())
	for _, l := range r.lanes.lanes {
		conformance.True(r.t, l.writing == 0 && r.lanes.writing == 0, "%d of %d bytes in writes", l.writing, r.lanes.writing)
	}
	seen := make([]bool, r.in)
	for _, n := range r.left {
		conformance.True(r.t, !seen[n], "row %d left twice", n)
		seen[n] = true
	}
	conformance.True(r.t, len(r.left) == r.in, "%d of %d rows left", len(r.left), r.in)
}

func TestUnreadableSpilledRowsAreAnError(t *testing.T) {
	dir := t.TempDir()
	r := newRun(t, 1, 2, Options{Budget: 64 << 10}, spill.Options{Dir: dir}) // the second lane is short of rows
	for r.lanes.SpilledRows() == 0 {
		r.lanes.Push(0, r.block(0, keys))
		r.work()
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "frames"))
	conformance.MustTrue(t, err == nil && len(files) == 1, "files %v: %v", files, err)
	conformance.Must(t, os.Truncate(files[0], 1))
	for _, ok := r.lanes.Lane(0).Front(); ok; _, ok = r.lanes.Lane(0).Front() {
		r.lanes.Lane(0).Advance()
	}
	j := r.lanes.Next()
	conformance.MustTrue(t, j != nil, "an empty lane with rows on disk asks for nothing")
	new(Worker).Run(r.store, j)
	conformance.Refused(t, r.lanes.Done(j, r.route), files[0], "rows that are gone were read back")
	conformance.True(t, r.lanes.Rows() != 0, "the rows that cannot be read are not counted any more")
}

func TestFullDiskKeepsRowsInMemory(t *testing.T) {
	r := newRun(t, 1, 2, Options{Budget: 256 << 10}, spill.Options{MaxBytes: 1})
	for !r.lanes.Full() {
		r.lanes.Push(0, r.block(0, keys))
		if j := r.work(); j != nil && !errors.Is(j.WriteError(), spill.ErrFull) {
			t.Fatalf("written to a full disk: %v", j.WriteError())
		}
	}
	conformance.Equal(t, r.lanes.DiskFull(), true, "nothing was tried")
	for r.lanes.Rows() > 0 {
		ref, ok := r.lanes.Lane(0).Front()
		conformance.MustEqual(t, ok, true, "a row is not in memory")
		r.lanes.Lane(0).Advance()
		r.lanes.Final(ref)
	}
}

func TestFullDiskCanBeTriedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	conformance.Must(t, os.Mkdir(dir, 0o700))
	r := newRun(t, 1, 2, Options{Budget: 256 << 10}, spill.Options{Dir: dir})
	if err := os.RemoveAll(dir); err != nil { // the first write fails
		t.Fatal(err)
	}
	for !r.lanes.Full() {
		r.lanes.Push(0, r.block(0, keys))
	}
	conformance.MustTrue(t, r.work() != nil && r.lanes.DiskFull() && r.store.Usage().Frames == 0,
		"full %v, %d frames; want a write that failed", r.lanes.DiskFull(), r.store.Usage().Frames)
	conformance.Equal(t, r.work(), nil, "writing to a full disk again at once")
	conformance.Must(t, os.Mkdir(dir, 0o700))
	r.lanes.TryDisk()
	conformance.True(t, r.work() != nil && !r.lanes.DiskFull() && r.store.Usage().Frames == 1,
		"full %v, %d frames; want one", r.lanes.DiskFull(), r.store.Usage().Frames)
}

func TestRowsReadBackStayInMemory(t *testing.T) {
	for _, size := range []int{100, 3000} { // rows that are small and large relative to a lane's share
		r := newRun(t, 1, 4, Options{Budget: 400 << 10}, spill.Options{})
		r.cuts = []int{1, 2, 3}
		lanes, in := r.lanes, 0
		push := func() {
			b := &table.Block{Split: new(table.Split)}
			for range 10 {
				start := len(b.Data)
				b.Data = binary.BigEndian.AppendUint16(b.Data, uint16(in/200%3)) // the fourth lane has no rows
				body := len(b.Data)
				b.Data = append(b.Data, make([]byte, size)...)
				b.Append(start, body, 1, table.Span{}, nil)
				in++
			}
			lanes.PushRouted(b, nil, r.route)
		}
		const total = 8_000
		for n := 0; in < total || lanes.Rows() > 0; n++ {
			if in < total && !lanes.Full() {
				push()
			}
			for r.work() != nil {
			}
			for range 5 {
				if ref, ok := lanes.Lane(n % 4).Front(); ok {
					lanes.Lane(n % 4).Advance()
					lanes.Final(ref)
				}
			}
			most := int64(400<<10) + 4*(64<<10)
			conformance.MustTrue(t, lanes.Bytes() <= most, "rows of %d bytes: %d bytes in memory", size, lanes.Bytes())
		}
		spilled := lanes.SpilledRows()
		conformance.True(t, spilled != 0 && spilled <= total+total/2, "%d bytes: %d of %d rows on disk", size, spilled, total)
	}
}

func TestSpillingLongLaneLeavesNoSmallPieces(t *testing.T) {
	r := newRun(t, 4, 5, Options{Budget: 512 << 10}, spill.Options{}) // the last one is short of rows
	r.cuts = []int{16, 32, 48, 64}
	var w Worker
	var jobs []*Job
	for n := range 4000 {
		// As with a sorted file, one lane after the other gets rows many times as large as the memory.
		lane := n / 1000
		r.lanes.Push(lane, r.block(16*lane, 16*lane+16))
		if j := r.lanes.Next(); j != nil {
			w.Run(r.store, j)
			jobs = append(jobs, j) // the disk is slower than the reader
		}
		for len(jobs) > 2 || len(jobs) > 0 && r.lanes.Full() {
			conformance.Must(t, r.lanes.Done(jobs[0], r.route))
			jobs = jobs[1:]
		}
		for r.lanes.Full() {
			conformance.MustTrue(t, r.work() != nil, "after %d blocks, %d bytes, nothing can be spilled", n, r.lanes.Bytes())
		}
	}
}

func TestNothingIsSpilledWhileEveryLaneHasRows(t *testing.T) {
	for lanes := 1; lanes <= 3; lanes++ {
		r := newRun(t, 1, lanes, Options{Budget: 2 << 20}, spill.Options{})
		fed := 0
		for n := 0; !r.lanes.Full(); n++ {
			r.lanes.Push(n%lanes, r.block(0, keys))
			if r.lanes.Saturated() {
				fed++
			} else if fed > 0 {
				t.Errorf("%d lanes: more rows, and not fed any more", lanes)
			}
		}
		conformance.True(t, fed != 0 && r.lanes.Next() == nil, "%d lanes: fed %d times; a frame is to be written", lanes, fed)
		for r.lanes.Lane(0).Ready() > 0 {
			ref, _ := r.lanes.Lane(0).Front()
			r.lanes.Lane(0).Advance()
			r.lanes.Final(ref)
		}
		conformance.Equal(t, r.lanes.Saturated(), false, "%d lanes: an empty lane is fed", lanes)
		conformance.Equal(t, r.lanes.Next() != nil, lanes > 1, "%d lanes, one of them empty: a frame is to be written", lanes)
	}
}

// keysBetween returns the range of keys from lo, inclusive, to hi, exclusive.
func keysBetween(lo, hi int) *table.KeyRange {
	r := &table.KeyRange{}
	if lo > 0 {
		r.Lower = binary.BigEndian.AppendUint16(nil, uint16(lo))
	}
	if hi < keys {
		r.Upper = binary.BigEndian.AppendUint16(nil, uint16(hi))
	}
	return r
}

// described is a run in which every row is known.
type described struct {
	run
	read   []uint16 // keys of all rows pushed, by number
	queued map[int]bool
}

// push adds a split's rows to the current lanes. cuts are the current cuts, or those before the last recut.
func (d *described) push(cuts []int) {
	split := &table.Split{FirstRecord: int64(d.in)}
	all := d.block(0, keys)
	bounds := append([]int{0}, append(slices.Clone(cuts), keys)...)
	for i := range all.Rows {
		d.read = append(d.read, binary.BigEndian.Uint16(table.Ref{Block: all, Index: int32(i)}.Key()))
		d.queued[len(d.read)-1] = true
	}
	for lane := range len(bounds) - 1 {
		var rows []int32
		for i := range all.Rows {
			k := int(binary.BigEndian.Uint16(table.Ref{Block: all, Index: int32(i)}.Key()))
			if bounds[lane] <= k && k < bounds[lane+1] {
				rows = append(rows, int32(i))
			}
		}
		from := uint32(0)
		for len(rows) > 0 {
			n := 1 + d.rnd.IntN(len(rows))
			b := &table.Block{Split: split, From: from, To: uint32(len(all.Rows))}
			b.Copy(all, rows[:n])
			if rows = rows[n:]; len(rows) > 0 {
				b.To = uint32(rows[0])
				from = b.To
			}
			if slices.Equal(cuts, d.cuts) {
				d.lanes.Push(lane, b)
			} else {
				d.lanes.PushRouted(b, keysBetween(bounds[lane], bounds[lane+1]), d.route)
			}
		}
	}
}

func (d *described) compare() {
	bounds := append([]int{0}, append(slices.Clone(d.cuts), keys)...)
	var parts []Part
	d.lanes.Describe(func(p Part) { parts = append(parts, p) })
	said := func(row int, key []byte) bool {
		for _, p := range parts {
			from, to := int(p.Split.FirstRecord)+int(p.From), int(p.Split.FirstRecord)+int(p.To)
			if row < from || d.lanes.o.Unordered && row >= to {
				continue
			}
			in := *keysBetween(bounds[p.Lane], bounds[p.Lane+1])
			if p.Keys != nil {
				in, _ = p.Keys.Within(in)
			}
			if bytes.Compare(in.Lower, key) <= 0 && (in.Upper == nil || bytes.Compare(key, in.Upper) < 0) {
				return true
			}
		}
		return false
	}
	for row, k := range d.read {
		conformance.MustEqual(d.t, said(row, binary.BigEndian.AppendUint16(nil, k)), d.queued[row],
			"row %d of key %d: said to be queued", row, k)
	}
}

// TestDescribeListsExactlyQueuedRows compares while splits cut for the current and for the previous lanes arrive.
func TestDescribeListsExactlyQueuedRows(t *testing.T) {
	spilled, recuts := int64(0), 0
	for seed := range uint64(5) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		d := &described{queued: map[int]bool{}}
		d.run = *newRun(t, seed, 1, Options{Budget: 1 + rnd.Int64N(16<<10), Unordered: seed%2 == 1}, spill.Options{})
		d.lanes.SetKeys(0, keysBetween(0, keys))
		var before []int
		for steps := 0; steps < 120 || d.lanes.Rows() > 0 || len(d.jobs) > 0; steps++ {
			switch choice := rnd.IntN(10); {
			case choice < 3 && steps < 120:
				cuts := d.cuts
				if choice == 0 {
					cuts = before
				}
				d.push(slices.Clone(cuts))
			case choice == 3 && rnd.IntN(2) == 0:
				before = slices.Clone(d.cuts)
				d.cut()
				recuts++
			case choice < 8:
				at := len(d.left)
				d.take()
				for _, row := range d.left[at:] {
					d.queued[row] = false
				}
				d.finish(rnd.IntN(60))
			default:
				d.disk()
			}
			if steps%3 == 0 {
				d.compare()
			}
		}
		spilled += d.lanes.SpilledRows()
		conformance.MustEqual(t, t.Failed(), false, "with seed %d", seed)
	}
	conformance.True(t, spilled >= 500 && recuts >= 40, "%d rows spilled, %d recuts: it tests nothing", spilled, recuts)
}
