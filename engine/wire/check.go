package wire

import (
	"bytes"
	"math"
	"slices"
	"unicode/utf8"
)

// check enforces all rules for a change that do not depend on the schema, and computes its size.
func (c *Change) check(inBatch bool) *Error {
	if err := checkKey(c.Row.Key, keyOfWrite); err != nil {
		return err
	}
	if err := c.checkPlaceholder(); err != nil {
		return err
	}
	c.DataBytes = DataBytes(c.Row.Key)
	switch {
	case c.Op == DeleteRow && !c.Row.Delete:
		return Invalid("Invalid request of delete row: missing RowDeleteMarker in request.")
	case c.Op == DeleteRow && len(c.Row.Cells) > 0:
		return Invalid("Invalid delete row request: unexpected cells in request.")
	case c.Op != DeleteRow && c.Row.Delete:
		return Invalid("Invalid request of put/update row: unexpected RowDeleteMarker in request.")
	case c.Op == UpdateRow && len(c.Row.Cells) == 0 && inBatch:
		return Invalid("Invalid update row request: missing cells in request.")
	case c.Op == UpdateRow && len(c.Row.Cells) == 0:
		return Invalid("Attribute column is missing.")
	}
	increments := false
	for i := range c.Row.Cells {
		cell := &c.Row.Cells[i]
		if err := c.checkCell(cell); err != nil {
			return err
		}
		increments = increments || cell.Op == Increment
		c.DataBytes += cell.DataBytes()
		if cell.Stamped {
			c.DataBytes += 8
		}
	}
	if increments {
		if err := c.checkIncrements(); err != nil {
			return err
		}
	}
	return c.checkReturn()
}

// keyUse is the kind of request that a primary key is part of.
type keyUse int

const (
	keyOfRead  keyUse = iota
	keyOfWrite        // may contain a placeholder
	keyOfRange        // may contain infinities
)

// TooManyKeyColumns returns the error for a key with more columns than a table can have.
func TooManyKeyColumns() *Error {
	return Invalid("The number of primary key columns must be in range: [1, %d].", MaxKeyColumns)
}

func checkKey(key []Cell, use keyUse) *Error {
	if use == keyOfWrite && len(key) > MaxKeyColumns { // a read may be of an index, whose key has more columns
		return TooManyKeyColumns()
	}
	for i := range key {
		c := &key[i]
		if len(c.Name) == 0 || len(c.Name) > MaxNameBytes || !utf8.Valid(c.Name) {
			return Invalid("Invalid column name: '%s'.", c.Name)
		}
		if c.Op != PutCell {
			return Invalid("OpType cannot be given for primary key name:%s.", c.Name)
		}
		if c.Stamped {
			return Invalid("Timestamp cannot be given for primary key name:%s.", c.Name)
		}
		switch c.Type {
		case NoValue:
			return Invalid("No value is given for primary key name:%s.", c.Name)
		case InfMin, InfMax:
			if use != keyOfRange {
				return Invalid("%s is an invalid type for the primary key.", c.Type)
			}
		case AutoIncrement:
			if use != keyOfWrite {
				return Invalid("PKAutoIncr can't be used for read operations.")
			}
		case Null:
			return Invalid("%s is an invalid type for the primary key.", c.Type)
		case String, Binary:
			if len(c.Value) > MaxKeyValueBytes {
				return Invalid("The length of primary key column: '%s' exceeds the MaxLength:%d with CurrentLength:%d.", c.Name,
					MaxKeyValueBytes, len(c.Value))
			}
			if c.Type == String && !utf8.Valid(c.Value) {
				return Invalid("Value of column %s must be UTF8 encoding.", c.Name)
			}
		}
	}
	return nil
}

func (c *Change) checkCell(cell *Cell) *Error {
	if !cell.valid && !ValidColumnName(cell.Name) {
		return Invalid("Invalid column name: '%s'.", cell.Name)
	}
	for i := range c.Row.Key {
		if bytes.Equal(c.Row.Key[i].Name, cell.Name) {
			return Invalid("Duplicated attribute column name with primary key column: '%s'.", cell.Name)
		}
	}
	if cell.Stamped && (cell.Timestamp < 0 || cell.Timestamp >= MaxTimestamp) {
		return Invalid("Timestamp must be in range [0, INT64_MAX/1000).")
	}
	if c.Op == PutRow && cell.Op != PutCell {
		return Invalid("OpType cannot be given for column name:%s in PutRow.", cell.Name)
	}
	switch cell.Op {
	case DeleteColumn, DeleteVersion:
		if cell.Type != NoValue {
			return Invalid("Column value cannot be given when type is DELETE_ONE_VERSION,DELETE_ALL_VERSION.")
		}
		if cell.Op == DeleteVersion && !cell.Stamped {
			return Invalid("Timestamp must be given when type is DELETE_ONE_VERSION.")
		}
		if cell.Op == DeleteColumn && cell.Stamped {
			return Invalid("Timestamp cannot be given when type is DELETE_ALL_VERSION.")
		}
		return nil
	case Increment:
		if cell.Stamped {
			return Invalid("Timestamp cannot be given for column name:%s while incrementing it.", cell.Name)
		}
		if cell.Type != Integer {
			return Invalid("The value of column name:%s must be integer while incrementing it.", cell.Name)
		}
	}
	return CheckValue(cell)
}

// CheckValue checks the value of an attribute column, or a value to compare with one.
func CheckValue(c *Cell) *Error {
	switch c.Type {
	case NoValue:
		return Invalid("No value is given for column name.")
	case Integer, Boolean:
	case Double:
		if f := c.Float(); math.IsNaN(f) {
			return Invalid("NaN can't be set to double value.")
		} else if math.IsInf(f, 0) {
			return Invalid("Infinity can't be set to double value.")
		}
	case String, Binary:
		if len(c.Value) > MaxValueBytes {
			return Invalid("The length of attribute column: '%s' exceeds the MaxLength:%d with CurrentLength:%d.", c.Name,
				MaxValueBytes, len(c.Value))
		}
		if c.Type == String && !utf8.Valid(c.Value) {
			return Invalid("Value of column %s must be UTF8 encoding.", c.Name)
		}
	default:
		return Invalid("%s is an invalid type for the attribute column: '%s'.", c.Type, c.Name)
	}
	return nil
}

// checkIncrements refuses a second operation on an incremented column.
func (c *Change) checkIncrements() *Error {
	ops := make(map[string]int, len(c.Row.Cells))
	for i := range c.Row.Cells {
		ops[string(c.Row.Cells[i].Name)]++
	}
	for i := range c.Row.Cells {
		if cell := &c.Row.Cells[i]; cell.Op == Increment && ops[string(cell.Name)] > 1 {
			return Invalid("Increment cannot be combined with other operations on column name:%s.", cell.Name)
		}
	}
	return nil
}

func (c *Change) checkReturn() *Error {
	switch {
	case c.Return != ReturnAfterModify && len(c.ReturnColumns) > 0:
		return Invalid("Return columns can only be given with RT_AFTER_MODIFY.")
	case c.Return == ReturnAfterModify && c.Op != UpdateRow:
		return Invalid("Invalid return type: RT_AFTER_MODIFY in %s.", c.Op)
	}
	for _, name := range c.ReturnColumns {
		increments := func(cell Cell) bool { return cell.Op == Increment && bytes.Equal(cell.Name, name) }
		if !slices.ContainsFunc(c.Row.Cells, increments) {
			return Invalid("Return column '%s' is not incremented in the request.", name)
		}
	}
	return nil
}

// Limits of the service. Where the documentation differs from its integration tests, the tests are right.
const (
	MaxBodyBytes        = 5 << 20 // of the body as transmitted, and after decompression
	MaxBatchWriteRows   = 200
	MaxBatchGetRows     = 100
	MaxRequestDataBytes = 4 << 20 // names and values of all rows in a write request
	MaxKeyColumns       = 4
	MaxIndexColumns     = 4 // key columns given for an index
	MaxIndexKeyColumns  = 8 // including the table's key columns
	MaxKeyValueBytes    = 1024
	MaxCells            = 1024 // attribute cells of a row in one write
	MaxValueBytes       = 2 << 20
	MaxNameBytes        = 255
	MaxColumnsToGet     = 1024
	MaxDefinedColumns   = 32
	MaxTablePartitions  = 10 // in CreateTable

	MaxPartitionBoundBytes = 64 // for STRING and BINARY bounds
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

// ValidTableName reports whether name matches [A-Za-z_][A-Za-z0-9_]* and has 1…255 bytes.
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

// ValidColumnName reports whether name is UTF-8 of 1…255 bytes without a leading '#'. The documentation allows less.
func ValidColumnName(name []byte) bool {
	return len(name) > 0 && len(name) <= MaxNameBytes && name[0] != '#' && utf8.Valid(name)
}

// Units returns the number of capacity units for size bytes: 4 KB each, rounded up.
func Units(size int) int32 {
	return int32((size + CapacityUnitBytes - 1) / CapacityUnitBytes)
}
