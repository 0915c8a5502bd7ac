package ledger

import (
	"fmt"
	"time"

	"example.com/tsimport/internal/timeline"
	"example.com/tsimport/pipeline/bottleneck"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/rundir"
)

// ReportOutcome tells how a load ended.
type ReportOutcome struct {
	State    string `json:"state"`
	ExitCode int    `json:"exit_code"`
	Error    string `json:"error,omitempty"`
}

// ReportTarget describes the load's target.
type ReportTarget struct {
	Target  string `json:"target"`
	Table   string `json:"table"`
	DryRun  bool   `json:"dry_run"` // rows that would have been written count as unfinished
	RunDir  string `json:"run_dir"`
	Deletes bool   `json:"-"`                 // the load deletes rows
	Changes bool   `json:"changes,omitempty"` // each record is a change of its row
	Remade  bool   `json:"-"`                 // the table was dropped and created again, so the run cannot be resumed
}

// ReportRejects describes the rejected records and how to read them.
type ReportRejects struct {
	RejectsFiles    []string      `json:"rejects_files,omitempty"`    // files of rejected records, with the reasons last
	RejectReasons   []ReasonCount `json:"reject_reasons,omitempty"`   // the most frequent code first
	RejectsEncoding string        `json:"rejects_encoding,omitempty"` // encoding of their text; "" means UTF-8
	RejectsFlags    []string      `json:"rejects_flags,omitempty"`    // flags for reading them, if they are CSV
	RejectsMixed    bool          `json:"rejects_mixed,omitempty"`    // the files need different flags
}

// ReportBad describes the inputs that were set aside.
type ReportBad struct {
	BadInputs []keep.BadInput `json:"bad_inputs,omitempty"`

	OfInputs int `json:"-"` // number of all inputs, including the bad ones
}

// ReportSource describes the source: the command, its inputs and their loaded columns.
type ReportSource struct {
	Command   string            `json:"command,omitempty"`
	Arguments []string          `json:"arguments,omitempty"` // arguments of the command
	Directory string            `json:"directory,omitempty"` // working folder of the command
	Inputs    []string          `json:"inputs"`
	Schema    []ReportColumn    `json:"schema"`
	Fields    []ReportField     `json:"-"`               // columns read, including those used only in expressions
	Separator string            `json:"-"`               // separator of splice(auto, …); "" if it is not used
	Units     map[string]string `json:"units,omitempty"` // units by table column, including those of earlier runs
}

// ReportCounts counts how the records that were read have ended.
type ReportCounts struct {
	Read       int64 `json:"read"`
	Written    int64 `json:"written"`
	Rejected   int64 `json:"rejected"`
	Superseded int64 `json:"superseded"`
	// MaybeApplied counts rejected rows that may be in the table: the service never answered whether it had written them.
	MaybeApplied int64 `json:"maybe_applied,omitempty"`
	// ConditionFailed counts rows not written because the stored row did not meet --when, or differs (--if-unchanged).
	ConditionFailed int64 `json:"condition_failed,omitempty"`
	Archived        int64 `json:"archived"` // written to files, because their period is too old for a table
	Unfinished      int64 `json:"unfinished"`
	// Seams counts the rejected headers and byte-order marks inside joined files, which --max-errors ignores.
	Seams int64 `json:"seams,omitempty"`
	// ExpiredCells counts cells that were too old for the table and were left out of their rows (--drop-expired, Aging).
	ExpiredCells int64 `json:"expired_cells,omitempty"`

	WrittenBefore int64 `json:"-"` // rows written by earlier attempts
}

// ReportTables describes several tables, and the files of archived rows.
type ReportTables struct {
	Created      bool          `json:"created"`                 // the run created the table
	Tables       []ReportTable `json:"tables,omitempty"`        // in the order of names, if there are several
	PolicyNow    *time.Time    `json:"policy_now,omitempty"`    // time from which ages are counted
	ArchiveFiles []string      `json:"archive_files,omitempty"` // files of archived rows
}

// ReportAttempts counts the attempts of the run.
type ReportAttempts struct {
	Attempts int   `json:"attempts"`           // number of attempts, including this one; counters cover all of them
	Resumed  bool  `json:"resumed,omitempty"`  // an earlier attempt began the run
	Replayed int64 `json:"replayed,omitempty"` // rows sent again that an earlier attempt may have sent
	// LateUntil is the service's time after which no request repeats rows; zero unless Checkpoint.Repeats is set.
	LateUntil time.Time `json:"-"`

	Since time.Time `json:"-"` // when the first attempt began
}

// ReportTraffic counts what was read from the source and exchanged with the service.
type ReportTraffic struct {
	Retried   int64 `json:"retried"`   // rows sent again
	RowsSent  int64 `json:"rows_sent"` // rows in all requests, including repeats
	Throttled int64 `json:"throttled"` // rows refused for capacity and sent again
	// UncheckedAnswers counts answers without a checksum, from an endpoint that has never sent one.
	UncheckedAnswers int64 `json:"unchecked_answers,omitempty"`
	// ReplayedAnswers counts answers that arrived for two requests, either of which may have got the other's.
	ReplayedAnswers int64 `json:"replayed_answers,omitempty"`
	Unavailable     int64 `json:"unavailable"` // rows refused by unavailable partitions and sent again
	BytesRead       int64 `json:"bytes_read"`
	EmptyLines      int64 `json:"empty_lines,omitempty"`   // empty lines of CSV, skipped by this attempt
	OtherChanges    int64 `json:"other_changes,omitempty"` // changes of other tables, skipped by this attempt
	BytesSent       int64 `json:"bytes_sent"`              // bodies of all requests
	WriteCU         int64 `json:"write_cu"`                // write units charged by the service
	Requests        int64 `json:"requests"`                // BatchWriteRow requests
}

// ReportIndexes describes the secondary indexes of the table.
type ReportIndexes struct {
	Indexes     []string `json:"indexes,omitempty"`
	IndexesMade []string `json:"indexes_made,omitempty"` // indexes that this attempt created, in a new table
	// IndexWriteCU and IndexReadCU are in addition to WriteCU. In a dry run, they are the minimum: 1 per row and index.
	IndexWriteCU int64 `json:"index_write_cu,omitempty"`
	IndexReadCU  int64 `json:"index_read_cu,omitempty"`
}

// ReportMarks describes rows numbered by the service.
type ReportMarks struct {
	MarkColumn     string `json:"mark_column,omitempty"`     // column that identifies the rows
	ReturnedKeys   string `json:"returned_keys,omitempty"`   // file with their keys
	Searched       int64  `json:"searched,omitempty"`        // rows looked up before they were sent again
	Found          int64  `json:"found,omitempty"`           // rows that already existed
	SearchRequests int64  `json:"search_requests,omitempty"` // GetRange requests of this attempt for these look-ups
	SurplusDeleted int64  `json:"surplus_deleted,omitempty"` // copies of rows that were deleted at the end
	MaybeTwice     int64  `json:"maybe_twice,omitempty"`     // rows sent again without a look-up (--at-least-once)
}

// ReportStamps describes the timestamps of cells.
type ReportStamps struct {
	ExtraVersions int64 `json:"extra_versions,omitempty"` // updates that may have left an additional version
	Stamp         int64 `json:"stamp,omitempty"`          // last timestamp given to updated cells, in milliseconds

	// ClockBehind is the service's clock minus this machine's, in seconds; 0 if negligible or unknown.
	ClockBehind float64 `json:"clock_behind_seconds,omitempty"`
}

// ReportPartitions describes how the rows were spread over the partitions.
type ReportPartitions struct {
	Partitions      int            `json:"partitions"`                  // number at the end
	PartitionsUsed  int            `json:"partitions_used"`             // number that got rows of this load
	PartitionReads  int64          `json:"partition_reads"`             // how often the partition map was read
	Recuts          int64          `json:"recuts"`                      // how often the map had changed
	LastLaneSeconds float64        `json:"last_lane_seconds"`           // seconds until all used partitions had a row
	Slowest         *ReportSlowest `json:"slowest_partition,omitempty"` // the partition that held the load up, if any
	HotKeys         []ReportHotKey `json:"hot_keys,omitempty"`

	PreSplit *ReportPreSplit `json:"pre_split,omitempty"` // initial ranges of the table, if the load created it
}

// ReportPreSplit describes the initial ranges of a new table.
type ReportPreSplit struct {
	Ranges  int    `json:"ranges"`            // ranges requested
	Heard   int    `json:"heard"`             // ranges named by DescribeTable; 1 if the service ignores or hides them
	Refused string `json:"refused,omitempty"` // why the service refused to create a table with them
}

// ReportMemory describes rows that did not fit in memory.
type ReportMemory struct {
	SpilledRows    int64  `json:"spilled_rows"`
	SpilledBytes   int64  `json:"spilled_bytes"`         // total written to disk
	PeakSpillBytes int64  `json:"peak_spill_bytes"`      // maximum on disk at any time
	SpillError     string `json:"spill_error,omitempty"` // why rows could not be spilled, so that reading waited
	ReadWaits      int64  `json:"read_waits"`            // how often reading waited for memory
	SendWaits      int64  `json:"send_waits"`            // how often sending waited for memory for requests
}

// ReportCheckpoints describes the checkpoints of this attempt.
type ReportCheckpoints struct {
	Checkpoints       int64   `json:"checkpoints"`                // checkpoints written
	CheckpointSeconds float64 `json:"checkpoint_seconds"`         // seconds that sending waited for checkpoints
	CheckpointError   string  `json:"checkpoint_error,omitempty"` // why the last one could not be written
}

// ReportTime describes when a load ran, and how fast.
type ReportTime struct {
	FirstStarted  time.Time `json:"first_started"` // when the first attempt began
	Started       time.Time `json:"started"`       // when this attempt began
	Seconds       float64   `json:"seconds"`
	RowsPerSecond float64   `json:"rows_per_second"` // rows written per second
}

// ReportMachine describes the resources used by the process.
type ReportMachine struct {
	CPUSeconds   float64 `json:"cpu_seconds"` // user and system
	PeakRSSBytes int64   `json:"peak_rss_bytes"`
	// CPUWaitSeconds is the time that threads of the process were ready to run but had no processor.
	CPUWaitSeconds float64 `json:"cpu_wait_seconds"`
	Allocations    uint64  `json:"allocations"`     // number of heap allocations
	AllocatedBytes uint64  `json:"allocated_bytes"` // bytes of these allocations
}

// OverLimit reports whether all attempts together have rejected too many rows.
func (r *ReportCounts) OverLimit(m MaxErrors, end bool) bool {
	return m.Exceeded(r.Rejected-r.Seams, r.Read, end)
}

// ReasonCount is the number of records rejected with a code, and the reason of the first.
type ReasonCount = rundir.ReasonCount

// ReportHotKey is a partition-key value that is a hot spot by itself, which no split can divide.
type ReportHotKey struct {
	Column string  `json:"column"`
	Value  string  `json:"value"`
	Share  float64 `json:"share"`           // estimated share of the rows written
	Bytes  int64   `json:"bytes,omitempty"` // bytes of these rows, if above the limit for one value
}

// ReportField is a column of the input and the type of its values. Type is "" if each value has its own.
type ReportField struct{ Name, Type string }

type ReportColumn struct {
	Source     string `json:"source"` // input column; "" if the column is computed
	Expression string `json:"expression,omitempty"`
	Name       string `json:"name"`
	Type       string `json:"type"`
	Unit       string `json:"unit,omitempty"` // unit of its values in the input's schema, for the next load into the table
	Key        bool   `json:"key"`
	Numbered   bool   `json:"numbered,omitempty"` // the service numbers the rows in this column
	Inferred   bool   `json:"inferred"`
}

// Final returns the number of final records.
func (r *ReportCounts) Final() int64 {
	return r.Written + r.Rejected + r.Superseded + r.ConditionFailed + r.Archived
}

// Balance returns an error if the counts do not add up to Read.
func (r *ReportCounts) Balance() error {
	if sum := r.Final() + r.Unfinished; sum != r.Read {
		return fmt.Errorf("the ledger does not balance: %d rows read, but %d written + %d rejected + %d superseded + %d "+
			"with a failed condition + %d archived + %d unfinished = %d",
			r.Read, r.Written, r.Rejected, r.Superseded, r.ConditionFailed, r.Archived, r.Unfinished, sum)
	}
	return nil
}

// ReportLimit tells how long the load was limited by a cause, a word of docs/tuning.md.
type ReportLimit struct {
	By      string  `json:"by"`
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"share"` // share of the time of reading and writing
}

// ReportSlowest is the partition that held a load up.
type ReportSlowest struct {
	Partition     int     `json:"partition"` // its number in key order at the end, from 0
	Table         string  `json:"table,omitempty"`
	From          string  `json:"from"` // first key value; "" for the first partition
	Rows          int64   `json:"rows"` // final rows of this attempt
	Waiting       float64 `json:"waiting_seconds"`
	OthersWaiting float64 `json:"others_waiting_seconds"` // median over the partitions
	Throttled     int64   `json:"throttled"`
	Unavailable   int64   `json:"unavailable"`
}

// ReportOrder describes the reading order.
type ReportOrder struct {
	// Sections is the number of sections of inputs that were read by a schedule; 0 means that all were read in order.
	Sections int `json:"sections,omitempty"`
}

// Timeline is the course of a load over time.
type Timeline struct {
	Every  time.Duration
	Points []Point
	Heat   timeline.Map // rows that became final, by partition
}

// Point is one interval of a timeline.
type Point struct {
	Read        int64
	Final       int64 // rows written or refused
	Rejected    int64 // records rejected by tsimport or the service
	Throttled   int64 // rows throttled, at any attempt
	Unavailable int64
	Retried     int64
	Requests    int64
	Units       float64 // write capacity units of accepted rows, by the rows' sizes
	Queued      int64   // rows that were read and are not final, at the end of the interval
	Limited     bottleneck.Spent
}
