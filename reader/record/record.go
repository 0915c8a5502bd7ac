package record

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/big"
	"time"

	"example.com/tsimport/internal/table"
)

// Kind is the type that a value has in its file.
type Kind uint8

// The kinds, each with the fields of Datum that it uses.
const (
	Null      Kind = iota // null; also an absent value, if the source does not distinguish them
	Text                  // untyped text, as a CSV field: Bytes, Quoted
	Number                // a JSON number: its literal in Bytes
	Integer               // Int
	Unsigned              // uint64(Int)
	Double                // Double
	Boolean               // Int, 0 or 1
	String                // a string, enum or UUID in a typed file: Bytes, which may be invalid UTF-8
	Binary                // Bytes
	JSON                  // a nested value as JSON text: Bytes
	Decimal               // Bytes, in two's complement and big endian, times 10^-Scale
	Date                  // Int days since 1970-01-01
	TimeOfDay             // Int Units since midnight
	Timestamp             // Int Units since 1970-01-01T00:00:00Z; Local if the file names no zone
	Absent                // the record lacks the column; unlike Null, this deletes nothing
)

// Unit is the number of a time's units per second.
type Unit int64

const (
	Seconds Unit = 1
	Millis  Unit = 1e3
	Micros  Unit = 1e6
	Nanos   Unit = 1e9

	Months Unit = -1 // for durations in months
)

// Datum is one value of a record as it is in the file. Bytes are valid until the next record.
type Datum struct {
	Kind   Kind
	Quoted bool // Text: the field was in quotes
	Local  bool // Timestamp: local time in an unknown zone
	Tagged bool // JSON: an object in JSON lines that is a binary value, as the function Tagged defines
	Scale  int32
	Unit   Unit
	Int    int64
	Double float64
	Bytes  []byte
}

// Measures has the units of a column according to its schema, by path: "" is the column itself, ".a" a member of its
// values. A Datum here has only kind, unit, scale and zone; Null means unknown.
type Measures map[string]Datum

// Steps in such paths: to the elements of a list or the values of a map, and to a map's keys.
const Elements, Keys = "[]", "{key}"

var kindOf = [...]Kind{table.Null: Null, table.Integer: Integer, table.Double: Double, table.Boolean: Boolean,
	table.String: String, table.Binary: Binary}

// Of returns the datum of a table's value.
func Of(v table.Value) Datum {
	return Datum{Kind: kindOf[v.Type], Int: v.Int, Double: v.Double, Bytes: v.Bytes}
}

// None reports whether the value is null or absent.
func (d *Datum) None() bool { return d.Kind == Null || d.Kind == Absent }

// Record has a datum for each column of the source, valid until the next record. With Bad set, Fields are meaningless.
type Record struct {
	Fields []Datum
	Span   table.Span
	Bad    *table.Reason
	// Short is the number of Fields missing in the text. They are null, so that fields added later keep their indexes.
	Short int
	// ASCII means that the texts of all fields are known to be ASCII.
	ASCII bool
	// Timestamps has the cells' timestamps from the file, by field, in ms; negative for none. Nil: no cell has one.
	Timestamps []int64
	// Mode is the operation of a change record: table.Put, Update or Delete. It is unused in other records.
	Mode table.Mode
	// Cells are the attributes of a record that describes itself (source.About.Wide); other records have none.
	Cells []Cell
	// Packed, if not nil, holds a self-describing record as verified PlainBuffer, without a header. Unpack decodes it
	// into Cells and clears Packed.
	Packed []byte
	Unpack func()
	// Row, if not nil, is a finished row: it is written unchanged, and Fields and Cells are ignored.
	Row *Row
}

// Row is a row encoded by package encode.
type Row struct {
	Key  []byte // the ordering key
	Body []byte // the row in PlainBuffer
	Size int    // as the service counts it
}

// Cell is a version of a column in a self-describing record. A Null, always the only version, means no value.
type Cell struct {
	Name []byte // UTF-8; valid as long as Datum.Bytes
	Datum
	// At is the timestamp in milliseconds; negative means the time of the write. Versions of a column differ in it.
	At int64
}

// Rows is a range of rows in a file that states its number of rows.
type Rows struct {
	Number   int   // number of the range; 0 for the file's first
	Group    int   // the part of the file with the rows; ranges of a group are best read in sequence
	First    int64 // first row, within the group
	Rows     int64
	FirstRow int64 // first row, within the file
	Bytes    int64 // approximate bytes of the file
}

// Cut cuts a group's rows into ranges of at most most rows (0 means 65,536), but into no more ranges than it has bytes.
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

// Unscaled returns a decimal's digits, without its point.
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

// AppendDatetime appends a MySQL time in RFC 3339 if possible: invalid dates, which contain zeros, are unchanged.
func AppendDatetime(dst, text []byte) []byte {
	from := len(dst)
	dst = append(dst, text...)
	if len(text) >= 19 && text[10] == ' ' && string(text[:4]) != "0000" && string(text[5:7]) != "00" &&
		string(text[8:10]) != "00" {
		dst[from+10] = 'T'
	}
	return dst
}

// Refusal keeps the first reason why a value is refused.
type Refusal struct{ Bad *table.Reason }

// Refuse refuses the value, unless it has been refused before.
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

// Tagged returns the base64 in an object whose only member is base64, the form in which exports write binary values.
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
