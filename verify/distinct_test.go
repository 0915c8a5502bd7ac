package verify

import (
	"math/rand/v2"
	"testing"
)

func TestHashesThatComeTwiceAreFound(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 8))
	for n := range 90 {
		rows := []int{n, 50 * n}[n%2]
		mask := []uint64{1<<64 - 1, 1<<56 - 1, 0xff<<56 | 1<<20 - 1}[n%3] // also those that meet in a place of the table
		seen := map[uint64]bool{0: true}
		d := newDistinct(8 * int64(max(rows, 1)))
		d.expect(int64(rows / 2))
		for len(seen) <= rows {
			if h := rnd.Uint64() & mask; !seen[h] {
				seen[h] = true
				d.add(h)
			}
		}
		if n%5 == 0 && rows > 1 {
			d.hashes[rnd.IntN(rows/2)] = d.hashes[rows/2+rnd.IntN(rows-rows/2)]
			if d.all(int64(rows)) {
				t.Fatalf("%d hashes, one of them twice, are all different", rows)
			}
		} else if !d.all(int64(rows)) {
			t.Fatalf("%d different hashes are not", rows)
		}
	}
	d := newDistinct(8 * 3)
	for h := range uint64(4) {
		d.add(h + 1)
	}
	if d.all(4) || d.all(3) {
		t.Error("more hashes than memory has room for say something")
	}
	d = newDistinct(64)
	d.add(0)
	if d.all(1) {
		t.Error("a hash of zero, which the table cannot have, says something")
	}
}
