package record

import (
	"encoding/hex"

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
