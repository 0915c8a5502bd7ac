package table

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Limits of the service, from its documentation and the SDKs' integration tests. Sizes are in the service's accounting
// (names plus values, see Value.Size), except for MaxBodyBytes.
const (
	MaxKeyColumns       = 4                // columns of a primary key
	MaxKeyBytes         = 1024             // one string or binary primary-key value
	LargestValue        = 10 << 30         // bytes of the rows with one partition-key value, as the vendor advises
	MaxValueBytes       = 2 << 20          // one string or binary attribute value
	MaxColumns          = 1024             // attribute cells of one row in one write
	MaxRowBytes         = 4 << 20          // one row in one write
	MaxBatchRows        = 200              // rows of one BatchWriteRow request
	MaxBatchBytes       = 4 << 20          // all rows of one BatchWriteRow request
	MaxBodyBytes        = 5 << 20          // HTTP body of one request
	MaxNameBytes        = 255              // table and column names
	MaxTimestamp        = 9223372036854775 // cell timestamps in milliseconds are below this
	CapacityUnitBytes   = 4096             // one write capacity unit
	bodyBytesPerRow     = 32               // maximum protobuf framing of one row of a BatchWriteRow request
	bodyBytesPerRequest = 512              // maximum protobuf framing of the request, including the table name
)

// CheckTableName returns an error if the service would refuse the table name.
func CheckTableName(name string) error {
	if name == "" || len(name) > MaxNameBytes {
		return fmt.Errorf("table name %q: want 1 to %d bytes", name, MaxNameBytes)
	}
	if !PlainName(name) {
		return fmt.Errorf("table name %q: want letters, digits and underscores, not starting with a digit", name)
	}
	return nil
}

// UnchangedColumn names a cell that is not written but holds a column condition: its row is written only if the stored
// row is unchanged. A row without the cell is written only if no row has its key. No table can have such a column.
const UnchangedColumn = "#unchanged"

// CheckColumnName returns an error if the service would refuse the column name.
func CheckColumnName(name string) error {
	switch {
	case name == "":
		return errors.New("column without a name")
	case len(name) > MaxNameBytes:
		return fmt.Errorf("column name %.40q…: %d bytes, but the limit is %d", name, len(name), MaxNameBytes)
	case name[0] == '#':
		return fmt.Errorf("column name %q: the service refuses a leading #; use another (input columns: --rename)", name)
	case !utf8.ValidString(name):
		return fmt.Errorf("column name %q: not valid UTF-8", name)
	}
	return nil
}

// PlainName reports whether a name of a table or column follows the documented rule. For columns, only SQL and
// secondary indexes require that.
func PlainName(name string) bool {
	for i := 0; i < len(name); i++ {
		c := name[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// Limits of a time to live. A day is the documented minimum. With less, rows could expire before they are verified.
const (
	MinTimeToLive = 86_400 // seconds
	MaxTimeToLive = math.MaxInt32
)

// CheckTimeToLive returns an error if the service would refuse the time to live.
func CheckTimeToLive(seconds int) error {
	if seconds == -1 || seconds >= MinTimeToLive && seconds <= MaxTimeToLive {
		return nil
	}
	return fmt.Errorf("want -1 (never expires) or %d seconds (a day) to %d", MinTimeToLive, MaxTimeToLive)
}

// CheckKey returns an error if the service would refuse the auto-increment columns of a primary key.
func CheckKey(key []KeyColumn) error {
	auto := ""
	for i, k := range key {
		switch {
		case !k.Auto:
			continue
		case i == 0:
			return fmt.Errorf("primary-key column %s: the first column cannot be auto; put the partition key before it", k.Name)
		case auto != "":
			return fmt.Errorf("primary-key columns %s and %s: a table has at most one auto column", auto, k.Name)
		}
		auto = k.Name
	}
	return nil
}

// CapacityUnits returns the cost of writing a row with size accounted bytes: one unit for every 4 KiB or part thereof.
func CapacityUnits(size int) int {
	return max(1, (size+CapacityUnitBytes-1)/CapacityUnitBytes)
}
