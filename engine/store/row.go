package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"example.com/tsimport/engine/wire"
)

// A stored row is a format byte, the base timestamp (8 bytes), and all versions of all columns by name, newest first. A
// version is a head byte, the name (uvarint length, bytes; omitted if repeated), its timestamp (omitted if the base),
// and the value (strings and binaries after a uvarint length). Cells written without a timestamp have the base.
const (
	rowFormat   = 0x01
	rowHead     = 9
	headType    = 0x0F
	headSameTS  = 0x40
	headSameCol = 0x80
)

// sortCells sorts cells by name, then newest first. Equal cells keep their order, because the last one written wins.
func sortCells(cells []wire.Cell) {
	const small = 24 // insertion sort is faster up to here: rows are mostly sorted
	if len(cells) > small {
		slices.SortStableFunc(cells, func(a, b wire.Cell) int { return compareCells(&a, &b) })
		return
	}
	for i := 1; i < len(cells); i++ {
		if compareCells(&cells[i-1], &cells[i]) <= 0 {
			continue
		}
		c := cells[i]
		j := i
		for ; j > 0 && compareCells(&cells[j-1], &c) > 0; j-- {
			cells[j] = cells[j-1]
		}
		cells[j] = c
	}
}

func compareCells(a, b *wire.Cell) int {
	if c := bytes.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	return cmp.Compare(b.Timestamp, a.Timestamp)
}

// appendRow appends the stored form of sorted cells, with at most maxVersions of each column.
func appendRow(dst []byte, cells []wire.Cell, base int64, maxVersions int) []byte {
	dst = append(dst, rowFormat)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(base))
	var last *wire.Cell
	versions := 0
	for i := range cells {
		c := &cells[i]
		// Of cells with the same name and timestamp, the last one written wins.
		if i+1 < len(cells) && c.Timestamp == cells[i+1].Timestamp && bytes.Equal(c.Name, cells[i+1].Name) {
			continue
		}
		same := last != nil && bytes.Equal(last.Name, c.Name)
		if !same {
			versions = 0
		}
		if versions++; versions > maxVersions {
			continue
		}
		dst = appendCell(dst, c, same, c.Timestamp == base)
		last = c
	}
	return dst
}

func appendCell(dst []byte, c *wire.Cell, sameCol, sameTS bool) []byte {
	head := byte(c.Type)
	if sameCol {
		head |= headSameCol
	}
	if sameTS {
		head |= headSameTS
	}
	dst = append(dst, head)
	if !sameCol {
		dst = binary.AppendUvarint(dst, uint64(len(c.Name)))
		dst = append(dst, c.Name...)
	}
	if !sameTS {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(c.Timestamp))
	}
	if c.Type == wire.String || c.Type == wire.Binary {
		dst = binary.AppendUvarint(dst, uint64(len(c.Value)))
	}
	return append(dst, c.Value...)
}

// readRow appends the cells of a stored row, which are views into b, to dst. ok is false if b is not a valid row.
func readRow(b []byte, dst []wire.Cell) (cells []wire.Cell, ok bool) {
	r := newRowReader(b)
	for r.next() {
		dst = append(dst, wire.Cell{Name: r.name, Type: r.kind, Value: r.value, Timestamp: r.timestamp, Stamped: true})
	}
	return dst, !r.damaged
}

// rowReader iterates over the cells of a stored row, which are views into it.
type rowReader struct {
	rest    []byte
	base    int64
	damaged bool // the row is invalid, and next returned false

	name      []byte
	kind      wire.ValueType
	value     []byte
	timestamp int64
	older     bool // the cell is another version of the previous one's column
}

func newRowReader(b []byte) rowReader {
	if len(b) < rowHead || b[0] != rowFormat {
		return rowReader{damaged: true}
	}
	return rowReader{rest: b[rowHead:], base: int64(binary.LittleEndian.Uint64(b[1:]))}
}

func (r *rowReader) next() bool {
	if len(r.rest) == 0 {
		return false
	}
	head, b, ok := r.rest[0], r.rest[1:], true
	r.older = head&headSameCol != 0
	if !r.older {
		if r.name, b, ok = readSized(b); !ok {
			return r.fail()
		}
	}
	r.timestamp = r.base
	if head&headSameTS == 0 {
		if len(b) < 8 {
			return r.fail()
		}
		r.timestamp = int64(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	r.kind = wire.ValueType(head & headType)
	if r.value, r.rest, ok = readValue(r.kind, b); !ok {
		return r.fail()
	}
	return true
}

func (r *rowReader) fail() bool {
	r.rest, r.damaged = nil, true
	return false
}

func readValue(t wire.ValueType, b []byte) (value, rest []byte, ok bool) {
	n := 8
	switch t {
	case wire.Integer, wire.Double:
	case wire.Boolean:
		n = 1
	case wire.String, wire.Binary:
		return readSized(b)
	default:
		return nil, nil, false
	}
	if len(b) < n {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

func readSized(b []byte) (value, rest []byte, ok bool) {
	if len(b) > 0 && b[0] < 0x80 { // the usual case
		if n := int(b[0]); n < len(b) {
			return b[1 : 1+n : 1+n], b[1+n:], true
		}
		return nil, nil, false
	}
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k) {
		return nil, nil, false
	}
	b = b[k:]
	return b[:n:n], b[n:], true
}
