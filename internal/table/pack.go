package table

import (
	"encoding/binary"
	"errors"
)

// packedRowBytes is the number of bytes before the data of a packed row.
const packedRowBytes = 28

// AppendPacked appends the rows with the given indices in their disk format. A row begins with seven little-endian
// numbers of 4 bytes: the lengths of its ordering key, PlainBuffer bytes and record, its offset, record and line, and
// its size. The bytes follow. The fields of the split are not included.
func (b *Block) AppendPacked(dst []byte, rows []int32) []byte {
	for _, i := range rows {
		r := &b.Rows[i]
		for _, n := range [...]uint32{r.body - r.key, r.raw - r.body, r.end - r.raw, r.at, r.record, r.line, r.size} {
			dst = binary.LittleEndian.AppendUint32(dst, n)
		}
		dst = append(dst, b.Data[r.key:r.end]...)
	}
	return dst
}

var errPacked = errors.New("a packed block is cut short or damaged")

// Unpack makes a block of the first n rows in packed, and returns the rest. The block keeps using the memory of packed.
func Unpack(s *Split, packed []byte, n int) (b *Block, rest []byte, err error) {
	b = &Block{Split: s, Data: packed, Rows: make([]Row, 0, n)}
	at := 0
	for range n {
		if len(packed)-at < packedRowBytes {
			return nil, nil, errPacked
		}
		var f [7]uint32
		for i := range f {
			f[i] = binary.LittleEndian.Uint32(packed[at+4*i:])
		}
		at += packedRowBytes
		r := Row{key: uint32(at), at: f[3], record: f[4], line: f[5], size: f[6]}
		if uint64(f[0])+uint64(f[1])+uint64(f[2]) > uint64(len(packed)-at) {
			return nil, nil, errPacked
		}
		r.body, r.raw = r.key+f[0], r.key+f[0]+f[1]
		r.end = r.raw + f[2]
		r.Hash = HashKey(packed[r.key:r.body])
		b.Rows = append(b.Rows, r)
		at = int(r.end)
	}
	b.Data = packed[:at:at]
	return b, packed[at:], nil
}
