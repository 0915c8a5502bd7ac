package table

import (
	"encoding/binary"
	"hash/maphash"
)

// AppendKey appends one primary-key column to an ordering key. Keys built column by column compare bytewise as
// Tablestore orders rows: integers numerically, strings and binary values by unsigned bytes with a proper prefix
// first. Two rows have the same primary key exactly if their ordering keys are equal.
//
// An integer is 8 bytes, big endian, sign flipped. A string or binary value has each 0x00 written as 0x00 0xff and
// ends with 0x00 0x01, so that no value is a prefix of another and the next column cannot shift the order.
func AppendKey(dst []byte, v Value) []byte {
	if v.Type == Integer {
		return binary.BigEndian.AppendUint64(dst, uint64(v.Int)^(1<<63))
	}
	for _, b := range v.Bytes {
		if b == 0 {
			dst = append(dst, 0, 0xff)
			continue
		}
		dst = append(dst, b)
	}
	return append(dst, 0, 1)
}

var hashSeed = maphash.MakeSeed()

// HashKey hashes an ordering key. It differs from process to process; two different keys may share a hash.
func HashKey(key []byte) uint64 { return maphash.Bytes(hashSeed, key) }
