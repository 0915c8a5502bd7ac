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

// Request is the user's request for a load. It has many fields, one for each thing that the user may set.
type Request struct {
	Inputs     []string // arguments in order, as input.Expand understands them
	Read       Read
	Target     Target
	Columns    Columns
	Mode       table.Mode
	Condition  table.Existence
	When       *condition.When
	Unchanged  bool // each row has its condition in table.UnchangedColumn
	DeleteNull bool // in updates, a null deletes the column
	Order      Order
	Records    int64  // number of records to read, from the start of the first input; 0 means all
	Memory     int64  // bytes of memory of the process
	Reading    int64  // memory that determines the limits of one input; 0 means Memory
	RunDir     string // folder whose files are not inputs; may be ""
	// Written means that the rows are already in the table and are compared with it. Their timestamps may have any age.
	Written bool
	// Service returns the range in which the service's time is, to compare timestamps with; nil means this machine's time.
	Service func() (earliest, latest time.Time)
	Keep    Keep
	// OnLook, if not nil, is called before inputs are opened or sampled, which takes time; looked is called afterwards.
	OnLook func() (looked func())
	// RejectedKeys requests the keys of rejected records, if they can be read.
	RejectedKeys bool
	// For tables with an auto-increment key column: the attribute that identifies rows ("" means DefaultMarkColumn),
	// whether rows have no marks or are looked up first, and whether the keys made by the service are requested.
	MarkColumn  string
	AtLeastOnce bool
	LookFirst   bool
	Returned    bool
	// KeysAlone means that the table may only be read by single rows, not by ranges, even to find its types.
	KeysAlone bool
	// Inferred holds the types that an earlier attempt inferred, by input column. A later one must not infer others.
	Inferred map[string]Inferred
	// Divided means that Division is an earlier attempt's division of Read.Sources, which are not divided again.
	Divided  bool
	Division []byte
	// Selection chooses from the inputs found; nil means all. Chosen is the choice of an earlier attempt, or nil.
	Selection Selection
	Chosen    []string
	// Without names inputs that are not loaded even if found, because they were set aside.
	Without map[string]bool
	// Items, if not nil, are inputs of an earlier plan, which alone are loaded. ItemsOf is the size of all its inputs.
	Items   []input.Item
	ItemsOf int64
	// Separator is the character that an earlier attempt chose for splice(auto, …); 0 means none yet.
	Separator rune
	// MostInputs limits how many files, from all over the inputs, are opened for a plan that loads nothing; 0 means all.
	MostInputs int
}

// Inferred is a type inferred from samples.
type Inferred struct {
	table.Type
	Zeros bool       // as in table.Column
	Own   table.Type // as in table.Column
	Asked bool       // the column accepts the values that it would with --type
}

// Known says how the types of existing table columns affect the input's types.
type Known uint8

const (
	KnownDefault Known = iota // they are the default; if values do not fit, another type is inferred, with a note
	KnownStrict               // other types are refused; if few values of a column do not fit, these are rejected
	KnownIgnored              // they do not: types come only from the input
)

// Keep says which part of its record a row keeps.
type Keep uint8

const (
	KeepRecord Keep = iota // the unchanged record, for rejects
	KeepNothing
	KeepKey       // no record, and only the ordering key of the row
	KeepKeyFields // the fields of the primary key, and a hash of the row
)

// Read configures how inputs are read.
type Read struct {
	reader.Options                 // without Stream
	Convert        convert.Options // without Decode, which each source has
	Find           input.Options   // how arguments are interpreted, without Stdin
	// Sources, if not nil, is the origin of rows that do not come from files. Request.Inputs then only names it.
	Sources source.Origin
	// Archived means that a live source is planned in place of its archive, which will be loaded.
	Archived bool
	// Merges means that a live source is merged into the table with --mode update, so that cells lost in the source stay.
	Merges bool
	// Look, if not nil, reads all rows of Sources before the first is written, and fails if several would become one.
	Look    func(context.Context) error
	Parsers int       // number of parsers; 0 means one per processor
	Stdin   io.Reader // input for -; nil means os.Stdin. A pending read is abandoned when the load stops
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
	Place    string // like Name, but the same in every working folder; may be ""
	Table    string
	Create   bool                  // create the table if it is missing
	Key      []table.KeyColumn     // for Create; a Null Type is inferred. An existing table must have this key
	Define   table.Definition      // for Create
	Defined  map[string]table.Type // predefined attribute columns, for Create
	Indexes  []table.Index         // for Create
	Aging    Aging
	Asked    AskedOptions
	PreSplit PreSplit // ranges that a new table begins with
	// Policy, if not nil, describes the tables of each age, which are named after periods. Ages count from PolicyNow.
	Policy    *lifecycle.Policy
	PolicyNow time.Time
	// Absent means that the store does not exist yet, and is not asked about the table, as a dry run does not create it.
	Absent bool
}

// Aging selects cells too old for the table to be left out and counted, instead of rejecting their records.
type Aging struct {
	Expires     bool // cells that expire during the load, if rows come from a table or an archive
	DropExpired bool // all such cells
}

// Columns maps input columns to table columns.
type Columns struct {
	Only    []string          // input columns to load as attributes; nil loads all
	Exclude []string          // input columns to leave out
	Rename  map[string]string // input name to table name
	Types   map[string]Type   // types by input or table name
	Keys    []keyexpr.Column  // computed columns of Target.Key
	Set     []keyexpr.Column  // computed attributes
	Known   Known             // how the table's types are used
}

// Type is a type requested by the user.
type Type struct {
	Type table.Type
	Hex  bool        // for binary: text is hexadecimal instead of base64
	Time *table.Time // format of a time that becomes an integer, or nil
}

// ShownInputs returns the inputs without the secrets in their addresses, so that they may be shown and kept.
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
	LastWins  Order = iota // in input order, so that the last row wins
	OrderNone              // in any order, as keys are unique or order does not matter
)

func (o Order) String() string { return [...]string{"last-wins", "none"}[o] }

// UsageError means that the request is invalid. Nothing was written.
type UsageError struct {
	Message string
	NoTable bool // the table does not exist
	Input   bool // an input is missing or cannot be read
	Damaged bool // reader.Damaged is true of the cause
	Changed bool // an input differs from that of the resumed run
	Nothing bool // there is no input to load
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
