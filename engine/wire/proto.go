package wire

import "google.golang.org/protobuf/encoding/protowire"

// field is one field of a protobuf message: raw is set for length-delimited fields, num for the others.
type field struct {
	id  protowire.Number
	typ protowire.Type
	raw []byte
	num uint64
}

// eachField calls f for every field of b in order. A known field of the wrong wire type is handed over as well;
// f takes it through the accessors below, which refuse it.
func eachField(b []byte, f func(field) *Error) *Error {
	var fd field
	for len(b) > 0 {
		n := fd.short(b)
		if n == 0 {
			n = fd.any(b)
		}
		if n < 0 {
			return malformed()
		}
		b = b[n:]
		if err := f(fd); err != nil {
			return err
		}
	}
	return nil
}

// any reads the field that b begins with, and returns its length; less than 0 if there is none.
func (f *field) any(b []byte) int {
	id, typ, tag := protowire.ConsumeTag(b)
	if tag < 0 {
		return tag
	}
	n := 0
	*f = field{id: id, typ: typ}
	switch typ {
	case protowire.VarintType:
		f.num, n = protowire.ConsumeVarint(b[tag:])
	case protowire.BytesType:
		f.raw, n = protowire.ConsumeBytes(b[tag:])
	default:
		n = protowire.ConsumeFieldValue(id, typ, b[tag:])
	}
	if n < 0 {
		return n
	}
	return tag + n
}

// short reads the field that b begins with as most are: its tag is one byte, and so is its number, or its length at most two. It returns 0
// of others.
func (f *field) short(b []byte) int {
	if len(b) < 2 || b[0] >= 0x80 || b[0] < 1<<3 {
		return 0
	}
	id, first := protowire.Number(b[0]>>3), int(b[1])
	switch typ := protowire.Type(b[0] & 7); {
	case typ == protowire.VarintType && first < 0x80:
		*f = field{id: id, typ: typ, num: uint64(first)}
		return 2
	case typ == protowire.BytesType && first < 0x80 && 2+first <= len(b):
		*f = field{id: id, typ: typ, raw: b[2 : 2+first]}
		return 2 + first
	case typ == protowire.BytesType && first >= 0x80 && len(b) > 2 && b[2] < 0x80:
		if end := 3 + first - 0x80 + int(b[2])<<7; end <= len(b) {
			*f = field{id: id, typ: typ, raw: b[3:end]}
			return end
		}
	}
	return 0
}

func malformed() *Error { return Invalid("Parse PBMessage from RawString failed.") }

func missing(name string) *Error {
	return Invalid("Parse PBMessage from RawString failed. Missing required field: %s.", name)
}

// bytes stores a length-delimited field in dst, never nil: nil means the field was absent.
func (f *field) bytes(dst *[]byte) *Error {
	if f.typ != protowire.BytesType {
		return malformed()
	}
	*dst = f.raw
	if f.raw == nil {
		*dst = []byte{}
	}
	return nil
}

func (f *field) list(dst *[][]byte) *Error {
	var b []byte
	err := f.bytes(&b)
	*dst = append(*dst, b)
	return err
}

func (f *field) text(dst *string) *Error {
	*dst = string(f.raw)
	if f.typ != protowire.BytesType {
		return malformed()
	}
	return nil
}

// Optional is a proto2 scalar and whether it was there.
type Optional[T any] struct {
	Value T
	Set   bool
}

// Or is the value, or other when it was absent.
func (o Optional[T]) Or(other T) T {
	if o.Set {
		return o.Value
	}
	return other
}

func (f *field) int32(dst *Optional[int32]) *Error {
	*dst = Optional[int32]{int32(f.num), true}
	return f.varint()
}

func (f *field) int64(dst *Optional[int64]) *Error {
	*dst = Optional[int64]{int64(f.num), true}
	return f.varint()
}

func (f *field) bool(dst *Optional[bool]) *Error {
	*dst = Optional[bool]{f.num != 0, true}
	return f.varint()
}

func (f *field) varint() *Error {
	if f.typ != protowire.VarintType {
		return malformed()
	}
	return nil
}

// into says where the fields of a message belong, by their numbers: a variable, a message of its own, or what takes the field. Fields without
// a place are passed over.
type into map[protowire.Number]any

func (to into) read(b []byte) *Error { return eachField(b, to.take) }

func (to into) take(f field) *Error {
	switch dst := to[f.id].(type) {
	case *[]byte:
		return f.bytes(dst)
	case *[][]byte:
		return f.list(dst)
	case *string:
		return f.text(dst)
	case *[]string:
		*dst = append(*dst, "")
		return f.text(&(*dst)[len(*dst)-1])
	case *[]DefinedColumn:
		return f.definedColumn(dst)
	case *Optional[int32]:
		return f.int32(dst)
	case *Optional[int64]:
		return f.int64(dst)
	case *Optional[bool]:
		return f.bool(dst)
	case *bool:
		*dst = f.num != 0
		return f.varint()
	case into:
		return f.message(dst.take)
	case func(field) *Error:
		return dst(f)
	}
	return nil
}

// message reads a sub-message with read.
func (f *field) message(read func(field) *Error) *Error {
	if f.typ != protowire.BytesType {
		return malformed()
	}
	return eachField(f.raw, read)
}
