package store

import (
	"bytes"
	"encoding/binary"

	"example.com/tsimport/engine/wire"
)

// Keys of the store begin with a byte for their kind. A row's key has the table's number, and for each key column a tag
// byte and a payload that sorts: integers big-endian with the sign bit flipped, strings and binaries with 00 as 00 ff,
// terminated by 00 01. The infinities of a range have their own tags, so bounds are ordinary keys.
const (
	spaceTables  = 0x01
	spaceRows    = 0x02
	spaceNumbers = 0x03 // a single key
	spaceLate    = 0x04 // see late.go

	tagInfMin  = 0x01
	tagInteger = 0x10
	tagString  = 0x20
	tagBinary  = 0x30
	tagInfMax  = 0xF0
)

const rowPrefixBytes = 5

func appendRowPrefix(dst []byte, table uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, spaceRows), table)
}

// appendColumn appends a primary-key value, whose type the caller has checked.
func appendColumn(dst []byte, c *wire.Cell) []byte {
	switch c.Type {
	case wire.InfMin:
		return append(dst, tagInfMin)
	case wire.InfMax:
		return append(dst, tagInfMax)
	case wire.Integer:
		return binary.BigEndian.AppendUint64(append(dst, tagInteger), uint64(c.Int())^1<<63)
	case wire.String:
		return appendEscaped(append(dst, tagString), c.Value)
	default:
		return appendEscaped(append(dst, tagBinary), c.Value)
	}
}

func appendEscaped(dst, b []byte) []byte {
	for {
		i := bytes.IndexByte(b, 0)
		if i < 0 {
			return append(append(dst, b...), 0x00, 0x01)
		}
		dst = append(append(dst, b[:i]...), 0x00, 0xFF)
		b = b[i+1:]
	}
}

// decodeKey decodes a row's key to cells with the names in schema. The values do not alias key.
func decodeKey(key []byte, schema []wire.KeyColumn) ([]wire.Cell, bool) {
	r := newKeyReader(schema)
	cells, ok := r.read(key)
	for i := range cells {
		cells[i].Value = bytes.Clone(cells[i].Value)
	}
	return cells, ok
}

func readEscaped(b []byte) (value, rest []byte, ok bool) {
	value = make([]byte, 0, len(b))
	for {
		i := bytes.IndexByte(b, 0)
		if i < 0 || i+1 >= len(b) {
			return nil, nil, false
		}
		value = append(value, b[:i]...)
		switch b[i+1] {
		case 0x01:
			return value, b[i+2:], true
		case 0xFF:
			value = append(value, 0)
		default:
			return nil, nil, false
		}
		b = b[i+2:]
	}
}

// keyReader decodes consecutive row keys without allocating. The cells are views, valid until the next key.
type keyReader struct {
	schema []wire.KeyColumn
	names  [][]byte
	cells  []wire.Cell
	values []byte // memory of values that differ from their bytes in the key
}

func newKeyReader(schema []wire.KeyColumn) keyReader {
	r := keyReader{schema: schema, names: make([][]byte, len(schema)), cells: make([]wire.Cell, 0, len(schema))}
	for i := range schema {
		r.names[i] = []byte(schema[i].Name)
	}
	return r
}

func (r *keyReader) read(key []byte) (cells []wire.Cell, ok bool) {
	if len(key) < rowPrefixBytes {
		return nil, false
	}
	key = key[rowPrefixBytes:]
	cells, r.values = r.cells[:0], r.values[:0]
	for i := range r.schema {
		if len(key) == 0 {
			return nil, false
		}
		tag := key[0]
		key = key[1:]
		// When append moves r.values, earlier values still refer to the old memory.
		from := len(r.values)
		var value []byte
		switch tag {
		case tagInteger:
			if len(key) < 8 {
				return nil, false
			}
			r.values = binary.LittleEndian.AppendUint64(r.values, binary.BigEndian.Uint64(key)^1<<63)
			value, key = r.values[from:len(r.values):len(r.values)], key[8:]
		case tagString, tagBinary:
			if end := bytes.IndexByte(key, 0); end >= 0 && end+1 < len(key) && key[end+1] == 0x01 {
				value, key = key[:end:end], key[end+2:] // it has no escaped bytes
			} else if value, key, ok = readEscaped(key); !ok {
				return nil, false
			}
		default:
			return nil, false
		}
		cells = append(cells, wire.Cell{Name: r.names[i], Type: r.schema[i].Type.ValueType(), Value: value})
	}
	r.cells = cells
	return cells, len(key) == 0
}
