package partitioner

import (
	"math/rand/v2"
	"testing"
)

func TestAKeyTableIsAMapByHash(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		hashes := 1 + rnd.Uint64N(3000)
		scale := uint64(1) << rnd.IntN(60) // hashes that differ in some bits only
		var table keyTable
		want := map[uint64]*key{}
		for range 20_000 {
			hash := rnd.Uint64N(hashes) * scale
			switch {
			case table.get(hash) != want[hash]:
				t.Fatalf("seed %d: hash %d: got %v, want %v", seed, hash, table.get(hash), want[hash])
			case rnd.IntN(2) == 0:
				table.remove(hash)
				delete(want, hash)
			case want[hash] == nil:
				want[hash] = &key{hash: hash}
				table.put(want[hash])
			}
		}
		seen := 0
		table.each(func(k *key) {
			if want[k.hash] != k {
				t.Errorf("seed %d: key %d is there and should not be", seed, k.hash)
			}
			seen++
		})
		if seen != len(want) || table.count != len(want) {
			t.Errorf("seed %d: %d keys seen, %d counted, want %d", seed, seen, table.count, len(want))
		}
	}
}
