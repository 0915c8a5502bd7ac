package filter

import (
	"google.golang.org/protobuf/encoding/protowire"

	"example.com/tsimport/engine/wire"
)

// Numbers of the protocol's enumerations.
const (
	typeSingle, typeComposite, typePagination = 1, 2, 3
	combineNot, combineAnd, combineOr         = 1, 2, 3
)

// Decode reads the filter of a read. Without bytes there is no filter, which is nil.
func Decode(b []byte) (*Filter, *wire.Error) {
	if len(b) == 0 {
		return nil, nil
	}
	var d decoder
	typ, body, err := d.envelope(b)
	if err != nil {
		return nil, err
	}
	f := &Filter{}
	if typ == typePagination {
		f.page, err = decodePage(body)
	} else {
		f.root, err = d.node(typ, body)
	}
	if err == nil {
		err = d.shape
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// DecodeCondition reads the column condition of a write: a filter that does not page.
func DecodeCondition(b []byte) (*Filter, *wire.Error) {
	f, err := Decode(b)
	if err == nil && f != nil && f.page != nil {
		return nil, wire.Invalid("Invalid condition: ColumnPaginationFilter cannot be given as a column condition.")
	}
	return f, err
}

// broken is the answer to bytes that are not a filter.
func broken() *wire.Error { return wire.Invalid("Deserialize filter failed.") }

// decoder counts the nodes before it descends into them, so that their limit bounds the depth of the recursion too.
type decoder struct {
	nodes       int
	expressions int // instructions of all so far

	shape *wire.Error // of the first operator with a wrong number of parts: too many nodes are said before it
}

func (d *decoder) envelope(b []byte) (typ uint64, body []byte, err *wire.Error) {
	if d.nodes++; d.nodes > MaxNodes {
		return 0, nil, wire.Invalid("The count of filter exceeds the max: %d.", MaxNodes)
	}
	m := message{required: 1<<1 | 1<<2}
	ok := m.each(b, func(f field) bool {
		switch f.id {
		case 1:
			typ = f.num
			return f.varint()
		case 2:
			body = f.raw
			return f.bytes()
		}
		return true
	})
	if !ok {
		return 0, nil, broken()
	}
	return typ, body, nil
}

func (d *decoder) node(typ uint64, body []byte) (node, *wire.Error) {
	switch typ {
	case typeSingle:
		return d.single(body)
	case typeComposite:
		return d.composite(body)
	case typePagination:
		return nil, wire.Invalid("ColumnPaginationFilter cannot be given inside CompositeColumnValueFilter.")
	}
	return nil, broken()
}

func (d *decoder) composite(b []byte) (node, *wire.Error) {
	var combinator uint64
	var subs []node
	var err *wire.Error
	m := message{required: 1 << 1}
	ok := m.each(b, func(f field) bool {
		switch f.id {
		case 1:
			combinator = f.num
			return f.varint()
		case 2:
			if !f.bytes() {
				return false
			}
			var typ uint64
			var body []byte
			var sub node
			if typ, body, err = d.envelope(f.raw); err == nil {
				sub, err = d.node(typ, body)
			}
			subs = append(subs, sub)
			return err == nil
		}
		return true
	})
	switch {
	case err != nil:
		return nil, err
	case !ok || combinator < combineNot || combinator > combineOr:
		return nil, broken()
	case combinator == combineNot && len(subs) != 1:
		d.misshapen("Invalid NOT operator: the number of sub-filters must be 1.")
		return not{}, nil
	case combinator == combineNot:
		return not{subs[0]}, nil
	case len(subs) < 2:
		d.misshapen("Invalid AND/OR operator: the number of sub-filters must be more than 1.")
		return every(nil), nil
	case combinator == combineAnd:
		return every(subs), nil
	}
	return some(subs), nil
}

func (d *decoder) misshapen(says string) {
	if d.shape == nil {
		d.shape = wire.Invalid("%s", says)
	}
}

func (d *decoder) single(b []byte) (node, *wire.Error) {
	s := &single{}
	var value []byte
	var err *wire.Error
	m := message{required: 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5}
	ok := m.each(b, func(f field) bool {
		switch f.id {
		case 1:
			s.comparator = comparator(f.num)
			return f.varint() && f.num >= uint64(equal) && f.num <= uint64(existsNot)
		case 2:
			s.column = f.raw
			return f.bytes()
		case 3:
			value = f.raw
			return f.bytes()
		case 4:
			s.missing = f.num == 0
			return f.varint()
		case 5:
			s.latest = f.num != 0
			return f.varint()
		case 6:
			if !f.bytes() {
				return false
			}
			s.rule, err = d.rule(f.raw)
			return err == nil
		}
		return true
	})
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, broken()
	case !wire.ValidColumnName(s.column):
		return nil, wire.Invalid("Invalid column name: '%s'.", s.column)
	}
	typ, payload, rest, ok := wire.ReadVariant(value)
	if !ok || len(rest) > 0 {
		return nil, broken()
	}
	s.value = wire.Cell{Name: s.column, Type: typ, Value: payload}
	return s, wire.CheckValue(&s.value)
}

func (d *decoder) rule(b []byte) (*rule, *wire.Error) {
	var regex []byte
	cast := wire.Integer // what an absent cast_type is
	m := message{required: 1 << 1}
	ok := m.each(b, func(f field) bool {
		switch f.id {
		case 1:
			regex = f.raw
			return f.bytes()
		case 2:
			cast = wire.ValueType(f.num)
			return f.varint() && f.num <= uint64(wire.Binary)
		}
		return true
	})
	if !ok {
		return nil, broken()
	}
	r, err := newRule(MaxRegexSize-d.expressions, regex, cast)
	if err != nil {
		return nil, err
	}
	d.expressions += r.size
	return r, nil
}

func decodePage(b []byte) (*page, *wire.Error) {
	var offset, limit int32
	m := message{required: 1<<1 | 1<<2}
	ok := m.each(b, func(f field) bool {
		switch f.id {
		case 1:
			offset = int32(f.num)
			return f.varint()
		case 2:
			limit = int32(f.num)
			return f.varint()
		}
		return true
	})
	switch {
	case !ok:
		return nil, broken()
	case offset < 0:
		return nil, wire.Invalid("Offset in ColumnPaginationFilter must be greater than or equal to 0.")
	case limit <= 0:
		return nil, wire.Invalid("Limit in ColumnPaginationFilter must be greater than 0.")
	}
	return &page{int(offset), int(limit)}, nil
}

// field is one field of a message: raw is set for length-delimited fields, num for varints.
type field struct {
	id  protowire.Number
	typ protowire.Type
	raw []byte
	num uint64
}

func (f *field) bytes() bool  { return f.typ == protowire.BytesType }
func (f *field) varint() bool { return f.typ == protowire.VarintType }

// message walks the fields of a protobuf message; required is a bit for each field that must be there.
type message struct{ required uint }

// each calls f for every field until one is refused. It is false then, and when the message is broken or incomplete.
func (m *message) each(b []byte, f func(field) bool) bool {
	for len(b) > 0 {
		id, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		fd := field{id: id, typ: typ}
		switch typ {
		case protowire.VarintType:
			fd.num, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			fd.raw, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(id, typ, b)
		}
		if n < 0 || !f(fd) {
			return false
		}
		b = b[n:]
		if id < 32 {
			m.required &^= 1 << id
		}
	}
	return m.required == 0
}
