package pipeline

import "context"

// noteIndexes notes in the job which indexes the table gets that the run is to make: when it exists, nothing else says that it has none yet. An
// attempt that was killed between making the table and its first checkpoint has left its own job, in another folder.
func (a *attempt) noteIndexes() {
	job := a.from.Job
	switch {
	case a.planned.Create:
		job.Indexes = a.cfg.Target.Indexes
	case a.from.Snapshot == nil && a.cfg.keeps():
		a.from.TakeIndexes()
	}
}

// makeIndexes makes the indexes of a table that the run has made.
func (a *attempt) makeIndexes(ctx context.Context) error {
	if len(a.from.Job.Indexes) == 0 || a.cfg.DryRun {
		return nil
	}
	admin := a.cfg.admin(ctx, a.service.sdk)
	admin.Proven = true
	for _, i := range a.from.Job.Indexes {
		if err := admin.CreateIndex(a.cfg.Target.Table, i); err != nil {
			return err
		}
		a.counts.IndexesMade = append(a.counts.IndexesMade, i.Name)
	}
	return nil
}
