package wire

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
)

// ValueType is a variant type of PlainBuffer.
type ValueType byte

// The variant types, and NoValue for a cell without a value tag.
const (
	Integer       ValueType = 0
	Double        ValueType = 1
	Boolean       ValueType = 2
	String        ValueType = 3
	Null          ValueType = 6
	Binary        ValueType = 7
	InfMin        ValueType = 9
	InfMax        ValueType = 10
	AutoIncrement ValueType = 11
	NoValue       ValueType = 255
)

var typeNames = map[ValueType]string{
	Integer: "VT_INTEGER", Double: "VT_DOUBLE", Boolean: "VT_BOOLEAN", String: "VT_STRING", Null: "VT_NULL",
	Binary: "VT_BLOB", InfMin: "VT_INF_MIN", InfMax: "VT_INF_MAX", AutoIncrement: "VT_AUTO_INCREMENT",
}

// String returns the type's name in the service's messages.
func (t ValueType) String() string { return cmp.Or(typeNames[t], "VT_NONE") }

// CellOp is the operation of UpdateRow on a cell.
type CellOp byte

// The cell operations, and PutCell for a cell without an operation tag.
const (
	PutCell       CellOp = 0
	DeleteColumn  CellOp = 1
	DeleteVersion CellOp = 3
	Increment     CellOp = 4
)

// Cell is a primary-key column or a version of an attribute column. Name and Value are views into the decoded bytes.
// Value is the payload: eight little-endian bytes, one byte, or the content of a string or binary.
type Cell struct {
	Name      []byte
	Value     []byte
	Timestamp int64 // milliseconds; valid if Stamped
	Type      ValueType
	Op        CellOp
	Stamped   bool
	valid     bool // ValidColumnName(Name) is known to hold
}

// Int returns the value of an INTEGER cell.
func (c *Cell) Int() int64 { return int64(binary.LittleEndian.Uint64(c.Value)) }

// Float returns the value of a DOUBLE cell.
func (c *Cell) Float() float64 { return math.Float64frombits(binary.LittleEndian.Uint64(c.Value)) }

// Text returns the value as text for messages.
func (c *Cell) Text() string {
	switch c.Type {
	case Integer:
		return strconv.FormatInt(c.Int(), 10)
	case String:
		return string(c.Value)
	case InfMin, InfMax:
		return c.Type.String()
	}
	return hex.EncodeToString(c.Value)
}

// DataBytes returns the cell's size for capacity units: name and value, without the timestamp.
func (c *Cell) DataBytes() int { return len(c.Name) + len(c.Value) }

// Row is a decoded row: its primary key, its attribute cells in wire order, and the delete marker.
type Row struct {
	Key    []Cell
	Cells  []Cell
	Delete bool
}

// DataBytes returns the row's size for capacity units.
func (r *Row) DataBytes() int { return DataBytes(r.Key) + DataBytes(r.Cells) }

// DataBytes returns the cells' size for capacity units.
func DataBytes(cells []Cell) (n int) {
	for i := range cells {
		n += cells[i].DataBytes()
	}
	return n
}
