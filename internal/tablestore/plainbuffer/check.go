package plainbuffer

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Further values of primary-key columns in answers: the ends of ranges.
const (
	variantNull   = 0x06
	variantInfMin = 0x09
	variantInfMax = 0x0a
)

var errChecksum = errors.New("check PlainBuffer rows: a checksum is wrong")

// CheckRows checks the rows of an answer, which follow each other after one header, to their last byte: that they are whole,
// that every value has its length, and the checksum of every cell and row. It returns how many there are; empty input has no
// rows.
func CheckRows(b []byte) (rows int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != header {
		return 0, errors.New("check PlainBuffer rows: no header")
	}
	for b = b[4:]; len(b) > 0; rows++ {
		if b, err = checkRow(b); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

func checkRow(b []byte) (rest []byte, err error) {
	crc, deleted := byte(0), byte(0)
	for len(b) > 1 {
		tag := b[0]
		b = b[1:]
		switch tag {
		case tagRowPK, tagRowData:
		case tagDeleteMarker:
			deleted = 1
		case tagCell:
			var cell byte
			if cell, b, err = checkCell(b); err != nil {
				return nil, err
			}
			crc = crcByte(crc, cell)
		case tagRowChecksum:
			if b[0] != crcByte(crc, deleted) {
				return nil, errChecksum
			}
			return b[1:], nil
		default:
			return nil, fmt.Errorf("check PlainBuffer rows: unexpected tag %#x", tag)
		}
	}
	return nil, errCut
}

// checkCell returns the cell's checksum.
func checkCell(b []byte) (crc byte, rest []byte, err error) {
	op, hasOp := byte(0), false
	for last := byte(0); len(b) > 1; {
		tag := b[0]
		b = b[1:]
		if inOrder := tag > last && (last > 0 || tag == tagCellName); !inOrder {
			return 0, nil, fmt.Errorf("check PlainBuffer rows: tag %#x after %#x in a cell", tag, last)
		}
		last = tag
		switch tag {
		case tagCellName:
			var name []byte
			if name, b, err = decodeBytes(b); err != nil {
				return 0, nil, err
			}
			crc = crcBytes(crc, name)
		case tagCellValue:
			var value []byte
			if value, b, err = decodeBytes(b); err != nil {
				return 0, nil, err
			}
			if err = checkValue(value); err != nil {
				return 0, nil, err
			}
			crc = crcBytes(crc, value)
		case tagCellType: // stands before the timestamp, and counts after it
			op, hasOp = b[0], true
			b = b[1:]
		case tagCellTimestamp:
			if len(b) < 8 {
				return 0, nil, errCut
			}
			crc = crc64LE(crc, binary.LittleEndian.Uint64(b))
			b = b[8:]
		case tagCellChecksum:
			if hasOp {
				crc = crcByte(crc, op)
			}
			if b[0] != crc {
				return 0, nil, errChecksum
			}
			return crc, b[1:], nil
		default:
			return 0, nil, fmt.Errorf("check PlainBuffer rows: unexpected tag %#x in a cell", tag)
		}
	}
	return 0, nil, errCut
}

// checkValue checks that a value is as long as it says.
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
