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

// Origin provides the sources of a load.
type Origin interface {
	// Divide divides the input into parts, one source each. A load calls it once, before its first row, and stores the
	// result: at most MaxDivision bytes that only Open reads, or nil if Open finds the same parts without it.
	Divide(ctx context.Context) (division []byte, err error)
	// Open opens the parts of a division, always in the same order: a part's index identifies it permanently. Later
	// processes pass the division of the first process and get the same parts, even if the data has changed since.
	Open(ctx context.Context, division []byte) ([]Source, error)
}

// Waits is an Origin that may have to wait for a server.
type Waits interface {
	Origin
	// Waiting reports whether an unresponsive server is being retried. It is safe for concurrent use.
	Waiting() bool
}

// Snapshots is an Origin whose records come from snapshots.
type Snapshots interface {
	Origin
	// Snapshots lists the ranges that this process has read from each snapshot. It is safe for concurrent use.
	Snapshots() []Snapshot
}

// Ranged is an Origin whose sources are key ranges.
type Ranged interface {
	Origin
	// RangeOf returns the number of the opened source for keys that begin with the integer first, or false if unknown.
	RangeOf(first int64) (number int, ok bool)
}

// Rereads is an Origin that can read records again by their keys.
type Rereads interface {
	Origin
	// Reread returns a source of the records that now have one of the keys, each a list of values of About().Unique. It is
	// independent of other sources and must be closed. Reread may fail because a table's key identifies no source rows.
	Reread(ctx context.Context, keys [][]table.Value) (Source, error)
}

// Snapshot is a consistent state of a live source.
type Snapshot struct {
	Name   string    `json:"name"`  // the server's name for it
	Taken  time.Time `json:"taken"` // by this machine's clock
	Ranges []string  `json:"ranges,omitempty"`
}

const (
	MaxDivision = 16 << 20 // in bytes
	MaxSources  = 1 << 20
)

// Source is an ordered sequence of records for a load, cut into splits that are parsed in parallel:
//
//	for each piece of Next, in order:   piece.Prepare()      any goroutine, any order
//	                                    splits = Add(piece)  in the order of Next
//	at io.EOF:                          splits = Finish()
//	for each split:                     parser.Parse(split)  any goroutine, any order
//
// Every record is in exactly one split. The splits, in the order returned, have the records in the order of the source.
//
// A source is frozen or live. A record of a frozen source has a number, counted from 0, that identifies it permanently:
// it is the same however the source is cut, wherever reading begins and whichever process reads, as long as Identity is
// the same. The records of a live source may change during and between readings, so only keys identify its places: see
// Place. A live source reads nothing for splits before the first Next of any source of its Origin, reads each record as
// it is at some moment between then and Finish, and returns no record twice in one reading.
//
// A load first samples a source and then, after Suspend, reads it. Unless stated otherwise, only one goroutine at a
// time may call a source. Pieces and parsers belong to those who hold them.
type Source interface {
	// About describes the source. Only AddColumns changes its result.
	About() About
	// Identity returns the facts that must be the same when a run is resumed.
	Identity() (Identity, error)
	// Sample calls each with about budget bytes of the first records. It returns the number of bytes examined, which is 0
	// only if there are no records. Fields of columns not named may be Null. It returns no read errors: the load will meet
	// them after the records before them. Suspend goes back to the start.
	Sample(budget int, columns []string, each func(*record.Record)) (read int, err error)
	// SetSplitBytes requests splits of about n bytes from now on.
	SetSplitBytes(n int)

	// Seek makes the first Next begin at a place that an earlier reading reached, or before it if reading can begin only
	// there: Begin says where. known is a stream's earlier content; reading fails if it differs. A live source begins
	// exactly at the key, or at its first record if there is no key, and counts records from to.Record: Begin returns to.
	Seek(to Place, known Chain)
	// Begin returns the place of the first piece, where the reading began. After Seek, it is known once the first
	// piece has been read.
	Begin() Place
	// Next returns the next piece, or io.EOF after the last. Any other error means that the source cannot be read to its
	// end; the pieces before it are good. If the content has changed, Next fails instead of returning io.EOF.
	Next() (Piece, error)
	// Add takes the next piece, which must be prepared, and returns the splits that it completes. If Add also returns an
	// error, these splits are valid, but nothing after them can be read.
	Add(Piece) ([]Split, error)
	// Finish returns the last splits, after io.EOF.
	Finish() ([]Split, error)
	// Whole returns the complete records not returned yet, if the rest of the source cannot be read.
	Whole() []Split

	// NewParser returns a parser of the used columns, given by their indexes in About().Columns. Other fields may be Null.
	NewParser(used []int) Parser
	// Suspend releases the resources of an idle source. Next reopens it, at its first record or as Seek said.
	Suspend() error
	// Close releases everything. It may be called more than once.
	Close() error
}

// Piece is a part of a source that becomes splits. It belongs to its holder.
type Piece interface {
	// Prepare does the work that needs no order: reading, inflating, finding record ends. What precedes an error is kept.
	Prepare() error
	// Bytes returns the memory that the piece takes, or will take once it is prepared.
	Bytes() int64
}

// Parser reads the records of splits. Each goroutine needs its own.
type Parser interface {
	// Parse calls each for every record of the split, in order, and returns the numbers of records and lines. A record's
	// memory is valid during the call. An error means that the split cannot be read to its end. After ErrMemory, it can be
	// read with more memory: Parse is then called again and delivers the same records from the first one on.
	Parse(sp Split, each func(*record.Record)) (records, lines int, err error)
	// LimitMemory limits the memory, in bytes, that Parse uses in addition to the split. 0 means no limit.
	LimitMemory(bytes int64)
	// Release frees the memory kept between splits.
	Release()
	Close() error
}

// Pages is embedded by a Source whose pieces become splits unchanged, so that nothing is left at the end.
type Pages struct{}

// SetSplitBytes does nothing, because each piece becomes one split, regardless of its size.
func (Pages) SetSplitBytes(int) {}

func (Pages) Close() error { return nil }

func (Pages) Finish() ([]Split, error) { return nil, nil }

func (Pages) Whole() []Split { return nil }

// TableRows is embedded by a Source of table rows, whose fields are the key and whose cells are the attributes.
type TableRows struct {
	Added []string // columns requested by name
}

// Keyed completes an About for rows of a table with this key.
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

// Undivided is embedded by an Origin that finds the same parts each time.
type Undivided struct{}

func (Undivided) Divide(context.Context) ([]byte, error) { return nil, nil }

// Ready is embedded by a Piece that needs no preparation.
type Ready struct{}

func (Ready) Prepare() error { return nil }

// Plain is embedded by a Parser that uses no memory in addition to the split and has nothing to release.
type Plain struct{}

func (Plain) LimitMemory(int64) {}

func (Plain) Release() {}

func (Plain) Close() error { return nil }

// Packs is a Parser that can leave table rows packed (see record.Record.Packed).
type Packs interface {
	Parser
	LeavePacked()
}

// Skips is a Parser that may skip empty lines.
type Skips interface {
	Parser
	// EmptyLines returns the number of empty lines skipped in the last split.
	EmptyLines() int
}

// Follows is implemented by Parsers that may read changes.
type Follows interface {
	// Followed returns facts about the changes in the last split.
	Followed() Followed
}

// Followed is the position in the log after a split's changes.
type Followed struct {
	Others int       // number of skipped changes of other tables
	Last   *Resume   // position of the last change; nil if unknown
	Made   time.Time // when the last change was made; zero if unknown
}

// ErrMemory means that parsing a split takes more memory than LimitMemory allows. The message states how much.
var ErrMemory = errors.New("more memory is needed")

// Memory tracks and limits the memory of a Parser of rows.
type Memory struct {
	What  string // what the memory holds, such as "pages"
	Also  string // more advice, beginning with a comma; may be ""
	Limit int64  // in bytes; 0 means no limit
	Held  int64
}

// LimitMemory sets Limit.
func (m *Memory) LimitMemory(n int64) { m.Limit = n }

// Hold reserves n more bytes before they are used. Its error is an ErrMemory.
func (m *Memory) Hold(n int64) error {
	if m.Limit > 0 && n > 0 && m.Held+n > m.Limit {
		return m.Exceeded(m.Held + n)
	}
	m.Held += n
	return nil
}

// Exceeded returns the ErrMemory for a size in bytes that exceeds the limit.
func (m *Memory) Exceeded(bytes int64) error {
	return memoryError(fmt.Sprintf("its %s take %d MiB or more, memory allows %d MiB; give more with --memory%s",
		m.What, bytes>>20+1, m.Limit>>20, m.Also))
}

type memoryError string

func (e memoryError) Error() string        { return string(e) }
func (e memoryError) Is(target error) bool { return target == ErrMemory }

// Random is a frozen Source that may be able to read records in any order once their places are known.
type Random interface {
	Source
	// Anywhere reports whether the source can be read in any order, and whether that is worthwhile.
	Anywhere() bool
	// Reopen prepares for LoadStretch after Close.
	Reopen() error
	// Divisible reports whether LoadStretch can load any range of records.
	Divisible() bool
	// LoadStretch returns the records of a stretch with their data, as splits in order. It is safe for concurrent use
	// between Reopen and Finished.
	LoadStretch(Stretch) ([]Split, error)
	// Finished closes a source whose splits have all been read. It returns an error if the content has changed meanwhile.
	Finished() error
}

// Split is a part of a source that can be parsed independently. It has whole records.
type Split struct {
	Number int    // 0 for the first split of the source; others need not be consecutive
	Data   []byte // text of the records, owned by the receiver; nil if they never were text
	Offset int64  // offset in the text of Data
	Bytes  int64  // approximate size in the source, in bytes
	Rows   int64  // number of records, if the source states it; otherwise 0
	First  int64  // if Rows is stated: number of records in the source before the split
	Group  int    // splits of the same group are best read in sequence; 0 for no group
	Part   any    // identifies the split for the source
	Key    []byte // Place.Key of the first record; nil if unused
}

// Stretch is a sequence of consecutive records in a source.
type Stretch struct {
	Record  int64 // number of records in the source before the stretch
	Records int64
	Offset  int64 // offset of the text; 0 if records never were text
	Bytes   int64 // length of the text in bytes
}

// Place is the start of a record in a source.
type Place struct {
	Record int64 // number of records before it
	Line   int64 // number of lines before it; 0 if there are no lines
	Offset int64 // length of the decompressed text before it; 0 if there is no text
	// Key is the place, if the source's places are keys: at most MaxKey bytes that only the source reads. The keys of
	// splits rise: in every later reading, too, everything before the split, and nothing else, is before its key.
	Key []byte
}

// MaxKey is the largest size of a Place.Key in bytes.
const MaxKey = 8 << 10

// Chain holds checksums of the part of a stream read so far: a stream can be verified only by reading it again.
type Chain struct {
	Every int64    // bytes of text between two sums
	Sums  []uint64 // checksums of the first Every bytes, the first 2 Every, …
}

// About describes a source. It has many fields, each part of the contract.
type About struct {
	Name    string
	Bytes   int64    // approximate size of the content; -1 if unknown
	Columns []string // in the order of the source
	// Wide means that records describe themselves: Cells are all attributes of a record, each with its type. Fields are
	// for keys and expressions: the values that every record has besides its cells, and the newest value of each column
	// that AddColumns has added, which is Absent if a record has no such cell. Records may then lack columns.
	Wide bool
	// AddColumns adds columns to About().Columns that records may lack, as JSON objects may lack members: those of other
	// sources and, for a Wide source, those that the load names. Call it before creating parsers. Nil: none lacks one.
	AddColumns func(names []string)
	// GiveBack lets later splits reuse the memory of a split that will not be parsed again. Nothing may point into its
	// text. It is safe for concurrent use. It may be nil.
	GiveBack func(Split)
	// Chain returns the sums of a stream so far. It is safe for concurrent use. It is nil for other sources.
	Chain   func() Chain
	Lines   bool  // whether records begin on lines; used in messages
	Pieces  int64 // approximate size of the next piece in bytes
	Rejects Rejects
	Found   []Found  // facts about all of its records
	Notes   []string // one sentence each, for the user
	Renamed []string // a sentence for each empty or repeated name that was changed
	Hint    string   // advice for the user if the columns do not fit; may be ""

	// Live means that the source is live. Identity then has a Schema and does not cover the content, the Rows of splits
	// are not stated, and Unique has columns.
	Live bool
	// Unique lists columns whose values, taken together, differ between all records of all sources of a load, so that
	// their order does not matter. Nil means unknown: of several records with the same key, the last one counts.
	Unique []KeyColumn
	// AlsoUnique lists parts of Unique, by name, whose values also differ between all records.
	AlsoUnique [][]string
	// Seeking says what it costs to begin at a place other than the first.
	Seeking Seeking
	// ShowKey formats the key of a place for users. It is nil if keys are not shown.
	ShowKey func(key []byte) string

	// Measures holds the units of the columns' values, if a schema states them; otherwise it is nil.
	Measures []record.Measures
	// Declared is the source's own schema of its records, or nil.
	Declared *Declared

	// Decode decodes the text of a value to UTF-8. It is nil if records are in UTF-8.
	Decode func(dst, src []byte) ([]byte, int)
	// EncodingHint returns advice to append to an error about an undecodable value. It may be nil.
	EncodingHint func(value []byte) string
}

// Found is a fact about all records of a source, such as their format. What is a word for the kind of fact, which all
// sources use for it.
type Found struct{ What, As string }

// Declared is a schema of records.
type Declared struct {
	Types []table.Type // by column; Null if unknown
	Key   []string     // columns of the primary key, in key order; nil if there is none
}

// KeyColumn is a column in About.Unique.
type KeyColumn struct {
	Name string
	Kind record.Kind // kind of all its values: Integer, Unsigned, String or Binary
}

// Seeking says what Seek costs.
type Seeking uint8

const (
	SeeksDirectly  Seeking = iota // costs next to nothing
	SeeksByReading                // reads everything before the place, and drops it
)

// Rejects says how to keep a source's rejected records.
type Rejects struct {
	Kind     string // extension of the file: .csv or .ndjson
	Header   []byte // written before the records, including its line end
	Folder   string // folder whose name gives columns to the records when they are loaded again
	End      string // end of a record; "" means LF
	Ended    func(record []byte) bool
	Encoding string   // encoding of the records; "" means UTF-8
	Flags    []string // flags for a command that loads the records again
	// Raw returns the text with which to load a split's record again. It returns nil if its values are kept as a JSON
	// line, and "" if it is not kept. If Raw is nil, all records are kept as JSON lines.
	Raw func(Split, table.Span) []byte
}

// Identity lets a later process recognise a source.
type Identity struct {
	Bytes   int64
	Version string // changes with the content: modification time or server's version; may be ""
	Content string // hash of the content, or of parts that are cheap to read
	Schema  string // for a live source: for example, names and types of columns
}
