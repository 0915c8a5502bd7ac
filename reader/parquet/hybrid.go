package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

var (
	errShort = errors.New("page holds fewer values than its header says")
	errLeft  = errors.New("page holds more values than its header says")
)

// hybrid reads runs of the hybrid of RLE and bit-packing, which encodes levels, dictionary indexes and booleans.
type hybrid struct {
	b      []byte
	width  uint
	run    uint64 // number of repetitions left in the run
	value  uint32
	packed uint64 // number of bits left in the packed run
	bit    uint64 // position in b of the next value, in bits
	big    bool   // for deprecated BIT_PACKED: all of b is packed, highest bit first
	last   []byte // bytes from the head of the last run onwards
	sole   bool   // there are no runs, because all values are 0
}

func (h *hybrid) reset(b []byte, width uint) error {
	if width > 32 {
		return fmt.Errorf("bit width %d is more than 32", width)
	}
	*h = hybrid{b: b, width: width}
	return nil
}

// resetPacked begins deprecated BIT_PACKED levels, which have neither runs nor a length.
func (h *hybrid) resetPacked(b []byte, width uint) {
	*h = hybrid{b: b, width: width, big: true, packed: uint64(len(b)) * 8}
}

func widthOf(maximum int) uint { return uint(bits.Len(uint(maximum))) }

func (h *hybrid) read(dst []uint32) error {
	for len(dst) > 0 {
		switch {
		case h.sole:
			clear(dst)
			return nil
		case h.run > 0:
			n := int(min(h.run, uint64(len(dst))))
			for i := range dst[:n] {
				dst[i] = h.value
			}
			h.run -= uint64(n)
			dst = dst[n:]
		case h.packed > 0 && h.packed >= uint64(h.width):
			n := int(min(h.packed/uint64(h.width), uint64(len(dst))))
			if h.big {
				h.unpackBig(dst[:n])
			} else {
				h.unpack(dst[:n])
			}
			dst = dst[n:]
		default:
			if err := h.next(); err != nil {
				return err
			}
		}
	}
	return nil
}

// next reads the head of the next run.
func (h *hybrid) next() error {
	if h.packed > 0 || h.bit > 0 { // skip the rest of the packed run
		h.b = h.b[(h.bit+h.packed)/8:]
		h.packed, h.bit = 0, 0
	}
	if h.big {
		return errShort
	}
	h.last = h.b
	head, n := binary.Uvarint(h.b)
	if n <= 0 {
		return errShort
	}
	h.b = h.b[n:]
	if head>>1 == 0 {
		return nil // an empty run, whose head took at least a byte
	}
	if h.width == 0 { // values of zero bits, which still count
		h.value, h.run = 0, head>>1
		if head&1 == 1 {
			h.run = min(h.run, math.MaxUint64/8) * 8
		}
		return nil
	}
	if head&1 == 1 {
		// A truncated last run is common and harmless: missing values are noticed when they are read.
		groups := min(head>>1, uint64(len(h.b))/uint64(h.width)+1)
		h.packed = min(groups*uint64(h.width), uint64(len(h.b))) * 8
		if h.packed < uint64(h.width) {
			return errShort
		}
		return nil
	}
	size := int(h.width+7) / 8
	if len(h.b) < size {
		return errShort
	}
	h.value = 0
	for i := range size {
		h.value |= uint32(h.b[i]) << (8 * i)
	}
	h.b = h.b[size:]
	h.run = head >> 1
	return nil
}

// finish checks that no values are left. A packed run at the end may have any padding up to the end of a group of
// values, and zeros after it.
func (h *hybrid) finish(group uint64) error {
	if h.sole {
		return nil
	}
	if h.width == 0 {
		h.run &^= 7 // the rest is padding
	}
	for end := h.bit + h.packed; h.bit < end; h.bit += 8 {
		bits := load(h.b, h.bit)
		if n := end - h.bit; n < 8 {
			bits &= 1<<n - 1
		}
		if bits&0xff != 0 && h.packed >= group*uint64(h.width) {
			return errLeft
		}
	}
	rest := h.b[min((h.bit+7)/8, uint64(len(h.b))):]
	for len(rest) > 0 && rest[0] <= 1 { // heads of empty runs
		rest = rest[1:]
	}
	if h.run > 0 || len(rest) > 0 && !h.repeated(rest) {
		return errLeft
	}
	return nil
}

// finishLevels is like finish, for levels. One level may be left: Impala before 2.6 adds the next page's first level.
func (h *hybrid) finishLevels(group uint64) error {
	one := *h
	err := h.finish(group)
	if err != nil && one.read(make([]uint32, 1)) == nil {
		return one.finish(group)
	}
	return err
}

// repeated reports whether rest repeats the last run: at the end of a page, DuckDB 1.3 writes it twice.
func (h *hybrid) repeated(rest []byte) bool {
	n := len(h.last) - len(rest)
	return !h.big && n > 0 && bytes.Equal(h.last[:n], rest)
}

func (h *hybrid) unpack(dst []uint32) {
	mask := uint64(1)<<h.width - 1
	bit := h.bit
	for i := range dst {
		dst[i] = uint32(load(h.b, bit) & mask)
		bit += uint64(h.width)
	}
	h.packed -= bit - h.bit
	h.bit = bit
}

func (h *hybrid) unpackBig(dst []uint32) {
	for i := range dst {
		v := uint32(0)
		for range h.width {
			v = v<<1 | uint32(h.b[h.bit/8]>>(7-h.bit%8)&1)
			h.bit++
		}
		dst[i] = v
		h.packed -= uint64(h.width)
	}
}

// load returns at least 57 bits of b from position bit on. After the end of b, they are zeros.
func load(b []byte, bit uint64) uint64 {
	i := bit / 8
	if i+8 <= uint64(len(b)) {
		return binary.LittleEndian.Uint64(b[i:]) >> (bit % 8)
	}
	v := uint64(0)
	for k := uint64(0); i+k < uint64(len(b)); k++ {
		v |= uint64(b[i+k]) << (8 * k)
	}
	return v >> (bit % 8)
}
