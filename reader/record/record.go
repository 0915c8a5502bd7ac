package record

import "tsimport/internal/table"

// Kind is what a file says of a value.
type Kind uint8

// The kinds. The fields of Datum that count are named.
const (
	Null      Kind = iota // absent or null
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
)

// Unit is the unit of a time: how many of them make a second.
type Unit int64

// The units.
const (
	Seconds Unit = 1
	Millis  Unit = 1e3
	Micros  Unit = 1e6
	Nanos   Unit = 1e9
)

// Datum is one value of a record as the file has it. Bytes are a view that is valid until the next record.
type Datum struct {
	Kind   Kind
	Quoted bool // Text: the field stood in quotes
	Local  bool // Timestamp: local time of an unknown zone
	Scale  int32
	Unit   Unit
	Int    int64
	Double float64
	Bytes  []byte
}

// Record is one record, a datum for each of the source's columns in their order. Its memory is the parser's, valid
// until the next record. When Bad is set the record cannot be read and Fields are not to be used.
type Record struct {
	Fields []Datum
	Mark   table.Mark
	Bad    *table.Reason
	// Timestamps are those that the file gives the cells, by field, in milliseconds; negative is none. Nil is none at all.
	Timestamps []int64
}
