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

// Request is what is asked of a load, as far as it matters before the first row. It has many fields, each of which the
// user may set.
type Request struct {
	Inputs     []string // arguments in order, as input.Expand understands them
	Read       Read
	Target     Target
	Columns    Columns
	Mode       table.Mode
	Condition  table.Existence
	When       *condition.When
	Unchanged  bool // rows say in table.UnchangedColumn what they are written under
	DeleteNull bool // update: a null deletes the column
	Order      Order
	Records    int64  // to read, from the start of the first input; 0 is all
	Memory     int64  // bytes of memory of the process
	Reading    int64  // memory that the limits of one input follow; 0 is Memory
	RunDir     string // its files are not inputs; "" if there is none
	// Written says that the rows are in the table already, to be compared with it: their timestamps may be as old as
	// they like.
	Written bool
	// Service returns the range in which the service's clock is now, which timestamps are compared with; nil takes this
	// machine's time.
	Service func() (earliest, latest time.Time)
	Keep    Keep
	// OnLook is called before the inputs are opened or sampled, and what it returns afterwards: they may take their time. May be nil.
	OnLook func() (looked func())
	// RejectedKeys says that the keys of rejected records are wanted, where they can be read.
	RejectedKeys bool
	// Of tables with an auto-increment key column: the attribute that rows are recognised by ("" takes DefaultMarkColumn), or
	// that they are repeated blindly and have none; whether they are looked for before they are written; and whether the keys
	// that the service makes are wanted.
	MarkColumn  string
	AtLeastOnce bool
	LookFirst   bool
	Returned    bool
	// KeysAlone says that the table may be asked for single rows only, not for ranges: not for the types of its columns either.
	KeysAlone bool
	// Inferred are types that an earlier attempt has inferred, by input column: a later one must not infer others.
	Inferred map[string]Inferred
	// Divided says that Division is what an earlier attempt got of Read.Sources, which is not asked again.
	Divided  bool
	Division []byte
	// Selection chooses from the inputs found; nil takes all. Chosen are those that an earlier attempt has chosen, nil in the first.
	Selection Selection
	Chosen    []string
	// Without are the names of inputs that are not loaded, although they are found: they were set aside.
	Without map[string]bool
	// Items, if not nil, are loaded of what an earlier plan has found and chosen, which has so many bytes.
	Items   []input.Item
	ItemsOf int64
	// Separator is what an earlier attempt has chosen for splice(auto, …); 0 chooses one.
	Separator rune
	// MostInputs is how many files are opened at most, from all over the inputs, of a plan that nothing is loaded by; 0 opens all.
	MostInputs int
}

// Inferred is a type that was found by samples.
type Inferred struct {
	table.Type
	Zeros bool       // as in table.Column
	Own   table.Type // as in table.Column
	Asked bool       // the column takes what it would with --type
}

// Known says what the types of columns that the table has already mean for those of the input.
type Known uint8

// The kinds.
const (
	KnownDefault Known = iota // they are the default; where values do not fit, another type is inferred and said
	KnownStrict               // another type is refused; of any column, the few values that are not of the type of nearly all are rejected
	KnownIgnored              // nothing: types come from the input alone
)

// Keep is what stays with a row of the record that it was made of.
type Keep uint8

// The kinds.
const (
	KeepRecord    Keep = iota // the record as it stands in the input, for rejects
	KeepNothing               // nobody asks for it
	KeepKey                   // nothing, and of the row only its ordering key
	KeepKeyFields             // the values of the fields that the primary key is made of, so that they can be distinguished, and a hash of the row
)

// Read says how inputs are read.
type Read struct {
	reader.Options                 // but Stream
	Convert        convert.Options // but Decode, which each source has of its own
	Find           input.Options   // how arguments are understood, but Stdin
	// Sources is where rows come from, if that is not files; nil opens Request.Inputs, which name the sources otherwise.
	Sources source.Origin
	// Archived says that a live source stands for an archive of it, which is what will be loaded: nothing is written of the source itself.
	Archived bool
	// Merges says that a live source is merged into the table, with --mode update: a cell that the source has lost stays.
	Merges bool
	// Look looks at all rows of Sources before the first is written, and fails if several would become one; nil is where that cannot be exact.
	Look    func(context.Context) error
	Parsers int       // workers; 0 takes one a processor
	Stdin   io.Reader // what - names; nil is os.Stdin. A read of it is left behind when the load stops
}

// Workers is how many parsers there are.
func (r *Read) Workers() int { return cmp.Or(r.Parsers, runtime.GOMAXPROCS(0)) }

// AskedOptions are the options of a new table that a user has given, to be told when the table exists already.
type AskedOptions struct {
	Any     bool
	Columns string // predefined ones, and indexes
}

// Target says where rows go.
type Target struct {
	Client   client.Target
	Name     string // of the target, for reports
	Place    string // the same in every working folder, where Name is not; empty if it is
	Table    string
	Create   bool                  // make the table if it is missing
	Key      []table.KeyColumn     // for Create; a Type of Null is inferred. Given for an existing table, it must match
	Define   table.Definition      // for Create
	Defined  map[string]table.Type // predefined attribute columns, for Create
	Indexes  []table.Index         // for Create
	Aging    Aging
	Asked    AskedOptions
	PreSplit PreSplit // ranges that a new table begins with
	// Policy says what tables of each age are, whose name is made of a period; nil is none. PolicyNow is the time that ages
	// are counted from.
	Policy    *lifecycle.Policy
	PolicyNow time.Time
	// Absent says that the store does not exist yet and need not be asked (a dry run makes no store).
	Absent bool
}

// Aging says which cells are left out and counted that are older than the table takes, and no reason to reject their record.
type Aging struct {
	Expires     bool // rows are those of a table or of an archive: cells that the time to live ends during the load
	DropExpired bool // all
}

// Columns says which input columns become which table columns.
type Columns struct {
	Only    []string          // input columns to load as attributes; nil loads all
	Exclude []string          // input columns to leave out
	Rename  map[string]string // input name to table name
	Types   map[string]Type   // by input or table name
	Keys    []keyexpr.Column  // of Target.Key, those that are computed
	Set     []keyexpr.Column  // attributes that are computed
	Known   Known             // what the types of the table's columns mean
}

// Type is a type the user asked for.
type Type struct {
	Type table.Type
	Hex  bool        // binary: text is hexadecimal, otherwise base64
	Time *table.Time // integer: of a time
}

// ShownInputs are the inputs as they may be shown and kept: without the secrets of addresses.
func (r *Request) ShownInputs() []string {
	shown := make([]string, 0, len(r.Inputs))
	for _, arg := range r.Inputs {
		shown = append(shown, input.Redact(arg))
	}
	return shown
}

// Order says in which order the rows of a key are written.
type Order uint8

// The orders.
const (
	LastWins  Order = iota // as they stand in the input: the last one stays
	OrderNone              // in any: keys are unique, or it does not matter
)

func (o Order) String() string { return [...]string{"last-wins", "none"}[o] }

// UsageError says that the load was asked for wrongly; nothing was written.
type UsageError struct {
	Message string
	NoTable bool // the table does not exist
	Input   bool // an input is missing, or cannot be read
	Damaged bool // as reader.Damaged says of why
	Changed bool // an input is not what the run that is resumed has begun with
	Nothing bool // no input matches
}

// Exit is the exit code.
func (e *UsageError) Exit() int {
	if e.Nothing {
		return exitcode.NoInput
	}
	return exitcode.Usage
}

func (e *UsageError) Error() string { return e.Message }

// Usagef is bad usage, in one line.
func Usagef(format string, a ...any) error { return usagef(format, a...) }

func usagef(format string, a ...any) error {
	return &UsageError{Message: fmt.Sprintf(format, a...)}
}
