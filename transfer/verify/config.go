package verify

import (
	"sync/atomic"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/source"
)

type Config struct {
	Request     *plan.Request // as a load has it
	Client      *tablestore.TableStoreClient
	Sample      float64           // share of the keys that is looked at, above 0 and below 1; 0 is all
	Examples    int               // of each kind, at most
	Workers     int               // concurrent requests, at most; 0 takes DefaultWorkers
	Memory      int64             // bytes of memory of the process
	TempDir     string            // folder for spilled rows; "" takes the system's
	TempMax     int64             // bytes of disk for them; 0 is unlimited
	scan.Manner                   // how the table is read. It does not hold for a Sample
	RetryFor    time.Duration     // how long one request is tried again; 0 takes client.Patience
	Snapshots   []source.Snapshot // that the verified load has read from the same database ranges; nil is unknown
	Returned    string            // file of the keys that the service made, as the load wrote it; "" is none
	Rejected    rundir.Rejected   // by the load that is verified
	Loaded      time.Time         // when that load began; zero is unknown
	Condition   table.Existence   // of its writes
	Clock       *client.Clock     // of the service, as Client's answers tell it; nil takes this machine's time
	ExtraFails  bool              // a surplus row is a failure too
	From, To    []table.Value     // compared rows by first key columns, To excluded; nil is unbounded

	// SettleFor is how long differing rows are read again, if others write to source and table; 0 reads them once.
	SettleFor     time.Duration
	mostUnsettled int64 // rows that are read again; 0 takes maxUnsettled

	// Changes receives the changes that would make the table equal to the inputs; may be nil. Input rows are kept for it.
	Changes Changes

	// Stored is compared with the inputs in place of a table of Client's, which may then be nil.
	Stored *Stored

	Progress *Progress // kept up to date; may be nil
}

// DefaultWorkers is the default number of concurrent requests.
const DefaultWorkers = 16

// pageMemory is the approximate memory of a worker: a page of the table, encoded and as decoded by the SDK.
const pageMemory = 24 << 20

// Progress is the progress of a comparison. It is safe for concurrent use.
type Progress struct {
	Read     atomic.Int64 // records
	Compared atomic.Int64 // rows of the table
}

// Result is the result of a comparison. Read = RowsExpected + Superseded + Rejected + NotSampled + Archived +
// OutOfRange + WithoutKey, RowsExpected = Equal + Missing + Different + Expired, and, unless rows are to be deleted,
// RowsInTable = Equal + Different + Extra + OfRejects.
type Result struct {
	InArchive bool `json:"-"` // an archive was compared in place of the table

	Table  string  `json:"table"`
	Mode   string  `json:"mode"`
	OK     bool    `json:"ok"` // nothing differs, and all was compared
	Differ bool    `json:"-"`  // rows are missing, different or, if that counts, surplus
	Sample float64 `json:"sample,omitempty"`

	Read       int64 `json:"read"`       // records of the inputs
	Rejected   int64 `json:"rejected"`   // by the reader or the load
	Superseded int64 `json:"superseded"` // by another record of the key
	// NotCompared counts the rejected records whose rows may be in the table: the load is not known to have rejected them.
	NotCompared      int64          `json:"not_compared,omitempty"`
	FirstNotCompared *rundir.Reason `json:"first_not_compared,omitempty"`

	NotSampled int64 `json:"not_sampled,omitempty"`
	Archived   int64 `json:"archived,omitempty"`     // of a period without a table; not looked for
	WithoutKey int64 `json:"without_key,omitempty"`  // rows without a returned key: not written, or unacknowledged
	OutOfRange int64 `json:"out_of_range,omitempty"` // outside the compared keys

	Tables []TableResult `json:"tables,omitempty"` // by name, if there are several

	Counts
	OfRejects int64 `json:"of_rejects,omitempty"` // in the table with only a rejected record's key; only for Changes

	Settled *Settled `json:"settled,omitempty"` // with SettleFor, unless too much differed

	Examples []Example `json:"examples"`
	Notes    []string  `json:"notes,omitempty"` // for the user, a sentence each
	// Snapshots are the compared snapshots of a database, with their ranges, as in the summary of a load.
	Snapshots []source.Snapshot `json:"snapshots,omitempty"`
	// SourceRanges are the results for each range of such a source.
	SourceRanges []SourceRange `json:"source_ranges,omitempty"`
	source.Position

	Ranges        int     `json:"ranges"`          // of keys, compared in parallel
	SpilledRows   int64   `json:"spilled_rows"`    // that did not fit in memory
	SpilledBytes  int64   `json:"spilled_bytes"`   // on disk
	ReadCU        int64   `json:"read_cu"`         // as the service charged them
	Seconds       float64 `json:"seconds"`         // in all
	RowsPerSecond float64 `json:"rows_per_second"` // records and rows of the table together

	// Set only for Changes.
	Facts   []progress.Fact `json:"-"` // about the inputs and their reading
	Unread  []string        `json:"-"` // inputs that are left out, empty or perhaps not whole, a sentence each
	Stamped bool            `json:"-"` // a record gives its cells timestamps
	Of      *client.Table   `json:"-"` // that was compared
	Live    bool            `json:"-"` // the inputs change while read
	Units   int64           `json:"-"` // write units of all rows that the inputs expect
	// ColumnUnits are the future units of the table's columns, by name.
	ColumnUnits map[string]string `json:"-"`
}

// TableResult is the result for one table of several.
type TableResult struct {
	Name   string `json:"name"`
	Absent bool   `json:"absent,omitempty"` // no such table
	Counts
}

// Counts are rows by verdict.
type Counts struct {
	RowsExpected int64 `json:"rows_expected"`
	RowsInTable  int64 `json:"rows_in_table"` // with Sample, of sampled rows
	Equal        int64 `json:"equal"`
	Missing      int64 `json:"missing"`
	Different    int64 `json:"different"`
	Expired      int64 `json:"expired"` // removed by the table's time to live
	Extra        int64 `json:"extra"`   // in the table and not in the inputs
}

func (c *Counts) judged(v verdict) {
	switch v {
	case isEqual:
		c.Equal++
	case isMissing:
		c.Missing++
	case isDifferent:
		c.Different++
	case isExpired:
		c.Expired++
	}
}

func (c *Counts) add(o Counts) {
	c.RowsExpected += o.RowsExpected
	c.RowsInTable += o.RowsInTable
	c.Equal += o.Equal
	c.Missing += o.Missing
	c.Different += o.Different
	c.Expired += o.Expired
	c.Extra += o.Extra
}

// Kinds of examples.
const (
	Missing   = "missing"
	Different = "different"
	Extra     = "extra"
)

// Example is one row that is missing, different or surplus.
type Example struct {
	Kind    string   `json:"kind"`
	Table   string   `json:"table,omitempty"` // among several
	Key     Key      `json:"key"`
	Columns []string `json:"columns,omitempty"` // that differ
	Values  []Values `json:"values,omitempty"`  // of the first of these columns, if the input could be read again
	Input   *Place   `json:"input,omitempty"`   // of the row that is expected

	position uint64
	cells    map[string]uint64 // the table's; nil when Columns are known
	unnamed  []uint64          // further columns that differ, reduced: records that describe themselves have their names
	stored   shown             // of a row that differs, the table's
}

// Values are the cells of a column on both sides, newest first; nil if there is no such cell.
type Values struct {
	Column string   `json:"column"`
	Input  []string `json:"input"`
	Table  []string `json:"table"`
}

// Place is the position of a record in the inputs.
type Place struct {
	File   string `json:"file"`
	Record int64  `json:"record"`         // from 1
	Line   int64  `json:"line,omitempty"` // where the record begins, from 1; 0 if a file has no lines or nobody counted
}
