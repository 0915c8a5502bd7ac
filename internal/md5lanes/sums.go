package md5lanes

import (
	"crypto/md5"
	"encoding"
	"encoding/binary"
	"math"
	"sync"
	"time"
	"unsafe"
)

const block = md5.BlockSize

// lane is a text on its way.
type lane struct {
	rest []byte          // whole blocks that are still to be hashed
	end  [2 * block]byte // what is after them, with its padding
	left int             // blocks of it that are still to be hashed
	to   *Hasher         // nil if there is no text, or its sum is made
}

// begin divides a text into whole blocks and its end.
func (l *lane) begin(h *Hasher) {
	n := len(h.text) &^ (block - 1)
	l.rest, l.to = h.text[:n], h
	used := copy(l.end[:], h.text[n:])
	l.end[used] = 0x80
	l.left = 1
	if used >= block-8 {
		l.left = 2
	}
	binary.LittleEndian.PutUint64(l.end[block*l.left-8:], uint64(len(h.text))<<3)
}

// next returns blocks that lie together; none at the end of the text.
func (l *lane) next() []byte {
	if len(l.rest) == 0 {
		l.rest, l.left = l.end[:block*l.left], 0
	}
	return l.rest
}

// few is the most texts that are hashed one after another: all lanes take as long as one to three texts do alone, by the processor
// (BenchmarkSums).
var few = sync.OnceValue(func() int {
	text := make([]byte, 4<<10)
	alone, together := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	hashers := []*Hasher{{text: text}, {text: text}}
	for range 5 { // the least time: another process may have the processor
		begun := time.Now()
		md5.Sum(text)
		between := time.Now()
		sumSome(hashers, 0)
		alone, together = min(alone, between.Sub(begun)), min(together, time.Since(between))
	}
	return max(1, min(int(together/max(alone, 1)), mostFew))
})

// mostFew bounds few where its measurement is disturbed.
const mostFew = 3

// sumAll makes the sums of the hashers' texts.
func sumAll(all []*Hasher) {
	for len(all) > 1 && len(all) > few() {
		n := min(width, len(all))
		sumSome(all[:n], few())
		all = all[n:]
	}
	for _, h := range all {
		h.sum = md5.Sum(h.text)
	}
}

// sumSome makes the sums of at most width texts. It ends a few of them one after another.
func sumSome(all []*Hasher, few int) {
	var lanes [Lanes]lane
	var state [4][Lanes]uint32
	for i, h := range all {
		lanes[i].begin(h)
		state[0][i], state[1][i], state[2][i], state[3][i] = 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476
	}
	for {
		var data [Lanes]*byte
		blocks, active := 0, 0
		for i := range all {
			l := &lanes[i]
			if l.to == nil {
				continue
			}
			rest := l.next()
			if len(rest) == 0 {
				for word := range state {
					binary.LittleEndian.PutUint32(l.to.sum[4*word:], state[word][i])
				}
				l.to = nil
				continue
			}
			if n := len(rest) / block; blocks == 0 || n < blocks {
				blocks = n
			}
			data[i] = unsafe.SliceData(rest)
			active++
		}
		if active == 0 {
			return
		}
		if active <= few && alone(&lanes, &state) {
			return
		}
		fill(&data)
		hashBlocks(&state, &data, blocks)
		for i := range all {
			if l := &lanes[i]; l.to != nil {
				l.rest = l.rest[blocks*block:]
			}
		}
	}
}

// fill gives lanes without a text the data of one that has: they hash it in vain.
func fill(data *[Lanes]*byte) {
	var some *byte
	for _, p := range data {
		if p != nil {
			some = p
		}
	}
	for i, p := range data {
		if p == nil {
			data[i] = some
		}
	}
}

// long is what is left of a text that it pays to hand over to crypto/md5.
const long = 4 << 10

// alone hashes the rest of the texts one after another, unless they are at their ends. The state is handed over as crypto/md5 marshals its
// own.
func alone(lanes *[Lanes]lane, state *[4][Lanes]uint32) bool {
	for i := range lanes {
		if l := &lanes[i]; l.to != nil && len(l.rest) < long {
			return false
		}
	}
	for i := range lanes {
		l := &lanes[i]
		if l.to == nil {
			continue
		}
		done := len(l.to.text)&^(block-1) - len(l.rest)
		at := append(make([]byte, 0, md5State), "md5\x01"...)
		for word := range state {
			at = binary.BigEndian.AppendUint32(at, state[word][i])
		}
		at = binary.BigEndian.AppendUint64(at[:len(at)+block], uint64(done))
		d := md5.New()
		if err := d.(encoding.BinaryUnmarshaler).UnmarshalBinary(at); err != nil {
			l.to.sum = md5.Sum(l.to.text) // no longer as it was when this was written
			continue
		}
		d.Write(l.to.text[done:])
		d.Sum(l.to.sum[:0])
	}
	return true
}

// md5State is the length of a state of crypto/md5: its mark, the words, an unfinished block, how much was hashed.
const md5State = 4 + 16 + block + 8
