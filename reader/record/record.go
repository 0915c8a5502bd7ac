package record

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/big"
	"time"

	"example.com/tsimport/internal/table"
)

// Kind is the type of a value in its file.
type Kind uint8

// The kinds, with the fields of Datum that each uses.
const (
	Null      Kind = iota // null; also an absent value, if the source does not distinguish the two
	Text                  // untyped text, such as a CSV field: Bytes, Quoted
	Number                // a JSON number: Bytes has its literal
	Integer               // Int
	Unsigned              // uint64(Int)
	Double                // Double
	Boolean               // Int, 0 or 1
	String                // a string, enum or UUID in a typed file: Bytes, which may be invalid UTF-8
	Binary                // Bytes
	JSON                  // a nested value: Bytes has its JSON text
	Decimal               // Bytes, a big-endian integer in two's complement, times 10^-Scale
	Date                  // Int is in days since 1970-01-01
	TimeOfDay             // Int is in Units since midnight
	Timestamp             // Int is in Units since 1970-01-01T00:00:00Z; Local if the file states no zone
	Absent                // the record lacks the column; unlike Null, this deletes nothing
)

// Unit is a unit of time, given as the number of units in a second.
type Unit int64

const (
	Seconds Unit = 1
	Millis  Unit = 1e3
	Micros  Unit = 1e6
	Nanos   Unit = 1e9

	Months Unit = -1 // for durations in months
)

// Datum is a value of a record, as it is in the file. Bytes are valid until the next record.
type Datum struct {
	Kind   Kind
	Quoted bool // for Text: whether the field was in quotes
	Local  bool // for Timestamp: whether it is local time in an unknown zone
	Tagged bool // for JSON: whether it is a binary value in JSON lines, as defined by the function Tagged
	Scale  int32
	Unit   Unit
	Int    int64
	Double float64
	Bytes  []byte
}

// Measures holds the units of a column according to its schema, by path: "" is the column itself, ".a" a member of its
// values. The Datums have only a kind, unit, scale and zone; Null means unknown.
type Measures map[string]Datum

// Steps in these paths: to the elements of a list or the values of a map, and to the keys of a map.
const Elements, Keys = "[]", "{key}"

var kindOf = [...]Kind{table.Null: Null, table.Integer: Integer, table.Double: Double, table.Boolean: Boolean,
	table.String: String, table.Binary: Binary}

// Of returns the datum of a table's value.
func Of(v table.Value) Datum {
	return Datum{Kind: kindOf[v.Type], Int: v.Int, Double: v.Double, Bytes: v.Bytes}
}

// None reports whether the value is null or absent.
func (d *Datum) None() bool { return d.Kind == Null || d.Kind == Absent }

// Record holds a datum for each column of the source, valid until the next record. If Bad is set, Fields mean nothing.
type Record struct {
	Fields []Datum
	Span   table.Span
	Bad    *table.Reason
	// Short is the number of Fields that the text lacks. They are null, so that fields after them keep their indexes.
	Short int
	// ASCII means that the texts of all fields are known to be ASCII.
	ASCII bool
	// Timestamps holds the cells' timestamps by field, in ms, negative for none. Nil means that no cell has one.
	Timestamps []int64
	// Mode is the operation of a change record: table.Put, Update or Delete. Other records do not use it.
	Mode table.Mode
	// Cells are the attributes of a record that describes itself (see source.About.Wide). Other records have none.
	Cells []Cell
	// Packed, if not nil, holds a self-describing record as verified PlainBuffer, without a header. Unpack decodes it
	// into Cells and clears Packed.
	Packed []byte
	Unpack func()
	// Row, if not nil, is an encoded row. It is written unchanged, and Fields and Cells are ignored.
	Row *Row
}

// Row is a row encoded by package encode.
type Row struct {
	Key  []byte // the ordering key
	Body []byte // the row in PlainBuffer
	Size int    // in bytes, as the service counts it
}

// Cell is a version of a column in a self-describing record. A Null means no value, and must be the only version.
type Cell struct {
	Name []byte // UTF-8; valid as long as Datum.Bytes
	Datum
	// At is the timestamp in milliseconds; negative means the time of writing. It differs between versions of a column.
	At int64
}

// Rows is a range of rows in a file that states its number of rows.
type Rows struct {
	Number   int   // number of the range; 0 for the first in the file
	Group    int   // the part of the file with these rows; ranges of a group are best read in sequence
	First    int64 // index of the first row in the group
	Rows     int64
	FirstRow int64 // index of the first row in the file
	Bytes    int64 // approximate size in the file, in bytes
}

// Cut cuts a group's rows into ranges of up to most rows (0 means 65,536), but into at most bytes+1 ranges.
func (r Rows) Cut(most, bytes int64) (all []Rows) {
	if most <= 0 {
		most = 64 << 10
	}
	most = max(most, r.Rows/(bytes+1)+1)
	for first := int64(0); first < r.Rows; {
		one := r
		one.Rows = min(most, r.Rows-first)
		one.First, one.FirstRow = first, r.FirstRow+first
		one.Bytes = int64(float64(r.Bytes) * (float64(one.Rows) / float64(r.Rows)))
		all = append(all, one)
		first += one.Rows
	}
	return all
}

// AppendUUID appends a 16-byte UUID as text.
func AppendUUID(dst, b []byte) []byte {
	for i, part := range [...][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:16]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return dst
}

// Moment converts a time of day or a timestamp to a time in UTC.
func (d *Datum) Moment() time.Time {
	unit := int64(d.Unit)
	return time.Unix(d.Int/unit, d.Int%unit*(1e9/unit)).UTC()
}

// Unscaled returns the digits of a decimal as an integer, without the point.
func (d *Datum) Unscaled() *big.Int {
	n := new(big.Int).SetBytes(d.Bytes)
	if len(d.Bytes) > 0 && d.Bytes[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(d.Bytes))))
	}
	return n
}

// AppendDecimal appends the exact text of a decimal, with all digits and without an exponent.
func (d *Datum) AppendDecimal(dst []byte) []byte {
	n := d.Unscaled()
	if d.Scale <= 0 {
		return n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-d.Scale)), nil)).Append(dst, 10)
	}
	if n.Sign() < 0 {
		dst = append(dst, '-')
		n.Neg(n)
	}
	digits := n.Append(nil, 10)
	for len(digits) <= int(d.Scale) {
		digits = append([]byte{'0'}, digits...)
	}
	point := len(digits) - int(d.Scale)
	return append(append(append(dst, digits[:point]...), '.'), digits[point:]...)
}

// AppendDatetime appends a MySQL time as in RFC 3339. It leaves invalid dates, which contain zeros, unchanged.
func AppendDatetime(dst, text []byte) []byte {
	from := len(dst)
	dst = append(dst, text...)
	if len(text) >= 19 && text[10] == ' ' && string(text[:4]) != "0000" && string(text[5:7]) != "00" &&
		string(text[8:10]) != "00" {
		dst[from+10] = 'T'
	}
	return dst
}

// AppendTimestamp appends a PostgreSQL time as in RFC 3339. It leaves infinity and years before 1 unchanged.
func AppendTimestamp(dst, text []byte) []byte {
	space := bytes.IndexByte(text, ' ')
	if space < 0 || bytes.HasSuffix(text, []byte("BC")) {
		return append(dst, text...)
	}
	return append(append(append(dst, text[:space]...), 'T'), text[space+1:]...)
}

// Refusal holds the first reason why a value is refused.
type Refusal struct{ Bad *table.Reason }

// Refuse refuses the value, unless it was refused before.
func (r *Refusal) Refuse(column, code, message string) {
	if r.Bad == nil {
		r.Bad = &table.Reason{Column: column, Code: code, Message: message}
	}
}

// RefuseUTF8 refuses a value that is not valid UTF-8.
func (r *Refusal) RefuseUTF8(column, what string) {
	r.Refuse(column, table.CodeUTF8, what+" is not valid UTF-8")
}

// RefuseTwice refuses a map with a repeated key.
func (r *Refusal) RefuseTwice(column string, key []byte) {
	r.Refuse(column, table.CodeType, fmt.Sprintf("key %s occurs twice in a map", table.Show(key)))
}

// Tagged returns the base64 in an object with the only member base64, which is how exports write binary values.
func Tagged(object []byte) (text []byte, ok bool) {
	inner := bytes.TrimSpace(object)
	for _, token := range []string{"{", `"base64"`, ":", `"`} {
		if inner, ok = bytes.CutPrefix(inner, []byte(token)); !ok {
			return nil, false
		}
		if token != `"` {
			inner = bytes.TrimLeft(inner, " \t\r\n")
		}
	}
	text, rest, ok := bytes.Cut(inner, []byte(`"`))
	if !ok || bytes.ContainsRune(text, '\\') || !bytes.Equal(bytes.TrimSpace(rest), []byte("}")) {
		return nil, false
	}
	return text, true
}
