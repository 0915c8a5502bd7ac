package plainbuffer

import (
	"encoding/binary"
	"math"

	"example.com/tsimport/internal/table"
)

// The format's tags, variant types and cell operations, named as in Tablestore's SDKs.
const (
	header = 0x75

	tagRowPK         = 0x01
	tagRowData       = 0x02
	tagCell          = 0x03
	tagCellName      = 0x04
	tagCellValue     = 0x05
	tagCellType      = 0x06
	tagCellTimestamp = 0x07
	tagDeleteMarker  = 0x08
	tagRowChecksum   = 0x09
	tagCellChecksum  = 0x0a

	variantInteger       = 0x00
	variantDouble        = 0x01
	variantBoolean       = 0x02
	variantString        = 0x03
	variantBinary        = 0x07
	variantAutoIncrement = 0x0b

	opDeleteAllVersions = 0x01
	opDeleteOneVersion  = 0x03
	opIncrement         = 0x04
)

// Name is a column name prepared for many rows: the bytes that begin the column's cells, and their checksum.
type Name struct {
	head []byte
	crc  byte
	size int
}

func NewName(name string) Name {
	head := make([]byte, 0, 6+len(name))
	head = append(head, tagCell, tagCellName)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(name)))
	head = append(head, name...)
	return Name{head: head, crc: crcBytes(0, []byte(name)), size: len(name)}
}

// Names maps column names to prepared names.
type Names map[string]*Name

// Of returns the prepared name of a column.
func (n Names) Of(column string) *Name {
	name := n[column]
	if name == nil {
		name = new(NewName(column))
		n[column] = name
	}
	return name
}

func (n *Name) Len() int { return n.size }

// Row appends a row to a buffer. Call Begin, add the primary-key columns in schema order, add the cells, and call End.
// After End, the Row can be used again. It allocates only to grow the buffer.
type Row struct {
	buf  []byte
	crc  byte
	data bool // the ROW_DATA tag has been written

	stamp    uint64 // timestamp of the previous cell
	stampCRC byte   // checksum of stamp alone
}

// Begin begins a row, which is appended to dst.
func (r *Row) Begin(dst []byte) {
	*r = Row{buf: append(dst, header, 0, 0, 0, tagRowPK)}
}

// Key adds a primary-key column: an Integer, String or Binary.
func (r *Row) Key(n *Name, v table.Value) {
	r.buf = append(r.buf, n.head...)
	r.closeCell(r.value(n.crc, v))
}

// KeyAutoIncrement adds the placeholder for a primary-key column whose value the server generates.
func (r *Row) KeyAutoIncrement(n *Name) {
	r.buf = append(r.buf, n.head...)
	r.buf = append(r.buf, tagCellValue, 1, 0, 0, 0, variantAutoIncrement)
	r.closeCell(crcByte(n.crc, variantAutoIncrement))
}

// Cell adds an attribute cell whose timestamp is the server's time.
func (r *Row) Cell(n *Name, v table.Value) {
	r.openCell(n)
	r.closeCell(r.value(n.crc, v))
}

// CellAt adds an attribute cell with a timestamp in milliseconds.
func (r *Row) CellAt(n *Name, v table.Value, timestamp int64) {
	r.openCell(n)
	r.closeCell(r.timestamp(r.value(n.crc, v), timestamp))
}

// DeleteColumn removes all versions of a column (updates only).
func (r *Row) DeleteColumn(n *Name) {
	r.openCell(n)
	r.buf = append(r.buf, tagCellType, opDeleteAllVersions)
	r.closeCell(crcByte(n.crc, opDeleteAllVersions))
}

// Increment adds delta to an integer column (updates only).
func (r *Row) Increment(n *Name, delta int64) {
	r.openCell(n)
	crc := r.value(n.crc, table.Value{Type: table.Integer, Int: delta})
	r.buf = append(r.buf, tagCellType, opIncrement)
	r.closeCell(crcByte(crc, opIncrement))
}

// Unfinished returns the buffer with the row so far.
func (r *Row) Unfinished() []byte { return r.buf }

// End completes a put or updated row and returns the buffer.
func (r *Row) End() []byte {
	return append(r.buf, tagRowChecksum, crcByte(r.crc, 0))
}

// EndDelete completes the deletion of a row and returns the buffer.
func (r *Row) EndDelete() []byte {
	return append(r.buf, tagDeleteMarker, tagRowChecksum, crcByte(r.crc, 1))
}

func (r *Row) openCell(n *Name) {
	if !r.data {
		r.buf = append(r.buf, tagRowData)
		r.data = true
	}
	r.buf = append(r.buf, n.head...)
}

func (r *Row) closeCell(crc byte) {
	r.buf = append(r.buf, tagCellChecksum, crc)
	r.crc = crcByte(r.crc, crc)
}

func (r *Row) timestamp(crc byte, ms int64) byte {
	r.buf = append(r.buf, tagCellTimestamp)
	r.buf = binary.LittleEndian.AppendUint64(r.buf, uint64(ms))
	if uint64(ms) != r.stamp { // most cells of a row have the same timestamp
		r.stamp, r.stampCRC = uint64(ms), crc64LE(0, uint64(ms))
	}
	return crcTables[7][crc] ^ r.stampCRC
}

// value appends the value of a cell and returns the continued checksum.
func (r *Row) value(crc byte, v table.Value) byte {
	switch v.Type {
	case table.Integer:
		return r.word(crc, variantInteger, uint64(v.Int))
	case table.Double:
		return r.word(crc, variantDouble, math.Float64bits(v.Double))
	case table.Boolean:
		r.buf = append(r.buf, tagCellValue, 2, 0, 0, 0, variantBoolean, byte(v.Int))
		return crcByte(crcByte(crc, variantBoolean), byte(v.Int))
	case table.String:
		return r.bytes(crc, variantString, v.Bytes)
	case table.Binary:
		return r.bytes(crc, variantBinary, v.Bytes)
	}
	// The caller must leave out a column without a value, because a null would corrupt the request.
	panic("plainbuffer: value of type " + v.Type.String())
}

func (r *Row) word(crc byte, variant byte, v uint64) byte {
	r.buf = append(r.buf, tagCellValue, 9, 0, 0, 0, variant)
	r.buf = binary.LittleEndian.AppendUint64(r.buf, v)
	return crc64LE(crcByte(crc, variant), v)
}

func (r *Row) bytes(crc byte, variant byte, v []byte) byte {
	n := uint32(len(v))
	r.buf = append(r.buf, tagCellValue)
	r.buf = binary.LittleEndian.AppendUint32(r.buf, n+5)
	r.buf = append(r.buf, variant)
	r.buf = binary.LittleEndian.AppendUint32(r.buf, n)
	r.buf = append(r.buf, v...)
	return crcBytes(crc32LE(crcByte(crc, variant), n), v)
}
