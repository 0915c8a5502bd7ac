package tsimport

import (
	"time"

	"example.com/tsimport/reader/record"
)

// Row is a row to be written: its primary-key columns and its attribute columns, by name and in any order.
type Row struct {
	Columns []Column
	// Done, if it is not nil, is called once with the row's outcome after Put has accepted it. A Loader calls one Done at a
	// time and never from within Put. Done must not call the Loader's Put, Flush or Close, which may wait for it; while it
	// runs, no other outcome is delivered.
	Done func(Outcome)
}

// Column is a value of one column of a row. Int64, Float64, Bool, String, Bytes and Null make one. Several of one name are
// versions of an attribute: each has its own timestamp.
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

// Int64 is an integer.
func Int64(name string, v int64) Column { return Column{name: name, kind: record.Integer, num: v} }

// Float64 is a double. It cannot be part of a primary key.
func Float64(name string, v float64) Column {
	return Column{name: name, kind: record.Double, float: v}
}

// Bool is a boolean. It cannot be part of a primary key.
func Bool(name string, v bool) Column {
	c := Column{name: name, kind: record.Boolean}
	if v {
		c.num = 1
	}
	return c
}

// String is a string. It must be valid UTF-8, or the row is rejected. The empty string is a value.
func String(name, v string) Column { return Column{name: name, kind: record.String, text: v} }

// Bytes is a binary value. Put copies v. Nil is an empty value, not Null.
func Bytes(name string, v []byte) Column { return Column{name: name, kind: record.Binary, bytes: v} }

// Null is a column without a value. A put writes nothing for it, as if it were left out. An update leaves the column alone, as
// if it were left out too, or deletes it if LoaderOptions.OnNull is "delete".
func Null(name string) Column { return Column{name: name, kind: record.Null} }

// At returns the column with a timestamp in place of the service's time. Its milliseconds count. The table refuses timestamps
// too far from now: see LoaderOptions.MaxDeviation.
func (c Column) At(t time.Time) Column {
	c.at, c.dated = t.UnixMilli(), true
	return c
}

// End is how a row ended.
type End uint8

// The ends. Every row that was accepted has one of them.
const (
	// Written: the service has acknowledged the row.
	Written End = iota + 1
	// Superseded: a later row of the same key was written in place of this one, which was never sent. Only puts without a
	// condition are superseded: they replace the whole row.
	Superseded
	// Rejected: the row is not written. Outcome says why.
	Rejected
	// Unfinished: the load ended before the row did. It may be in the table or not.
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

// Outcome is how a row ended.
type Outcome struct {
	Number int64 // of the row: 1 is the first that Put accepted
	End    End
	// Code, Column, Message and Value say why a row was rejected: a code of the service, such as OTSConditionCheckFail, or of
	// this module, such as WrongType or NullKey; the column that is meant, if one is; and the beginning of its value.
	Code, Column, Message, Value string
	// MaybeApplied says that the row may be in the table although it was rejected: it was sent, and the service never answered.
	MaybeApplied bool
}

// Counts are numbers of rows. Accepted = Written + Superseded + Rejected + Unfinished.
type Counts struct {
	Accepted     int64
	Written      int64
	Superseded   int64
	Rejected     int64
	MaybeApplied int64 // of Rejected: see Outcome
	Unfinished   int64 // while the Loader is open: rows without an outcome yet
}
