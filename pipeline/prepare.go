package pipeline

import (
	"context"
	"time"

	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/partitioner"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/intake"
	"example.com/tsimport/pipeline/plan"
)

// Prepared is the plan of a load that several processes share.
type Prepared struct {
	Plan *plan.Plan
	// Job holds all that the rows depend on. A later process that passes it to Prepare gets the same plan or an error.
	Job     *checkpoint.Job
	attempt *attempt
	hangUp  context.CancelFunc
}

// Former holds the results of another process's Prepare for the same load.
type Former struct {
	Job      *checkpoint.Job
	Division []byte // division of its sources, as in source.Origin
}

// Prepare plans a load and writes nothing. If former is not nil, it is an error for the plan to differ from it.
func Prepare(ctx context.Context, cfg Config, former *Former) (p *Prepared, err error) {
	var job *checkpoint.Job
	if former != nil {
		job = former.Job
	}
	cfg.setDefaults()
	cfg.Checkpoint.None = true
	cfg.Resume.Settings = job
	ctx, hangUp := context.WithCancel(ctx)
	defer func() {
		if err != nil {
			hangUp()
		}
	}()
	a := &attempt{cfg: &cfg, hooks: new(hooks), started: time.Now(), former: former}
	if err := a.planOnly(ctx); err != nil {
		return nil, err
	}
	if err := a.settlePrepared(job); err != nil {
		a.planned.Close()
		return nil, err
	}
	return &Prepared{Plan: a.planned, Job: a.from.Job, attempt: a, hangUp: hangUp}, nil
}

func (a *attempt) planOnly(ctx context.Context) error {
	if err := a.connect(ctx, ctx); err != nil {
		return err
	}
	if err := a.findResumePoint(ctx); err != nil {
		return err
	}
	return a.makePlan(ctx)
}

// settlePrepared adds the plan's details to the job and compares them with those of another process's job, if not nil.
func (a *attempt) settlePrepared(job *checkpoint.Job) error {
	tellClock(a.planned, a.admin, a.service.clock())
	if err := a.from.Compare(a.cfg.Drain, a.planned); err != nil || job == nil {
		return err
	}
	if changes, _ := progress.Changes(job.Details, a.from.Job.Details); len(changes) > 0 {
		return &ChangedError{Changes: changes}
	}
	return nil
}

// ChangedError means that a load differs from another process's plan.
type ChangedError struct{ Changes []string }

func (e *ChangedError) Error() string {
	text := e.Changes[0]
	if n := len(e.Changes) - 1; n > 0 {
		return text + " (and other changes)"
	}
	return text
}

func (p *Prepared) Close() {
	p.Plan.Close()
	p.hangUp()
}

// MakeTable creates the table if the plan says that it does not exist.
func (p *Prepared) MakeTable() (made bool, err error) {
	if !p.Plan.Create {
		return false, nil
	}
	_, made, _, err = p.Plan.MakeTable(p.attempt.admin)
	return made, err
}

// Partitions returns the first key value of every partition but the first. exact means that the service named them.
func (p *Prepared) Partitions() (bounds []table.Value, exact bool, err error) {
	return scan.NewPartitions(p.attempt.admin, p.attempt.service.sdk, p.attempt.cfg.Target.Table).Read(time.Now())
}

// RejectText formats a row of the plan for a rejects file, in place of a record that was not kept.
func (p *Prepared) RejectText(body []byte) []byte {
	return intake.New(p.Plan, partitioner.NewMap(nil)).RowForm()(nil, body)
}
