package sketch

import (
	"encoding/binary"
	"math/bits"
)

// Odd constants without a pattern, for mixing.
const (
	mixA = 0xa0761d6478bd642f
	mixB = 0xe7037ed1a0b428db
	mixC = 0x8ebc6af09c88c6e3
)

// Mix makes an even 64-bit hash of a number. Different numbers may meet, as hashes do.
func Mix(v uint64) uint64 { return fold(fold(v^mixA, mixB)^mixC, v|1) }

// Hash makes an even 64-bit hash of bytes, the same on every run: the estimates that rest on it must not change.
func Hash(b []byte) uint64 {
	h := uint64(len(b)) ^ mixA
	for len(b) >= 8 {
		h = fold(h^binary.LittleEndian.Uint64(b), mixB)
		b = b[8:]
	}
	var tail uint64
	for i, c := range b {
		tail |= uint64(c) << (8 * i)
	}
	return fold(fold(h^tail, mixC)^mixB, mixA)
}

// fold multiplies to 128 bits and adds the halves without carry.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}
