package wire

import "unicode/utf8"

// Limits of the service (its own integration tests are the source where they and the documentation differ).
const (
	MaxBodyBytes        = 5 << 20 // of the body as transmitted, and of the body inflated
	MaxBatchWriteRows   = 200
	MaxBatchGetRows     = 100
	MaxRequestDataBytes = 4 << 20 // names and values of all rows of one write request
	MaxKeyColumns       = 4
	MaxIndexColumns     = 4 // of the key that an index names
	MaxIndexKeyColumns  = 8 // of an index, with those of its table
	MaxKeyValueBytes    = 1024
	MaxCells            = 1024 // attribute cells of one row in one write
	MaxValueBytes       = 2 << 20
	MaxNameBytes        = 255
	MaxColumnsToGet     = 1024
	MaxDefinedColumns   = 32
	MaxTablePartitions  = 10 // that CreateTable may ask for

	MaxPartitionBoundBytes = 64 // of a STRING or BINARY bound of those
	MaxRangeRows           = 5000
	MaxRangeBytes          = 4 << 20
	MaxReservedUnits       = 100_000
	CapacityUnitBytes      = 4096
	MaxTimestamp           = (1<<63 - 1) / 1000      // milliseconds, exclusive
	MaxDeviation           = (1<<63 - 1) / 1_000_000 // seconds
	DefaultDeviation       = 86_400                  // seconds
	MinSplitUnitBytes      = 1 << 20
	DefaultSplitUnitBytes  = 100 << 20
)

// ValidTableName reports whether name is 1…255 bytes of [A-Za-z_][A-Za-z0-9_]*.
func ValidTableName(name []byte) bool {
	if len(name) == 0 || len(name) > MaxNameBytes {
		return false
	}
	for i, c := range name {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// ValidColumnName follows the service rather than its documentation: any UTF-8 of 1…255 bytes, no leading '#'.
func ValidColumnName(name []byte) bool {
	return len(name) > 0 && len(name) <= MaxNameBytes && name[0] != '#' && utf8.Valid(name)
}

// Units is the capacity units of size bytes: 4 KB each, rounded up.
func Units(size int) int32 {
	return int32((size + CapacityUnitBytes - 1) / CapacityUnitBytes)
}
