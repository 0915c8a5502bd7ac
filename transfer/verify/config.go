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
	Request     *plan.Request // the load's request
	Client      *tablestore.TableStoreClient
	Sample      float64           // share of the keys to compare, between 0 and 1; 0 means all
	Examples    int               // maximum number of examples of each kind
	Workers     int               // maximum number of concurrent requests; 0 means DefaultWorkers
	Memory      int64             // memory of the process, in bytes
	TempDir     string            // folder for spilled rows; "" means the system's
	TempMax     int64             // maximum bytes of spilled rows on disk; 0 means no limit
	scan.Manner                   // how the table is read
	RetryFor    time.Duration     // how long a request is retried; 0 means client.Patience
	Snapshots   []source.Snapshot // snapshots from which the verified load read the database; nil means unknown
	Returned    string            // the load's file of keys that the service generated; "" if there is none
	Rejected    rundir.Rejected   // records rejected by the verified load
	Loaded      time.Time         // start of the verified load; zero means unknown
	Condition   table.Existence   // existence condition of the verified load's writes
	Clock       *client.Clock     // the service's clock, from Client's responses; nil means this machine's
	ExtraFails  bool              // surplus rows count as a failure
	From, To    []table.Value     // first key columns of the bounds to compare: From inclusive, To exclusive; nil: none

	// SettleFor is how long differing rows are reread if source and table change meanwhile; 0 means not at all.
	SettleFor     time.Duration
	mostUnsettled int64 // maximum number of rows to reread; 0 means maxUnsettled

	// Changes, if not nil, receives the changes that would make the table equal to the inputs. It needs memory for rows.
	Changes Changes

	// Stored, if not nil, is compared with the inputs instead of a table. Client may then be nil.
	Stored *Stored

	Progress *Progress // if not nil, kept up to date
}

// DefaultWorkers is the default number of concurrent requests.
const DefaultWorkers = 16

// pageMemory is the approximate memory of a worker, in bytes: a page of the table, encoded and decoded by the SDK.
const pageMemory = 24 << 20

// Progress is the progress of a comparison. It is safe for concurrent use.
type Progress struct {
	Read     atomic.Int64 // number of records read
	Compared atomic.Int64 // number of rows of the table compared
}

// Result is the result of a comparison. Read = RowsExpected + Superseded + Rejected + NotSampled + Archived +
// OutOfRange + WithoutKey, RowsExpected = Equal + Missing + Different + Expired, and, unless rows are to be deleted,
// RowsInTable = Equal + Different + Extra + OfRejects.
type Result struct {
	InArchive bool `json:"-"` // an archive was compared instead of the table

	Table  string  `json:"table"`
	Mode   string  `json:"mode"`
	OK     bool    `json:"ok"` // no row differs, and all records were compared
	Differ bool    `json:"-"`  // rows are missing, different or, with ExtraFails, surplus
	Sample float64 `json:"sample,omitempty"`

	Read       int64 `json:"read"`       // records of the inputs
	Rejected   int64 `json:"rejected"`   // records rejected by the reader or the load
	Superseded int64 `json:"superseded"` // records superseded by another record with the same key
	// NotCompared counts rejected records that the load may have accepted, so that their rows may be in the table.
	NotCompared      int64          `json:"not_compared,omitempty"`
	FirstNotCompared *rundir.Reason `json:"first_not_compared,omitempty"`

	NotSampled int64 `json:"not_sampled,omitempty"`
	Archived   int64 `json:"archived,omitempty"`     // records of a period without a table; not compared
	WithoutKey int64 `json:"without_key,omitempty"`  // rows without a returned key: not written, or not acknowledged
	OutOfRange int64 `json:"out_of_range,omitempty"` // records outside the compared range

	Tables []TableResult `json:"tables,omitempty"` // sorted by name; set if there are several tables

	Counts
	OfRejects int64 `json:"of_rejects,omitempty"` // table rows whose key only rejected records have; set for Changes

	Settled *Settled `json:"settled,omitempty"` // set with SettleFor, unless too many rows differed

	Examples []Example `json:"examples"`
	Notes    []string  `json:"notes,omitempty"` // sentences for the user
	// Snapshots holds the compared snapshots of a database, with their ranges, as in the summary of a load.
	Snapshots []source.Snapshot `json:"snapshots,omitempty"`
	// SourceRanges holds the results for each range of such a database.
	SourceRanges []SourceRange `json:"source_ranges,omitempty"`
	source.Position

	Ranges        int     `json:"ranges"`          // number of key ranges, which are compared in parallel
	SpilledRows   int64   `json:"spilled_rows"`    // rows that did not fit in memory
	SpilledBytes  int64   `json:"spilled_bytes"`   // maximum bytes on disk
	ReadCU        int64   `json:"read_cu"`         // read capacity units charged by the service
	Seconds       float64 `json:"seconds"`         // total duration
	RowsPerSecond float64 `json:"rows_per_second"` // records plus rows of the table

	// The following fields are set only for Changes.
	Facts   []progress.Fact `json:"-"` // facts about the inputs and how they were read
	Unread  []string        `json:"-"` // sentences on inputs that were left out, empty or perhaps incomplete
	Stamped bool            `json:"-"` // a record has timestamps for its cells
	Of      *client.Table   `json:"-"` // the compared table
	Live    bool            `json:"-"` // the inputs change while they are read
	Units   int64           `json:"-"` // write units of all expected rows
	// ColumnUnits maps the table's columns to their units after a sync.
	ColumnUnits map[string]string `json:"-"`
}

// TableResult is the result for one table of several.
type TableResult struct {
	Name   string `json:"name"`
	Absent bool   `json:"absent,omitempty"` // the table does not exist
	Counts
}

// Counts holds numbers of rows by verdict.
type Counts struct {
	RowsExpected int64 `json:"rows_expected"`
	RowsInTable  int64 `json:"rows_in_table"` // only sampled rows if Sample is set
	Equal        int64 `json:"equal"`
	Missing      int64 `json:"missing"`
	Different    int64 `json:"different"`
	Expired      int64 `json:"expired"` // rows removed by the table's time to live
	Extra        int64 `json:"extra"`   // rows in the table but not in the inputs
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

// Example is a row that is missing, different or surplus.
type Example struct {
	Kind    string   `json:"kind"`
	Table   string   `json:"table,omitempty"` // set if there are several tables
	Key     Key      `json:"key"`
	Columns []string `json:"columns,omitempty"` // columns that differ
	Values  []Values `json:"values,omitempty"`  // values of the first of these columns, if the input could be reread
	Input   *Place   `json:"input,omitempty"`   // record of the expected row

	position uint64
	cells    map[string]uint64 // hashes of the table's cells; nil if Columns is known
	unnamed  []uint64          // hashes of differing columns whose names only self-describing records have
	stored   shown             // the table's row, if it differs
}

// Values holds the cells of a column on both sides, newest first. A side without cells is empty.
type Values struct {
	Column string   `json:"column"`
	Input  []string `json:"input"`
	Table  []string `json:"table"`
}

// Place is the position of a record in the inputs.
type Place struct {
	File   string `json:"file"`
	Record int64  `json:"record"`         // number of the record, from 1
	Line   int64  `json:"line,omitempty"` // first line of the record, from 1; 0 if unknown
}
