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
	Job      string         `json:"job"`              // job file
	Folder   string         `json:"folder,omitempty"` // folder of the unfinished job that would be resumed
	RunBy    *rundir.Holder `json:"run_by,omitempty"` // process that is running the job
	Parallel int            `json:"parallel"`         // maximum number of concurrent loads
	Loads    []*loadPlan    `json:"loads"`            // in the order of the file
	Totals   planTotals     `json:"totals"`           // totals of the loads that would run
	ExitCode int            `json:"exit_code"`        // exit code of the command
	Notes    []string       `json:"notes,omitempty"`  // notes on the job
}

// planTotals are sums over planned loads, without exports; -1 if the value of any load is unknown.
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
	Table     string                  `json:"table"`  // table that is written, or read by an export
	Target    string                  `json:"target"` // place of the table
	After     []string                `json:"after,omitempty"`
	State     string                  `json:"state"`     // one of the plan… below
	ExitCode  int                     `json:"exit_code"` // exit code of a load that would end before its first row
	Error     string                  `json:"error,omitempty"`
	Resumes   *planBegun              `json:"resumes,omitempty"` // progress of an unfinished run
	Files     *planFiles              `json:"files,omitempty"`   // nil if the rows do not come from files
	Output    string                  `json:"output,omitempty"`  // output of an export
	Bytes     int64                   `json:"bytes"`             // size of the files; -1 if unknown
	Rows      int64                   `json:"rows"`              // -1 if unknown
	RowsAre   string                  `json:"rows_are"`          // one of the rows… below
	RowBytes  float64                 `json:"row_bytes"`         // average size as the service counts it; 0 if unknown
	Columns   []planColumn            `json:"columns"`
	Decisions []plan.Decision         `json:"decisions,omitempty"`    // inferred for all files
	More      bool                    `json:"more_columns,omitempty"` // rows may have more columns
	Existing  *planTable              `json:"existing_table,omitempty"`
	New       *planNew                `json:"new_table,omitempty"`
	Tables    []pipeline.PreviewShare `json:"tables,omitempty"` // tables of the sample's rows, if several

	WriteUnits     int64                 `json:"write_units"`                // -1 if unknown; a sync's if all rows differ
	IndexReadUnits int64                 `json:"index_read_units,omitempty"` // for secondary indexes
	Seconds        float64               `json:"seconds"`                    // -1 if unknown
	Rate           string                `json:"rate,omitempty"`             // source of Seconds
	Sampled        int64                 `json:"sampled"`                    // records in the sample
	Rejected       int64                 `json:"sampled_rejected"`           // sampled records that would be rejected
	FirstReject    string                `json:"first_reject,omitempty"`
	HotKeys        []ledger.ReportHotKey `json:"hot_keys,omitempty"` // frequent partition-key values
	Warnings       []string              `json:"warnings,omitempty"`
	Notes          []string              `json:"notes,omitempty"`

	plans    *jobPlanner
	endpoint string // endpoint of the table's service; "" for an embedded store
	key      []table.KeyColumn
	units    float64 // write units per row, without indexes
}

// States of loads in a plan.
const (
	planPlanned = "planned"
	planDone    = "done"          // done in the job to be resumed, so not run again
	planNothing = "nothing new"   // --only-new leaves out all inputs
	planRefused = "refused"       // would end before its first row
	planFailed  = "failed"        // could not be planned now
	planLater   = "not known yet" // reads another load's output
)

// Sources of the row count.
const (
	rowsExact   = "exact"
	rowsAbout   = "about"
	rowsAtMost  = "at most" // estimated from the size of a table
	rowsUnknown = "unknown"
)

type planBegun struct {
	Folder string `json:"folder"`
	Read   int64  `json:"read"`
	Final  int64  `json:"final"`
}

type planFiles struct {
	Found  int      `json:"found"`
	Chosen int      `json:"chosen"` // files to be loaded; the others are known or incomplete
	Opened int      `json:"opened"` // files that were opened; the others are assumed to be similar
	Names  []string `json:"names"`  // names of the first chosen ones
}

type planColumn struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Unit       string `json:"unit,omitempty"` // unit of the values, if a schema declares it
	Key        bool   `json:"key,omitempty"`
	Source     string `json:"source,omitempty"` // input column, if its name differs
	Expression string `json:"expression,omitempty"`
}

type planTable struct {
	Key        []string `json:"key"`
	Partitions int      `json:"partitions"`                   // 0 if unknown
	Guessed    bool     `json:"partitions_guessed,omitempty"` // estimated from sizes
	Indexes    []string `json:"indexes,omitempty"`
}

type planNew struct {
	Key    []string `json:"key"`
	Ranges int      `json:"ranges"`
	By     string   `json:"by,omitempty"` // earlier load that creates the table
	unmade bool     // the load has no records and does not create it
}
