package scaleout

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/source"
)

// writeDirectly loads a split as it is read, under its lease. All attempts write the same rows, each key once.
func (t *splitTask) writeDirectly(ctx context.Context, lease *jobdir.Lease) error {
	j, split := t.job, &t.job.Plan.Splits[t.result.Split]
	scratch, err := j.folder()
	if err != nil {
		return err
	}
	dir := filepath.Join(scratch, fmt.Sprintf("split-%06d", t.result.Split))
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cfg := j.o.Load
	cfg.Inputs = []string{fmt.Sprintf("split %d of the job %s", t.result.Split, j.Plan.ID)}
	cfg.Read.Sources = &splitOrigin{of: t.prepared.Plan, parts: split.Parts}
	cfg.Target.Create = false
	j.share(&cfg.Lanes.Rates)
	cfg.Limits.Records, cfg.Limits.MaxErrors = 0, ledger.MaxErrors{Rows: -1}
	if n := split.Parts[0].Records; n >= 0 {
		cfg.Limits.Records = n // only splits with a single part have a limit
	}
	cfg.RunDir, cfg.Compared = dir, false
	cfg.Resume = keep.Resume{Settings: j.Plan.Job}
	cfg.Invocation = keep.Invocation{}
	cfg.Checkpoint = keep.Checkpoint{None: true, Lease: lease, Repeats: true}
	var failed error
	cfg.Watch = pipeline.Watch{OnWait: cfg.Watch.OnWait, Monitor: cfg.Watch.Monitor,
		OnKept: func(ordinal int, r *table.Reject) { failed = cmp.Or(t.keep(ctx, split, ordinal, r), failed) }}
	cfg.Drain = j.draining()
	report, err := pipeline.Run(ctx, cfg)
	if err = cmp.Or(err, failed); err != nil {
		return fmt.Errorf("write split %d: %w", t.result.Split, err)
	}
	if report.State != pipeline.StateFinished {
		if j.draining().Err() != nil {
			return context.Cause(j.draining())
		}
		return fmt.Errorf("write split %d: the load did not finish: %s", t.result.Split, report.State)
	}
	if n := split.Parts[0].Records; n >= 0 && report.Read != n {
		return fmt.Errorf("write split %d: %d records were read, but %d were planned", t.result.Split, report.Read, n)
	}
	t.result.Read, t.result.LateUntil = report.Read, report.LateUntil
	t.result.Direct = &direct{Superseded: report.Superseded, written: writtenOf(report)}
	t.result.Direct.Refused = 0 // the list of rejects has all of them, including the reader's
	return t.commit(ctx)
}

// keep stores a rejected record of a split that is written directly.
func (t *splitTask) keep(ctx context.Context, split *Split, ordinal int, r *table.Reject) error {
	s := t.prepared.Plan.Sources[split.Parts[ordinal].Source]
	return t.rejects.add(ctx, &keptReject{Source: s.Ordinal, Record: r.Location.Record - 1, Header: s.Header, Read: true,
		Reject: *r})
}

type splitOrigin struct {
	source.Undivided
	of    *plan.Plan
	parts []Part
}

// Open returns the sources of the split, each positioned at its part.
func (o *splitOrigin) Open(context.Context, []byte) ([]source.Source, error) {
	var all []source.Source
	for _, part := range o.parts {
		if part.Source < 0 || part.Source >= len(o.of.Sources) {
			return nil, progress.Unfitf("%s is damaged: it has no input %d", PlanName, part.Source)
		}
		alone, err := o.of.Part(part.Source, part.from())
		if err != nil {
			return nil, err
		}
		s := &partOfSource{Source: alone.Sources[0].Source, from: alone.Sources[0].Source.Begin()}
		if part.Record > 0 {
			s.from = part.from()
		}
		all = append(all, s)
	}
	return all, nil
}

type partOfSource struct {
	source.Source
	from source.Place
}

// Suspend returns to the beginning of the part.
func (s *partOfSource) Suspend() error {
	err := s.Source.Suspend()
	s.Seek(s.from, source.Chain{})
	return err
}
