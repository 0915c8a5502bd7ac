package plainbuffer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"example.com/tsimport/internal/table"
)

// Column is a key column or cell of a row in a response.
type Column struct {
	Name      string
	Value     table.Value // Null for deletions and bounds of ranges
	Op        Op
	Timestamp int64 // in milliseconds; -1 if there is none
}

// RowSink receives the rows of a response. Columns are valid during the call; their bytes are views into the response.
type RowSink interface {
	BeginRow()
	KeyColumn(*Column)
	Cell(*Column)
	EndRow(deleted bool)
}

// RowReader reads and checks the rows of responses in one pass. Because most rows of a table have the same columns in
// the same order, it remembers names and their checksums by position. It is not safe for concurrent use.
type RowReader struct {
	// Hasher, if not nil, makes Split compute the rows' sums. It must be set before the first row.
	Hasher *Hasher

	places []*knownName
	names  map[string]*knownName
	column Column

	stamp    uint64 // timestamp of the previous cell
	stampCRC byte   // checksum of stamp alone
}

type knownName struct {
	text   string
	crc    byte
	column uint64 // hash of the name, if there is a Hasher

	opens       string // the bytes of a plain cell before the length of its value
	first, last uint64 // first and last eight bytes of opens
}

// opensCell reports whether b begins with a cell of this column.
func (k *knownName) opensCell(b []byte) bool {
	n := len(k.opens)
	return n >= 8 && len(b) >= n && binary.LittleEndian.Uint64(b) == k.first &&
		binary.LittleEndian.Uint64(b[n-8:]) == k.last && (n <= 16 || string(b[8:n-8]) == k.opens[8:n-8])
}

// maxNames limits the names that a reader remembers.
const maxNames = 4096

// name returns the knownName of a name. place is the position in the row.
func (r *RowReader) name(place int, name []byte) *knownName {
	if place < len(r.places) && r.places[place].text == string(name) {
		return r.places[place]
	}
	known := r.names[string(name)]
	if known == nil {
		if r.names == nil || len(r.names) >= maxNames {
			r.names, r.places = map[string]*knownName{}, nil
		}
		known = &knownName{text: string(name), crc: crcBytes(0, name)}
		opens := binary.LittleEndian.AppendUint32([]byte{tagCell, tagCellName}, uint32(len(name)))
		opens = append(append(opens, name...), tagCellValue)
		if known.opens = string(opens); len(opens) >= 8 {
			known.first, known.last = binary.LittleEndian.Uint64(opens), binary.LittleEndian.Uint64(opens[len(opens)-8:])
		}
		if r.Hasher != nil {
			known.column = r.Hasher.Column(known.text)
		}
		r.names[known.text] = known
	}
	if place < len(r.places) {
		r.places[place] = known
	} else if place == len(r.places) && place < maxNames {
		r.places = append(r.places, known)
	}
	return known
}

// Read reads a header and the rows after it, passes them to the sink, if it is not nil, and returns their number. It
// checks every length and checksum, and that the rows are complete. The sink receives the rows before an error.
func (r *RowReader) Read(b []byte, to RowSink) (rows int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != header {
		return 0, errors.New("check PlainBuffer rows: no header")
	}
	for b = b[4:]; len(b) > 0; rows++ {
		if b, err = r.row(b, to); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// Rows is the result of Split for plain rows.
type Rows struct {
	Ends        []int    // offset of each row's end
	Keys        []byte   // the rows' ordering keys
	KeyEnds     []int    // offset of each key's end
	Least, Most int      // smallest and largest number of key columns
	Sums        []uint64 // Hasher.Row of each row; empty without a Hasher
}

func (s *Rows) Reset() {
	*s = Rows{Ends: s.Ends[:0], Keys: s.Keys[:0], KeyEnds: s.KeyEnds[:0], Least: math.MaxInt, Sums: s.Sums[:0]}
}

// Split is like Read for callers that use rows as bytes. plain reports whether all rows can be in a table: each has a
// key of key types and then attributes with values, without deletions. Only then can Cells read the rows.
func (r *RowReader) Split(b []byte, to *Rows) (plain bool, err error) {
	to.Reset()
	if len(b) == 0 {
		return true, nil
	}
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != header {
		return false, errors.New("check PlainBuffer rows: no header")
	}
	plain = true
	for rest := b[4:]; len(rest) > 0; {
		next, ok := r.plainRow(rest, to)
		if !ok {
			plain = false
			if next, err = r.row(rest, nil); err != nil {
				return false, err
			}
		}
		rest = next
		to.Ends = append(to.Ends, len(b)-len(rest))
	}
	return plain, nil
}

// plainRow is like row for plain rows. It returns false for other and for faulty rows.
func (r *RowReader) plainRow(b []byte, to *Rows) (rest []byte, ok bool) {
	if b[0] != tagRowPK {
		return nil, false
	}
	crc, inData, sum := byte(0), false, uint64(0)
	columns := 0 // number of key columns
	b = b[1:]
	for place := 0; len(b) > 1; place++ {
		if b[0] == tagRowData && !inData {
			inData, columns, b = true, place, b[1:]
		}
		if b[0] == tagRowChecksum && len(b) > 1 {
			if !inData {
				columns = place
			}
			to.KeyEnds = append(to.KeyEnds, len(to.Keys))
			to.Least, to.Most = min(to.Least, columns), max(to.Most, columns)
			if r.Hasher != nil {
				to.Sums = append(to.Sums, sum)
			}
			return b[2:], b[1] == crcByte(crc, 0)
		}
		var name *knownName
		if place < len(r.places) && r.places[place].opensCell(b) {
			name = r.places[place]
			b = b[len(name.opens):]
		} else {
			if len(b) < 6 || b[0] != tagCell || b[1] != tagCellName {
				return nil, false
			}
			n := uint64(binary.LittleEndian.Uint32(b[2:]))
			if b = b[6:]; n >= uint64(len(b)) || b[n] != tagCellValue {
				return nil, false
			}
			name = r.name(place, b[:n])
			b = b[n+1:]
		}
		if len(b) < 4 {
			return nil, false
		}
		cell := name.crc
		size := uint64(binary.LittleEndian.Uint32(b))
		if b = b[4:]; size+2 > uint64(len(b)) {
			return nil, false
		}
		value := b[:size]
		switch b = b[size:]; {
		case size == 9 && (value[0] == variantInteger || value[0] == variantDouble && inData):
			cell = crc64LE(crcByte(cell, value[0]), binary.LittleEndian.Uint64(value[1:]))
		case size >= 5 && (value[0] == variantString || value[0] == variantBinary) &&
			uint64(binary.LittleEndian.Uint32(value[1:])) == size-5,
			size == 2 && value[0] == variantBoolean && value[1] <= 1 && inData:
			cell = crcBytes(cell, value)
		default:
			return nil, false
		}
		switch {
		case !inData:
			to.Keys = appendKey(to.Keys, value)
		case r.Hasher != nil:
			sum += r.Hasher.value(name.column, value)
		}
		if b[0] == tagCellTimestamp && len(b) > 10 {
			cell = r.timestamp(cell, binary.LittleEndian.Uint64(b[1:]))
			b = b[9:]
		}
		if b[0] != tagCellChecksum || b[1] != cell {
			return nil, false
		}
		crc, b = crcByte(crc, cell), b[2:]
	}
	return nil, false
}

// timestamp continues a checksum over a timestamp. Its effect is cached, because most cells of a row have the same one.
func (r *RowReader) timestamp(crc byte, ms uint64) byte {
	if ms != r.stamp {
		r.stamp, r.stampCRC = ms, crc64LE(0, ms)
	}
	return crcTables[7][crc] ^ r.stampCRC
}

// ReadRow reads one of the rows that Split found.
func (r *RowReader) ReadRow(row []byte, to RowSink) error {
	_, err := r.row(row, to)
	return err
}

func (r *RowReader) row(b []byte, to RowSink) (rest []byte, err error) {
	crc, deleted, inData := byte(0), byte(0), false
	if to != nil {
		to.BeginRow()
	}
	for place := 0; len(b) > 1; {
		tag := b[0]
		b = b[1:]
		switch tag {
		case tagRowPK:
		case tagRowData:
			inData = true
		case tagDeleteMarker:
			deleted = 1
		case tagCell:
			var cell byte
			if cell, b, err = r.cell(b, place); err != nil {
				return nil, err
			}
			place++
			crc = crcByte(crc, cell)
			switch {
			case to == nil:
			case inData:
				to.Cell(&r.column)
			default:
				to.KeyColumn(&r.column)
			}
		case tagRowChecksum:
			if b[0] != crcByte(crc, deleted) {
				return nil, errChecksum
			}
			if to != nil {
				to.EndRow(deleted == 1)
			}
			return b[1:], nil
		default:
			return nil, fmt.Errorf("check PlainBuffer rows: unexpected tag %#x", tag)
		}
	}
	return nil, errCut
}

// cell reads a cell into r.column and returns its checksum.
func (r *RowReader) cell(b []byte, place int) (crc byte, rest []byte, err error) {
	c := &r.column
	c.Value, c.Op, c.Timestamp = table.Value{}, Set, -1
	op, hasOp := byte(0), false
	for last := byte(0); len(b) > 1; {
		tag := b[0]
		b = b[1:]
		if inOrder := tag > last && (last > 0 || tag == tagCellName); !inOrder {
			return 0, nil, fmt.Errorf("check PlainBuffer rows: unexpected tag %#x after %#x in a cell", tag, last)
		}
		last = tag
		switch tag {
		case tagCellName:
			var name []byte
			if name, b, err = decodeBytes(b); err != nil {
				return 0, nil, err
			}
			known := r.name(place, name)
			c.Name, crc = known.text, known.crc
		case tagCellValue:
			var value []byte
			if value, b, err = decodeBytes(b); err != nil {
				return 0, nil, err
			}
			if crc, err = c.value(crc, value); err != nil {
				return 0, nil, err
			}
		case tagCellType: // precedes the timestamp, but follows it in the checksum
			op, hasOp = b[0], true
			c.Op = ops[op]
			b = b[1:]
		case tagCellTimestamp:
			if len(b) < 8 {
				return 0, nil, errCut
			}
			ms := binary.LittleEndian.Uint64(b)
			c.Timestamp = int64(ms)
			crc = r.timestamp(crc, ms)
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

// value decodes a value, which must have the right length, and continues the checksum.
func (c *Column) value(crc byte, b []byte) (byte, error) {
	if len(b) == 9 && b[0] <= variantDouble {
		word := binary.LittleEndian.Uint64(b[1:])
		if b[0] == variantInteger {
			c.Value = table.Value{Type: table.Integer, Int: int64(word)}
		} else {
			c.Value = table.Value{Type: table.Double, Double: math.Float64frombits(word)}
		}
		return crc64LE(crcByte(crc, b[0]), word), nil
	}
	if err := checkValue(b); err != nil {
		return 0, err
	}
	switch b[0] {
	case variantBoolean:
		c.Value = table.Value{Type: table.Boolean, Int: int64(b[1])}
	case variantString:
		c.Value = table.Value{Type: table.String, Bytes: b[5:len(b):len(b)]}
	case variantBinary:
		c.Value = table.Value{Type: table.Binary, Bytes: b[5:len(b):len(b)]}
	}
	return crcBytes(crc, b), nil
}
