package plainbuffer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"tsimport/table"
)

// Cell is one decoded column. A cell without a value (a deletion) has a Value of type Null. Bytes are views into
// what was decoded.
type Cell struct {
	Name    string
	Value   table.Value
	Stamped bool  // it has a timestamp
	Stamp   int64 // milliseconds
}

// Decoded is a row read back from its bytes.
type Decoded struct {
	Key    []Cell
	Cells  []Cell
	Delete bool
}

var errCut = errors.New("decode PlainBuffer row: the bytes end too early")

// Decode reads one row without checking its checksums: one that this package encoded, to look at it again, or a key that
// the service has returned for a row.
func Decode(b []byte) (*Decoded, error) {
	if len(b) < 5 || binary.LittleEndian.Uint32(b) != header || b[4] != tagRowPK {
		return nil, errors.New("decode PlainBuffer row: no header")
	}
	d := &Decoded{}
	cells := &d.Key
	for b = b[5:]; len(b) > 0; {
		tag := b[0]
		b = b[1:]
		switch tag {
		case tagRowData:
			cells = &d.Cells
		case tagDeleteMarker:
			d.Delete = true
		case tagRowChecksum:
			return d, nil
		case tagCell:
			c, rest, err := decodeCell(b)
			if err != nil {
				return nil, err
			}
			*cells = append(*cells, c)
			b = rest
		default:
			return nil, fmt.Errorf("decode PlainBuffer row: unexpected tag %#x", tag)
		}
	}
	return nil, errCut
}

func decodeCell(b []byte) (c Cell, rest []byte, err error) {
	for len(b) > 0 {
		tag := b[0]
		b = b[1:]
		switch tag {
		case tagCellName:
			var name []byte
			if name, b, err = decodeBytes(b); err != nil {
				return c, nil, err
			}
			c.Name = string(name)
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
			b = b[1:]
			if tag == tagCellChecksum {
				return c, b, nil
			}
		case tagCellTimestamp:
			if len(b) < 8 {
				return c, nil, errCut
			}
			c.Stamped, c.Stamp = true, int64(binary.LittleEndian.Uint64(b))
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
