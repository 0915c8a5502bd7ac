package table

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// The service's limits; it refuses requests beyond them. Sizes are in its own accounting (names plus values, see
// Value.Size), except MaxBodyBytes, the bytes sent. Source: the documentation and the SDKs' integration tests.
const (
	MaxKeyColumns       = 4                // primary-key columns of a table
	MaxKeyBytes         = 1024             // one string or binary primary-key value
	LargestValue        = 10 << 30         // bytes of a partition-key value's rows, by the vendor's advice
	MaxValueBytes       = 2 << 20          // one string or binary attribute value
	MaxColumns          = 1024             // attribute cells of one row in one write
	MaxRowBytes         = 4 << 20          // one row in one write
	MaxBatchRows        = 200              // rows of one BatchWriteRow request
	MaxBatchBytes       = 4 << 20          // rows of one BatchWriteRow request together
	MaxBodyBytes        = 5 << 20          // HTTP body of one request
	MaxNameBytes        = 255              // table and column names
	MaxTimestamp        = 9223372036854775 // a cell's timestamp in milliseconds is below this
	CapacityUnitBytes   = 4096             // one write capacity unit
	bodyBytesPerRow     = 32               // protobuf framing around one row of a BatchWriteRow request, at most
	bodyBytesPerRequest = 512              // protobuf framing around the request, table name included, at most
)

// CheckTableName returns why the service would refuse the name, or nil.
func CheckTableName(name string) error {
	if name == "" || len(name) > MaxNameBytes {
		return fmt.Errorf("table name %q: want 1 to %d bytes", name, MaxNameBytes)
	}
	if !plainName(name) {
		return fmt.Errorf("table name %q: want letters, digits and underscores, not starting with a digit", name)
	}
	return nil
}

// UnchangedColumn is the cell of a row that is written only if the stored row is unchanged: the column condition. It is
// not written. A row without it is written only if its key is free. No table has such a column.
const UnchangedColumn = "#unchanged"

// CheckColumnName returns why the service would refuse a column's name, or nil.
func CheckColumnName(name string) error {
	switch {
	case name == "":
		return errors.New("column without a name")
	case len(name) > MaxNameBytes:
		return fmt.Errorf("column name %.40q…: %d bytes, the limit is %d", name, len(name), MaxNameBytes)
	case name[0] == '#':
		return fmt.Errorf("column name %q: the service refuses a leading #; use --rename", name)
	case !utf8.ValidString(name):
		return fmt.Errorf("column name %q: not valid UTF-8", name)
	}
	return nil
}

// PlainColumnName reports whether the name follows the documented rule, which SQL and secondary indexes need.
func PlainColumnName(name string) bool { return plainName(name) }

func plainName(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// Limits of a time to live. The service documents a day as the least; with less, rows are gone before verification.
const (
	MinTimeToLive = 86_400 // seconds
	MaxTimeToLive = math.MaxInt32
)

// CheckTimeToLive returns why data cannot have the time to live.
func CheckTimeToLive(seconds int) error {
	if seconds == -1 || seconds >= MinTimeToLive && seconds <= MaxTimeToLive {
		return nil
	}
	return fmt.Errorf("want -1 (never expires) or %d seconds (a day) to %d", MinTimeToLive, MaxTimeToLive)
}

// CheckKey returns why the service would refuse a table for its auto-increment columns, or nil.
func CheckKey(key []KeyColumn) error {
	auto := ""
	for i, k := range key {
		switch {
		case !k.Auto:
			continue
		case i == 0:
			return fmt.Errorf("primary-key column %s: the first column cannot be auto; put the partition key before it", k.Name)
		case auto != "":
			return fmt.Errorf("primary-key columns %s and %s: a table has one auto column at most", auto, k.Name)
		}
		auto = k.Name
	}
	return nil
}

// CapacityUnits is the write capacity units of a row with size accounted bytes: one for each started 4 KiB.
func CapacityUnits(size int) int {
	return max(1, (size+CapacityUnitBytes-1)/CapacityUnitBytes)
}
