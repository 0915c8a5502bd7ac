package commands

import (
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
)

// jobPlan is the result of tsimport run --plan. Its fields are the JSON output, which must stay compatible.
type jobPlan struct {
	Version  int            `json:"version"`
	Job      string         `json:"job"`              // its file
	Folder   string         `json:"folder,omitempty"` // of the unfinished job that would be resumed
	RunBy    *rundir.Holder `json:"run_by,omitempty"` // the process that runs the job now
	Parallel int            `json:"parallel"`         // loads at a time
	Loads    []*loadPlan    `json:"loads"`            // in the order of the file
	Totals   planTotals     `json:"totals"`           // of the loads that would be run
	ExitCode int            `json:"exit_code"`        // of the command
	Notes    []string       `json:"notes,omitempty"`  // of the job
}

// planTotals are sums over planned loads, without exports; -1 if any summand is unknown.
type planTotals struct {
	Rows       int64   `json:"rows"`
	Bytes      int64   `json:"bytes"`
	WriteUnits int64   `json:"write_units"`
	Seconds    float64 `json:"seconds"`
}

// loadPlan is the plan of one load of a job. Its many fields are the JSON output.
type loadPlan struct {
	Name      string                  `json:"name"`
	Command   string                  `json:"command"`
	Table     string                  `json:"table"`  // that it writes, or of an export reads
	Target    string                  `json:"target"` // where the table is
	After     []string                `json:"after,omitempty"`
	State     string                  `json:"state"`     // one of the plan… below
	ExitCode  int                     `json:"exit_code"` // with which it would end before its first row
	Error     string                  `json:"error,omitempty"`
	Resumes   *planBegun              `json:"resumes,omitempty"` // what an unfinished run has done
	Files     *planFiles              `json:"files,omitempty"`   // nil where the rows do not come from files
	Output    string                  `json:"output,omitempty"`  // of an export
	Bytes     int64                   `json:"bytes"`             // of the files; -1 unknown
	Rows      int64                   `json:"rows"`              // -1 unknown
	RowsAre   string                  `json:"rows_are"`          // one of the rows… below
	RowBytes  float64                 `json:"row_bytes"`         // of a row on average, as the service counts; 0 unknown
	Columns   []planColumn            `json:"columns"`
	Decisions []plan.Decision         `json:"decisions,omitempty"`    // what was inferred for all files
	More      bool                    `json:"more_columns,omitempty"` // rows may have columns beside these
	Existing  *planTable              `json:"existing_table,omitempty"`
	New       *planNew                `json:"new_table,omitempty"`
	Tables    []pipeline.PreviewShare `json:"tables,omitempty"` // that the rows of the sample go to, if there are several

	WriteUnits     int64                 `json:"write_units"`                // -1 unknown; of a sync, if all rows differ
	IndexReadUnits int64                 `json:"index_read_units,omitempty"` // that secondary indexes cost
	Seconds        float64               `json:"seconds"`                    // -1 unknown
	Rate           string                `json:"rate,omitempty"`             // what Seconds rests on
	Sampled        int64                 `json:"sampled"`                    // records that were made rows to see what they are like
	Rejected       int64                 `json:"sampled_rejected"`           // of them, those that the load would reject
	FirstReject    string                `json:"first_reject,omitempty"`
	HotKeys        []ledger.ReportHotKey `json:"hot_keys,omitempty"` // values of the partition key that crowd
	Warnings       []string              `json:"warnings,omitempty"`
	Notes          []string              `json:"notes,omitempty"`

	plans    *jobPlanner
	endpoint string // of its table's service; "" is a store in this process
	key      []table.KeyColumn
	units    float64 // write units of a row, without indexes
}

// States of loads in a plan.
const (
	planPlanned = "planned"
	planDone    = "done"          // in the job that would be resumed: it is not run again
	planNothing = "nothing new"   // --only-new leaves out all inputs
	planRefused = "refused"       // it would end before its first row
	planFailed  = "failed"        // it could not be planned now
	planLater   = "not known yet" // it reads what another load of the job is to write
)

// Sources of the row count.
const (
	rowsExact   = "exact"
	rowsAbout   = "about"
	rowsAtMost  = "at most" // about, by the size of a table
	rowsUnknown = "unknown"
)

type planBegun struct {
	Folder string `json:"folder"`
	Read   int64  `json:"read"`
	Final  int64  `json:"final"`
}

type planFiles struct {
	Found  int      `json:"found"`
	Chosen int      `json:"chosen"` // would be loaded; the others are known, or not whole yet
	Opened int      `json:"opened"` // the others are taken to be like these
	Names  []string `json:"names"`  // of the chosen ones, the first
}

type planColumn struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Unit       string `json:"unit,omitempty"` // what the values count, where a schema says it
	Key        bool   `json:"key,omitempty"`
	Source     string `json:"source,omitempty"` // column of the input, if it has another name
	Expression string `json:"expression,omitempty"`
}

type planTable struct {
	Key        []string `json:"key"`
	Partitions int      `json:"partitions"`                   // 0 unknown
	Guessed    bool     `json:"partitions_guessed,omitempty"` // from sizes
	Indexes    []string `json:"indexes,omitempty"`
}

type planNew struct {
	Key    []string `json:"key"`
	Ranges int      `json:"ranges"`
	By     string   `json:"by,omitempty"` // the load before it that makes the table
}
