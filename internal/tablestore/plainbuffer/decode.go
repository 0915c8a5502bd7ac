package plainbuffer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"example.com/tsimport/internal/table"
)

// Cell is a decoded column. The Value of a deletion is Null. Bytes of a Value are views into the encoded row.
type Cell struct {
	Name    string
	Value   table.Value
	Stamped bool  // the cell has a timestamp
	Stamp   int64 // milliseconds
}

// Decoded is a row decoded from its bytes.
type Decoded struct {
	Key    []Cell
	Cells  []Cell
	Delete bool
}

var errCut = errors.New("decode PlainBuffer row: unexpected end of data")

// Op is the operation that a cell performs on its column.
type Op uint8

// The operations of cells. Set gives a column a value.
const (
	Set Op = iota
	DeleteAll
	DeleteOne
	Add
)

// View is a column in a row's bytes. Name and the bytes of Value are views into the row.
type View struct {
	Name      []byte
	Value     table.Value // Null for a deletion
	Op        Op
	Timestamp int64 // in milliseconds; -1 if there is none
}

// Decode decodes one row made by this package, or a key from the service, without checking checksums.
func Decode(b []byte) (*Decoded, error) {
	d := &Decoded{}
	to := func(cells *[]Cell) func(View) {
		return func(v View) {
			*cells = append(*cells, Cell{string(v.Name), v.Value, v.Timestamp >= 0, max(v.Timestamp, 0)})
		}
	}
	var err error
	d.Delete, err = Walk(b, to(&d.Key), to(&d.Cells))
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Walk decodes one row like Decode, but without allocating. It calls key and cell, which may be nil, for the row's
// columns in order. deleted reports whether the row is a deletion.
func Walk(b []byte, key, cell func(View)) (deleted bool, err error) {
	if len(b) < 5 || binary.LittleEndian.Uint32(b) != header || b[4] != tagRowPK {
		return false, errors.New("decode PlainBuffer row: no header")
	}
	each := key
	for b = b[5:]; len(b) > 0; {
		tag := b[0]
		b = b[1:]
		switch tag {
		case tagRowData:
			each = cell
		case tagDeleteMarker:
			deleted = true
		case tagRowChecksum:
			if len(b) == 0 {
				return false, errCut
			}
			return deleted, nil
		case tagCell:
			v, rest, err := decodeCell(b)
			if err != nil {
				return false, err
			}
			if each != nil {
				each(v)
			}
			b = rest
		default:
			return false, fmt.Errorf("decode PlainBuffer row: unexpected tag %#x", tag)
		}
	}
	return false, errCut
}

var ops = map[byte]Op{opDeleteAllVersions: DeleteAll, opDeleteOneVersion: DeleteOne, opIncrement: Add}

func decodeCell(b []byte) (c View, rest []byte, err error) {
	c.Timestamp = -1
	for len(b) > 0 {
		tag := b[0]
		b = b[1:]
		switch tag {
		case tagCellName:
			if c.Name, b, err = decodeBytes(b); err != nil {
				return c, nil, err
			}
		case tagCellValue:
			var value []byte
			if value, b, err = decodeBytes(b); err != nil {
				return c, nil, err
			}
			if c.Value, err = decodeValue(value); err != nil {
				return c, nil, err
			}
		case tagCellType, tagCellChecksum:
			if len(b) < 1 {
				return c, nil, errCut
			}
			if tag == tagCellChecksum {
				return c, b[1:], nil
			}
			c.Op = ops[b[0]]
			b = b[1:]
		case tagCellTimestamp:
			if len(b) < 8 {
				return c, nil, errCut
			}
			c.Timestamp = int64(binary.LittleEndian.Uint64(b))
			b = b[8:]
		default:
			return c, nil, fmt.Errorf("decode PlainBuffer cell: unexpected tag %#x", tag)
		}
	}
	return c, nil, errCut
}

func decodeBytes(b []byte) (v, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, errCut
	}
	n := binary.LittleEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return nil, nil, errCut
	}
	return b[4 : 4+n], b[4+n:], nil
}

func decodeValue(b []byte) (table.Value, error) {
	if len(b) == 0 {
		return table.Value{}, errCut
	}
	variant, b := b[0], b[1:]
	switch {
	case variant == variantInteger && len(b) == 8:
		return table.Value{Type: table.Integer, Int: int64(binary.LittleEndian.Uint64(b))}, nil
	case variant == variantDouble && len(b) == 8:
		return table.Value{Type: table.Double, Double: math.Float64frombits(binary.LittleEndian.Uint64(b))}, nil
	case variant == variantBoolean && len(b) == 1:
		return table.Value{Type: table.Boolean, Int: int64(b[0])}, nil
	case variant == variantString || variant == variantBinary:
		v, _, err := decodeBytes(b)
		t := table.String
		if variant == variantBinary {
			t = table.Binary
		}
		return table.Value{Type: t, Bytes: v}, err
	case variant == variantAutoIncrement:
		return table.Value{}, nil
	}
	return table.Value{}, fmt.Errorf("decode PlainBuffer value: variant %#x of %d bytes", variant, len(b))
}

// Variant types that occur only in primary keys of responses, as ends of ranges.
const (
	variantNull   = 0x06
	variantInfMin = 0x09
	variantInfMax = 0x0a
)

var errChecksum = errors.New("check PlainBuffer rows: a checksum is wrong")

// CheckRows checks the rows of a response like RowReader.Read and returns their number.
func CheckRows(b []byte) (rows int, err error) { return new(RowReader).Read(b, nil) }

// checkValue returns an error if the length of a value does not match its type and length field.
func checkValue(b []byte) error {
	size := -1
	if len(b) > 0 {
		switch b[0] {
		case variantInteger, variantDouble:
			size = 9
		case variantBoolean:
			size = 2
		case variantString, variantBinary:
			if len(b) >= 5 {
				size = 5 + int(binary.LittleEndian.Uint32(b[1:]))
			}
		case variantNull, variantInfMin, variantInfMax, variantAutoIncrement:
			size = 1
		}
	}
	if size != len(b) {
		return fmt.Errorf("check PlainBuffer rows: a value of %d bytes is not as long as its type says", len(b))
	}
	return nil
}
