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

// Origin is the place of a load's sources.
type Origin interface {
	// Divide divides the input into parts, one source each. A load calls it once, before its first row, and keeps the
	// answer: at most MaxDivision bytes, which only Open reads; nil if Open finds the same parts without it.
	Divide(ctx context.Context) (division []byte, err error)
	// Open opens the parts of a division, always in the same order: its place among them names a part permanently. A later
	// process passes the first one's division and gets the same parts, even if the data have changed since.
	Open(ctx context.Context, division []byte) ([]Source, error)
}

// Waits is an Origin that may wait for a server.
type Waits interface {
	Origin
	// Waiting reports whether an unresponsive server is being asked again. It is safe for concurrent use.
	Waiting() bool
}

// Snapshots is an Origin whose records come from snapshots.
type Snapshots interface {
	Origin
	// Snapshots lists the ranges that this process has read from each. It is safe for concurrent use.
	Snapshots() []Snapshot
}

// Ranged is an Origin with a key range for each source.
type Ranged interface {
	Origin
	// RangeOf returns the opened source with the keys that begin with a whole number, false if unknown.
	RangeOf(first int64) (number int, ok bool)
}

// Rereads is an Origin that can read records again by their keys.
type Rereads interface {
	Origin
	// Reread returns a source of the records that now have one of the keys, each the values of About().Unique. It is
	// self-contained; close it. An error may say that a table's key does not lead back to the source's rows.
	Reread(ctx context.Context, keys [][]table.Value) (Source, error)
}

// Snapshot is a moment of a live source.
type Snapshot struct {
	Name   string    `json:"name"`  // as the source's server calls it
	Taken  time.Time `json:"taken"` // by this machine's clock
	Ranges []string  `json:"ranges,omitempty"`
}

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
// Every record is in exactly one split; the splits, in the order returned, hold the records in the source's order.
//
// A source is frozen or live. A record of a frozen one has a number, counted from 0 at the source's first record, that
// names it permanently: it is the same if the source is cut elsewhere, read from another place or by a later process,
// while Identity is the same. The records of a live one change while they are read and between two readings, so only
// keys name its places: see Place. It reads nothing for splits before the first Next of any source of its Origin, each
// record as it is at some moment between then and Finish, and no record twice in one reading.
//
// A load first samples a source and then, after Suspend, reads it. Unless a comment says otherwise one goroutine at a
// time calls a source; pieces and parsers belong to their holders.
type Source interface {
	// About describes the source. It never changes, except by AddColumns.
	About() About
	// Identity is the facts that must be unchanged to resume a run.
	Identity() (Identity, error)
	// Sample calls each with the first records, about budget bytes, and returns the bytes examined, 0 only if there are no
	// records. Fields outside the named columns may be Null. The load will meet read errors, after the records before
	// them. Suspend goes back to the start.
	Sample(budget int, columns []string, each func(*record.Record)) (read int, err error)
	// SetSplitBytes asks for splits of about n bytes from now on.
	SetSplitBytes(n int)

	// Seek makes the first Next begin at a place that an earlier reading reached, or before it if a reading can begin only
	// there: Begin says where. known is a stream's earlier content; reading fails where it differs. A live source begins
	// exactly at the key, at its first record if there is none, and counts records from to.Record: Begin returns to.
	Seek(to Place, known Chain)
	// Begin returns where the reading started: the place of the first piece, not of the next one. After Seek it is known
	// once the first piece has been read.
	Begin() Place
	// Next returns the next piece, or io.EOF after the last. Any other error means that the source cannot be read to its
	// end: the pieces before it are good. It also fails, in place of io.EOF, if the content has changed.
	Next() (Piece, error)
	// Add takes the next piece, prepared, and returns the splits that are complete now. If it also returns
	// an error, those splits are valid, but nothing after them can be read.
	Add(Piece) ([]Split, error)
	// Finish returns the last splits after io.EOF.
	Finish() ([]Split, error)
	// Whole returns the complete records so far if the rest cannot be read.
	Whole() []Split

	// NewParser makes a parser of the used columns, by their places in About().Columns; the others may be Null.
	NewParser(used []int) Parser
	// Suspend releases an idle source's resources; Next opens it again, at its first record or where Seek said.
	Suspend() error
	// Close releases everything. It may be called more than once.
	Close() error
}

// Piece is a part of a source on its way to splits. It belongs to its holder.
type Piece interface {
	// Prepare does the work that needs no order: reading, inflating, finding record ends. An error leaves all before it.
	Prepare() error
	// Bytes is its memory, or its memory once prepared.
	Bytes() int64
}

// Parser reads the records of splits. Each goroutine has its own.
type Parser interface {
	// Parse calls each with every record of the split, in order, and returns the number of records and lines. A record's
	// memory is valid during the call. An error means that the split cannot be read to its end: ErrMemory, if it can with
	// more memory; then it is called again from the split's first record, and gives the same records.
	Parse(sp Split, each func(*record.Record)) (records, lines int, err error)
	// LimitMemory limits Parse's memory besides the split, in bytes; 0 is unlimited.
	LimitMemory(bytes int64)
	// Release frees the memory kept between splits.
	Release()
	Close() error
}

// Pages is embedded by a Source whose pieces become splits unchanged: nothing is left at its end.
type Pages struct{}

// SetSplitBytes does nothing: a page has a fixed number of rows.
func (Pages) SetSplitBytes(int) {}

func (Pages) Close() error { return nil }

func (Pages) Finish() ([]Split, error) { return nil, nil }

func (Pages) Whole() []Split { return nil }

// TableRows is embedded by a Source of table rows: fields are the key, cells the attributes.
type TableRows struct {
	Added []string // columns that are asked for by name
}

// Keyed completes an About for rows of a table with a key.
func (r *TableRows) Keyed(key []table.KeyColumn, a About) About {
	kinds := map[table.Type]record.Kind{table.Integer: record.Integer, table.String: record.String,
		table.Binary: record.Binary}
	for _, k := range key {
		a.Columns = append(a.Columns, k.Name)
		a.Unique = append(a.Unique, KeyColumn{k.Name, kinds[k.Type]})
	}
	a.Columns, a.Wide, a.Rejects.Kind = append(a.Columns, r.Added...), true, ".ndjson"
	a.AddColumns = func(names []string) { r.Added = slices.Concat(r.Added, names) }
	return a
}

// Undivided is embedded by an Origin that opens the same parts each time.
type Undivided struct{}

func (Undivided) Divide(context.Context) ([]byte, error) { return nil, nil }

// Ready is embedded by a Piece that needs no work before it becomes splits.
type Ready struct{}

func (Ready) Prepare() error { return nil }

// Plain is embedded by a Parser without memory besides the split and nothing to release.
type Plain struct{}

func (Plain) LimitMemory(int64) {}

func (Plain) Release() {}

func (Plain) Close() error { return nil }

// Packs is a Parser that can leave table rows packed: record.Record.Packed.
type Packs interface {
	Parser
	LeavePacked()
}

// Skips is a Parser that may skip empty lines.
type Skips interface {
	Parser
	// EmptyLines is the number in the last split.
	EmptyLines() int
}

// Follows is a Parser of changes.
type Follows interface {
	// Followed describes the last parsed split.
	Followed() Followed
}

// Followed is the log's place according to a split's changes.
type Followed struct {
	Others int       // changes of other tables, skipped
	Last   *Resume   // place of the last one; nil is unknown
	Made   time.Time // when its source made it; zero is unknown
}

// ErrMemory means that parsing a split takes more memory than LimitMemory allows. The message states how much.
var ErrMemory = errors.New("more memory is needed")

// Memory is the memory of a Parser of rows, and its limit.
type Memory struct {
	What  string // takes it, such as "pages"
	Also  string // advice besides more memory, after a comma; may be empty
	Limit int64  // bytes; 0 means no bound
	Held  int64
}

// LimitMemory sets the limit in bytes.
func (m *Memory) LimitMemory(n int64) { m.Limit = n }

// Hold reserves n more bytes before their use. The error is an ErrMemory.
func (m *Memory) Hold(n int64) error {
	if m.Limit > 0 && n > 0 && m.Held+n > m.Limit {
		return m.Exceeded(m.Held + n)
	}
	m.Held += n
	return nil
}

// Exceeded returns an error matching ErrMemory for a size above the limit.
func (m *Memory) Exceeded(bytes int64) error {
	return memoryError(fmt.Sprintf("its %s take %d MiB or more, memory allows %d MiB; give more with --memory%s",
		m.What, bytes>>20+1, m.Limit>>20, m.Also))
}

type memoryError string

func (e memoryError) Error() string        { return string(e) }
func (e memoryError) Is(target error) bool { return target == ErrMemory }

// Random is a frozen Source that may be able to read its records in any order once their places are known.
type Random interface {
	Source
	// Anywhere reports whether it can, and whether that is worthwhile.
	Anywhere() bool
	// Reopen makes LoadStretch work after Close.
	Reopen() error
	// Divisible reports whether LoadStretch loads any of its records.
	Divisible() bool
	// LoadStretch returns the records of a stretch with their data, as splits in order. It is safe for concurrent use
	// between Reopen and Finished.
	LoadStretch(Stretch) ([]Split, error)
	// Finished closes a source after all splits were read, and fails if the content has changed meanwhile.
	Finished() error
}

// Split is a part of a source that can be parsed alone: whole records.
type Split struct {
	Number int    // 0 is the source's first; others need not be in a row
	Data   []byte // text of the records, for the receiver to keep or give back; nil if they never were text
	Offset int64  // of Data in the text
	Bytes  int64  // of the source that the split stands for, about
	Rows   int64  // of records, if the source states it; 0 is unknown
	First  int64  // records of the source before it, with Rows
	Group  int    // splits of one group are best read one after the other; 0 is none
	Part   any    // identifies the split for the source
	Key    []byte // Place.Key of its first record; nil if not needed
}

// Stretch is consecutive records of a source.
type Stretch struct {
	Record  int64 // records of the source before it
	Records int64
	Offset  int64 // of its text; 0 if records never were text
	Bytes   int64 // of its text
}

// Place is the start of a record in a source.
type Place struct {
	Record int64 // records before it
	Line   int64 // lines before it; 0 if there are none
	Offset int64 // bytes of the decompressed text before it; 0 if there are none
	// Key is the place in a source whose places are keys, at most MaxKey bytes that only the source reads. Keys of splits
	// increase: everything before the split is before its key, and nothing else is, in every later reading too.
	Key []byte
}

// MaxKey limits a Place.Key, in bytes.
const MaxKey = 8 << 10

// Chain is sums of a stream as far as it was read: a stream cannot be checked without reading it again.
type Chain struct {
	Every int64    // bytes of text between sums
	Sums  []uint64 // of all bytes before Every, 2 Every, …
}

// About describes a source. It has many fields, each a claim of the contract.
type About struct {
	Name    string
	Bytes   int64    // of its content, about; -1 is unknown
	Columns []string // in the source's order
	// Wide means that records describe themselves: Cells are all attributes of a record, each with its type. Fields are
	// for keys and expressions: what every record has beside its cells, and the newest value of each column that
	// AddColumns has added, Absent if a record has no such cell. Records may lack columns then.
	Wide bool
	// AddColumns adds columns to About().Columns if records may lack some, as JSON objects may lack members: those of
	// other sources and, for a Wide source, those that the load names. Call it before making parsers. Nil: none lacks one.
	AddColumns func(names []string)
	// GiveBack lets later splits reuse the memory of one that is not parsed again, once nothing points into its text. It
	// is safe for concurrent use. May be nil.
	GiveBack func(Split)
	// Chain returns a stream's sums so far; nil for other sources. It is safe for concurrent use.
	Chain   func() Chain
	Lines   bool  // records begin on lines, for messages
	Pieces  int64 // bytes of the next piece, about
	Rejects Rejects
	Found   []Found  // about all of its records
	Notes   []string // for the user, a sentence each
	Renamed []string // changes of empty or repeated names, likewise
	Hint    string   // advice if its columns do not fit; may be empty

	// Live means that the source is live. Identity then has a Schema and says nothing of the content, Rows of splits are
	// not stated, and Unique names columns.
	Live bool
	// Unique are columns whose values together no two records of all sources of a load share, so their order does not
	// matter. Nil is unknown: of several records with one key the last one counts.
	Unique []KeyColumn
	// AlsoUnique are parts of Unique, by name, whose values no two records share either.
	AlsoUnique [][]string
	// Seeking is the cost of beginning at a place other than the first.
	Seeking Seeking
	// ShowKey shows a place's key to users; nil shows none.
	ShowKey func(key []byte) string

	// Measures are the units of the columns' values, if a schema states them. Nil means no schema.
	Measures []record.Measures
	// Declared is the source's own schema of its records; nil means none.
	Declared *Declared

	// Decode decodes a value's text to UTF-8; nil if records are UTF-8.
	Decode func(dst, src []byte) ([]byte, int)
	// EncodingHint returns advice about a value that cannot be decoded, to append to the error; nil gives none.
	EncodingHint func(value []byte) string
}

// Found is a fact about all records of a source, such as their format. What names it in a word, the same for all
// sources.
type Found struct{ What, As string }

// Declared is a schema of records.
type Declared struct {
	Types []table.Type // by column; Null says nothing
	Key   []string     // columns of the primary key, in its order; nil is none
}

// KeyColumn is a column of About.Unique.
type KeyColumn struct {
	Name string
	Kind record.Kind // that all of its values have: Integer, Unsigned, String or Binary
}

// Seeking is the cost of Seek.
type Seeking uint8

const (
	SeeksDirectly  Seeking = iota // next to nothing
	SeeksByReading                // reads and drops what comes before the place
)

// Rejects says how a source's refused records are kept.
type Rejects struct {
	Kind     string // ending of the file's name: .csv or .ndjson
	Header   []byte // before them, with its line end
	Folder   string // whose name gives them columns when they are loaded again
	End      string // ends a record; empty is LF
	Ended    func(record []byte) bool
	Encoding string   // of the records; empty is UTF-8
	Flags    []string // of a command that reads them
	// Raw returns a split's record so that it can be loaded again: nil if its values are to be kept as a line of JSON,
	// empty if it is not kept. If Raw is nil all become lines of JSON.
	Raw func(Split, table.Span) []byte
}

// Identity lets a later process recognise a source.
type Identity struct {
	Bytes   int64
	Version string // changes with the content: a modification time, or a server's version; empty is unknown
	Content string // a hash of the content, or of a part that is cheap to read
	Schema  string // of a live source: names and types of columns, for example
}
