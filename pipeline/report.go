package pipeline

import (
	"cmp"
	"slices"
	"time"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
)

const (
	StateFinished    = "finished"
	StateFailed      = "failed"
	StateErrorLimit  = "stopped by the error limit"
	StateInterrupted = "interrupted"
)

// Report tells how a load ended. It is written to summary.json. Its counts add up to Read unless the run failed.
type Report struct {
	ledger.ReportOutcome
	ledger.ReportTarget
	ledger.ReportRejects
	ledger.ReportSource
	Order string `json:"order"`
	ledger.Counted
	ledger.ReportTime
	ledger.ReportMachine
	Verify any `json:"verify,omitempty"` // result of a comparison of the table with the inputs

	folder *rundir.Folder
	mirror *jobdir.Mirror
}

// newReport returns a report with what is known before the first row of a load.
func newReport(cfg *Config, planned *plan.Plan, start time.Time) *Report {
	r := &Report{
		ReportTarget: ledger.ReportTarget{Target: cfg.Target.Name, Table: cfg.Target.Table, DryRun: cfg.DryRun,
			RunDir: cfg.RunDir, Deletes: cfg.Write.Mode == table.Delete, Changes: cfg.Write.Mode == table.Changes},
		ReportSource: ledger.ReportSource{Command: cfg.Invocation.Command, Arguments: cfg.Invocation.Arguments,
			Directory: cfg.Invocation.Directory, Inputs: planned.Request.ShownInputs()},
		ReportTime: ledger.ReportTime{Started: start.UTC()},
		Order:      cfg.Write.Order.String(),
	}
	noteRejectsDialect(r, planned.Sources)
	for i, c := range planned.Schema.Columns {
		r.Schema = append(r.Schema, ledger.ReportColumn{
			Source: c.Source, Expression: planned.Expression(i), Name: c.Name, Type: c.Type.String(), Unit: c.Unit,
			Key: i < len(planned.Schema.Key), Numbered: i > 0 && i == planned.Schema.Numbered, Inferred: c.Inferred,
		})
	}
	r.Units = planned.Units()
	r.Separator = planned.Separator()
	for _, f := range planned.Fields {
		field := ledger.ReportField{Name: f.Source}
		if f.Type != table.Any && f.Type != table.Null {
			field.Type = f.Type.String()
		}
		r.Fields = append(r.Fields, field)
	}
	return r
}

// noteRejectsDialect notes the flags that a load of the rejects files needs.
func noteRejectsDialect(r *Report, sources []*plan.Source) {
	encodings, formats := map[string]bool{}, map[string]bool{}
	for _, s := range sources {
		rejects := s.About().Rejects
		if rejects.Encoding != "" {
			r.RejectsEncoding = rejects.Encoding
		}
		encodings[cmp.Or(rejects.Encoding, "utf-8")] = true
		flags := rejects.Flags
		format := ""
		if len(flags) > 0 && flags[0] == "--format" { // --format applies to all inputs of a command
			format = flags[1]
		}
		formats[format] = true
		switch {
		case flags == nil:
		case r.RejectsFlags == nil:
			r.RejectsFlags = flags
		case !slices.Equal(r.RejectsFlags, flags):
			r.RejectsMixed = true
		}
	}
	r.RejectsMixed = r.RejectsMixed || len(encodings) > 1 || len(formats) > 1
}
