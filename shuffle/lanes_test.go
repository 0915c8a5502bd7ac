package shuffle

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tsimport/internal/spill"
	"tsimport/internal/table"
)

// run is a model of one life of the queues: rows come in, leave in turns, are spilled, read back and cut again at random.
type run struct {
	t     *testing.T
	rnd   *rand.Rand
	lanes *Lanes
	store *spill.Store
	cuts  []int // keys below cuts[i] are not in lanes above i
	jobs  []*Job
	left  []int // rows by key, in the order in which they left
	in    int
	held  []table.Ref
}

// keys is how many ordering keys there are; a key is two bytes.
const keys = 64

func (r *run) route(key []byte) int {
	k := int(binary.BigEndian.Uint16(key))
	n, _ := slices.BinarySearch(r.cuts, k+1)
	return n
}

// block makes rows numbered from n with keys of the lanes from lo to hi.
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

// take takes rows off a lane; they stay in memory until they are final.
func (r *run) take() {
	n := r.rnd.IntN(r.lanes.Len())
	l := r.lanes.Lane(n)
	for range 1 + r.rnd.IntN(40) {
		ref, ok := l.Front()
		if !ok {
			return
		}
		if got := r.route(ref.Key()); got != n {
			r.t.Fatalf("lane %d holds a row of lane %d", n, got)
		}
		l.Advance()
		r.left = append(r.left, int(binary.BigEndian.Uint32(ref.Body())))
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

// disk starts jobs and ends some, in any order.
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
		if err := r.lanes.Done(j, r.route); err != nil {
			r.t.Fatal(err)
		}
	}
}

func TestRowsOfAKeyLeaveInOrderWhenSpilledOrRecut(t *testing.T) {
	spilled := int64(0)
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		o := spill.Options{Dir: t.TempDir()}
		if seed%3 == 0 {
			o.MaxBytes = 8 << 10 // two frames at most: the disk is full most of the time
		}
		store, err := spill.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		r := &run{t: t, rnd: rnd, store: store, lanes: New(1, Options{Budget: 1 + rnd.Int64N(64<<10), Store: store, Unordered: seed%4 == 1})}
		r.life()
		spilled += r.lanes.Stats().SpilledRows
		r.check()
		if u := store.Usage(); u.Frames != 0 {
			t.Errorf("%d frames are left on disk", u.Frames)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
	if spilled < 10_000 {
		t.Errorf("%d rows were spilled: the test tests nothing", spilled)
	}
}

func (r *run) life() {
	for steps := 0; steps < 300 || r.lanes.Rows() > 0 || len(r.jobs) > 0; steps++ {
		if steps > 20_000 {
			r.t.Fatalf("%d rows never leave", r.lanes.Rows())
		}
		switch choice := r.rnd.IntN(10); {
		case choice < 4 && steps < 300:
			if r.lanes.Full() {
				break
			}
			lane := r.rnd.IntN(r.lanes.Len())
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
		if r.lanes.Rows()+int64(len(r.left)) != int64(r.in) {
			r.t.Fatalf("%d rows came, %d left, %d are said to wait", r.in, len(r.left), r.lanes.Rows())
		}
	}
	r.finish(len(r.held))
}

func (r *run) check() {
	if r.lanes.Bytes() != 0 {
		r.t.Errorf("%d bytes are still counted", r.lanes.Bytes())
	}
	seen := make([]bool, r.in)
	for _, n := range r.left {
		if seen[n] {
			r.t.Errorf("row %d left twice", n)
		}
		seen[n] = true
	}
	if len(r.left) != r.in {
		r.t.Errorf("%d of %d rows left", len(r.left), r.in)
	}
}

func TestALaneKeepsTheOrderOfItsKeys(t *testing.T) {
	// The order of rows within a key is checked here for every key: rows are numbered as they come.
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		store, err := spill.Open(spill.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		r := &run{t: t, rnd: rnd, store: store, lanes: New(1, Options{Budget: 16 << 10, Store: store})}
		last := map[uint16]int{}
		for steps := 0; steps < 400 || r.lanes.Rows() > 0; steps++ {
			if steps < 400 && rnd.IntN(2) == 0 && !r.lanes.Full() {
				r.lanes.PushRouted(r.block(0, keys), nil, r.route)
			}
			if steps < 400 && rnd.IntN(20) == 0 {
				r.cut()
			}
			r.disk()
			n := rnd.IntN(r.lanes.Len())
			l := r.lanes.Lane(n)
			for range rnd.IntN(20) {
				ref, ok := l.Front()
				if !ok {
					break
				}
				key, row := binary.BigEndian.Uint16(ref.Key()), int(binary.BigEndian.Uint32(ref.Body()))
				if before, ok := last[key]; ok && before > row {
					t.Fatalf("seed %d: row %d of key %d left after row %d", seed, row, key, before)
				}
				last[key] = row
				l.Advance()
				r.lanes.Final(ref)
			}
		}
		store.Close()
	}
}

func TestRowsThatCannotBeReadBackAreAnError(t *testing.T) {
	dir := t.TempDir()
	store, err := spill.Open(spill.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r := &run{t: t, rnd: rand.New(rand.NewPCG(1, 1)), store: store}
	r.lanes = New(2, Options{Budget: 64 << 10, Store: store}) // the other is short of rows
	var w Worker
	for r.lanes.Stats().Frames == 0 {
		r.lanes.Push(0, r.block(0, keys))
		if j := r.lanes.Next(); j != nil {
			w.Run(store, j)
			if err := r.lanes.Done(j, r.route); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "frames"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v: %v", files, err)
	}
	if err := os.Truncate(files[0], 1); err != nil {
		t.Fatal(err)
	}
	for {
		if _, ok := r.lanes.Lane(0).Front(); !ok {
			break
		}
		r.lanes.Lane(0).Advance()
	}
	j := r.lanes.Next()
	if j == nil {
		t.Fatal("an empty lane with rows on disk asks for nothing")
	}
	w.Run(store, j)
	if err := r.lanes.Done(j, r.route); err == nil {
		t.Error("rows that are gone were read back")
	}
	if r.lanes.Rows() == 0 {
		t.Error("the rows that cannot be read are not counted any more")
	}
}

func TestAFullDiskKeepsRowsInMemory(t *testing.T) {
	store, err := spill.Open(spill.Options{Dir: t.TempDir(), MaxBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r := &run{t: t, rnd: rand.New(rand.NewPCG(1, 1)), store: store}
	r.lanes = New(2, Options{Budget: 256 << 10, Store: store}) // the other is short of rows
	var w Worker
	for !r.lanes.Full() {
		r.lanes.Push(0, r.block(0, keys))
		if j := r.lanes.Next(); j != nil {
			w.Run(store, j)
			if err := r.lanes.Done(j, r.route); err != nil {
				t.Fatal(err)
			}
			if !errors.Is(j.WriteError(), spill.ErrFull) {
				t.Fatalf("written to a full disk: %v", j.WriteError())
			}
		}
	}
	if r.lanes.Stats().Full == 0 {
		t.Error("nothing was tried")
	}
	for r.lanes.Rows() > 0 {
		ref, ok := r.lanes.Lane(0).Front()
		if !ok {
			t.Fatal("a row is not in memory")
		}
		r.lanes.Lane(0).Advance()
		r.lanes.Final(ref)
	}
}

func TestADiskThatWasFullOnceCanBeTriedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := spill.Open(spill.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := os.RemoveAll(dir); err != nil { // the first write fails
		t.Fatal(err)
	}
	r := &run{t: t, rnd: rand.New(rand.NewPCG(1, 1)), store: store}
	r.lanes = New(2, Options{Budget: 256 << 10, Store: store}) // the other is short of rows
	var w Worker
	try := func() bool {
		j := r.lanes.Next()
		if j == nil {
			return false
		}
		w.Run(store, j)
		if err := r.lanes.Done(j, r.route); err != nil {
			t.Fatal(err)
		}
		return true
	}
	for !r.lanes.Full() {
		r.lanes.Push(0, r.block(0, keys))
	}
	if !try() || !r.lanes.DiskFull() || r.lanes.Frames() != 0 {
		t.Fatalf("full %v, %d frames; want a write that failed", r.lanes.DiskFull(), r.lanes.Frames())
	}
	if try() {
		t.Error("a full disk is written to again at once")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.lanes.TryDisk()
	if !try() || r.lanes.DiskFull() || r.lanes.Frames() != 1 {
		t.Errorf("full %v, %d frames; want one", r.lanes.DiskFull(), r.lanes.Frames())
	}
}

func TestRowsThatWereReadBackStay(t *testing.T) {
	for _, size := range []int{100, 3000} { // rows that are small, and large, beside the lane's share
		store, err := spill.Open(spill.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		lanes := New(4, Options{Budget: 400 << 10, Store: store})
		route := func(key []byte) int { return int(key[0]) }
		var w Worker
		in := 0
		push := func() {
			b := &table.Block{Split: new(table.Split)}
			for range 10 {
				start := len(b.Data)
				b.Data = append(b.Data, byte(in/200%3)) // the fourth lane is short of rows
				body := len(b.Data)
				b.Data = append(b.Data, make([]byte, size)...)
				b.Append(start, body, 1, table.Span{}, nil)
				in++
			}
			lanes.PushRouted(b, nil, route)
		}
		const total = 20_000
		for n := 0; in < total || lanes.Rows() > 0; n++ {
			if in < total && !lanes.Full() {
				push()
			}
			for j := lanes.Next(); j != nil; j = lanes.Next() {
				w.Run(store, j)
				if err := lanes.Done(j, route); err != nil {
					t.Fatal(err)
				}
			}
			for range 5 {
				if ref, ok := lanes.Lane(n % 4).Front(); ok {
					lanes.Lane(n % 4).Advance()
					lanes.Final(ref)
				}
			}
			if most := int64(400<<10) + 4*(64<<10); lanes.Bytes() > most {
				t.Fatalf("rows of %d bytes: %d bytes in memory", size, lanes.Bytes())
			}
		}
		if spilled := lanes.Stats().SpilledRows; spilled == 0 || spilled > total+total/2 {
			t.Errorf("rows of %d bytes: %d of %d rows were written to disk", size, spilled, total)
		}
		store.Close()
	}
}

func TestALongLaneDoesNotFillMemoryWithPiecesThatAreNotSpilled(t *testing.T) {
	store, err := spill.Open(spill.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r := &run{t: t, rnd: rand.New(rand.NewPCG(4, 4)), store: store, cuts: []int{16, 32, 48, 64}}
	r.lanes = New(5, Options{Budget: 512 << 10, Store: store}) // the last one is short of rows
	var w Worker
	var jobs []*Job
	for n := range 4000 {
		// The rows of a sorted file: one lane after the other gets many times what memory holds.
		lane := n / 1000
		r.lanes.Push(lane, r.block(16*lane, 16*lane+16))
		if j := r.lanes.Next(); j != nil {
			w.Run(store, j)
			jobs = append(jobs, j) // the disk is slower than the reader
		}
		for len(jobs) > 2 || len(jobs) > 0 && r.lanes.Full() {
			if err := r.lanes.Done(jobs[0], r.route); err != nil {
				t.Fatal(err)
			}
			jobs = jobs[1:]
		}
		for r.lanes.Full() {
			j := r.lanes.Next()
			if j == nil {
				t.Fatalf("after %d blocks memory is full (%d bytes) and nothing can be spilled", n, r.lanes.Bytes())
			}
			w.Run(store, j)
			if err := r.lanes.Done(j, r.route); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestNothingIsSpilledWhileEveryLaneHasRows(t *testing.T) {
	store, err := spill.Open(spill.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for lanes := 1; lanes <= 3; lanes++ {
		r := &run{t: t, rnd: rand.New(rand.NewPCG(1, 1)), store: store}
		r.lanes = New(lanes, Options{Budget: 2 << 20, Store: store})
		fed := 0
		for n := 0; !r.lanes.Full(); n++ {
			r.lanes.Push(n%lanes, r.block(0, keys))
			if r.lanes.Saturated() {
				fed++
			} else if fed > 0 {
				t.Errorf("%d lanes: more rows, and not fed any more", lanes)
			}
		}
		if fed == 0 || r.lanes.Next() != nil {
			t.Errorf("%d lanes: fed %d times; a frame is to be written although all have rows", lanes, fed)
		}
		for r.lanes.Lane(0).Ready() > 0 {
			ref, _ := r.lanes.Lane(0).Front()
			r.lanes.Lane(0).Advance()
			r.lanes.Final(ref)
		}
		if r.lanes.Saturated() {
			t.Errorf("%d lanes: an empty lane is fed", lanes)
		}
		if wants := r.lanes.Next() != nil; wants != (lanes > 1) {
			t.Errorf("%d lanes, one of them empty: a frame is to be written: %v", lanes, wants)
		}
	}
}
