package tsimport

import (
	"time"

	"example.com/tsimport/reader/record"
)

// Row is a row to be written: its primary-key and attribute columns, by name and in any order.
type Row struct {
	Columns []Column
	// Done, if not nil, is called once with the row's outcome after Put has accepted it. A Loader calls one Done at a time
	// and never from within Put. Done must not call Put, Flush or Close, which may wait for it.
	Done func(Outcome)
}

// Column is a value of one column of a row, made by Int64, Float64, Bool, String, Bytes or Null. Columns of a row with
// the same name are versions of an attribute, each with its own timestamp.
type Column struct {
	name  string
	kind  record.Kind
	num   int64
	float float64
	text  string
	bytes []byte
	at    int64 // milliseconds
	dated bool
}

// Int64 returns an integer column.
func Int64(name string, v int64) Column { return Column{name: name, kind: record.Integer, num: v} }

// Float64 returns a double column. It cannot be part of a primary key.
func Float64(name string, v float64) Column {
	return Column{name: name, kind: record.Double, float: v}
}

// Bool returns a boolean column. It cannot be part of a primary key.
func Bool(name string, v bool) Column {
	c := Column{name: name, kind: record.Boolean}
	if v {
		c.num = 1
	}
	return c
}

// String returns a string column. Rows with invalid UTF-8 are rejected. The empty string is a value.
func String(name, v string) Column { return Column{name: name, kind: record.String, text: v} }

// Bytes returns a binary column. Put copies v. Nil is an empty value, not Null.
func Bytes(name string, v []byte) Column { return Column{name: name, kind: record.Binary, bytes: v} }

// Null returns a column without a value. Puts and updates omit it; updates with LoaderOptions.OnNull "delete" delete
// it.
func Null(name string) Column { return Column{name: name, kind: record.Null} }

// At returns the column with the timestamp t, in milliseconds, instead of the service's time. The table refuses
// timestamps too far from the current time: see LoaderOptions.MaxDeviation.
func (c Column) At(t time.Time) Column {
	c.at, c.dated = t.UnixMilli(), true
	return c
}

// End is the kind of a row's outcome.
type End uint8

// The possible ends. Every accepted row has one of them.
const (
	// Written means that the service has acknowledged the row.
	Written End = iota + 1
	// Superseded means that a later row of the same key was written instead of this one, which was never sent. It happens
	// only to unconditional puts, which replace the whole row.
	Superseded
	// Rejected means that the row was refused. Outcome tells why, and whether it may be in the table nevertheless.
	Rejected
	// Unfinished means that the load ended before the row had an outcome. The row may be in the table.
	Unfinished
)

func (e End) String() string {
	switch e {
	case Written:
		return "written"
	case Superseded:
		return "superseded"
	case Rejected:
		return "rejected"
	case Unfinished:
		return "unfinished"
	}
	return "no end"
}

// Outcome tells how a row ended and, if it was rejected, why.
type Outcome struct {
	Number int64 // number of the row: 1 is the first that Put accepted
	End    End
	// Code, Column, Message and Value tell why a row was rejected. Code is a code of the service, such as
	// OTSConditionCheckFail, or of this module, such as WrongType or NullKey. Column is the affected column, if any, and
	// Value the beginning of its value.
	Code, Column, Message, Value string
	// MaybeApplied means that a rejected row may be in the table, because an earlier attempt may have been applied.
	MaybeApplied bool
}

// Counts are numbers of rows. Accepted = Written + Superseded + Rejected + Unfinished.
type Counts struct {
	Accepted     int64
	Written      int64
	Superseded   int64
	Rejected     int64
	MaybeApplied int64 // rejected rows that may be in the table: see Outcome
	Unfinished   int64 // while the Loader is open, rows without an outcome so far
}
