package sim

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
)

// sampler keeps a random choice of the keys it has seen, to know where halves would be even. It draws how many keys to
// pass over, so most keys cost a comparison of two numbers.
type sampler struct {
	keys [][]byte
	size int   // keys kept at most
	seen int64 // keys, estimated after a split
	next int64 // seen at which the next key is kept
}

func (s *sampler) add(key []byte, rng *rand.Rand) {
	s.seen++
	if s.seen < s.next {
		return
	}
	if len(s.keys) < s.size {
		s.keys = append(s.keys, bytes.Clone(key))
	} else {
		i := rng.IntN(len(s.keys))
		s.keys[i] = append(s.keys[i][:0], key...)
	}
	s.next = s.seen + 1
	if p := float64(s.size) / float64(s.seen); p < 1 {
		s.next += int64(math.Log(1-rng.Float64()) / math.Log1p(-p))
	}
}

// part is a sampler of the keys that keep says yes to.
func (s *sampler) part(keep func(Key) bool) (p sampler) {
	p.size = s.size
	for _, k := range s.keys {
		if keep(Key(k)) {
			p.keys = append(p.keys, bytes.Clone(k))
		}
	}
	if len(s.keys) > 0 {
		p.seen = s.seen * int64(len(p.keys)) / int64(len(s.keys))
	}
	return p
}

// sorted returns the keys in their order.
func (s *sampler) sorted() []Key {
	keys := make([]Key, len(s.keys))
	for i, k := range s.keys {
		keys[i] = Key(k)
	}
	slices.Sort(keys)
	return keys
}
