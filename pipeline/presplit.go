package pipeline

import (
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/plan"
)

// preSplit asks with how many partitions the table begins that the load has just made. It matters for the report alone: rows
// follow the partitions that are there.
func preSplit(planned *plan.Plan, admin *client.Admin, refused error) *ReportPreSplit {
	r := &ReportPreSplit{Ranges: len(planned.Bounds) + 1, Heard: 1}
	if refused != nil {
		r.Refused = refused.Error()
		return r
	}
	if bounds, err := admin.Splits(planned.Request.Target.Table); err == nil {
		r.Heard = len(bounds) + 1
	}
	return r
}
