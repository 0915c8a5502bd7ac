package wire

import (
	"bytes"
	"encoding/binary"
)

// RowWriter appends the rows of a page like AppendRow, but caches names. Call Begin, then Key and Cell, then End.
type RowWriter struct {
	dst     []byte
	crc     byte // checksum of the row
	at      int  // index of the row's next cell
	data    bool // the row has attributes
	names   []writtenName
	stamp   int64
	stamped stampBytes // encoding of stamp
}

// writtenName is the encoded start of a cell, up to its value.
type writtenName struct {
	name  []byte
	bytes []byte
	crc   byte
}

// stampBytes is the encoded end of a cell with a timestamp, and its effect on the checksum, which is linear.
type stampBytes struct {
	first, rest byte
	bytes       [10]byte
}

// Begin starts a row, to be appended to dst.
func (w *RowWriter) Begin(dst []byte) { w.dst, w.crc, w.at, w.data = dst, 0, 0, false }

// End completes the row and returns Begin's dst with the row appended.
func (w *RowWriter) End() []byte { return append(w.dst, tagRowChecksum, crc8Byte(w.crc, 0)) }

// Key appends a key column. Key columns precede attributes.
func (w *RowWriter) Key(c *Cell) {
	if w.at == 0 {
		w.dst = append(w.dst, tagKey)
	}
	b, crc := w.value(c.Name, c.Type, c.Value, 2)
	b[0], b[1] = tagCellChecksum, crc
	w.crc = crc8Byte(w.crc, crc)
}

func (w *RowWriter) Cell(name []byte, typ ValueType, value []byte, timestamp int64) {
	if !w.data {
		w.data = true
		w.dst = append(w.dst, tagData)
	}
	if timestamp != w.stamp || w.stamped.bytes[0] == 0 {
		w.stampOf(timestamp)
	}
	b, crc := w.value(name, typ, value, len(w.stamped.bytes)+1)
	copy(b, w.stamped.bytes[:])
	crc = crcTables[7][crc^w.stamped.first] ^ w.stamped.rest
	b[len(w.stamped.bytes)] = crc
	w.crc = crc8Byte(w.crc, crc)
}

func (w *RowWriter) stampOf(timestamp int64) {
	w.stamp = timestamp
	s := &w.stamped
	s.bytes[0], s.bytes[9] = tagTimestamp, tagCellChecksum
	binary.LittleEndian.PutUint64(s.bytes[1:], uint64(timestamp))
	s.first = s.bytes[1]
	s.rest = crc8Int64(0, timestamp&^0xff)
}

// value appends a cell up to its value, and rest bytes for its end. It returns the latter and the checksum so far.
func (w *RowWriter) value(name []byte, typ ValueType, value []byte, rest int) (end []byte, crc byte) {
	if w.at == len(w.names) {
		w.names = append(w.names, writtenName{})
	}
	n := &w.names[w.at]
	w.at++
	if n.bytes == nil || !bytes.Equal(n.name, name) {
		n.set(name)
	}
	from := len(w.dst)
	size := len(n.bytes) + 5 + len(value) // including the type
	sized := typ == String || typ == Binary
	if sized {
		size += 4
	}
	if cap(w.dst)-from < size+rest {
		w.dst = append(w.dst, make([]byte, size+rest)...)
	} else {
		w.dst = w.dst[:from+size+rest]
	}
	b := w.dst[from:]
	b = b[copy(b, n.bytes):]
	variant := b[4 : size-len(n.bytes)]
	binary.LittleEndian.PutUint32(b, uint32(len(variant)))
	variant[0] = byte(typ)
	if sized {
		binary.LittleEndian.PutUint32(variant[1:], uint32(len(value)))
		copy(variant[5:], value)
	} else {
		copy(variant[1:], value)
	}
	return b[size-len(n.bytes):], crc8(n.crc, variant)
}

func (n *writtenName) set(name []byte) {
	b := append(n.bytes[:0], tagCell, tagName)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(name)))
	b = append(append(b, name...), tagValue)
	n.bytes, n.name, n.crc = b, b[6:len(b)-1], crc8(0, name)
}
