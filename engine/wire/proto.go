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
		id, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return malformed()
		}
		b = b[n:]
		fd = field{id: id, typ: typ}
		switch typ {
		case protowire.VarintType:
			fd.num, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			fd.raw, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(id, typ, b)
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

// message reads a sub-message with read.
func (f *field) message(read func(field) *Error) *Error {
	if f.typ != protowire.BytesType {
		return malformed()
	}
	return eachField(f.raw, read)
}
