package arrow

import (
	"encoding/binary"
	"errors"
)

var errMetadata = errors.New("damaged metadata")

// flat reads FlatBuffers. It checks all offsets and lengths; budget ends the reading of tables that contain themselves.
type flat struct {
	b      []byte
	budget int
}

// newFlat limits the number of tables to read: in valid metadata, each takes at least 8 bytes.
func newFlat(b []byte) *flat { return &flat{b: b, budget: len(b)/8 + 1} }

// flatTable is a table in a buffer; the zero value has no fields.
type flatTable struct {
	in     *flat
	at     int // offset of the table
	size   int // size of its inline data
	fields int // offset of its vtable
	listed int // size of its vtable
}

func (f *flat) bytes(at, n int) []byte {
	if at < 0 || n < 0 || at > len(f.b)-n {
		panic(failure{errMetadata})
	}
	return f.b[at : at+n]
}

func (f *flat) u32(at int) int { return int(binary.LittleEndian.Uint32(f.bytes(at, 4))) }

func (f *flat) root() flatTable { return f.table(f.u32(0)) }

func (f *flat) table(at int) flatTable {
	t := flatTable{in: f, at: at, fields: at - int(int32(f.u32(at)))}
	head := f.bytes(t.fields, 4)
	t.listed, t.size = int(binary.LittleEndian.Uint16(head)), int(binary.LittleEndian.Uint16(head[2:]))
	if f.budget--; f.budget < 0 || t.listed < 4 {
		panic(failure{errMetadata})
	}
	f.bytes(t.fields, t.listed)
	f.bytes(at, t.size)
	return t
}

// field returns the offset of the table's i-th field, or false if the field is not set.
func (t flatTable) field(i, width int) (at int, ok bool) {
	slot := 4 + 2*i
	if slot+2 > t.listed {
		return 0, false
	}
	offset := int(binary.LittleEndian.Uint16(t.in.b[t.fields+slot:]))
	if offset == 0 {
		return 0, false
	}
	if offset+width > t.size {
		panic(failure{errMetadata})
	}
	return t.at + offset, true
}

func (t flatTable) number(i, width int, otherwise int64) int64 {
	at, ok := t.field(i, width)
	if !ok {
		return otherwise
	}
	b := t.in.b[at:]
	switch width {
	case 1:
		return int64(int8(b[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

func (t flatTable) flag(i int) bool { return t.number(i, 1, 0) != 0 }

func (t flatTable) child(i int) (flatTable, bool) {
	at, ok := t.field(i, 4)
	if !ok {
		return flatTable{in: t.in}, false
	}
	return t.in.table(at + t.in.u32(at)), true
}

// list returns the offset of a vector's elements and their number.
func (t flatTable) list(i, width int) (at, n int) {
	at, ok := t.field(i, 4)
	if !ok {
		return 0, 0
	}
	at += t.in.u32(at)
	if n = t.in.u32(at); n > len(t.in.b)/width {
		panic(failure{errMetadata})
	}
	t.in.bytes(at+4, n*width)
	return at + 4, n
}

func (t flatTable) tables(i int) []flatTable {
	at, n := t.list(i, 4)
	var all []flatTable
	for ; n > 0; n-- {
		all = append(all, t.in.table(at+t.in.u32(at)))
		at += 4
	}
	return all
}

// numbers returns the integers in a vector of 32-bit integers.
func (t flatTable) numbers(i int) []int32 {
	at, n := t.list(i, 4)
	all := make([]int32, n)
	for k := range all {
		all[k] = int32(t.in.u32(at + 4*k))
	}
	return all
}

// words returns the integers in a vector of elements that are per integers of 64 bits each.
func (t flatTable) words(i, per int) []int64 {
	at, n := t.list(i, 8*per)
	all := make([]int64, per*n)
	for k := range all {
		all[k] = int64(binary.LittleEndian.Uint64(t.in.b[at+8*k:]))
	}
	return all
}

func (t flatTable) text(i int) string {
	at, n := t.list(i, 1)
	return string(t.in.bytes(at, n))
}
