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

// Request is the user's request before the first row. It has many fields, because the user may set each.
type Request struct {
	Inputs     []string // arguments in order, as input.Expand understands them
	Read       Read
	Target     Target
	Columns    Columns
	Mode       table.Mode
	Condition  table.Existence
	When       *condition.When
	Unchanged  bool // rows have their condition in table.UnchangedColumn
	DeleteNull bool // update: a null deletes the column
	Order      Order
	Records    int64  // to read, from the start of the first input; 0 means all
	Memory     int64  // bytes of memory of the process
	Reading    int64  // memory that the limits of one input follow; 0 is Memory
	RunDir     string // whose files are not inputs; may be ""
	// Written means that the rows are already in the table, to be compared with it: their timestamps may have any age.
	Written bool
	// Service returns the range that contains the service's time, to compare timestamps with; nil means this machine's.
	Service func() (earliest, latest time.Time)
	Keep    Keep
	// OnLook is called before inputs are opened or sampled, which takes time, and its result afterwards. May be nil.
	OnLook func() (looked func())
	// RejectedKeys means that the keys of rejected records are wanted if they can be read.
	RejectedKeys bool
	// For tables with an auto-increment key column: the attribute that identifies rows ("" means DefaultMarkColumn), or
	// that they are repeated blindly; whether they are looked up first; and whether the service's keys are wanted.
	MarkColumn  string
	AtLeastOnce bool
	LookFirst   bool
	Returned    bool
	// KeysAlone means that the table may be read only by single rows, not by ranges: also for its types.
	KeysAlone bool
	// Inferred are the types that an earlier attempt inferred, by input column: a later one must not infer others.
	Inferred map[string]Inferred
	// Divided means that Division is the division of Read.Sources by an earlier attempt; it is not made again.
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
	Asked bool       // the column takes the same as with --type
}

// Known says how the types of existing table columns affect the input's.
type Known uint8

const (
	KnownDefault Known = iota // they are the default; if values do not fit, another type is inferred and said
	KnownStrict               // another type is refused; of any column, the few values of other types are rejected
	KnownIgnored              // nothing: types come from the input alone
)

// Keep says which part of its record a row retains.
type Keep uint8

const (
	KeepRecord Keep = iota // the unchanged record, for rejects
	KeepNothing
	KeepKey       // nothing, and of the row only its ordering key
	KeepKeyFields // the fields of the primary key, to distinguish them, and a hash of the row
)

// Read says how inputs are read.
type Read struct {
	reader.Options                 // but Stream
	Convert        convert.Options // without Decode, which each source has
	Find           input.Options   // how arguments are understood, but Stdin
	// Sources is the origin of rows if they do not come from files; nil opens Request.Inputs, which else name the sources.
	Sources source.Origin
	// Archived means that a live source stands for an archive of it, which will be loaded in its place.
	Archived bool
	// Merges means that a live source is merged into the table, with --mode update: a cell that the source has lost stays.
	Merges bool
	// Look reads all rows of Sources before the first is written, and fails if several would become one; nil if inexact.
	Look    func(context.Context) error
	Parsers int       // workers; 0 takes one a processor
	Stdin   io.Reader // read for -; nil is os.Stdin. A read is left behind when the load stops
}

// Workers is the number of parsers.
func (r *Read) Workers() int { return cmp.Or(r.Parsers, runtime.GOMAXPROCS(0)) }

// AskedOptions are the user's options for a new table, reported if the table already exists.
type AskedOptions struct {
	Any     bool
	Columns string // predefined ones, and indexes
}

// Target describes the destination of the rows.
type Target struct {
	Client   client.Target
	Name     string // of the target, for reports
	Place    string // the same in every working folder, unlike Name; may be empty
	Table    string
	Create   bool                  // make a missing table
	Key      []table.KeyColumn     // for Create; a Type of Null is inferred. Given for an existing table, it must match
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

// Aging says which cells too old for the table are left out and counted, instead of rejecting their record.
type Aging struct {
	Expires     bool // rows are a table's or archive's: cells that expire during the load
	DropExpired bool // all
}

// Columns maps input columns to table columns.
type Columns struct {
	Only    []string          // input columns to load as attributes; nil loads all
	Exclude []string          // input columns to leave out
	Rename  map[string]string // input name to table name
	Types   map[string]Type   // by input or table name
	Keys    []keyexpr.Column  // computed columns of Target.Key
	Set     []keyexpr.Column  // attributes that are computed
	Known   Known             // meaning of the types of the table's columns
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
	LastWins  Order = iota // in input order: the last one stays
	OrderNone              // in any: keys are unique, or it does not matter
)

func (o Order) String() string { return [...]string{"last-wins", "none"}[o] }

// UsageError means that the request was wrong; nothing was written.
type UsageError struct {
	Message string
	NoTable bool // the table does not exist
	Input   bool // an input is missing, or cannot be read
	Damaged bool // as reader.Damaged says of why
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
