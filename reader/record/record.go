package record

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/big"
	"time"

	"example.com/tsimport/internal/table"
)

// Kind is the file's type of a value.
type Kind uint8

// The kinds, each with the fields of Datum that it uses.
const (
	Null      Kind = iota // null; also absent, if the source does not say
	Text                  // text without a type, a CSV field: Bytes, Quoted
	Number                // a JSON number: its literal in Bytes
	Integer               // Int
	Unsigned              // uint64(Int)
	Double                // Double
	Boolean               // Int, 0 or 1
	String                // a string, enum or UUID of a typed file: Bytes, perhaps not valid UTF-8
	Binary                // Bytes
	JSON                  // a nested value as JSON text: Bytes
	Decimal               // Bytes, two's complement and big endian, times 10^-Scale
	Date                  // Int days since 1970-01-01
	TimeOfDay             // Int Units since midnight
	Timestamp             // Int Units since 1970-01-01T00:00:00Z; Local says that the file names no zone
	Absent                // the record lacks the column: unlike Null, nothing is deleted
)

// Unit is a time's units per second.
type Unit int64

const (
	Seconds Unit = 1
	Millis  Unit = 1e3
	Micros  Unit = 1e6
	Nanos   Unit = 1e9

	Months Unit = -1 // of durations in months
)

// Datum is one value of a record as in the file. Bytes are a view that is valid until the next record.
type Datum struct {
	Kind   Kind
	Quoted bool // Text: the field stood in quotes
	Local  bool // Timestamp: local time of an unknown zone
	Tagged bool // JSON: an object of JSON lines that is a binary value, as Tagged knows it
	Scale  int32
	Unit   Unit
	Int    int64
	Double float64
	Bytes  []byte
}

// Measures are the units of a column by its schema, by path: "" is the column itself, ".a" a member of its values. A
// Datum here has only kind, unit, scale and zone; Null is unknown.
type Measures map[string]Datum

// Steps of such paths: to the elements of a list or the values of a map, and to its keys.
const Elements, Keys = "[]", "{key}"

var kindOf = [...]Kind{table.Null: Null, table.Integer: Integer, table.Double: Double, table.Boolean: Boolean,
	table.String: String, table.Binary: Binary}

// Of makes a datum of a table's value.
func Of(v table.Value) Datum {
	return Datum{Kind: kindOf[v.Type], Int: v.Int, Double: v.Double, Bytes: v.Bytes}
}

// None reports whether there is no value, null or absent.
func (d *Datum) None() bool { return d.Kind == Null || d.Kind == Absent }

// Record is a datum for each of the source's columns, valid until the next record. With Bad set, Fields are void.
type Record struct {
	Fields []Datum
	Span   table.Span
	Bad    *table.Reason
	// Short is the number of Fields missing in the text: they are null, so fields from elsewhere keep their places.
	Short int
	// ASCII means that the texts of all fields are known to be ASCII.
	ASCII bool
	// Timestamps are the file's timestamps of the cells, by field, in ms; negative means none. Nil: no cell has one.
	Timestamps []int64
	// Mode is the operation of a change record: table.Put, Update or Delete. It is unused in other records.
	Mode table.Mode
	// Cells are the attribute cells of a record that describes itself (source.About.Wide); other records have none.
	Cells []Cell
	// Packed, if not nil, is such a record's checked PlainBuffer bytes, without a header; Unpack moves them into Cells.
	Packed []byte
	Unpack func()
	// Row, if not nil, is the record's row, made before: it is written unchanged, and Fields and Cells are ignored.
	Row *Row
}

// Row is a row made by package encode.
type Row struct {
	Key  []byte // the ordering key
	Body []byte // PlainBuffer
	Size int    // in the service's size accounting
}

// Cell is a version of a column of a record that describes itself. Null, then the only one, means without a value.
type Cell struct {
	Name []byte // UTF-8; a view, as Datum.Bytes
	Datum
	// At is its timestamp in milliseconds; negative means the time of the write. Versions of a column have different ones.
	At int64
}

// Rows is a range of rows of a file that states its number of rows.
type Rows struct {
	Number   int   // of the range; 0 is the file's first
	Group    int   // the part of the file that holds them: ranges of one are best read one after the other
	First    int64 // within the group
	Rows     int64
	FirstRow int64 // within the file
	Bytes    int64 // of the file, about
}

// Cut cuts a group's rows into ranges of at most most rows (0: 65,536), but no more ranges than it has bytes.
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

// AppendUUID writes a 16-byte UUID as text.
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

// Unscaled returns a decimal's digits without its point.
func (d *Datum) Unscaled() *big.Int {
	n := new(big.Int).SetBytes(d.Bytes)
	if len(d.Bytes) > 0 && d.Bytes[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(d.Bytes))))
	}
	return n
}

// AppendDecimal appends the exact text of a decimal: all digits, no exponent.
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

// AppendDatetime writes a MySQL time in RFC 3339 if it can: dates with zeros, which are not dates, are unchanged.
func AppendDatetime(dst, text []byte) []byte {
	from := len(dst)
	dst = append(dst, text...)
	if len(text) >= 19 && text[10] == ' ' && string(text[:4]) != "0000" && string(text[5:7]) != "00" &&
		string(text[8:10]) != "00" {
		dst[from+10] = 'T'
	}
	return dst
}

// Refusal is the first reason why a value is refused.
type Refusal struct{ Bad *table.Reason }

// Refuse refuses the value, unless it already is.
func (r *Refusal) Refuse(column, code, message string) {
	if r.Bad == nil {
		r.Bad = &table.Reason{Column: column, Code: code, Message: message}
	}
}

// RefuseUTF8 refuses a value that is not UTF-8.
func (r *Refusal) RefuseUTF8(column, what string) {
	r.Refuse(column, table.CodeUTF8, what+" is not valid UTF-8")
}

// RefuseTwice refuses a map with a repeated key.
func (r *Refusal) RefuseTwice(column string, key []byte) {
	r.Refuse(column, table.CodeType, fmt.Sprintf("key %s occurs twice in a map", table.Show(key)))
}

// Tagged returns the base64 in an object whose only member is base64, as exports write binary values.
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
