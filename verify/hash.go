package verify

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math"

	"tsimport/internal/table"
	"tsimport/internal/tablestore/plainbuffer"
)

// hasher reduces cells to 64 bits, those of the input and those of the table alike. A row's hash is the sum of those of its
// cells' bytes, so their order does not matter. The seed is the process's own: a difference that one run misses, of which the
// chance is 2⁻⁶⁴ for each different row, another finds.
type hasher struct{ seed maphash.Seed }

func newHasher() hasher { return hasher{maphash.MakeSeed()} }

// column reduces the name of a column.
func (h hasher) column(name string) uint64 { return maphash.String(h.seed, name) }

// columnBytes is column for a name as bytes.
func (h hasher) columnBytes(name []byte) uint64 { return maphash.Bytes(h.seed, name) }

// cellContent reduces a cell, as plainbuffer.Cells has it.
func (h hasher) cellContent(content []byte) uint64 { return maphash.Bytes(h.seed, content) }

// rowSum reduces the cells of a row that have a value, and reports whether one of them has a timestamp.
func (h hasher) rowSum(c plainbuffer.Cells) (sum uint64, stamped bool) {
	for c.Next() {
		if c.Op != plainbuffer.DeleteAll {
			sum += h.cellContent(c.Content)
			stamped = stamped || c.Timestamp >= 0
		}
	}
	return sum, stamped
}

// cell reduces the value of a column. Doubles are distinguished by their bits.
func (h hasher) cell(column uint64, v table.Value) uint64 {
	switch v.Type {
	case table.Double:
		return h.word(column, v.Type, math.Float64bits(v.Double))
	case table.String, table.Binary:
		return h.word(column, v.Type, maphash.Bytes(h.seed, v.Bytes))
	}
	return h.word(column, v.Type, uint64(v.Int))
}

// delivered is cell for a value as the SDK delivers it.
func (h hasher) delivered(column uint64, v any) uint64 {
	switch v := v.(type) {
	case int64:
		return h.word(column, table.Integer, uint64(v))
	case float64:
		return h.word(column, table.Double, math.Float64bits(v))
	case bool:
		if v {
			return h.word(column, table.Boolean, 1)
		}
		return h.word(column, table.Boolean, 0)
	case string:
		return h.word(column, table.String, maphash.String(h.seed, v))
	case []byte:
		return h.word(column, table.Binary, maphash.Bytes(h.seed, v))
	}
	panic(fmt.Sprintf("verify: the SDK delivered a value of type %T", v))
}

func (h hasher) word(column uint64, t table.Type, word uint64) uint64 {
	var b [17]byte
	binary.LittleEndian.PutUint64(b[:], column)
	b[8] = byte(t)
	binary.LittleEndian.PutUint64(b[9:], word)
	return maphash.Bytes(h.seed, b[:])
}
