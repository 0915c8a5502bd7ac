package pipeline

import (
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/shuffle/readorder"
)

// scheduling says when inputs are read by a schedule. It ignores the number of partitions, as a single one may split.
func (a *attempt) scheduling() intake.Scheduling {
	s := intake.Scheduling{Rows: a.hooks.sectionRows, SwitchAfter: a.hooks.switchAfter, Kept: a.from.Order}
	if cfg := a.cfg; cfg.keeps() {
		s.Keep = func(all []*readorder.Schedule) error {
			return a.from.Job.KeepOrder(a.folder.Path, readorder.Encode(all))
		}
	}
	switch {
	case a.cfg.DryRun || a.planned.Live || a.planned.Parallel || a.hooks.order == orderNever:
	case a.planned.Request.Mode == table.Changes: // changes are written in order, and none after a failed one
	case a.hooks.order == orderAlways:
		s.When = intake.Always
	case a.planned.Tables.Archives(): // archived files keep the order of the input
	default:
		s.When = intake.WhenItPays
	}
	return s
}

// sortRejects sorts the rejects of a finished load that did not read its inputs in order.
func (r *Report) sortRejects(folder *rundir.Folder) error {
	if r.Rejected == 0 {
		return folder.RemoveIndex()
	}
	if sorted, err := folder.SortRejects(); err != nil || !sorted {
		return err
	}
	reasons, err := rundir.CountReasons(folder.Path)
	if err == nil {
		r.RejectReasons = reasons
		err = rundir.WriteSummary(folder.Path, r)
	}
	return err
}
