package scaleout

import (
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
)

// Check refuses, by name, options that many processes cannot fulfil exactly.
func Check(cfg *pipeline.Config) error {
	w, to := &cfg.Write, &cfg.Target
	for _, c := range []struct {
		is  bool
		why string
	}{
		{to.Place != "" || to.Absent, "an embedded store serves one process; use --endpoint and --instance (tsimport serve)"},
		{cfg.DryRun, "--dry-run: planning a job creates its table and its directory; give it without --job-dir"},
		{plan.IsTemplate(to.Table) || to.Policy != nil, "--table with an expression: shards are made of the keys of one " +
			"table; load the periods one after the other, or without --job-dir"},
		{to.Asked.Columns != "", "--define: create the table first with tsimport table create"},
		{w.Mode == table.Changes, "--mode changes: shards cannot store the kind of each change; load without --job-dir"},
		{w.Mode == table.Increment, "--mode increment: a takeover may add a record twice; load without --job-dir"},
		{w.Condition != table.Ignore || w.When != nil, "--condition and --when: after a takeover they would check rows " +
			"that the load itself has written; load without --job-dir"},
		{w.Unchanged, "--if-unchanged: load without --job-dir"},
		{w.Mode == table.Update && !writtenAsRead(cfg), "--mode update: several updates of a key cannot be merged yet; " +
			"load without --job-dir, or load files with --order none and without --verify"},
		{w.Marks.ReturnedKeys != "" || w.Marks.AtLeastOnce || w.Marks.LookFirst,
			"keys that the service numbers need one process; load without --job-dir"},
		{cfg.Limits.Records > 0, "--limit: the first records are unknown until all splits are read; shorten the inputs"},
		{cfg.Resume.Known != nil, "--only-new, --files-by, --settle-files and --done-marker: name the chosen inputs"},
		{cfg.Checkpoint.State != nil, "--state: the job directory keeps what another machine needs; leave it out"},
		{cfg.Resume.AcceptChanged, "--accept-changed-input: all processes must read the same inputs; plan a new job"},
		{cfg.Read.Merges, "--since: several updates of a key cannot be merged yet; copy without --job-dir"},
	} {
		if c.is {
			return plan.Usagef("--job-dir: %s", c.why)
		}
	}
	for _, in := range cfg.Inputs {
		if in == "-" {
			return plan.Usagef("--job-dir: standard input can be read only once, by one process; write it to a shared file")
		}
	}
	return nil
}

// writtenAsRead reports whether splits can be written as they are read. Then keys are unique or any row of a key is
// right, every attempt reads the same records, and no comparison needs all rows of a range.
func writtenAsRead(cfg *pipeline.Config) bool {
	return cfg.Write.Order == plan.OrderNone && cfg.Read.Sources == nil && !cfg.Compared
}

// checkPlan refuses loads for reasons that only the plan reveals.
func checkPlan(p *plan.Plan) error {
	if p.Schema.Numbered > 0 {
		return plan.Usagef("--job-dir: table %s has the auto-increment key column %s: rows must be numbered in their "+
			"order, by one process; load without --job-dir", p.Schema.Table, p.Schema.Key[p.Schema.Numbered].Name)
	}
	for _, s := range p.Sources {
		if s.Chain != nil {
			return plan.Usagef("--job-dir: %s can be read only once; write it to a file that all processes can read", s.Name)
		}
	}
	if p.Empty {
		return &plan.UsageError{Message: "--job-dir: no input has a record", Input: true}
	}
	return nil
}
