package arrow

import (
	"encoding/binary"
	"errors"
)

var errMetadata = errors.New("damaged metadata")

// flat reads FlatBuffers, the encoding of the metadata. Each offset and length is checked against the bytes that there are; the first one
// that is wrong sets err, and from then on everything is absent. Tables may be shared, and in damaged metadata be their own
// descendants: budget is how many more may be read.
type flat struct {
	b      []byte
	budget int
	err    error
}

// newFlat reads a buffer. No table of a sound one takes less than 8 bytes.
func newFlat(b []byte) *flat { return &flat{b: b, budget: len(b)/8 + 1} }

// table is a table in a buffer; the zero one has no fields.
type flatTable struct {
	in     *flat
	at     int // of the table
	size   int // of its fields' data
	fields int // where its list of fields begins
	listed int // bytes of that list
}

func (f *flat) fail() {
	if f.err == nil {
		f.err = errMetadata
	}
}

func (f *flat) bytes(at, n int) []byte {
	if f.err != nil || at < 0 || n < 0 || at > len(f.b)-n {
		f.fail()
		return nil
	}
	return f.b[at : at+n]
}

func (f *flat) u32(at int) int {
	if b := f.bytes(at, 4); b != nil {
		return int(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (f *flat) root() flatTable { return f.table(f.u32(0)) }

func (f *flat) table(at int) flatTable {
	if f.budget--; f.budget < 0 {
		f.fail()
	}
	t := flatTable{in: f, at: at, fields: at - int(int32(f.u32(at)))}
	head := f.bytes(t.fields, 4)
	if head == nil {
		return flatTable{in: f}
	}
	t.listed, t.size = int(binary.LittleEndian.Uint16(head)), int(binary.LittleEndian.Uint16(head[2:]))
	if t.listed < 4 || f.bytes(t.fields, t.listed) == nil || f.bytes(at, t.size) == nil {
		f.fail()
		return flatTable{in: f}
	}
	return t
}

// field returns where the i-th field of a table is, and false if the table does not have it.
func (t flatTable) field(i, width int) (at int, ok bool) {
	slot := 4 + 2*i
	if slot+2 > t.listed || t.in.err != nil {
		return 0, false
	}
	offset := int(binary.LittleEndian.Uint16(t.in.b[t.fields+slot:]))
	if offset == 0 {
		return 0, false
	}
	if offset+width > t.size {
		t.in.fail()
		return 0, false
	}
	return t.at + offset, true
}

// number returns an integer of 1, 2, 4 or 8 bytes.
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

// child returns a table that is a field.
func (t flatTable) child(i int) (flatTable, bool) {
	at, ok := t.field(i, 4)
	if !ok {
		return flatTable{in: t.in}, false
	}
	return t.in.table(at + t.in.u32(at)), t.in.err == nil
}

// list returns where the elements of a vector begin and how many there are.
func (t flatTable) list(i, width int) (at, n int) {
	at, ok := t.field(i, 4)
	if !ok {
		return 0, 0
	}
	at += t.in.u32(at)
	if n = t.in.u32(at); n > len(t.in.b)/width || t.in.bytes(at+4, n*width) == nil {
		t.in.fail()
		return 0, 0
	}
	return at + 4, n
}

// tables returns the tables of a vector.
func (t flatTable) tables(i int) []flatTable {
	at, n := t.list(i, 4)
	var all []flatTable
	for ; n > 0 && t.in.err == nil; n-- {
		all = append(all, t.in.table(at+t.in.u32(at)))
		at += 4
	}
	return all
}

// numbers returns the integers of a vector.
func (t flatTable) numbers(i, width int) []int64 {
	at, n := t.list(i, width)
	all := make([]int64, n)
	for k := range all {
		if b := t.in.b[at+k*width:]; width == 8 {
			all[k] = int64(binary.LittleEndian.Uint64(b))
		} else {
			all[k] = int64(int32(binary.LittleEndian.Uint32(b)))
		}
	}
	return all
}

func (t flatTable) text(i int) string {
	at, n := t.list(i, 1)
	return string(t.in.bytes(at, n))
}
