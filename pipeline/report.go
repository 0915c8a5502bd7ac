package pipeline

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Exit codes of a load.
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitRejects     = 3 // finished, some rows rejected
	ExitErrorLimit  = 4 // stopped by --max-errors
	ExitInterrupted = 130
	ExitTerminated  = 143
)

// States of a run.
const (
	StateFinished    = "finished"
	StateFailed      = "failed"
	StateErrorLimit  = "stopped by the error limit"
	StateInterrupted = "interrupted"
)

// Report is what became of a load: the summary.json of its run folder. Read = Written + Rejected + Superseded +
// Unfinished, or the run has failed.
type Report struct {
	State           string         `json:"state"`
	ExitCode        int            `json:"exit_code"`
	Error           string         `json:"error,omitempty"`
	Target          string         `json:"target"`
	Table           string         `json:"table"`
	Created         bool           `json:"created"` // the run made the table
	DryRun          bool           `json:"dry_run"` // rows that would have been written count as unfinished
	RunDir          string         `json:"run_dir"`
	RejectsFiles    []string       `json:"rejects_files,omitempty"`    // with rejected records, the file with the reasons last
	RejectsEncoding string         `json:"rejects_encoding,omitempty"` // of the text in them, when it is not UTF-8 or not the input's
	Command         string         `json:"command,omitempty"`
	Inputs          []string       `json:"inputs"`
	Schema          []ReportColumn `json:"schema"`

	Read       int64 `json:"read"`
	Written    int64 `json:"written"`
	Rejected   int64 `json:"rejected"`
	Superseded int64 `json:"superseded"`
	Unfinished int64 `json:"unfinished"`

	Retried     int64 `json:"retried"`     // rows sent again
	RowsSent    int64 `json:"rows_sent"`   // in all requests, those sent again included
	Throttled   int64 `json:"throttled"`   // rows refused for capacity and sent again
	Unavailable int64 `json:"unavailable"` // rows refused because their partition did not serve, and sent again
	BytesRead   int64 `json:"bytes_read"`
	BytesSent   int64 `json:"bytes_sent"` // bodies of all requests of the load
	WriteCU     int64 `json:"write_cu"`   // as the service charged them
	Requests    int64 `json:"requests"`   // BatchWriteRow requests

	Order           string         `json:"order"`
	Partitions      int            `json:"partitions"`        // at the end
	PartitionsUsed  int            `json:"partitions_used"`   // of those, with rows of this load
	PartitionReads  int64          `json:"partition_reads"`   // how often the partition map was read
	Recuts          int64          `json:"recuts"`            // how often it had changed
	LastLaneSeconds float64        `json:"last_lane_seconds"` // from the start until every partition had a row to write
	HotKeys         []ReportHotKey `json:"hot_keys,omitempty"`
	SpilledRows     int64          `json:"spilled_rows"`
	SpilledBytes    int64          `json:"spilled_bytes"`         // on disk, all that was ever written
	PeakSpillBytes  int64          `json:"peak_spill_bytes"`      // on disk at a time
	SpillError      string         `json:"spill_error,omitempty"` // why rows could not be spilled; reading waited then
	ReadWaits       int64          `json:"read_waits"`            // how often reading waited for memory
	SendWaits       int64          `json:"send_waits"`            // how often sending waited for memory of requests

	Started       time.Time `json:"started"`
	Seconds       float64   `json:"seconds"`
	RowsPerSecond float64   `json:"rows_per_second"` // rows written a second
	CPUSeconds    float64   `json:"cpu_seconds"`     // of the process, user and system
	PeakRSSBytes  int64     `json:"peak_rss_bytes"`

	Timeline *Timeline `json:"-"` // nil if no row was under way
}

// ReportHotKey is a partition-key value that is a hot spot by itself: no split can divide it.
type ReportHotKey struct {
	Column string  `json:"column"`
	Value  string  `json:"value"`
	Share  float64 `json:"share"` // of the rows written, estimated
}

// ReportColumn is one column of the schema that was loaded.
type ReportColumn struct {
	Source     string `json:"source"` // empty if it is computed
	Expression string `json:"expression,omitempty"`
	Name       string `json:"name"`
	Type       string `json:"type"`
	Key        bool   `json:"key"`
	Inferred   bool   `json:"inferred"`
}

// balance checks the ledger.
func (r *Report) balance() error {
	if sum := r.Written + r.Rejected + r.Superseded + r.Unfinished; sum != r.Read {
		return fmt.Errorf("the ledger does not balance: %d rows read, but %d written + %d rejected + %d superseded + %d unfinished = %d",
			r.Read, r.Written, r.Rejected, r.Superseded, r.Unfinished, sum)
	}
	return nil
}

// Progress is how far a load has come, for a user interface that polls. Safe for concurrent use.
type Progress struct {
	Read, Written, Rejected, Superseded atomic.Int64
	Retried, Throttled                  atomic.Int64
	BytesRead                           atomic.Int64
	BytesTotal                          atomic.Int64 // -1 when a source is a stream
	Settling                            atomic.Int64 // unix ms until which the load waits for attempts of unknown outcome
	Trouble                             atomic.Value // string: what the service answers while it takes no row
	Done                                atomic.Bool
}
