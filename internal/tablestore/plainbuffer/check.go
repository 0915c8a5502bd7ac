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

// CheckRows checks the rows of an answer as RowReader.Read does, and returns how many there are.
func CheckRows(b []byte) (rows int, err error) { return new(RowReader).Read(b, nil) }

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
