package advise

import (
	"bytes"
	"math/bits"
	"slices"
)

// codebook maps texts to 64-bit codes that sort like the texts. The fewer characters occur at each offset, the longer
// the encoded prefix. Texts unlike those of the sample may get a neighbour's code.
type codebook struct {
	places []place
	tail   []uint64 // number of codes of the remaining places
}

// place describes the characters at one offset of a column's texts. Rank 0 is the end of the text.
type place struct {
	rank  [256]uint8 // rank of the character or, if it has none, of the nearest one below
	known [256]bool
	size  uint64 // number of ranks
}

// maxPlaces limits the prefix that a codebook encodes.
const maxPlaces = 64

// newCodebook builds a codebook for texts like the sample. Each place has ranks for the classes of the characters seen
// or, if that leaves no space for all places that distinguish the sample's texts, only for the characters seen.
func newCodebook(sample [][]byte) *codebook {
	sample = slices.Clone(sample)
	slices.SortFunc(sample, bytes.Compare)
	sample = slices.CompactFunc(sample, bytes.Equal)
	large := buildCodebook(sample, true)
	if len(large.places) >= telling(sample) {
		return large
	}
	lean := buildCodebook(sample, false)
	if len(lean.places) > len(large.places) {
		return lean
	}
	return large
}

// telling returns the number of characters that distinguish all but one in a thousand of the sorted, distinct texts.
func telling(sorted [][]byte) int {
	var shared []int
	for i := 1; i < len(sorted); i++ {
		n := 0
		for n < len(sorted[i-1]) && n < len(sorted[i]) && sorted[i-1][n] == sorted[i][n] {
			n++
		}
		shared = append(shared, n+1)
	}
	if len(shared) == 0 {
		return 0
	}
	slices.Sort(shared)
	return min(maxPlaces, shared[len(shared)-1-len(shared)/1000])
}

func buildCodebook(sample [][]byte, large bool) *codebook {
	b := new(codebook)
	codes := uint64(1)
	for at := range maxPlaces {
		var seen [256]bool
		any := false
		for _, text := range sample {
			if at < len(text) {
				seen[text[at]], any = true, true
			}
		}
		if !any {
			break
		}
		p := newPlace(seen, large)
		high, low := bits.Mul64(codes, p.size)
		if high != 0 {
			break
		}
		codes = low
		b.places = append(b.places, p)
	}
	b.tail = make([]uint64, len(b.places)+1)
	b.tail[len(b.places)] = 1
	for i := len(b.places) - 1; i >= 0; i-- {
		b.tail[i] = b.tail[i+1] * b.places[i].size
	}
	return b
}

// classes are groups of characters: where one was seen, the others may occur too.
var classes = [][2]byte{{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, {0x80, 0xbf}, {0xc0, 0xff}}

func newPlace(seen [256]bool, large bool) place {
	for _, class := range classes {
		n := 0
		for c := int(class[0]); c <= int(class[1]); c++ {
			if seen[c] {
				n++
			}
		}
		// A single letter often belongs to a prefix that all texts share; a single digit is likely to vary.
		if n > 1 || n == 1 && (large || class[0] == '0') {
			for c := int(class[0]); c <= int(class[1]); c++ {
				seen[c] = true
			}
		}
	}
	p := place{size: 1, known: seen}
	for c := range seen {
		if seen[c] && p.size < 255 {
			p.size++
		} else {
			p.known[c] = false // has no rank
		}
		p.rank[c] = uint8(p.size - 1)
	}
	return p
}

func (b *codebook) code(text []byte) uint64 {
	code := uint64(0)
	for i := range b.places {
		p := &b.places[i]
		if i >= len(text) {
			return code * b.tail[i] // the end of a text sorts first
		}
		c := text[i]
		code = code*p.size + uint64(p.rank[c])
		if !p.known[c] { // sorts after all texts with the character below
			return code*b.tail[i+1] + b.tail[i+1] - 1
		}
	}
	return code
}
