package writer

import (
	"cmp"
	"encoding/binary"
	"slices"

	"example.com/tsimport/internal/table"
)

// The bytes of a BatchWriteRow request, with fields in the order of their numbers, as in the SDK:
//
//	request   tables (1): table   is_atomic (3): false
//	table     table_name (1)      rows (2): row, once for each
//	row       type (1)            row_change (2): PlainBuffer bytes
//	          condition (3): { row_existence (1)  column_condition (2), for increments, When and Unchanged }
//	          return_content (4): { return_type (1): RT_PK }, if the service makes part of the key
//
// Lengths precede messages. Lengths of rows are known from their encoding; others are computed without reading a row.
const (
	tagTable           = 1<<3 | 2
	tagAtomic          = 3 << 3
	tagTableName       = 1<<3 | 2
	tagRow             = 2<<3 | 2
	tagType            = 1 << 3
	tagRowChange       = 2<<3 | 2
	tagCondition       = 3<<3 | 2
	tagRowExistence    = 1 << 3
	tagColumnCondition = 2<<3 | 2
	tagReturn          = 4<<3 | 2
	tagReturnType      = 1 << 3
	returnKey          = 1
)

// The service's numbers for the modes and the existence conditions.
var (
	operationTypes = [...]byte{table.Put: 1, table.Update: 2, table.Delete: 3, table.Increment: 2}
	expectations   = [...]byte{table.Ignore: 0, table.ExpectExist: 1, table.ExpectNotExist: 2}
)

// AppendRequest appends a BatchWriteRow request for rows of one table. Rows without their own mode have the given one.
func AppendRequest(dst []byte, name string, mode table.Mode, existence table.Existence, rows []table.Ref) []byte {
	return appendRequest(dst, name, mode, existence, rows, &annotated{})
}

// appendRequest is AppendRequest for annotated rows.
func appendRequest(dst []byte, name string, mode table.Mode, existence table.Existence, rows []table.Ref,
	d *annotated) []byte {
	size := 1 + lengthSize(len(name)) + len(name)
	for i, r := range rows {
		n := rowSize(d.size(i, r), len(d.condition(i))) + len(d.asks)
		size += 1 + lengthSize(n) + n
	}
	dst = slices.Grow(dst, size+16)
	dst = append(dst, tagTable)
	dst = binary.AppendUvarint(dst, uint64(size))
	dst = append(dst, tagTableName)
	dst = binary.AppendUvarint(dst, uint64(len(name)))
	dst = append(dst, name...)
	for i, r := range rows {
		row, condition := d.body(i, r), d.condition(i)
		dst = append(dst, tagRow)
		dst = binary.AppendUvarint(dst, uint64(rowSize(len(row), len(condition))+len(d.asks)))
		dst = append(dst, tagType, operationTypes[r.Row().Mode(mode)], tagRowChange)
		dst = binary.AppendUvarint(dst, uint64(len(row)))
		dst = append(dst, row...)
		if condition != nil {
			dst = binary.AppendUvarint(append(dst, tagCondition), uint64(len(condition)))
			dst = append(dst, condition...)
		} else {
			dst = append(dst, tagCondition, 2, tagRowExistence, expectations[existence])
		}
		dst = append(dst, d.asks...)
	}
	return append(dst, tagAtomic, 0)
}

// rowSize returns the size of a row's message, given the sizes of its PlainBuffer (n) and its condition. A cond of 0
// stands for a condition only on existence.
func rowSize(n, cond int) int {
	cond = cmp.Or(cond, 2)
	return 2 + 1 + lengthSize(n) + n + 1 + lengthSize(cond) + cond
}

func lengthSize(n int) int {
	size := 1
	for n >= 0x80 {
		n >>= 7
		size++
	}
	return size
}
