package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/reader/record"
)

// Origin is where the sources of a load come from.
type Origin interface {
	// Divide divides what is to be read into parts, a source each. A load asks for it once, before its first row, and keeps the
	// answer: at most MaxDivision bytes, which only Open reads; nil if Open finds the same parts again without it.
	Divide(ctx context.Context) (division []byte, err error)
	// Open opens the parts of a division, always in the same order: a part's place among them names it permanently. A later process
	// passes the division that the first one got, and gets the same parts, even if the data have changed since.
	Open(ctx context.Context, division []byte) ([]Source, error)
}

// Waits is an Origin that may have to wait for a server.
type Waits interface {
	Origin
	// Waiting reports whether one that does not answer is asked again. Any goroutine may call it.
	Waiting() bool
}

// Snapshots is an Origin whose records are those of snapshots of all that it reads.
type Snapshots interface {
	Origin
	// Snapshots says what this process has read from which. Any goroutine may call it.
	Snapshots() []Snapshot
}

// Ranged is an Origin of which each source has a range of keys.
type Ranged interface {
	Origin
	// RangeOf says in which of the opened sources keys are that begin with a whole number, false if nobody can say.
	RangeOf(first int64) (number int, ok bool)
}

// Rereads is an Origin whose records can be read again by their keys.
type Rereads interface {
	Origin
	// Reread returns a source of the records that have one of the keys now, each the values of About().Unique. It is to be closed, and is all
	// that it needs. An error may say that the values of a table's key do not lead back to the source's rows.
	Reread(ctx context.Context, keys [][]table.Value) (Source, error)
}

// Snapshot is a moment of a live source.
type Snapshot struct {
	Name   string    `json:"name"`  // as the source's server calls it
	Taken  time.Time `json:"taken"` // by this machine's clock
	Ranges []string  `json:"ranges,omitempty"`
}

// Limits of an Origin.
const (
	MaxDivision = 16 << 20 // bytes
	MaxSources  = 1 << 20
)

// Source is an ordered sequence of records that a load can read, cut into splits that are parsed in parallel:
//
//	for each piece of Next, in order:   piece.Prepare()      any goroutine, any order
//	                                    splits = Add(piece)  in the order of Next
//	at io.EOF:                          splits = Finish()
//	for each split:                     parser.Parse(split)  any goroutine, any order
//
// Every record is in exactly one split, and the splits in the order in which they were returned hold the records in the order
// of the source.
//
// A source is frozen or live. A record of a frozen one has a number, counted from 0 at the source's first one, that names it
// permanently: it stays the same if the source is cut elsewhere, read from another place or read by a later process, as long as
// Identity is the same. The records of a live one change while they are read and between two readings, so that only keys name
// its places: see Place. It reads nothing that becomes a record of a split before the first Next of any source of its Origin, each
// record as it is at some moment from then on until Finish, and no record twice in one reading. A source that can promise neither is not built.
//
// A load looks at a sample of a source first and then, after Suspend, reads it. Unless a comment says otherwise one goroutine at
// a time calls a source; pieces and parsers belong to whoever has them.
type Source interface {
	// About says what the source is. It is the same from the first call on, but for what AddColumns adds.
	About() About
	// Identity says what must be the same for a run to be resumed.
	Identity() (Identity, error)
	// Sample calls each with the first records, about budget bytes of them, and returns how many bytes it looked at, 0 only if
	// there are no records. What a record has beside the named columns may be Null. Errors of reading are left for the load to
	// meet, after the records before them. Suspend goes back to the start.
	Sample(budget int, columns []string, each func(*record.Record)) (read int, err error)
	// SetSplitBytes asks for splits of about so many bytes from now on.
	SetSplitBytes(n int)

	// Seek makes the first Next begin at a place that an earlier reading came to, or at one before it if that is where a
	// reading can begin: Begin says which. Known is what a stream was; reading fails where it differs. A live source begins
	// exactly at the key, at its first record if there is none, and counts records from to.Record: Begin returns to.
	Seek(to Place, known Chain)
	// Begin returns where the reading begins: the place of the first Next, not of the following one. After Seek it is known when
	// the first piece is there.
	Begin() Place
	// Next returns the next piece, or io.EOF after the last. Any other error means that the source cannot be read to its end:
	// the pieces before it are good. It fails too, in place of io.EOF, if the content is known to have changed meanwhile.
	Next() (Piece, error)
	// Add takes the next piece, prepared, and returns the splits that are whole now. With an error these are good, and
	// nothing after them can be read.
	Add(Piece) ([]Split, error)
	// Finish returns the last splits after io.EOF.
	Finish() ([]Split, error)
	// Whole returns the records that are whole so far, where what follows them cannot be read.
	Whole() []Split

	// NewParser makes a parser that delivers the columns used, by their places in About().Columns; the others may be Null.
	NewParser(used []int) Parser
	// Suspend gives back what an idle source need not hold; Next opens it again, at its first record or where Seek said.
	Suspend() error
	// Close gives back everything. It may be called more than once.
	Close() error
}

// Piece is a part of a source on its way to splits. It belongs to whoever has it.
type Piece interface {
	// Prepare does the work that needs no order: reading, inflating, finding record ends. After an error the piece holds what
	// came before it.
	Prepare() error
	// Bytes is how much memory it takes, or will take when it is prepared.
	Bytes() int64
}

// Parser reads the records of splits. Each goroutine has its own.
type Parser interface {
	// Parse calls each with every record of the split, in order, and returns how many records and lines there were. A record's
	// memory is valid during the call. An error means that the split cannot be read to its end: ErrMemory, if it can with
	// more memory; then it is called again from the split's first record, and gives the same records.
	Parse(sp Split, each func(*record.Record)) (records, lines int, err error)
	// LimitMemory bounds what Parse may hold at a time beside the split, in bytes; 0 means no bound.
	LimitMemory(bytes int64)
	// Release gives back what is kept from split to split.
	Release()
	Close() error
}

// Pages is embedded by a Source whose pieces become splits as they are: nothing is left at its end.
type Pages struct{}

// Finish has nothing left.
func (Pages) Finish() ([]Split, error) { return nil, nil }

// Whole has nothing left.
func (Pages) Whole() []Split { return nil }

// TableRows is embedded by a Source of rows of a table: each record has the columns of the key, and its cells are all else.
type TableRows struct {
	Added []string // columns that are asked for by name
}

// Keyed adds to what a source says of itself that it has rows of a table with a key.
func (r *TableRows) Keyed(key []table.KeyColumn, a About) About {
	kinds := map[table.Type]record.Kind{table.Integer: record.Integer, table.String: record.String, table.Binary: record.Binary}
	for _, k := range key {
		a.Columns = append(a.Columns, k.Name)
		a.Unique = append(a.Unique, KeyColumn{k.Name, kinds[k.Type]})
	}
	a.Columns, a.Wide, a.Rejects.Kind = append(a.Columns, r.Added...), true, ".ndjson"
	a.AddColumns = func(names []string) { r.Added = slices.Concat(r.Added, names) }
	return a
}

// Plain is embedded by a Parser that has nothing to bound beside the split, and nothing to give back.
type Plain struct{}

// LimitMemory changes nothing.
func (Plain) LimitMemory(int64) {}

// Release has nothing to give back.
func (Plain) Release() {}

// Close has nothing to give back.
func (Plain) Close() error { return nil }

// Packs is a Parser that can leave rows of tables as they came: record.Record.Packed.
type Packs interface {
	Parser
	LeavePacked()
}

// Skips is a Parser that may pass over empty lines.
type Skips interface {
	Parser
	// EmptyLines returns how many the last split had.
	EmptyLines() int
}

// Follows is a Parser of changes.
type Follows interface {
	// Followed tells of the split that was parsed last.
	Followed() Followed
}

// Followed is what the changes of a split say of the log that they come from.
type Followed struct {
	Others int       // changes of other tables, which were passed over
	Last   *Resume   // where the last one stands; nil is unknown
	Made   time.Time // when its source made it; zero is unknown
}

// ErrMemory is why a split cannot be parsed: it takes more memory than LimitMemory allows. The message says how much it would take.
var ErrMemory = errors.New("more memory is needed")

// Memory is what a Parser of rows holds, and how much it may.
type Memory struct {
	What  string // takes it, such as "pages"
	Also  string // what may be done beside giving more, after a comma; empty is nothing
	Limit int64  // bytes; 0 means no bound
	Held  int64
}

// LimitMemory says how many bytes may be held from now on.
func (m *Memory) LimitMemory(n int64) { m.Limit = n }

// Hold notes that n more bytes are held, before they are. The error is an ErrMemory.
func (m *Memory) Hold(n int64) error {
	if m.Limit > 0 && n > 0 && m.Held+n > m.Limit {
		return m.Exceeded(m.Held + n)
	}
	m.Held += n
	return nil
}

// Exceeded is the ErrMemory about so many bytes, which are more than the limit.
func (m *Memory) Exceeded(bytes int64) error {
	return memoryError(fmt.Sprintf("its %s take %d MiB or more, memory allows %d MiB; give more with --memory%s",
		m.What, bytes>>20+1, m.Limit>>20, m.Also))
}

type memoryError string

func (e memoryError) Error() string        { return string(e) }
func (e memoryError) Is(target error) bool { return target == ErrMemory }

// Random is a frozen Source that may be able to read its records in any order, once it is known where they are.
type Random interface {
	Source
	// Anywhere reports whether it can, and whether it is worth it.
	Anywhere() bool
	// Reopen makes LoadStretch work after Close.
	Reopen() error
	// Divisible reports whether LoadStretch loads any of its records.
	Divisible() bool
	// LoadStretch returns the records of a stretch with their data, as splits in their order. Any goroutine may call it between
	// Reopen and Finished.
	LoadStretch(Stretch) ([]Split, error)
	// Finished closes a source of which every split was read, and fails if the content changed meanwhile.
	Finished() error
}

// Split is a part of a source that can be parsed alone: whole records.
type Split struct {
	Number int    // 0 is the source's first; others need not be in a row
	Data   []byte // the records' text; the receiver's to keep, or to give back. Nil where records never were text
	Offset int64  // of Data in the text
	Bytes  int64  // of the source that the split stands for, about
	Rows   int64  // records in it, where the source states it; 0 is unknown
	First  int64  // records of the source before it, where it states Rows
	Group  int    // splits of one group are best read one after the other; 0 is none
	Part   any    // what the source knows the split by
	Key    []byte // as Place.Key of its first record; nil where a place needs none
}

// Stretch is records of a source that follow each other.
type Stretch struct {
	Record  int64 // records of the source before it
	Records int64
	Offset  int64 // of its text; 0 where records never were text
	Bytes   int64 // of its text
}

// Place is where a record begins in a source.
type Place struct {
	Record int64 // records before it
	Line   int64 // lines before it; 0 where there are none
	Offset int64 // bytes of the decompressed text before it; 0 where there are none
	// Key says where the record is in a source whose places are keys, at most MaxKey bytes that only the source reads. The keys of
	// splits go up in the order of the source: what comes before the split is before its key, and all else is not, in every later
	// reading too.
	Key []byte
}

// MaxKey is how long a Place.Key may be, in bytes.
const MaxKey = 8 << 10

// Chain says what a stream was, as far as it was read: a stream cannot be looked at again without reading it.
type Chain struct {
	Every int64    // bytes of text between sums
	Sums  []uint64 // of all bytes before Every, 2 Every, …
}

// About says what a source is. It has many fields, each a claim of the contract by itself.
type About struct {
	Name    string
	Bytes   int64    // of its content, about; -1 is unknown
	Columns []string // in the source's order
	// Wide says that records describe themselves: Cells are all attributes of a record, each with its type. Fields are then what
	// keys and expressions are made of: what every record has beside its cells, and of the columns that AddColumns has added the
	// newest value, Absent where a record has no such cell. Records may lack columns then.
	Wide bool
	// AddColumns adds columns to About().Columns where records may lack some, as objects of JSON may lack members: those that other sources
	// have and, of a Wide source, those that the load asks for by name. It is called before parsers are made. Nil means that no record
	// lacks a column.
	AddColumns func(names []string)
	// GiveBack has later splits take the memory of one that nobody parses again, once nothing points into its text. Any goroutine may call it.
	// Nil has no use for it.
	GiveBack func(Split)
	// Chain returns what is known of a stream as far as it was read; nil for other sources. Any goroutine may call it.
	Chain   func() Chain
	Lines   bool  // records begin on lines, which messages name
	Pieces  int64 // bytes of the next piece, about
	Rejects Rejects
	Found   []Found  // what was decided about all of its records
	Notes   []string // what was found out, for the user, a sentence each
	Renamed []string // what was done to names that were empty or came twice, likewise
	Hint    string   // what may be wrong where its columns do not fit; empty is nothing

	// Live says that the source is one. Identity then has a Schema and says nothing of the content, Rows of splits are not stated,
	// and Unique names columns.
	Live bool
	// Unique are columns whose values together no two records of all sources of a load share, so that their order does not matter.
	// Nil is unknown: of several records with one key the last one counts.
	Unique []KeyColumn
	// AlsoUnique are parts of Unique, by name, whose values no two records share either.
	AlsoUnique [][]string
	// Seeking is what it costs to begin at a place that is not the first.
	Seeking Seeking
	// ShowKey is the key of a place as people read it; nil shows none.
	ShowKey func(key []byte) string

	// Measures say of the columns what all values count, where a schema says it. Nil means no schema.
	Measures []record.Measures
	// Declared is what the source's own schema says of its records; nil says nothing.
	Declared *Declared

	// Decode makes UTF-8 of a value's text, where records have it in another encoding; nil if they do not.
	Decode func(dst, src []byte) ([]byte, int)
	// EncodingHint is advice about a value that is not in that encoding, to be put after what is wrong.
	EncodingHint func(value []byte) string
}

// Found is something that was found out about all records of a source, such as their format. What names it in a word, the same for all sources.
type Found struct{ What, As string }

// Declared is what a schema says of records.
type Declared struct {
	Types []table.Type // by column; Null says nothing
	Key   []string     // columns of the primary key, in its order; nil is none
}

// KeyColumn is a column of About.Unique.
type KeyColumn struct {
	Name string
	Kind record.Kind // that all of its values have: Integer, Unsigned, String or Binary
}

// Seeking is what Seek costs.
type Seeking uint8

// The costs.
const (
	SeeksDirectly  Seeking = iota // next to nothing
	SeeksByReading                // what comes before the place is read and dropped
)

// Rejects says how the records of a source are kept that were refused.
type Rejects struct {
	Kind     string // ending of the file's name: .csv or .ndjson
	Header   []byte // what stands before them, line end included
	Folder   string // that gives them columns by its name, when they are loaded again
	End      string // ends a record; empty is LF
	Ended    func(record []byte) bool
	Encoding string   // of the records; empty is UTF-8
	Flags    []string // of a command that reads them
	// Raw returns a record of a split as it is kept, so that it can be loaded again: nil if its values are to be kept as a line of JSON, empty
	// if it is not kept. Nil makes lines of JSON of all.
	Raw func(Split, table.Span) []byte
}

// Identity says what a source is, for a later process to know it again.
type Identity struct {
	Bytes   int64
	Version string // differs when the content was changed: a time of change, what a server says; empty is unknown
	Content string // a hash of the content, or of a part that is cheap to read
	Schema  string // of a live source: what its records look like, such as names and types of columns
}
