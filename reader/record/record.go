package record

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/big"
	"time"

	"example.com/tsimport/internal/table"
)

// Kind is what a file says of a value.
type Kind uint8

// The kinds. The fields of Datum that count are named.
const (
	Null      Kind = iota // null; absent too, where the source does not tell the two apart
	Text                  // text without a type, a CSV field: Bytes, Quoted
	Number                // a JSON number: its literal in Bytes
	Integer               // Int
	Unsigned              // uint64(Int)
	Double                // Double
	Boolean               // Int, 0 or 1
	String                // a string, enum or UUID, typed as such by the file: Bytes, which need not be valid UTF-8
	Binary                // Bytes
	JSON                  // a nested value as JSON text: Bytes
	Decimal               // Bytes, two's complement and big endian, times 10^-Scale
	Date                  // Int days since 1970-01-01
	TimeOfDay             // Int Units since midnight
	Timestamp             // Int Units since 1970-01-01T00:00:00Z; Local says that the file names no zone
	Absent                // the record does not have the column, where it could: unlike Null, it asks for nothing to be deleted
)

// Unit is the unit of a time: how many of them make a second.
type Unit int64

// The units.
const (
	Seconds Unit = 1
	Millis  Unit = 1e3
	Micros  Unit = 1e6
	Nanos   Unit = 1e9

	Months Unit = -1 // of durations, which no seconds are
)

// Datum is one value of a record as the file has it. Bytes are a view that is valid until the next record.
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

// Measures are what a column counts, as its schema says it, by paths: "" is the column itself, ".a" a member of its values. A Datum has no content
// but its kind, unit, scale and zone; Null says nothing.
type Measures map[string]Datum

// Steps of such paths: to the elements of a list or the values of a map, and to its keys.
const Elements, Keys = "[]", "{key}"

var kindOf = [...]Kind{table.Null: Null, table.Integer: Integer, table.Double: Double, table.Boolean: Boolean, table.String: String, table.Binary: Binary}

// Of makes a datum of a value of a table.
func Of(v table.Value) Datum {
	return Datum{Kind: kindOf[v.Type], Int: v.Int, Double: v.Double, Bytes: v.Bytes}
}

// None reports whether there is no value, null or absent.
func (d *Datum) None() bool { return d.Kind == Null || d.Kind == Absent }

// Record is one record, a datum for each of the source's columns in their order. Its memory is the parser's, valid
// until the next record. When Bad is set the record cannot be read and Fields are not to be used.
type Record struct {
	Fields []Datum
	Span   table.Span
	Bad    *table.Reason
	// Short is how many of Fields the text lacks: they are null, so that fields which are not of the text have their places.
	Short int
	// ASCII says that the texts of all fields are known to have no byte beyond 127.
	ASCII bool
	// Timestamps are those that the file gives the cells, by field, in milliseconds; negative is none. Nil is none at all.
	Timestamps []int64
	// Mode is what a record of changes does to its row: table.Put, Update or Delete. Of other records it says nothing.
	Mode table.Mode
	// Cells are the attribute cells of a record that describes itself (source.About.Wide). Their names and types differ from
	// record to record. What is not among them the record does not have.
	Cells []Cell
	// Packed, if not nil, is the PlainBuffer bytes of a record that describes itself, without a header and checked. Cells are not filled in then:
	// Unpack does so, and takes Packed away. A source.Packs leaves them so for who asks it to.
	Packed []byte
	Unpack func()
	// Row, if not nil, is the row that an earlier step has made of the record: it is written as it is, and Fields and Cells are not looked at.
	Row *Row
}

// Row is a row as package encode makes it.
type Row struct {
	Key  []byte // the ordering key
	Body []byte // PlainBuffer
	Size int    // in the service's size accounting
}

// Cell is one version of one column of a record that describes itself. Its datum says its type: it is never Text. A Null says that
// the record has the column without a value; it is the column's only cell then.
type Cell struct {
	Name []byte // UTF-8; a view, as Datum.Bytes
	Datum
	// At is its timestamp in milliseconds. Negative is none: the time at which it is written counts. Cells of one name, versions of
	// one column, have different ones.
	At int64
}

// Rows is a range of rows of a file that states how many it has.
type Rows struct {
	Number   int   // of the range; 0 is the file's first
	Group    int   // the part of the file that holds them: ranges of one are best read one after the other
	First    int64 // within the group
	Rows     int64
	FirstRow int64 // within the file
	Bytes    int64 // of the file, about
}

// Cut cuts the rows of a group, whose Bytes they are, into ranges of most rows at most; 0 means 65,536. A hostile count
// of rows must not make more ranges than the group has bytes in the file.
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

// AppendUUID writes the 16 bytes of a UUID as text.
func AppendUUID(dst, b []byte) []byte {
	for i, part := range [...][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:16]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return dst
}

// Moment is a time of day or a timestamp as a time in UTC.
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

// AppendDecimal appends the exact text of a decimal: all digits after the point, none in exponents.
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

// AppendDatetime writes a time of MySQL's as RFC 3339 does, where it can: dates with zeros, which are none, stay as they are.
func AppendDatetime(dst, text []byte) []byte {
	from := len(dst)
	dst = append(dst, text...)
	if len(text) >= 19 && text[10] == ' ' && string(text[:4]) != "0000" && string(text[5:7]) != "00" && string(text[8:10]) != "00" {
		dst[from+10] = 'T'
	}
	return dst
}

// Refusal is why a value is refused: the first reason.
type Refusal struct{ Bad *table.Reason }

// Refuse refuses the value, unless it was.
func (r *Refusal) Refuse(column, code, message string) {
	if r.Bad == nil {
		r.Bad = &table.Reason{Column: column, Code: code, Message: message}
	}
}

// RefuseUTF8 refuses what is not UTF-8.
func (r *Refusal) RefuseUTF8(column, what string) {
	r.Refuse(column, table.CodeUTF8, what+" is not valid UTF-8")
}

// RefuseTwice refuses a map in which a key occurs twice.
func (r *Refusal) RefuseTwice(column string, key []byte) {
	r.Refuse(column, table.CodeType, fmt.Sprintf("key %s occurs twice in a map", table.Show(key)))
}

// Tagged returns the base64 in an object with the one member base64, which is a text without escapes: so exports
// write a binary value. As the text of an object it would no longer be one.
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
