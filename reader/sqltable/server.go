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

// Server is a server's table, named by an address.
type Server interface {
	// Shown is the address for users, without a password, and Name the table's name.
	Shown() string
	Name() string
	// Look opens a session outside any snapshot and describes the table.
	Look(ctx context.Context) (Session, *Table, error)
	// Bounds returns, in ascending order, at most MaxRanges - 1 keys that cut the table into ranges of similar row counts.
	Bounds(ctx context.Context, look Session, t *Table) ([][][]byte, error)
	// Snapshot opens a snapshot for that many sessions, and describes its table. before is the lost one, nil at first.
	Snapshot(ctx context.Context, sessions int, before Snapshot) (Snapshot, *Table, error)
	// Lost reports whether an error is about the session, not about the query: another session may succeed.
	Lost(error) bool
}

// Joint is a Server that can read several tables in one snapshot.
type Joint interface {
	Server
	// Database is the part that tables of one snapshot share, for users: the server, its database and the user, or "".
	Database() string
	// SnapshotOf opens a snapshot of several tables of the database, which nobody alters until it ends, and says from
	// where to follow their changes. An unreadable table is left out: Describe says why.
	SnapshotOf(ctx context.Context, tables []Server, sessions int, before Snapshot) (Snapshot, source.Position, error)
	// Describe describes the table in a session of such a snapshot.
	Describe(context.Context, Session) (*Table, error)
	// Twice returns a key that several tables have, with the numbers of two of them, or nil. The session is of such a
	// snapshot and has described them.
	Twice(ctx context.Context, by Session, tables []*Table) ([]string, error)
}

// Limited is a Server that reads no rows above a size from the network; 0 is unlimited. It fails with a RowTooLarge.
type Limited interface {
	Server
	LimitRow(bytes int64)
}

// Typed is a Server that fails for a key that its types cannot hold.
type Typed interface {
	Server
	// MayHold reports whether a column can have a value with that text.
	MayHold(c *Column, text []byte) bool
}

// Positioned is a Server whose changes can be followed.
type Positioned interface {
	Server
	// Position asks from where to follow, before any snapshot. What the server does not say is unknown, with the reason.
	Position(ctx context.Context, look Session, t *Table, sessions int) (source.Position, error)
}

// Crowded is a Server that may have no session left.
type Crowded interface {
	Server
	// Full reports whether an error says so.
	Full(error) bool
}

func isFull(s Server, err error) bool {
	c, ok := s.(Crowded)
	return ok && c.Full(err)
}

// NeedsOne is the advice for a server that has no session left.
const NeedsOne = "; let it have more, or read with &sessions=1 in its address, which takes one session"

// Keeper is a Snapshot kept by a session that reads it, if no other can join.
type Keeper interface {
	Snapshot
	Alone() Session
}

// Lacking is a Snapshot that may have fewer sessions than requested. Lacks says why; nil if it has all.
type Lacking interface {
	Snapshot
	Lacks() error
}

// Snapshot is a moment of a table that sessions read.
type Snapshot interface {
	Name() string // as the server calls it
	// Sessions returns the sessions that read the snapshot if no more can join it. Nil means that any number can.
	Sessions() []Session
	// Join opens a session of the snapshot.
	Join(context.Context) (Session, error)
	// Alive reports whether the snapshot can still be joined.
	Alive(context.Context) bool
	// Close ends the snapshot, not its sessions.
	Close()
}

// Together is embedded by a Snapshot whose sessions all begin with it: no other can join.
type Together struct {
	Called string // by the server
	All    []Session
}

func (t *Together) Name() string { return t.Called }

func (t *Together) Sessions() []Session { return t.All }

// Join fails.
func (*Together) Join(context.Context) (Session, error) {
	return nil, errors.New("a session cannot join the snapshot of another one")
}

// Alive is never asked.
func (*Together) Alive(context.Context) bool { return false }

// Close does nothing: only sessions hold the snapshot.
func (*Together) Close() {}

// Session runs one query at a time.
type Session interface {
	// Page returns a page's rows in key order.
	Page(context.Context, *Table, Query) (Rows, error)
	Close()
}

// Query selects a page's rows: keys from Lower, or after it if Past, and before Upper; nil means no bound.
type Query struct {
	Lower, Upper [][]byte
	Past         bool
	Limit        int  // rows
	Once         bool // no page follows this one
}

// Rows are the rows of a page. Values are valid until the next call; nil is null.
type Rows interface {
	Next() bool
	Values() [][]byte
	Close() error // why there are no more
}

// Table is a table as its server describes it.
type Table struct {
	Name    string // as SQL writes it
	Columns []Column
	Key     []int      // places of the primary key's columns
	Unique  [][]string // further unique keys
	Bytes   int64      // of its rows, about
	Schema  string     // must stay the same for a reading to continue
	Claimed bool       // the key is a user's claim about a query's rows: that they ascend is checked
	MaxKey  int        // limit of a claimed key's bytes, for the server to sort by all of it; 0 means any
	Of      any        // identifies the table for the server
	inKey   []int      // of each column, its place in the key; -1 is none
}

// Column is a column of a table.
type Column struct {
	Name string
	Type table.Type // that its values become
	Kind record.Kind
	// Read makes a datum of a value's text; nil goes by the kind. It appends new bytes to scratch.
	Read func(d *record.Datum, text []byte, scratch *[]byte) error
	Of   any // identifies the column for the server
	// Declared is its type and collation on the server.
	Declared string
}

// Types are the table types of kinds.
var Types = map[record.Kind]table.Type{record.Integer: table.Integer, record.Unsigned: table.Integer,
	record.Double:  table.Double,
	record.Boolean: table.Boolean, record.Binary: table.Binary, record.String: table.String}

// settle computes the derived fields.
func (t *Table) settle() {
	t.inKey = make([]int, len(t.Columns))
	for i := range t.inKey {
		t.inKey[i] = -1
	}
	for n, i := range t.Key {
		t.inKey[i] = n
	}
}

// AddUnique takes unique indexes of all rows, as index name and column, empty for a partial column.
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

// Limits of ranges. A table has one per RangeBytes.
const (
	RangeBytes = 2 << 20
	MaxRanges  = 64
)

// Ranges is the number of ranges for the table.
func (t *Table) Ranges() int { return int(min(t.Bytes/RangeBytes+1, MaxRanges)) }

// ErrSnapshot ends a reading whose rows must be of one snapshot.
var ErrSnapshot = errors.New("the session that held the snapshot was lost, and all rows must come from one snapshot " +
	"(--require-snapshot, and every sync); give the command again with --fresh")

// Passing marks the error of a server that was absent or too busy: the same query may succeed later.
func Passing(err error) error { return &passingError{err} }

type passingError struct{ error }

// Passing is for package input.
func (*passingError) Passing() bool { return true }

func (e *passingError) Unwrap() error { return e.error }

// ErrCut is an ended connection.
var ErrCut = Passing(errors.New("the server ended the connection"))

// changedError ends a reading whose rest would not fit the rows already read.
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

// only returns the first element of list that other lacks; "" if there is none.
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

// claimError says why a query's key is not a key.
type claimError struct{ says string }

func (e *claimError) Error() string { return e.says }

// RowTooLarge ends a reading at a row that would not fit in memory.
type RowTooLarge struct{ Bytes, Limit int64 }

func (e *RowTooLarge) Error() string {
	return fmt.Sprintf("a row of %d bytes is larger than a quarter of --memory (%d bytes), and would not fit together "+
		"with its converted form; give more memory, or leave its large columns out (--query; of a SQLite file, a copy "+
		"without them)", e.Bytes, e.Limit)
}

// final reports whether no other session can help.
func final(err error) bool {
	return errors.Is(err, ErrSnapshot) || IsChanged(err) || errors.As(err, new(*claimError)) ||
		errors.As(err, new(*laggedError)) || errors.As(err, new(*refusedError)) ||
		errors.As(err, new(*RowTooLarge))
}

// IsChanged reports whether an error says that the table has changed.
func IsChanged(err error) bool { return errors.As(err, new(*changedError)) }
