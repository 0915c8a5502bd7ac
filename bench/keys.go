package bench

import (
	"fmt"
	"math/rand/v2"
)

// KeyKind is a distribution of primary keys.
type KeyKind string

// The kinds of keys.
const (
	RandomKeys      KeyKind = "random"        // integers, uniformly distributed over their whole range
	SequentialKeys  KeyKind = "sequential"    // consecutive integers
	ZipfKeys        KeyKind = "zipf"          // Zipf-distributed integers, each with a counter
	StudentCardKeys KeyKind = "student-cards" // the keys of StudentCards, in arrival order
)

// KeyColumn is a primary-key column, of type string or integer.
type KeyColumn struct {
	Name string
	Text bool
}

// Parameters of ZipfKeys. The most frequent of the million values has about an eighth of the rows.
const (
	zipfValues   = 1_000_000
	zipfExponent = 1.1
)

// Keys generates distinct primary keys. The same parameters give the same keys. It is not safe for concurrent use.
type Keys struct {
	kind  KeyKind
	seed  uint64
	n     uint64
	zipf  *rand.Zipf
	cards *cardGenerator
}

// NewKeys returns a generator of keys. StudentCardKeys are laid out for rows keys, but Next may return more.
func NewKeys(kind KeyKind, rows, seed uint64) (*Keys, error) {
	k := &Keys{kind: kind, seed: mix(seed)}
	switch kind {
	case RandomKeys, SequentialKeys:
	case ZipfKeys:
		k.zipf = rand.NewZipf(rand.New(rand.NewPCG(seed, 0)), zipfExponent, 1, zipfValues-1)
	case StudentCardKeys:
		k.cards = newCardGenerator(StudentCards{Rows: max(rows, 1), Seed: seed})
	default:
		return nil, fmt.Errorf("--keys %q: want random, sequential, zipf or student-cards", kind)
	}
	return k, nil
}

// Columns returns the primary-key columns in order.
func (k *Keys) Columns() []KeyColumn {
	switch k.kind {
	case ZipfKeys:
		return []KeyColumn{{Name: "id"}, {Name: "seq"}}
	case StudentCardKeys:
		return []KeyColumn{{Name: "CardID"}, {Name: "SellerID", Text: true}, {Name: "DeviceID"}, {Name: "OrderNumber"}}
	}
	return []KeyColumn{{Name: "id"}}
}

// Next returns the next key, reusing its arguments' memory: the integers of all columns in order, with 0 in place of
// the string column, and the string.
func (k *Keys) Next(integers []int64, text []byte) ([]int64, []byte) {
	n := k.n
	k.n++
	integers, text = integers[:0], text[:0]
	switch k.kind {
	case SequentialKeys:
		return append(integers, int64(n)), text
	case ZipfKeys:
		return append(integers, int64(mix(k.seed^k.zipf.Uint64())), int64(n)), text
	case StudentCardKeys:
		card, device, order := k.cards.where(n)
		return append(integers, int64(firstCard+card), 0, int64(device), int64(order)), k.cards.appendSeller(text, device)
	}
	return append(integers, int64(mix(k.seed+n))), text // mix is a bijection
}

// permutation is a keyed bijection of [0, n), which shuffles in constant memory: a Feistel network over the next even
// number of bits, repeated until the result is below n. Both directions take a few hashes.
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

// from is the inverse of at.
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

// mix is the finalizer of splitmix64: each input bit changes half of the output bits.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
