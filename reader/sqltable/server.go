package sqltable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// Server is a table on a server, identified by an address.
type Server interface {
	// Shown returns the address for users, without its password. Name returns the name of the table.
	Shown() string
	Name() string
	// Look opens a session outside of any snapshot and describes the table.
	Look(ctx context.Context) (Session, *Table, error)
	// Bounds returns up to MaxRanges - 1 keys, in ascending order, that cut the table into ranges of similar size.
	Bounds(ctx context.Context, look Session, t *Table) ([][][]byte, error)
	// Snapshot opens a snapshot for this many sessions and describes the table in it. before is the lost snapshot, or nil.
	Snapshot(ctx context.Context, sessions int, before Snapshot) (Snapshot, *Table, error)
	// Lost reports whether an error is about the session and not the query, so that another session may succeed.
	Lost(error) bool
}

// Joint is a Server that can read several tables in one snapshot.
type Joint interface {
	Server
	// Database names the server, database and user that tables of a snapshot share; "" means that they cannot share one.
	Database() string
	// SnapshotOf opens a snapshot of several tables of the database and returns the position from which to follow their
	// changes. The tables cannot be altered until it ends. An unreadable table is omitted; Describe says why.
	SnapshotOf(ctx context.Context, tables []Server, sessions int, before Snapshot) (Snapshot, source.Position, error)
	// Describe describes the table as a session of such a snapshot sees it.
	Describe(context.Context, Session) (*Table, error)
	// Twice returns a key that occurs in several tables, followed by the numbers of two of them, or nil. The session must
	// be of such a snapshot and have described the tables.
	Twice(ctx context.Context, by Session, tables []*Table) ([]string, error)
}

// Limited is a Server that refuses rows above a size before reading them, with a RowTooLarge. 0 means no limit.
type Limited interface {
	Server
	LimitRow(bytes int64)
}

// Typed is a Server whose queries fail for keys that the columns' types cannot hold.
type Typed interface {
	Server
	// MayHold reports whether a column can hold a value with this text.
	MayHold(c *Column, text []byte) bool
}

// Positioned is a Server whose changes can be followed from a position.
type Positioned interface {
	Server
	// Position returns the position from which to follow changes, found before any snapshot. Unknown parts have a reason.
	Position(ctx context.Context, look Session, t *Table, sessions int) (source.Position, error)
}

// Crowded is a Server that may run out of sessions.
type Crowded interface {
	Server
	// Full reports whether an error says that no session is left.
	Full(error) bool
}

func isFull(s Server, err error) bool {
	c, ok := s.(Crowded)
	return ok && c.Full(err)
}

// NeedsOne is advice to append to an error that says that the server has no session left.
const NeedsOne = "; let it have more, or read with &sessions=1 in its address, which takes one session"

// Keeper is a Snapshot whose own session can read it if no other can join.
type Keeper interface {
	Snapshot
	Alone() Session
}

// Lacking is a Snapshot that may have fewer sessions than requested. Lacks returns the reason, or nil if it has all.
type Lacking interface {
	Snapshot
	Lacks() error
}

// Snapshot is a consistent view of tables that several sessions read.
type Snapshot interface {
	Name() string // the server's name for it
	// Sessions returns the sessions of the snapshot if no others can join. Nil means that any number can join.
	Sessions() []Session
	// Join opens a session that reads the snapshot.
	Join(context.Context) (Session, error)
	// Alive reports whether sessions can still join the snapshot.
	Alive(context.Context) bool
	// Close ends the snapshot, but not its sessions.
	Close()
}

// Together is embedded by a Snapshot whose sessions all begin together, so that no other can join.
type Together struct {
	Called string // the server's name for the snapshot
	All    []Session
}

func (t *Together) Name() string { return t.Called }

func (t *Together) Sessions() []Session { return t.All }

// Join always fails.
func (*Together) Join(context.Context) (Session, error) {
	return nil, errors.New("a session cannot join the snapshot of another session")
}

// Alive is never called.
func (*Together) Alive(context.Context) bool { return false }

// Close does nothing, because the snapshot ends with its sessions.
func (*Together) Close() {}

// Session runs one query at a time.
type Session interface {
	// Page returns the rows of a page in key order.
	Page(context.Context, *Table, Query) (Rows, error)
	Close()
}

// Query selects the rows of a page: keys from Lower, or after it if Past is set, and before Upper. Nil means no bound.
type Query struct {
	Lower, Upper [][]byte
	Past         bool
	Limit        int  // largest number of rows
	Once         bool // no page will follow this one
}

// Rows are the rows of a page. Values are valid until the next call of Next. A nil value is null.
type Rows interface {
	Next() bool
	Values() [][]byte
	Close() error // returns the error that ended the rows, if any
}

// Table describes a table.
type Table struct {
	Name    string // as in SQL
	Columns []Column
	Key     []int      // indexes of the primary key's columns
	Unique  [][]string // other unique keys
	Bytes   int64      // approximate size of the rows in bytes
	Schema  string     // must remain the same for a reading to continue
	Claimed bool       // whether the user claims that Key is a query's key, whose order is checked
	MaxKey  int        // bytes of a claimed key value by which the server sorts; 0 means all
	Of      any        // identifies the table for the server
	inKey   []int      // by column: index in Key, or -1
}

// Column is a column of a table.
type Column struct {
	Name string
	Type table.Type // type of the loaded values
	Kind record.Kind
	// Read converts the text of a value, appending new bytes to scratch. Nil means conversion by Kind.
	Read func(d *record.Datum, text []byte, scratch *[]byte) error
	Of   any // identifies the column for the server
	// Declared is the column's type and collation on the server.
	Declared string
}

// Types maps kinds to table types.
var Types = map[record.Kind]table.Type{record.Integer: table.Integer, record.Unsigned: table.Integer,
	record.Double:  table.Double,
	record.Boolean: table.Boolean, record.Binary: table.Binary, record.String: table.String}

// settle sets the fields of a Table that follow from others.
func (t *Table) settle() {
	t.inKey = slices.Repeat([]int{-1}, len(t.Columns))
	for n, i := range t.Key {
		t.inKey[i] = n
	}
}

// AddUnique adds unique indexes on key columns. Each row is an index and a column, "" if not all rows are in the index.
func (t *Table) AddUnique(rows [][]string) {
	byIndex := map[string][]string{}
	for _, r := range rows {
		byIndex[r[0]] = append(byIndex[r[0]], r[1])
	}
	for _, index := range slices.Sorted(maps.Keys(byIndex)) {
		if !slices.ContainsFunc(byIndex[index], func(name string) bool {
			return !slices.ContainsFunc(t.Key, func(k int) bool { return t.Columns[k].Name == name })
		}) {
			t.Unique = append(t.Unique, byIndex[index])
		}
	}
}

// A table has one range per RangeBytes, up to MaxRanges.
const (
	RangeBytes = 2 << 20
	MaxRanges  = 64
)

// Ranges returns the number of ranges of the table.
func (t *Table) Ranges() int { return int(min(t.Bytes/RangeBytes+1, MaxRanges)) }

// ErrSnapshot ends a reading whose rows must all be from one snapshot.
var ErrSnapshot = errors.New("the session that held the snapshot was lost, and all rows must come from one snapshot " +
	"(--require-snapshot, and every sync); run the command again with --fresh")

// Passing marks the error of an unavailable or overloaded server: the same query may succeed later.
func Passing(err error) error { return &passingError{err} }

type passingError struct{ error }

// Passing is called by package input.
func (*passingError) Passing() bool { return true }

func (e *passingError) Unwrap() error { return e.error }

// ErrCut says that the server ended the connection.
var ErrCut = Passing(errors.New("the server ended the connection"))

// changedError ends a reading whose remaining rows would not be consistent with those already read.
type changedError struct{ was, is string }

func (e *changedError) Error() string {
	was, is := strings.Split(e.was, ", "), strings.Split(e.is, ", ")
	gone, came := only(was, is), only(is, was)
	what := fmt.Sprintf("was %s, and is now %s", gone, came)
	switch {
	case gone == "":
		what = "now has " + came
	case came == "":
		what = "no longer has " + gone
	}
	return fmt.Sprintf("the table or its server changed since the load began: it %s; start over with --fresh", what)
}

// only returns the first elements of list that are not in other, separated by commas, or "" if there are none.
func only(list, other []string) string {
	const most = 4
	var parts []string
	for _, one := range list {
		if !slices.Contains(other, one) && len(parts) <= most {
			parts = append(parts, one)
		}
	}
	if len(parts) > most {
		parts[most] = "…"
	}
	return strings.Join(parts, ", ")
}

// claimError says why the columns that the user named are not a key.
type claimError struct{ says string }

func (e *claimError) Error() string { return e.says }

// RowTooLarge ends a reading at a row that does not fit in memory.
type RowTooLarge struct{ Bytes, Limit int64 }

func (e *RowTooLarge) Error() string {
	return fmt.Sprintf("a row of %d bytes is larger than a quarter of --memory (%d bytes), and would not fit together "+
		"with its converted form; give more memory, or leave its large columns out (--query; of a SQLite file, a copy "+
		"without them)", e.Bytes, e.Limit)
}

// final reports whether an error would also occur in any other session.
func final(err error) bool {
	return errors.Is(err, ErrSnapshot) || IsChanged(err) || errors.As(err, new(*claimError)) ||
		errors.As(err, new(*laggedError)) || errors.As(err, new(*refusedError)) ||
		errors.As(err, new(*RowTooLarge))
}

// IsChanged reports whether an error says that the table has changed.
func IsChanged(err error) bool { return errors.As(err, new(*changedError)) }
