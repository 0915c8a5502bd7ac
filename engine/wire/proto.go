package wire

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is a field of a protobuf message. raw is set for length-delimited fields, num for varints.
type field struct {
	id  protowire.Number
	typ protowire.Type
	raw []byte
	num uint64
}

// eachField calls f for every field of b in order. It includes fields with a wrong wire type, which into refuses.
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

// any decodes the field at the start of b and returns its length, which is negative if the field is malformed.
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

// short is like any for the most common form: a tag of one byte, and a number of one byte or a length of at most two
// bytes. It returns 0 for other forms.
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

// Optional is a proto2 scalar that may be absent.
type Optional[T any] struct {
	Value T
	Set   bool
}

// Or returns the value, or other if it is absent.
func (o Optional[T]) Or(other T) T {
	if o.Set {
		return o.Value
	}
	return other
}

// message maps the numbers of a message's fields to destinations. Fields without a destination are skipped.
type message []struct {
	id   protowire.Number
	name string // of a required field; otherwise empty
	to   any    // pointer to a variable, message, or function; see field.into
}

// read decodes the fields in order. Then it checks required fields and table names.
func (m message) read(b []byte) *Error {
	seen := 0
	err := eachField(b, func(f field) *Error {
		for i := range m {
			if m[i].id == f.id {
				seen |= 1 << i
				return f.into(m[i].to)
			}
		}
		return nil
	})
	for i := range m {
		if err == nil && m[i].name != "" && seen&(1<<i) == 0 {
			err = missing(strings.Clone(m[i].name)) // a copy, or all destinations would escape to the heap
		}
	}
	for i := range m {
		if name, ok := m[i].to.(*TableName); err == nil && ok && !ValidTableName(*name) {
			err = invalidTableName(*name)
		}
	}
	return err
}

// TableName is the name of a table. It is checked as soon as its message is decoded.
type TableName []byte

// refused is a feature that the engine lacks. Its field is accepted only if it is empty.
type refused string

// ReadFields decodes a message with fields 1, 2, 3 … into places. The first fields, as many as
// required, must be present.
func ReadFields(b []byte, required int, places ...any) *Error {
	m := make(message, len(places))
	for i, to := range places {
		m[i].id, m[i].to = protowire.Number(i+1), to
		if i < required {
			m[i].name = "field"
		}
	}
	return m.read(b)
}

// into stores a field in its destination. For a refused feature any wire type is accepted.
func (f *field) into(place any) *Error {
	typ := protowire.BytesType
	switch to := place.(type) {
	case *[]byte:
		*to = f.raw
	case *TableName:
		*to = f.raw
	case *TransactionID:
		if *to = f.raw; len(f.raw) > 0 && !to.valid() {
			return errTransactionID()
		}
	case *[][]byte:
		*to = append(*to, f.raw)
	case *string:
		*to = string(f.raw)
	case *[]string:
		*to = append(*to, string(f.raw))
	case *Optional[int32]:
		*to, typ = Optional[int32]{int32(f.num), true}, protowire.VarintType
	case *Optional[int64]:
		*to, typ = Optional[int64]{int64(f.num), true}, protowire.VarintType
	case *Optional[bool]:
		*to, typ = Optional[bool]{f.num != 0, true}, protowire.VarintType
	case *bool:
		*to, typ = f.num != 0, protowire.VarintType
	case *uint64:
		*to, typ = f.num, protowire.VarintType
	case message:
		if f.typ == typ {
			return to.read(f.raw)
		}
	case func([]byte) *Error:
		if f.typ == typ {
			return to(f.raw)
		}
	case refused:
		if typ = f.typ; len(f.raw) > 0 {
			return Unsupported(string(to))
		}
	}
	if f.typ != typ {
		return malformed()
	}
	return nil
}
