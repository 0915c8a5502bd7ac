package bench

// permutation is a keyed bijection of [0, n): it shuffles any number of things without holding them. A Feistel network
// over the next even number of bits, walked until it lands below n, so both directions cost a few hashes.
type permutation struct {
	n    uint64
	half uint // bits of each half
	keys [4]uint64
}

func newPermutation(n uint64, seed uint64) permutation {
	p := permutation{n: n, half: 1}
	for uint64(1)<<(2*p.half) < n {
		p.half++
	}
	for i := range p.keys {
		seed = mix(seed + uint64(i) + 1)
		p.keys[i] = seed
	}
	return p
}

// at returns where i goes.
func (p *permutation) at(i uint64) uint64 {
	for {
		l, r := i>>p.half, i&(1<<p.half-1)
		for _, k := range p.keys {
			l, r = r, l^p.round(r, k)
		}
		if i = l<<p.half | r; i < p.n {
			return i
		}
	}
}

// from returns what goes to i.
func (p *permutation) from(i uint64) uint64 {
	for {
		l, r := i>>p.half, i&(1<<p.half-1)
		for round := len(p.keys) - 1; round >= 0; round-- {
			l, r = r^p.round(l, p.keys[round]), l
		}
		if i = l<<p.half | r; i < p.n {
			return i
		}
	}
}

func (p *permutation) round(v, key uint64) uint64 { return mix(v^key) & (1<<p.half - 1) }

// mix is the finalizer of splitmix64: every bit of the input changes half of the output's.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
