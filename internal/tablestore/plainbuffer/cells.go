package plainbuffer

import (
	"encoding/binary"
	"math"

	"example.com/tsimport/internal/table"
)

// Cells iterates over a row's cells without copying. The row must be made by this package or checked by a RowReader.
type Cells struct {
	rest []byte // bytes after the current cell

	Content   []byte // name, type and value: cells with equal bytes differ only in their timestamps
	Op        Op
	Timestamp int64 // in milliseconds; -1 if there is none
}

// Next moves to the next cell. It returns false at the end.
func (c *Cells) Next() bool {
	b := c.rest
	if len(b) < 6 || b[0] != tagCell {
		return false
	}
	at := 6 + int(binary.LittleEndian.Uint32(b[2:])) // offset after the name
	if b[at] == tagCellValue {
		at += 5 + int(binary.LittleEndian.Uint32(b[at+1:]))
	}
	c.Content, c.Op, c.Timestamp = b[2:at:at], Set, -1
	if b[at] == tagCellType {
		c.Op = ops[b[at+1]]
		at += 2
	}
	if b[at] == tagCellTimestamp {
		c.Timestamp = int64(binary.LittleEndian.Uint64(b[at+1:]))
		at += 9
	}
	c.rest = b[at+2:]
	return true
}

func (c *Cells) Name() []byte { return c.Content[4 : 4+binary.LittleEndian.Uint32(c.Content)] }

// Value returns the cell's value, or Null if it has none. Its bytes are views into the row.
func (c *Cells) Value() table.Value {
	at := 4 + int(binary.LittleEndian.Uint32(c.Content))
	if at == len(c.Content) {
		return table.Value{}
	}
	return Encoded(c.Content[at+5:]).Value()
}

// Encoded returns the cell's encoded value. The cell must have one.
func (c *Cells) Encoded() Encoded {
	return Encoded(c.Content[4+binary.LittleEndian.Uint32(c.Content)+5:])
}

// Encoded is an encoded value in a row: its type and its bytes.
type Encoded []byte

func (e Encoded) Type() table.Type { return variantTypes[e[0]] }

// Value decodes the value. Bytes of the result are a view into e.
func (e Encoded) Value() table.Value {
	v := table.Value{Type: e.Type()}
	switch v.Type {
	case table.Integer:
		v.Int = int64(e.Word())
	case table.Double:
		v.Double = math.Float64frombits(e.Word())
	case table.Boolean:
		v.Int = int64(e[1])
	case table.String, table.Binary:
		v.Bytes = e.Bytes()
	}
	return v
}

// Word returns an integer, or the bits of a double.
func (e Encoded) Word() uint64 { return binary.LittleEndian.Uint64(e[1:]) }

// True reports whether a boolean is true.
func (e Encoded) True() bool { return e[1] != 0 }

// Bytes returns the bytes of a string or binary value.
func (e Encoded) Bytes() []byte { return e[5:] }

var variantTypes = [256]table.Type{
	variantInteger: table.Integer, variantDouble: table.Double, variantBoolean: table.Boolean, variantString: table.String,
	variantBinary: table.Binary,
}

// appendKey appends the encoded value of a key column to an ordering key.
func appendKey(dst, value []byte) []byte {
	if value[0] == variantInteger {
		return binary.BigEndian.AppendUint64(dst, binary.LittleEndian.Uint64(value[1:])^(1<<63))
	}
	return table.AppendKey(dst, table.Value{Type: table.String, Bytes: value[5:]})
}

// KeyCells iterates over the primary key of a row with or without a header.
func KeyCells(row []byte) Cells { return Cells{rest: WithoutHeader(row)[1:]} }

// CellsOf iterates over the attributes of a row with or without a header.
func CellsOf(row []byte) Cells {
	c := KeyCells(row)
	for c.Next() {
	}
	return c.Attributes()
}

// Attributes iterates over the attributes after a complete iteration over the key.
func (c *Cells) Attributes() Cells { return AttributesOf(c.rest) }

// AttributesOf iterates over the attributes in the bytes after a row's key.
func AttributesOf(afterKey []byte) Cells {
	if len(afterKey) > 0 && afterKey[0] == tagRowData {
		return Cells{rest: afterKey[1:]}
	}
	return Cells{}
}

// Newest returns the value of a key column or the newest version of an attribute, or Null if there is none.
func Newest(row []byte, name string) (v table.Value) {
	key := KeyCells(row)
	for key.Next() {
		if string(key.Name()) == name {
			return key.Value()
		}
	}
	at := int64(-1)
	for c := key.Attributes(); c.Next(); {
		if string(c.Name()) == name && (v.Type == table.Null || c.Timestamp > at) {
			v, at = c.Value(), c.Timestamp
		}
	}
	return v
}

// WithoutHeader returns a row without its header, if it has one.
func WithoutHeader(row []byte) []byte {
	if len(row) > 4 && row[0] == header {
		return row[4:]
	}
	return row
}
