package contract

import (
	endian "encoding/binary"
	"math"
)

// Variants of PlainBuffer, without the size in front.
func vInt(v int64) []byte { return endian.LittleEndian.AppendUint64([]byte{0}, uint64(v)) }
func vDouble(f float64) []byte {
	return endian.LittleEndian.AppendUint64([]byte{1}, math.Float64bits(f))
}
func vBool(b byte) []byte     { return []byte{2, b} }
func vText(s string) []byte   { return sized([]byte{3}, s) }
func vBinary(s string) []byte { return sized([]byte{7}, s) }

var vNull, vInfMin, vInfMax, vAuto = []byte{6}, []byte{9}, []byte{10}, []byte{11}

func sized(b []byte, s string) []byte {
	return append(endian.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
}

// wireCell is a cell as a client may write it, rightly or not. Without a value it has no value tag.
type wireCell struct {
	name     string
	value    []byte
	op       byte // 0 is none
	ts       int64
	stamped  bool
	nameless bool // no name tag at all
	emptyTag bool // a value tag with nothing after it
	noCRC    bool
	wrongCRC bool
	wrongLen int // added to the size that follows the value tag
}

// wireRow is a row as a client may write it. The writer is the suite's own: SDKs cannot send most of what is refused.
type wireRow struct {
	key, cells []wireCell
	marker     bool
	extension  []byte
	noCRC      bool
	wrongCRC   bool
}

const plainHeader = "\x75\x00\x00\x00"

// encode writes a header and the row.
func (r wireRow) encode() []byte { return append([]byte(plainHeader), r.body()...) }

func (r wireRow) body() []byte {
	crc := byte(0)
	b := []byte{0x01}
	for _, c := range r.key {
		b, crc = c.append(b, crc)
	}
	if len(r.cells) > 0 {
		b = append(b, 0x02)
	}
	for _, c := range r.cells {
		b, crc = c.append(b, crc)
	}
	last := byte(0)
	if r.marker {
		b, last = append(b, 0x08), 1
	}
	if r.extension != nil {
		b = sized(append(b, 0x0B), string(r.extension))
	}
	crc = crcOf(crc, []byte{last})
	if r.wrongCRC {
		crc ^= 1
	}
	if r.noCRC {
		return b
	}
	return append(b, 0x09, crc)
}

// append writes the cell and feeds its checksum to the row's.
func (c wireCell) append(b []byte, row byte) ([]byte, byte) {
	b = append(b, 0x03)
	if !c.nameless {
		b = sized(append(b, 0x04), c.name)
	}
	crc := crcOf(0, []byte(c.name))
	if c.emptyTag {
		b = append(b, 0x05)
	}
	if c.value != nil {
		b = endian.LittleEndian.AppendUint32(append(b, 0x05), uint32(len(c.value)+c.wrongLen))
		b = append(b, c.value...)
		crc = crcOf(crc, c.value)
	}
	if c.op != 0 {
		b = append(b, 0x06, c.op)
	}
	if c.stamped {
		ts := endian.LittleEndian.AppendUint64(nil, uint64(c.ts))
		b, crc = append(append(b, 0x07), ts...), crcOf(crc, ts)
	}
	if c.op != 0 {
		crc = crcOf(crc, []byte{c.op})
	}
	if c.wrongCRC {
		crc ^= 1
	}
	if !c.noCRC {
		b = append(b, 0x0A, crc)
	}
	return b, crcOf(row, []byte{crc})
}

// crcOf is CRC-8 of polynomial 07, bit by bit.
func crcOf(crc byte, b []byte) byte {
	for _, x := range b {
		crc ^= x
		for range 8 {
			if crc&0x80 != 0 {
				crc = crc<<1 ^ 0x07
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// wireKey is the key of tables of the standard schema.
func wireKey(a string, b int64) []wireCell {
	return []wireCell{{name: "pk1", value: vText(a)}, {name: "pk2", value: vInt(b)}}
}

// consumed is ConsumedCapacity as an answer's field.
func consumed(field int, read, write int64) message {
	return message{}.bytes(field, message{}.bytes(1, message{}.int(1, read).int(2, write)))
}
