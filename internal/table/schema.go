package table

import (
	"slices"
	"strings"
	"time"
)

// Mode is what a row does to the table.
type Mode uint8

// The modes of a load. Put replaces the whole row, Update touches the named columns only, Delete removes the row, Increment
// adds to the named columns. Of Changes each row has one of the first three of its own.
const (
	Put Mode = iota
	Update
	Delete
	Increment
	Changes
)

// Existence is the row existence condition of a write.
type Existence uint8

// The row existence conditions, as Tablestore names them.
const (
	Ignore Existence = iota
	ExpectExist
	ExpectNotExist
)

// KeyColumn is one primary-key column of a table.
type KeyColumn struct {
	Name string `json:"name"`
	Type Type   `json:"type"`
	Auto bool   `json:"auto_increment,omitempty"` // an auto-increment column: an Integer that the service can make, never the first
}

// Column says how one input column becomes one table column.
type Column struct {
	Source string // name in the input
	Name   string // name in the table
	Type   Type
	Hex    bool // Binary: text is hexadecimal, otherwise base64
	// Time, when set, makes an Integer of a time.
	Time *Time
	// Exact is set when the user did not ask for the type: then text that is not the canonical text of its value does
	// not fit, because storing the value would change what the input says (007 is not 7).
	Exact bool
	// Zeros is set beside Exact when the type is that of the column in the table: then 10.20 is read as the double 10.2.
	Zeros    bool
	Inferred bool // from a sample
	// Own, when set, is the type that the values of the column have in a file that gives its values types (JSON, Parquet), as
	// the sample has them. Such values of other types do not fit: 5 and "5" would become one value. Double takes integers too. Of
	// a column of type Any it is the type of texts without one.
	Own Type
	// Unit is what the values count, as a schema of the input says it ("timestamp, µs"): a number alone does not. Empty is unknown.
	Unit string
}

// Time says how an input column's times become integers.
type Time struct {
	Layout string // of the text, as package time has it
	Zone   *time.Location
	Unit   int64 // units of a second: 1, 1e3, 1e6 or 1e9
	// Zoned says that the text has an offset or a zone, so that Zone does not count.
	Zoned bool
}

// Schema is a table and how input columns map onto it. Key columns come first in every record the reader delivers,
// in the order of the primary key, then Columns.
type Schema struct {
	Table   string
	Key     []KeyColumn
	Columns []Column // Key's sources first, then attributes
	// Numbered is which column of Key the service makes the value of for each row; 0 is none, as it is never the first.
	// Rows then have a placeholder there, and can no longer be distinguished by us.
	Numbered int
}

// Ordering returns the key columns that make the ordering key: all, or those before the one that the service numbers.
func (s *Schema) Ordering() []KeyColumn {
	if s.Numbered > 0 {
		return s.Key[:s.Numbered]
	}
	return s.Key
}

// Attributes returns the attribute columns.
func (s *Schema) Attributes() []Column { return s.Columns[len(s.Key):] }

// AnyAge is a maximum deviation, in seconds, that takes the timestamp of any cell that there can be.
const AnyAge = 100 * 366 * 86400

// Definition is what creating a table needs beside its key.
type Definition struct {
	TimeToLive    int   `json:"ttl"`                  // seconds; -1 keeps forever
	MaxVersions   int   `json:"max_versions"`         // versions kept per cell
	MaxDeviation  int64 `json:"max_deviation"`        // seconds a cell's timestamp may differ from the server's clock; 0 takes the service's 86,400
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

// Holds reports whether the index is as another one was asked for: the service completes the key by that of the table.
func (i Index) Holds(asked *Index) bool {
	return i.Name == asked.Name && i.Local == asked.Local && len(i.Key) >= len(asked.Key) && slices.Equal(i.Key[:len(asked.Key)], asked.Key) &&
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
