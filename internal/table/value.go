package table

import (
	"fmt"
	"math"
	"strconv"
)

// Type is the type of a cell or of a primary-key column.
type Type uint8

// The types of Tablestore's wide-column model, and Null for "no cell".
const (
	Null Type = iota
	Integer
	Double
	Boolean
	String
	Binary
	// Any is the type of a column whose values keep the type that the file gives each of them.
	Any
)

var typeNames = [...]string{"null", "integer", "double", "boolean", "string", "binary", "any"}

// String returns the name users give the type in --type and --pk.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "type " + strconv.Itoa(int(t))
}

// ParseType reads the name of a type as users write it.
func ParseType(name string) (Type, error) {
	for t, n := range typeNames {
		if n == name && Type(t) != Null {
			return Type(t), nil
		}
	}
	return Null, fmt.Errorf("type %q: want string, integer, double, boolean or binary", name)
}

// KeyType reports whether a primary-key column can have the type.
func (t Type) KeyType() bool { return t == Integer || t == String || t == Binary }

// Value is one typed cell value. Bytes of a String or Binary are a view into memory that the maker of the value
// owns; who keeps the value longer than the maker allows copies them.
type Value struct {
	Type   Type
	Absent bool    // Null: the record does not have the column, so an update never deletes it
	Int    int64   // Integer; Boolean as 0 or 1
	Double float64 // Double
	Bytes  []byte  // String (UTF-8) or Binary
}

// Size returns the value's bytes in the service's size accounting: integer and double 8, boolean 1, string and
// binary their length.
func (v Value) Size() int {
	switch v.Type {
	case Integer, Double:
		return 8
	case Boolean:
		return 1
	case String, Binary:
		return len(v.Bytes)
	}
	return 0
}

// AppendDouble appends the canonical text of a double: the shortest decimal digits that parse back to the same
// value, written without an exponent from 1e-7 up to 1e21. It is what export prints and what type inference
// compares with, so that a file loaded and exported again has the same text.
func AppendDouble(dst []byte, v float64) []byte {
	format := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-7 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, v, format, -1, 64)
}
