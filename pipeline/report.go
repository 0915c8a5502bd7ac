package pipeline

import (
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/rundir"
)

// States of a run.
const (
	StateFinished    = "finished"
	StateFailed      = "failed"
	StateErrorLimit  = "stopped by the error limit"
	StateInterrupted = "interrupted"
)

// Report says how a load ended: the summary.json of its run folder. Read = Written + Rejected + Superseded +
// ConditionFailed + Archived + Unfinished, or the run has failed. It is made of parts, which are embedded: JSON has their fields on one level, in
// this order.
type Report struct {
	ledger.ReportOutcome
	ledger.ReportTarget
	ledger.ReportRejects
	ledger.ReportSource
	Order string `json:"order"`
	ledger.Counted
	ledger.ReportTime
	ledger.ReportMachine
	Verify any `json:"verify,omitempty"` // what a comparison of the table with the inputs has found afterwards

	folder *rundir.Folder
	mirror *jobdir.Mirror
}
