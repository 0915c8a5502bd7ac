package sim

import (
	"math"
	"math/rand/v2"
)

// sampler keeps a random choice of the keys it has seen, to know where halves would be even. It draws how many keys to
// pass over, so most keys cost a comparison of two numbers.
type sampler struct {
	keys []Key
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
		s.keys = append(s.keys, Key(key))
	} else {
		s.keys[rng.IntN(len(s.keys))] = Key(key)
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
		if keep(k) {
			p.keys = append(p.keys, k)
		}
	}
	if len(s.keys) > 0 {
		p.seen = s.seen * int64(len(p.keys)) / int64(len(s.keys))
	}
	return p
}
