package wire

import (
	"bytes"
	"encoding/binary"
)

// Tags of the PlainBuffer format.
const (
	header          = 0x75
	tagKey          = 0x01
	tagData         = 0x02
	tagCell         = 0x03
	tagName         = 0x04
	tagValue        = 0x05
	tagOp           = 0x06
	tagTimestamp    = 0x07
	tagDeleteMarker = 0x08
	tagRowChecksum  = 0x09
	tagCellChecksum = 0x0A
	tagExtension    = 0x0B
)

// Decoder decodes PlainBuffer rows. They refer to the input and are valid until Reset. It is not for concurrent use.
type Decoder struct {
	cells []Cell
	names []knownName // of the previous row, by position
}

type knownName struct {
	name  []byte
	crc   byte
	valid bool // for an attribute column
}

// maxKnownNames is the number of a row's names that a Decoder remembers.
const maxKnownNames = 256

// maxKeptCells limits the arena that a pooled Decoder keeps: 16,384 cells of 64 bytes are 1 MB.
const maxKeptCells = 16_384

// Reset makes the decoder reuse the memory of decoded rows.
func (d *Decoder) Reset() {
	clear(d.names)
	d.names = d.names[:0]
	if cap(d.cells) > maxKeptCells {
		d.cells = nil
		return
	}
	clear(d.cells) // or the arena would keep earlier requests' bodies alive
	d.cells = d.cells[:0]
}

// Row decodes exactly one row with its header. Wrong checksums, lengths and tags are errors, and so is data after the
// row, except zeros, which the SDK for Node leaves after bounds of a range and versions to delete.
func (d *Decoder) Row(b []byte) (Row, *Error) {
	if len(b) < 4 || binary.LittleEndian.Uint32(b) != header {
		return Row{}, Invalid("Cell data broken, invalid header of PlainBuffer.")
	}
	p := parser{b: b[4:], known: d}
	row := p.row(d)
	if p.err == nil && len(bytes.TrimLeft(p.b, "\x00")) != 0 {
		p.fail("unexpected data after the row")
	}
	return row, p.err
}

// parser decodes rows. After the first error every step is a no-op.
type parser struct {
	b     []byte
	crc   byte // checksum of the row
	err   *Error
	known *Decoder // may be nil
	place int      // index of the next cell in the row
}

func (p *parser) fail(what string) {
	if p.err == nil {
		p.err = Invalid("Cell data broken, %s.", what)
	}
	p.b = nil
}

// at reports whether the next byte is tag, and skips it.
func (p *parser) at(tag byte) bool {
	if len(p.b) == 0 || p.b[0] != tag {
		return false
	}
	p.b = p.b[1:]
	return true
}

func (p *parser) take(n int) []byte {
	if n > len(p.b) {
		p.fail("unexpected end of data")
		return nil
	}
	b := p.b[:n:n]
	p.b = p.b[n:]
	return b
}

// sized returns the bytes after their length.
func (p *parser) sized() []byte {
	if len(p.b) < 4 {
		p.fail("unexpected end of data")
		return nil
	}
	n := binary.LittleEndian.Uint32(p.b)
	p.b = p.b[4:]
	if uint64(n) > uint64(len(p.b)) {
		p.fail("length exceeds the data")
		return nil
	}
	return p.take(int(n))
}

func (p *parser) row(d *Decoder) (row Row) {
	if !p.at(tagKey) {
		p.fail("row has no primary key tag")
		return row
	}
	row.Key = p.section(d, MaxIndexKeyColumns+1)
	if p.err == nil && len(row.Key) > MaxIndexKeyColumns {
		p.err = TooManyKeyColumns()
	}
	if p.err == nil && p.at(tagData) {
		row.Cells = p.section(d, MaxCells+1)
		if p.err == nil && len(row.Cells) > MaxCells {
			p.err = Invalid("The number of attribute columns exceeds the limit, limit count: %d, column count: %d.", MaxCells,
				len(row.Cells)+p.countCells())
		}
	}
	if p.err != nil {
		return row
	}
	row.Delete = p.at(tagDeleteMarker)
	if p.at(tagExtension) {
		p.sized()
	}
	if !p.at(tagRowChecksum) {
		p.failRow()
		return row
	}
	marker := byte(0)
	if row.Delete {
		marker = 1
	}
	if got := p.take(1); got != nil && got[0] != crc8Byte(p.crc, marker) {
		p.fail("row checksum is mismatch")
	}
	return row
}

func (p *parser) failRow() {
	if p.err == nil {
		p.err = Invalid("Invalid row: missing checksum.")
	}
}

// section decodes one or more cells, up to limit. The limit of row is one more than it allows, to detect too many.
func (p *parser) section(d *Decoder, limit int) []Cell {
	from := len(d.cells)
	for n := 0; n < limit && p.at(tagCell); n++ {
		d.cells = append(d.cells, Cell{Type: NoValue})
		p.cell(&d.cells[len(d.cells)-1])
	}
	cells := d.cells[from:len(d.cells):len(d.cells)]
	if p.err == nil && len(cells) == 0 {
		p.fail("section without cells")
	}
	return cells
}

// countCells returns the number of further cells in the section, for the message about a row with too many.
func (p *parser) countCells() (n int) {
	q := parser{b: p.b}
	var c Cell
	for q.at(tagCell) {
		if q.cell(&c); q.err != nil {
			break
		}
		c = Cell{Type: NoValue}
		n++
	}
	return n
}

// usual is a fast path for a cell with a name, a value of a common type and a checksum. It returns false for others.
func (p *parser) usual(c *Cell) bool {
	b := p.b
	if len(b) < 5 || b[0] != tagName {
		return false
	}
	size := uint64(binary.LittleEndian.Uint32(b[1:]))
	if b = b[5:]; uint64(len(b)) < size+6 || b[size] != tagValue {
		return false
	}
	name := b[:size:size]
	b = b[size+1:]
	size = uint64(binary.LittleEndian.Uint32(b))
	if b = b[4:]; uint64(len(b)) < size+2 || size < 5 || b[size] != tagCellChecksum {
		return false
	}
	variant := b[:size:size]
	value := variant[1:]
	switch typ := ValueType(variant[0]); {
	case (typ == Integer || typ == Double) && len(value) == 8:
	case (typ == String || typ == Binary) && uint64(binary.LittleEndian.Uint32(value)) == size-5:
		value = value[4:]
	default:
		return false
	}
	known := p.known.lookUp(p.place, name)
	p.place++
	crc := crc8(known.crc, variant)
	if b[size+1] != crc {
		return false
	}
	c.Name, c.Type, c.Value, c.valid = name, ValueType(variant[0]), value, known.valid
	p.b, p.crc = b[size+2:], crc8Byte(p.crc, crc)
	return true
}

// lookUp returns the properties of a cell's name. The previous row usually has the same name in the same place.
func (d *Decoder) lookUp(place int, name []byte) knownName {
	if d != nil && place < len(d.names) && bytes.Equal(d.names[place].name, name) {
		return d.names[place]
	}
	n := knownName{name, crc8(0, name), ValidColumnName(name)}
	switch {
	case d == nil || place >= maxKnownNames:
	case place < len(d.names):
		d.names[place] = n
	case place == len(d.names):
		d.names = append(d.names, n)
	}
	return n
}

func (p *parser) cell(c *Cell) {
	if p.usual(c) {
		return
	}
	if !p.at(tagName) {
		p.fail("cell without a name")
		return
	}
	c.Name = p.sized()
	crc := crc8(0, c.Name)
	if p.at(tagValue) {
		crc = p.value(c, crc)
	}
	hasOp := p.at(tagOp)
	if hasOp {
		if b := p.take(1); b != nil {
			c.Op = CellOp(b[0])
			if c.Op != DeleteColumn && c.Op != DeleteVersion && c.Op != Increment {
				p.fail("unknown operation type")
			}
		}
	}
	if p.at(tagTimestamp) {
		if b := p.take(8); b != nil {
			c.Stamped = true
			c.Timestamp = int64(binary.LittleEndian.Uint64(b))
			crc = crc8Int64(crc, c.Timestamp)
		}
	}
	if hasOp {
		crc = crc8Byte(crc, byte(c.Op)) // in the checksum, the timestamp precedes the operation
	}
	if !p.at(tagCellChecksum) {
		if p.err == nil {
			p.err = Invalid("Invalid Column(%s): missing checksum.", c.Name)
			p.b = nil
		}
		return
	}
	if got := p.take(1); got != nil && got[0] != crc {
		p.fail("checksum is mismatch")
	}
	p.crc = crc8Byte(p.crc, crc)
}

// value decodes a variant after its length, and continues the cell's checksum.
func (p *parser) value(c *Cell, crc byte) byte {
	v := p.sized()
	if p.err != nil {
		return 0
	}
	if typ, payload, rest, ok := ReadVariant(v); ok && len(rest) == 0 {
		c.Type, c.Value = typ, payload
	} else {
		p.fail("invalid value")
	}
	return crc8(crc, v)
}

// ReadVariant decodes a value without a length prefix (a type byte and its payload) from the start of b.
func ReadVariant(b []byte) (typ ValueType, payload, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, nil, false
	}
	typ, b = ValueType(b[0]), b[1:]
	n := 0
	switch typ {
	case Integer, Double:
		n = 8
	case Boolean:
		n = 1
	case String, Binary:
		if len(b) < 4 {
			return 0, nil, nil, false
		}
		size := binary.LittleEndian.Uint32(b)
		b = b[4:]
		if uint64(size) > uint64(len(b)) {
			return 0, nil, nil, false
		}
		n = int(size)
	case Null, InfMin, InfMax, AutoIncrement:
	default:
		return 0, nil, nil, false
	}
	if n > len(b) || typ == Boolean && b[0] > 1 {
		return 0, nil, nil, false
	}
	return typ, b[:n:n], b[n:], true
}
