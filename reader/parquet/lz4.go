package parquet

import (
	"bytes"
	"encoding/binary"

	"github.com/pierrec/lz4/v4"
)

// inflateLZ4 expands one block of LZ4.
func inflateLZ4(dst, src []byte, size int) ([]byte, error) {
	if size > 256*len(src)+64 {
		return nil, errPageSize
	}
	dst = grow(dst, size+1)[:size+1] // the library does not bear an empty one
	n, err := lz4.UncompressBlock(src, dst)
	return dst[:max(n, 0)], err
}

// inflateOldLZ4 expands a page of the deprecated codec LZ4, which the format does not define. Java writes the blocks of
// Hadoop with it, C++ one bare block, others a frame of LZ4. Each is told by its lengths: what expands to the page's size,
// with no byte left, is what was meant.
func inflateOldLZ4(dst, src []byte, size int) ([]byte, error) {
	if out, ok := inflateHadoop(dst, src, size); ok {
		return out, nil
	}
	if binary.LittleEndian.Uint32(append(src[:min(4, len(src)):min(4, len(src))], 0, 0, 0, 0)) == lz4FrameMagic {
		return inflate(dst, lz4.NewReader(bytes.NewReader(src)), len(src), size)
	}
	return inflateLZ4(dst, src, size)
}

const lz4FrameMagic = 0x184D2204

// inflateHadoop expands blocks of Hadoop: the size of a block, then the length of each part of it and the part. It reports
// false if src is anything else.
func inflateHadoop(dst, src []byte, size int) (out []byte, ok bool) {
	if size > 256*len(src)+64 {
		return nil, false
	}
	out = grow(dst, size+1)
	number := func() int {
		if len(src) < 4 {
			return -1
		}
		n := int(int32(binary.BigEndian.Uint32(src)))
		src = src[4:]
		return n
	}
	for len(src) > 0 {
		left := number()
		if left < 0 || left > size-len(out) {
			return nil, false
		}
		for left > 0 {
			n := number()
			if n <= 0 || n > len(src) {
				return nil, false
			}
			at := len(out)
			got, err := lz4.UncompressBlock(src[:n], out[at:at+left+1])
			if err != nil || got <= 0 || got > left {
				return nil, false
			}
			out, src, left = out[:at+got], src[n:], left-got
		}
	}
	return out, len(out) == size
}
