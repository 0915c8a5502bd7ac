package plan

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/lifecycle"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/condition"
	"example.com/tsimport/reader"
	"example.com/tsimport/reader/convert"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/source"
)

// Request is the user's request before the first row. It has many fields, one for each thing the user may set.
type Request struct {
	Inputs     []string // arguments in order, as input.Expand understands them
	Read       Read
	Target     Target
	Columns    Columns
	Mode       table.Mode
	Condition  table.Existence
	When       *condition.When
	Unchanged  bool // the condition of each row is in table.UnchangedColumn
	DeleteNull bool // update: a null deletes the column
	Order      Order
	Records    int64  // records to read, from the start of the first input; 0 means all
	Memory     int64  // bytes of memory of the process
	Reading    int64  // memory that determines the limits of one input; 0 means Memory
	RunDir     string // folder whose files are not inputs; may be ""
	// Written means that the rows are already in the table, to be compared with it: their timestamps may have any age.
	Written bool
	// Service returns the range that contains the service's time, to compare timestamps with; nil means this machine's.
	Service func() (earliest, latest time.Time)
	Keep    Keep
	// OnLook is called before inputs are opened or sampled, which takes time; its result is called afterwards. May be nil.
	OnLook func() (looked func())
	// RejectedKeys means that the keys of rejected records are wanted if they can be read.
	RejectedKeys bool
	// For tables with an auto-increment key column: the attribute that identifies rows ("" means DefaultMarkColumn),
	// whether rows are repeated blindly or looked up first, and whether the service's keys are wanted.
	MarkColumn  string
	AtLeastOnce bool
	LookFirst   bool
	Returned    bool
	// KeysAlone means that the table may be read only by single rows, not by ranges, even to find its types.
	KeysAlone bool
	// Inferred holds the types that an earlier attempt inferred, by input column: a later one must not infer others.
	Inferred map[string]Inferred
	// Divided means that Division is an earlier attempt's division of Read.Sources; they are not divided again.
	Divided  bool
	Division []byte
	// Selection chooses from the inputs found; nil takes all. Chosen is an earlier attempt's choice or nil.
	Selection Selection
	Chosen    []string
	// Without names inputs that are found but not loaded, because they were set aside.
	Without map[string]bool
	// Items, if not nil, are the inputs to load, found and chosen by an earlier plan, with their size in bytes.
	Items   []input.Item
	ItemsOf int64
	// Separator is the choice of an earlier attempt for splice(auto, …); 0 chooses one.
	Separator rune
	// MostInputs limits how many files, from all over the inputs, are opened for a plan that loads nothing; 0 opens all.
	MostInputs int
}

// Inferred is a type inferred from samples.
type Inferred struct {
	table.Type
	Zeros bool       // as in table.Column
	Own   table.Type // as in table.Column
	Asked bool       // the column accepts the same values as with --type
}

// Known is how the types of existing table columns affect the input's.
type Known uint8

const (
	KnownDefault Known = iota // they are the default; if values do not fit, another type is inferred, with a note
	KnownStrict               // another type is refused; of any column, the few values of other types are rejected
	KnownIgnored              // not at all: types come from the input alone
)

// Keep is which part of its record a row retains.
type Keep uint8

const (
	KeepRecord Keep = iota // the unchanged record, for rejects
	KeepNothing
	KeepKey       // no record, and only the ordering key of the row
	KeepKeyFields // the fields of the primary key, to distinguish them, and a hash of the row
)

// Read configures how inputs are read.
type Read struct {
	reader.Options                 // except Stream
	Convert        convert.Options // without Decode, which each source has
	Find           input.Options   // how arguments are interpreted, except Stdin
	// Sources is the origin of rows if they do not come from files, which Request.Inputs then name; nil opens the Inputs.
	Sources source.Origin
	// Archived means that a live source stands for an archive of it, which will be loaded in its place.
	Archived bool
	// Merges means that a live source is merged into the table with --mode update: cells lost in the source are kept.
	Merges bool
	// Look reads all rows of Sources before the first is written, and fails if several would become one; nil if inexact.
	Look    func(context.Context) error
	Parsers int       // workers; 0 means one per processor
	Stdin   io.Reader // read for -; nil is os.Stdin. A pending read is abandoned when the load stops
}

// Workers returns the number of parsers.
func (r *Read) Workers() int { return cmp.Or(r.Parsers, runtime.GOMAXPROCS(0)) }

// AskedOptions are the user's options for a new table, reported if the table already exists.
type AskedOptions struct {
	Any     bool
	Columns string // predefined columns, and indexes
}

// Target describes the destination of the rows.
type Target struct {
	Client   client.Target
	Name     string // name of the target, for reports
	Place    string // as Name, but the same in every working folder; may be empty
	Table    string
	Create   bool                  // make a missing table
	Key      []table.KeyColumn     // for Create; a Type of Null is inferred. An existing table must have this key
	Define   table.Definition      // for Create
	Defined  map[string]table.Type // predefined attribute columns, for Create
	Indexes  []table.Index         // for Create
	Aging    Aging
	Asked    AskedOptions
	PreSplit PreSplit // ranges that a new table begins with
	// Policy describes the tables of each age, if named after periods; nil means none. Ages count from PolicyNow.
	Policy    *lifecycle.Policy
	PolicyNow time.Time
	// Absent means that the store does not exist yet and need not be asked (a dry run creates no store).
	Absent bool
}

// Aging selects which cells too old for the table are left out and counted instead of having their record rejected.
type Aging struct {
	Expires     bool // cells that expire during the load, if rows are from a table or an archive
	DropExpired bool // all of them
}

// Columns maps input columns to table columns.
type Columns struct {
	Only    []string          // input columns to load as attributes; nil loads all
	Exclude []string          // input columns to leave out
	Rename  map[string]string // input name to table name
	Types   map[string]Type   // by input or table name
	Keys    []keyexpr.Column  // computed columns of Target.Key
	Set     []keyexpr.Column  // attributes that are computed
	Known   Known             // use of the types of the table's columns
}

// Type is a type requested by the user.
type Type struct {
	Type table.Type
	Hex  bool        // binary: text is hexadecimal, otherwise base64
	Time *table.Time // integer: of a time
}

// ShownInputs returns the inputs in a form that may be shown and kept: without the secrets of addresses.
func (r *Request) ShownInputs() []string {
	shown := make([]string, 0, len(r.Inputs))
	for _, arg := range r.Inputs {
		shown = append(shown, input.Redact(arg))
	}
	return shown
}

// Order is the order of writing the rows of a key.
type Order uint8

const (
	LastWins  Order = iota // in input order: the last row wins
	OrderNone              // in any order: keys are unique, or order does not matter
)

func (o Order) String() string { return [...]string{"last-wins", "none"}[o] }

// UsageError means that the request is invalid; nothing was written.
type UsageError struct {
	Message string
	NoTable bool // the table does not exist
	Input   bool // an input is missing, or cannot be read
	Damaged bool // reader.Damaged reports this of the cause
	Changed bool // an input differs from the resumed run's
	Nothing bool // no input matches
}

func (e *UsageError) Exit() int {
	if e.Nothing {
		return exitcode.NoInput
	}
	return exitcode.Usage
}

func (e *UsageError) Error() string { return e.Message }

// Usagef returns a UsageError of one line.
func Usagef(format string, a ...any) error { return usagef(format, a...) }

func usagef(format string, a ...any) error {
	return &UsageError{Message: fmt.Sprintf(format, a...)}
}
