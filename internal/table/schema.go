package table

import (
	"slices"
	"strings"
	"time"
)

// Mode says how a row changes the table.
type Mode uint8

// The modes of a load. Put replaces the whole row, Update changes only the given columns, Delete removes the row, and
// Increment adds to the given columns. In a load with Changes, each row's own mode is one of the first three.
const (
	Put Mode = iota
	Update
	Delete
	Increment
	Changes
)

// Existence is the row existence condition of a write.
type Existence uint8

// The row existence conditions, with Tablestore's names.
const (
	Ignore Existence = iota
	ExpectExist
	ExpectNotExist
)

// KeyColumn is one primary-key column of a table.
type KeyColumn struct {
	Name string `json:"name"`
	Type Type   `json:"type"`
	Auto bool   `json:"auto_increment,omitempty"` // the service generates this integer; never the first column
}

// Column maps one input column to one table column.
type Column struct {
	Source string // name in the input
	Name   string // name in the table
	Type   Type
	Hex    bool // the text of a Binary is hexadecimal, not base64
	// Time, if set, says how to convert a time to an Integer.
	Time *Time
	// Exact is set if the user did not choose the type. Then text must be the canonical text of its value, because storing
	// the value would otherwise change the input (007 is not 7).
	Exact bool
	// Zeros is set if the column already holds doubles in the table. Exact then accepts 10.20 too, as the double 10.2.
	Zeros    bool
	Inferred bool // the type was inferred from a sample
	// Own, if set, is the type of the column's typed values (JSON, Parquet) in the sample. Values of other types are
	// rejected, because 5 and "5" would become equal; Double accepts integers. In an Any column, Own is the type of text.
	Own Type
	// Unit is the unit of the values according to the input's schema, such as "timestamp, µs". It is empty if unknown.
	Unit string
}

// Time says how to convert an input column's times to integers.
type Time struct {
	Layout string // layout of the text, as in package time
	Zone   *time.Location
	Unit   int64 // units per second: 1, 1e3, 1e6 or 1e9
	// Zoned means that the text contains an offset or a zone, so that Zone is not used.
	Zoned bool
}

// Schema describes a table and its input columns. A record has one value for each of Columns, in order.
type Schema struct {
	Table   string
	Key     []KeyColumn
	Columns []Column // Key's sources first, then attributes
	// Numbered is the index in Key of the column that the service numbers. It is 0 if there is none, as that column is
	// never the first. Rows have a placeholder in its place, so different rows can have the same key.
	Numbered int
}

// Ordering returns the key columns that are in the ordering key: all columns, or only the ones before Numbered.
func (s *Schema) Ordering() []KeyColumn {
	if s.Numbered > 0 {
		return s.Key[:s.Numbered]
	}
	return s.Key
}

// Attributes returns the attribute columns.
func (s *Schema) Attributes() []Column { return s.Columns[len(s.Key):] }

// AnyAge is a MaxDeviation, in seconds, that allows any timestamp.
const AnyAge = 100 * 366 * 86400

// Definition holds the options of a new table, without its name and key.
type Definition struct {
	TimeToLive  int `json:"ttl"`          // seconds; -1 means that cells never expire
	MaxVersions int `json:"max_versions"` // versions kept per cell
	// MaxDeviation is how far, in seconds, a cell's timestamp may be from the server's clock; 0 means the default 86,400.
	MaxDeviation  int64 `json:"max_deviation"`
	ReservedRead  int   `json:"reserved_read"`        // capacity units
	ReservedWrite int   `json:"reserved_write"`       // capacity units
	NoUpdates     bool  `json:"no_updates,omitempty"` // rows can only be put and deleted (allow_update is off)
}

// AgeFlags names the flags that limit how old cells may be, for messages.
func (d *Definition) AgeFlags() string {
	if d.TimeToLive > 0 {
		return "--ttl and --max-deviation"
	}
	return "--max-deviation"
}

// Index is a secondary index.
type Index struct {
	Name    string   `json:"name"`
	Local   bool     `json:"local"` // false means global
	Key     []string `json:"primary_key"`
	Columns []string `json:"defined_columns"`
}

// Holds reports whether i is the requested index. Its key may be longer: the service appends the table's key columns.
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
