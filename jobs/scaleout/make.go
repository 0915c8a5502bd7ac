package scaleout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/plan"
)

type Request struct {
	Options
	Endpoint  string // Tablestore endpoint for the other processes
	Instance  string
	Workers   int   // expected number of processes
	Readers   int   // like Plan.Readers
	SplitSize int64 // bytes; 0 means automatic
}

// Make plans a load in a job directory. If the directory has a plan of this load, Make returns it, with isNew false.
func Make(ctx context.Context, store jobdir.Store, r Request) (p *Plan, isNew bool, err error) {
	if err := Check(&r.Load); err != nil {
		return nil, false, err
	}
	if err := jobdir.Probe(ctx, store); err != nil {
		return nil, false, fmt.Errorf("--job-dir %w", err)
	}
	former, err := formerPlan(ctx, store)
	if err != nil {
		return nil, false, err
	}
	if former != nil {
		return former, false, r.sameAs(ctx, store, former)
	}
	prepared, err := pipeline.Prepare(ctx, r.Load, nil)
	if err != nil {
		return nil, false, err
	}
	defer prepared.Close()
	if err := checkPlan(prepared.Plan); err != nil {
		return nil, false, err
	}
	made, err := r.make(ctx, prepared)
	if err != nil {
		return nil, false, err
	}
	kept, err := keepPlan(ctx, store, made)
	if err != nil {
		return nil, false, err
	}
	if kept.ID != made.ID { // another process was faster
		return kept, false, r.sameAs(ctx, store, kept)
	}
	return kept, true, nil
}

// formerPlan returns the existing plan of a directory, or nil if the directory is empty.
func formerPlan(ctx context.Context, store jobdir.Store) (*Plan, error) {
	p, err := ReadPlan(ctx, store)
	if errors.As(err, new(*progress.UnfitError)) && errors.Is(err, errNoPlan) {
		planned, err := checkEmpty(ctx, store, PlanName)
		if !planned || err != nil {
			return nil, err
		}
		return ReadPlan(ctx, store) // another process has just stored one
	}
	return p, err
}

// sameAs refuses a plan of another load.
func (r *Request) sameAs(ctx context.Context, store jobdir.Store, p *Plan) error {
	j, err := newJob(store, p, r.Options)
	if err != nil {
		return err
	}
	if p.Job.Identity != progress.Identify(append([]string{r.Load.Target.Name, r.Load.Target.Table},
		r.Load.Inputs...)...) {
		return progress.Unfitf("--job-dir %s holds another job, with other inputs or table; name an empty directory", store)
	}
	prepared, err := pipeline.Prepare(ctx, r.Load, p.former())
	if errors.As(err, new(*pipeline.ChangedError)) {
		return progress.Unfitf("--job-dir %s holds another job: %w; repeat its command or use an empty directory", store, err)
	}
	if err != nil {
		return err
	}
	prepared.Close()
	return j.raiseLimit(ctx, r.Load.Limits.MaxErrors)
}

// make divides the inputs and the keys.
func (r *Request) make(ctx context.Context, prepared *pipeline.Prepared) (*Plan, error) {
	workers := max(r.Workers, 1)
	p := &Plan{
		Version: planVersion, Program: r.Program, ID: nonce() + nonce(), Planned: time.Now().UTC(), Endpoint: r.Endpoint,
		Instance: r.Instance, Job: prepared.Job, Verify: r.Load.Compared, Workers: workers,
		MaxErrors: r.Load.Limits.MaxErrors, Bytes: prepared.Plan.Bytes, Budget: budgetOf(&r.Load.Lanes.Rates, workers),
		Direct: writtenAsRead(&r.Load),
	}
	p.Unique = !p.Direct && !r.Load.Compared && (r.Load.Write.Order == plan.OrderNone || prepared.Plan.Distinct)
	p.Division, p.Live, p.Position, p.Readers = prepared.Plan.Division, prepared.Plan.Live,
		prepared.Plan.Position, r.Readers
	for _, s := range prepared.Plan.Sources {
		p.Inputs = append(p.Inputs, s.Name)
	}
	p.Key = prepared.Plan.Schema.Key
	var err error
	if p.Splits, err = divide(ctx, prepared.Plan, splitSize(prepared.Plan.Bytes, workers, r.SplitSize),
		r.Say); err != nil {
		return nil, err
	}
	if len(p.Splits) == 0 {
		return nil, &plan.UsageError{Message: "no input has a record", Input: true}
	}
	sample, err := prepared.Plan.KeySample()
	if err != nil {
		return nil, err
	}
	partitions, err := r.table(p, prepared)
	if err != nil || p.Direct {
		return p, err
	}
	p.Bounds, p.Shards = shardKeys(partitions, sample, workers)
	return p, nil
}

// table creates the table, if it does not exist, and returns the bounds of its partitions.
func (r *Request) table(p *Plan, prepared *pipeline.Prepared) ([]table.Value, error) {
	made, err := prepared.MakeTable()
	if err != nil {
		return nil, err
	}
	if made {
		r.Say.Line("table %s was created", r.Load.Target.Table)
	}
	if t := prepared.Plan.Table(); t != nil {
		p.TableCreated = t.Created
	}
	bounds, _, err := prepared.Partitions()
	if err != nil {
		r.Say.Warn("cannot determine the table's partitions, so shards are based only on a sample: %v", err)
		return nil, nil
	}
	return bounds, nil
}
