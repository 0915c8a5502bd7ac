package table

import (
	"fmt"
	"math"
	"strconv"
)

// Type is the type of a cell or of a primary-key column.
type Type uint8

// The types of Tablestore's wide-column model. Null means that there is no cell.
const (
	Null Type = iota
	Integer
	Double
	Boolean
	String
	Binary
	// Any is the type of a column whose values keep their types from the file.
	Any
)

var typeNames = [...]string{"null", "integer", "double", "boolean", "string", "binary", "any"}

// String returns the type's name as in --type and --pk.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "type " + strconv.Itoa(int(t))
}

// ParseType parses the name of a type. It is the inverse of String, but refuses null.
func ParseType(name string) (Type, error) {
	for t, n := range typeNames {
		if n == name && Type(t) != Null {
			return Type(t), nil
		}
	}
	return Null, fmt.Errorf("type %q: want string, integer, double, boolean or binary", name)
}

func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

func (t *Type) UnmarshalText(name []byte) (err error) {
	*t, err = ParseType(string(name))
	return err
}

// KeyType reports whether a primary-key column can have the type.
func (t Type) KeyType() bool { return t == Integer || t == String || t == Binary }

// Value is a typed cell value. Bytes may refer to a reused buffer; copy them to keep the value.
type Value struct {
	Type   Type
	Absent bool    // set with Null if the record lacks the column, so that an update does not delete the cell
	Int    int64   // Integer; Boolean as 0 or 1
	Double float64 // Double
	Bytes  []byte  // String (UTF-8) or Binary
}

// Bool returns a Boolean.
func Bool(b bool) Value {
	v := Value{Type: Boolean}
	if b {
		v.Int = 1
	}
	return v
}

// Size returns the value's accounted bytes: 8 for an integer or double, 1 for a boolean, or the length of Bytes.
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

// AppendDouble appends the canonical text of a double: the shortest decimal that parses to the same value, without an
// exponent if it is at least 1e-7 and below 1e21. Exports print it, and type inference compares with it.
func AppendDouble(dst []byte, v float64) []byte {
	if text, ok := appendShortDecimal(dst, v); ok {
		return text
	}
	format := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-7 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, v, format, -1, 64)
}

// appendShortDecimal is a faster AppendDouble for numbers of at most 15 digits, at most three of them after the point.
// No two decimals of 15 digits are the same double, so a decimal equal to v is the shortest one. As 1,000 and integers
// up to 10^15 are exact doubles, v is such a number if and only if the division returns v.
func appendShortDecimal(dst []byte, v float64) ([]byte, bool) {
	const most = 1e15
	sign, a := v < 0, math.Abs(v)
	if !(a > 0 && a < most) { // excludes 0, which may be negative, and NaN
		return dst, false
	}
	power := 1.0
	for digits := range 4 {
		near := a * power
		n := math.RoundToEven(near)
		if n >= most {
			return dst, false
		}
		if math.Abs(near-n) > near*0x1p-51 || n/power != a { // the first condition is usually true and saves a division
			power *= 10
			continue
		}
		if sign {
			dst = append(dst, '-')
		}
		whole, rest := uint64(n)/uint64(power), uint64(n)%uint64(power)
		dst = strconv.AppendUint(dst, whole, 10)
		if digits > 0 {
			dst = append(dst, '.', 0, 0, 0)[:len(dst)+1+digits]
			for i := len(dst) - 1; i >= len(dst)-digits; i-- {
				dst[i] = byte('0' + rest%10)
				rest /= 10
			}
		}
		return dst, true
	}
	return dst, false
}
