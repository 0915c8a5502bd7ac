package keyexpr

import (
	"encoding/binary"
	"math/bits"
)

// murmur3 is the 32-bit MurmurHash3 for x86 with seed 0.
func murmur3(data []byte) uint32 {
	const c1, c2 = 0xcc9e2d51, 0x1b873593
	mix := func(k uint32) uint32 { return bits.RotateLeft32(k*c1, 15) * c2 }
	h, size := uint32(0), uint32(len(data))
	for ; len(data) >= 4; data = data[4:] {
		h = bits.RotateLeft32(h^mix(binary.LittleEndian.Uint32(data)), 13)*5 + 0xe6546b64
	}
	var k uint32
	for i, b := range data {
		k |= uint32(b) << (8 * i)
	}
	h ^= mix(k) // nothing left mixes to 0
	h ^= size
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}
