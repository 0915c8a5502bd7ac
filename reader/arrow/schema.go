package arrow

import (
	"slices"
	"unicode/utf8"

	"example.com/tsimport/reader/record"
)

// Types of fields, with the format's numbers.
const (
	typeNull = iota + 1
	typeInt
	typeFloat
	typeBinary
	typeText
	typeBool
	typeDecimal
	typeDate
	typeTime
	typeTimestamp
	typeInterval
	typeList
	typeStruct
	typeUnion
	typeFixedBinary
	typeFixedList
	typeMap
	typeDuration
	typeLargeBinary
	typeLargeText
	typeLargeList
	typeRuns
	typeBinaryView
	typeTextView
	typeListView
	typeLargeListView
)

// Limits of a schema.
const (
	maxDepth = 64
	maxScale = 4096 // limits the zeros in a decimal's text; no known program writes more than 76 digits
	maxWidth = 1 << 30
)

// field is a column or a part of a nested column.
type field struct {
	name   string
	path   string
	fields []*field
	typ    int
	kind   record.Kind // kind of the values; JSON if nested
	width  int         // size of a fixed-width value in bytes; 0 for booleans
	scale  int32
	unit   record.Unit
	flavor flavor
	local  bool // whether it is a timestamp without a time zone
	codes  map[int8]int
	dict   *encoding // set if the values are indexes into a dictionary
	opened bool      // whether it is a flattened struct
	twice  string    // a name that two of its fields have in common
}

// flavor distinguishes fields of the same Arrow type.
type flavor uint8

const (
	plain       flavor = iota
	signed             // of integers
	uuid               // of fixed-size binary with 16 bytes
	byteBoolean        // an integer that means false if 0
	sparse             // of unions
	dense
	monthsOnly // of intervals
	daysMillis
	monthsDaysNanos
)

// encoding describes a field whose values are indexes into a dictionary.
type encoding struct {
	id    int64
	index *field
}

type schema struct {
	fields  []*field
	version int64
	byID    map[int64]*field // by dictionary id: field of the dictionary's values
}

// Metadata versions, with the format's numbers.
const (
	version4 = 3
	version5 = 4
)

func readSchema(t flatTable, version int64) *schema {
	var none *field
	if version != version4 && version != version5 {
		none.failf("metadata version %d is not supported; want 4 or 5, in use since 2017", version+1)
	}
	if t.number(0, 2, 0) != 0 {
		none.failf("the values are big endian, which is not supported; write them on a little-endian machine")
	}
	s := &schema{version: version, byID: map[int64]*field{}}
	for _, child := range t.tables(1) {
		s.fields = append(s.fields, s.field(child, "", 0))
	}
	if len(s.fields) == 0 {
		none.failf("it has no columns")
	}
	return s
}

func (s *schema) field(t flatTable, prefix string, depth int) *field {
	var none *field
	if depth > maxDepth {
		none.failf("columns are nested more than %d deep", maxDepth)
	}
	f := &field{name: t.text(0), typ: int(uint8(t.number(2, 1, 0)))}
	if f.path = prefix + f.name; !utf8.ValidString(f.name) {
		none.failf("the name of column %q is not UTF-8", f.path)
	}
	details, _ := t.child(3)
	f.interpret(details)
	names := map[string]bool{}
	for _, child := range t.tables(5) {
		c := s.field(child, f.path+".", depth+1)
		if names[c.name] {
			f.twice = c.name
		}
		names[c.name] = true
		f.fields = append(f.fields, c)
	}
	f.checkFields(details)
	f.extend(t)
	if e, ok := t.child(4); ok {
		s.encode(f, e)
	}
	return f
}

// encode marks f as dictionary-encoded.
func (s *schema) encode(f *field, t flatTable) {
	index := &field{name: f.name, path: f.path, typ: typeInt, kind: record.Integer, width: 4, flavor: signed}
	if it, ok := t.child(1); ok {
		index.integer(it)
	}
	f.dict = &encoding{id: t.number(0, 8, 0), index: index}
	values := *f
	values.dict = nil
	if other := s.byID[f.dict.id]; other != nil && !other.same(&values) {
		f.failf("dictionary %d has values of two types", f.dict.id)
	}
	s.byID[f.dict.id] = &values
}

// same reports whether the values of two fields have the same format.
func (f *field) same(g *field) bool {
	return f.typ == g.typ && f.kind == g.kind && f.width == g.width && f.scale == g.scale && f.unit == g.unit &&
		f.flavor == g.flavor && f.local == g.local && slices.EqualFunc(f.fields, g.fields, (*field).same)
}

var units = [...]record.Unit{record.Seconds, record.Millis, record.Micros, record.Nanos}

func (f *field) setUnit(n int64) {
	if n < 0 || int(n) >= len(units) {
		f.failf("unknown time unit %d", n)
	}
	f.unit = units[n]
}

// interpret sets the kind of the field's values.
func (f *field) interpret(t flatTable) {
	switch f.typ {
	case typeNull, typeRuns:
	case typeInt:
		f.integer(t)
	case typeFloat:
		p := t.number(0, 2, 0)
		if f.kind = record.Double; p < 0 || p > 2 {
			f.failf("unknown floating-point precision %d", p)
		}
		f.width = 2 << p
	case typeBinary, typeLargeBinary, typeBinaryView:
		f.kind = record.Binary
	case typeText, typeLargeText, typeTextView:
		f.kind = record.String
	case typeBool:
		f.kind = record.Boolean
	case typeDecimal:
		f.decimal(t)
	case typeDate:
		f.kind, f.width = record.Date, 4
		if t.number(0, 2, 1) == 1 {
			f.width, f.unit = 8, record.Millis
		}
	case typeTime:
		bits := t.number(1, 4, 32)
		f.setUnit(t.number(0, 2, 1))
		f.kind, f.width = record.TimeOfDay, int(bits/8)
		if bits != 32 && bits != 64 || (bits == 32) != (f.unit <= record.Millis) {
			f.failf("a time of %d bits does not match its unit", bits)
		}
	case typeTimestamp:
		f.kind, f.width, f.local = record.Timestamp, 8, t.text(1) == ""
		f.setUnit(t.number(0, 2, 0))
	case typeDuration:
		f.kind, f.width, f.flavor = record.Integer, 8, signed
		f.setUnit(t.number(0, 2, 1))
	case typeInterval:
		f.interval(t.number(0, 2, 0))
	case typeFixedBinary:
		f.kind = record.Binary
		f.fixed(t.number(0, 4, 0))
	case typeFixedList:
		f.kind = record.JSON
		f.fixed(t.number(0, 4, 0))
	case typeList, typeLargeList, typeListView, typeLargeListView, typeStruct, typeMap, typeUnion:
		f.kind = record.JSON
	default:
		f.failf("unknown type %d", f.typ)
	}
}

func (f *field) integer(t flatTable) {
	bits := t.number(0, 4, 0)
	if bits != 8 && bits != 16 && bits != 32 && bits != 64 {
		f.failf("integers of %d bits are not supported", bits)
	}
	f.kind, f.width = record.Integer, int(bits/8)
	switch {
	case t.flag(1):
		f.flavor = signed
	case bits == 64:
		f.kind = record.Unsigned
	}
}

func (f *field) decimal(t flatTable) {
	scale, bits := t.number(1, 4, 0), t.number(2, 4, 128)
	switch {
	case bits != 32 && bits != 64 && bits != 128 && bits != 256:
		f.failf("decimals of %d bits are not supported", bits)
	case scale > maxScale || scale < -maxScale:
		f.failf("decimals with a scale of %d are not supported", scale)
	}
	f.kind, f.width, f.scale = record.Decimal, int(bits/8), int32(scale)
}

func (f *field) interval(unit int64) {
	switch unit {
	case 0:
		f.kind, f.width, f.flavor = record.Integer, 4, monthsOnly
	case 1:
		f.kind, f.width, f.flavor = record.JSON, 8, daysMillis
	case 2:
		f.kind, f.width, f.flavor = record.JSON, 16, monthsDaysNanos
	default:
		f.failf("unknown interval unit %d", unit)
	}
}

func (f *field) fixed(n int64) {
	if n < 0 || n > maxWidth {
		f.failf("a value size of %d bytes or elements is not possible", n)
	}
	f.width = int(n)
}

// checkFields checks that f has the children that its type requires.
func (f *field) checkFields(t flatTable) {
	n := len(f.fields)
	wrong := n != 0
	switch f.typ {
	case typeList, typeLargeList, typeListView, typeLargeListView, typeFixedList:
		wrong = n != 1
	case typeStruct:
		wrong = false
	case typeMap:
		wrong = n != 1 || f.fields[0].typ != typeStruct || len(f.fields[0].fields) != 2 || f.fields[0].dict != nil
	case typeRuns:
		if wrong = n != 2 || f.fields[0].typ != typeInt || f.fields[0].flavor != signed || f.fields[0].width < 2 ||
			f.fields[0].dict != nil; !wrong {
			f.kind = f.fields[1].kind
		}
	case typeUnion:
		wrong = false
		f.union(t)
	}
	if wrong {
		f.failf("its type (%d) does not match its %d fields", f.typ, n)
	}
}

func (f *field) union(t flatTable) {
	switch mode := t.number(0, 2, 0); mode {
	case 0:
		f.flavor = sparse
	case 1:
		f.flavor = dense
	default:
		f.failf("unknown union mode %d", mode)
	}
	if f.twice != "" {
		f.failf("two members of the union are named %q and cannot be told apart", f.twice)
	}
	ids := t.numbers(1)
	if len(ids) == 0 {
		for i := range f.fields {
			ids = append(ids, int32(i))
		}
	}
	f.codes = map[int8]int{}
	for i, id := range ids {
		if id < 0 || id > 127 || i >= len(f.fields) {
			f.failf("a union of %d members has the code %d", len(f.fields), id)
		}
		f.codes[int8(id)] = i
	}
	if len(f.codes) != len(f.fields) {
		f.failf("the union does not have one code for each member")
	}
}

// extend applies extension types that change the meaning of the storage type. It ignores others.
func (f *field) extend(t flatTable) {
	for _, pair := range t.tables(6) {
		if pair.text(0) != "ARROW:extension:name" {
			continue
		}
		switch name := pair.text(1); {
		case name == "arrow.uuid" && f.typ == typeFixedBinary && f.width == 16:
			f.kind, f.flavor = record.String, uuid
		case name == "arrow.bool8" && f.typ == typeInt && f.width == 1 && f.flavor == signed:
			f.kind, f.flavor = record.Boolean, byteBoolean
		}
	}
}
