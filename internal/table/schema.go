package table

import (
	"slices"
	"strings"
	"time"
)

// Mode is what a row does to the table.
type Mode uint8

// The modes of a load. Put replaces the whole row, Update changes only the named columns, Delete removes the row,
// Increment adds to the named columns. In Changes each row has its own of the first three.
const (
	Put Mode = iota
	Update
	Delete
	Increment
	Changes
)

// Existence is the row existence condition of a write.
type Existence uint8

// The row existence conditions, by Tablestore's names.
const (
	Ignore Existence = iota
	ExpectExist
	ExpectNotExist
)

// KeyColumn is one primary-key column of a table.
type KeyColumn struct {
	Name string `json:"name"`
	Type Type   `json:"type"`
	Auto bool   `json:"auto_increment,omitempty"` // an Integer that the service can make, never the first
}

// Column maps one input column to one table column.
type Column struct {
	Source string // name in the input
	Name   string // name in the table
	Type   Type
	Hex    bool // Binary: text is hexadecimal, otherwise base64
	// Time, if set, makes an Integer of a time.
	Time *Time
	// Exact is set if the user did not ask for the type: then text must be the canonical text of its value, because
	// storing the value would otherwise change the input (007 is not 7).
	Exact bool
	// Zeros is set with Exact if the type is the table's: then 10.20 is read as the double 10.2.
	Zeros    bool
	Inferred bool // from a sample
	// Own, if set, is the type of the column's values in a file with types (JSON, Parquet), by the sample. Such values of
	// other types do not fit: 5 and "5" would become one value. Double takes integers too. For Any it is untyped texts'.
	Own Type
	// Unit is the unit of the values by the input's schema ("timestamp, µs"), which numbers do not show. Empty is unknown.
	Unit string
}

// Time says how an input column's times become integers.
type Time struct {
	Layout string // of the text, as package time has it
	Zone   *time.Location
	Unit   int64 // units of a second: 1, 1e3, 1e6 or 1e9
	// Zoned means that the text has an offset or a zone, so Zone does not count.
	Zoned bool
}

// Schema is a table and its input columns. Every record of the reader has the key columns, in order, then Columns.
type Schema struct {
	Table   string
	Key     []KeyColumn
	Columns []Column // Key's sources first, then attributes
	// Numbered is the index in Key of the column whose value the service makes for each row; 0 is none, as it is never the
	// first. Rows then have a placeholder there, and we can no longer distinguish them.
	Numbered int
}

// Ordering returns the key columns of the ordering key: all, or those before the one that the service numbers.
func (s *Schema) Ordering() []KeyColumn {
	if s.Numbered > 0 {
		return s.Key[:s.Numbered]
	}
	return s.Key
}

// Attributes returns the attribute columns.
func (s *Schema) Attributes() []Column { return s.Columns[len(s.Key):] }

// AnyAge is a maximum deviation, in seconds, that takes any cell's timestamp.
const AnyAge = 100 * 366 * 86400

// Definition is what a new table needs besides its key.
type Definition struct {
	TimeToLive  int `json:"ttl"`          // seconds; -1 keeps forever
	MaxVersions int `json:"max_versions"` // versions kept per cell
	// seconds a cell's timestamp may differ from the server's clock; 0 takes the service's 86,400
	MaxDeviation  int64 `json:"max_deviation"`
	ReservedRead  int   `json:"reserved_read"`        // capacity units
	ReservedWrite int   `json:"reserved_write"`       // capacity units
	NoUpdates     bool  `json:"no_updates,omitempty"` // rows are put and deleted only: the option allow_update is off
}

// Index is a secondary index.
type Index struct {
	Name    string   `json:"name"`
	Local   bool     `json:"local"` // else it is global
	Key     []string `json:"primary_key"`
	Columns []string `json:"defined_columns"`
}

// Holds reports whether the index is the requested one: the service completes the key by the table's.
func (i Index) Holds(asked *Index) bool {
	return i.Name == asked.Name && i.Local == asked.Local && len(i.Key) >= len(asked.Key) &&
		slices.Equal(i.Key[:len(asked.Key)], asked.Key) &&
		slices.Equal(slices.Sorted(slices.Values(i.Columns)), slices.Sorted(slices.Values(asked.Columns)))
}

func (i Index) String() string {
	text := "global index "
	if i.Local {
		text = "local index "
	}
	text += i.Name + " with the key " + strings.Join(i.Key, ", ")
	if len(i.Columns) > 0 {
		text += " and the columns " + strings.Join(i.Columns, ", ")
	}
	return text
}
