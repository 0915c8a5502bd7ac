package shuffle

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"example.com/tsimport/internal/spill"
	"example.com/tsimport/internal/table"
)

// keysBetween is the range of the keys from lo on, before hi.
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

// described is a life of the queues of which every row is known.
type described struct {
	run
	read   []uint16 // keys of all rows that came, by number
	queued map[int]bool
}

// push puts a split into the lanes as they are, or as they were before they were cut again.
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
			if k := int(binary.BigEndian.Uint16(table.Ref{Block: all, Index: int32(i)}.Key())); bounds[lane] <= k && k < bounds[lane+1] {
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

// compare compares what the queues say they hold with what they hold.
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
		if got := said(row, binary.BigEndian.AppendUint16(nil, k)); got != d.queued[row] {
			d.t.Fatalf("row %d of key %d: said to be queued: %v, is: %v", row, k, got, d.queued[row])
		}
	}
}

// TestTheQueuesSayExactlyWhatTheyHold checks it while rows come under the cut of the moment and under the one before, leave,
// are spilled, read back and cut again.
func TestTheQueuesSayExactlyWhatTheyHold(t *testing.T) {
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
		if t.Failed() {
			t.Fatalf("with seed %d", seed)
		}
	}
	if spilled < 500 || recuts < 40 {
		t.Errorf("%d rows were spilled, lanes were cut anew %d times: the test tests nothing", spilled, recuts)
	}
}
