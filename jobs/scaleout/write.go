package scaleout

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"example.com/tsimport/internal/extsort"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/jobs/scaleout/runfile"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
)

// writeShard loads the runs of a shard when all splits are read, unless another process does.
func (j *Job) writeShard(ctx context.Context, i int) error {
	if r, err := j.shard(ctx, i); r != nil || err != nil {
		return err
	}
	j.letGo()
	if err := j.takeSlot(ctx); err != nil {
		return err
	}
	return j.sending(ctx, shardFolder(i), func(lease *jobdir.Lease) (int64, error) { return j.writeLeased(ctx, i, lease) })
}

// sending runs a task that sends rows, under its lease. It returns an error if too many rows were rejected.
func (j *Job) sending(ctx context.Context, folder string, do func(*jobdir.Lease) (rejected int64, err error)) error {
	lease, err := j.lease(ctx, folder)
	if err != nil {
		return err
	}
	rejected, err := do(lease)
	if lost := lease.Check(); err != nil && lost != nil { // after a pause, other errors may occur first
		lease.Abandon()
		return fmt.Errorf("%s: %w", folder, lost)
	}
	if errors.Is(err, jobdir.ErrLost) { // the share of the ceilings was lost; requests may still be in flight
		lease.Abandon()
		return err
	}
	if j.giveBack(lease); err != nil {
		return err
	}
	return j.limit(ctx, rejected)
}

// errNoSlot reports that other processes hold all shares of the ceilings, or all sessions of a database.
var errNoSlot = errors.New("the maximum number of processes is already reading or writing")

func (j *Job) writeLeased(ctx context.Context, i int, lease *jobdir.Lease) (rejected int64, err error) {
	if r, err := j.shard(ctx, i); r != nil || err != nil {
		return 0, err
	}
	run, err := j.rowsOf(ctx, i, lease)
	if err != nil {
		return 0, err
	}
	r := &shardResult{done: j.newDone(fmt.Sprintf("%09d", lease.Epoch)), Shard: i, From: run.From,
		Superseded: run.Superseded}
	origin := &shardOrigin{job: j, run: run, key: j.Plan.Key, name: fmt.Sprintf("shard %d", i)}
	var report *pipeline.Report
	if run.Rows > 0 {
		if report, err = j.load(ctx, i, origin, lease); err != nil {
			return 0, fmt.Errorf("write shard %d: %w", i, err)
		}
		if report.Read != run.Rows {
			return 0, fmt.Errorf("write shard %d: read %d rows of a run of %d", i, report.Read, run.Rows)
		}
		if err := j.takeReport(ctx, r, report, origin); err != nil {
			return 0, err
		}
		r.LateUntil = report.LateUntil
	}
	if r.From != r.Superseded+r.Written+r.Refused {
		return 0,
			fmt.Errorf("the ledger of shard %d does not balance: %d rows in runs, %d superseded, %d written and %d rejected", i,
				r.From, r.Superseded, r.Written, r.Refused)
	}
	if err := lease.Check(); err != nil {
		return 0, err
	}
	r.CPU, r.Ended = j.cpu.take(), time.Now().UTC()
	if err := j.commit(ctx, j.store, shardName(i), r); err != nil || report == nil {
		return 0, err
	}
	return r.Rejected, report.RemoveCheckpoint()
}

func (j *Job) load(ctx context.Context, i int, origin *shardOrigin, lease *jobdir.Lease) (*pipeline.Report, error) {
	scratch, err := j.folder()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(scratch, fmt.Sprintf("shard-%04d", i))
	if err := os.RemoveAll(dir); err != nil { // leftovers of an attempt; the data is in the job directory
		return nil, err
	}
	cfg := j.rowsConfig(fmt.Sprintf("shard %d of the job %s", i, j.Plan.ID))
	cfg.Read = plan.Read{Sources: origin, Parsers: j.o.Load.Read.Parsers}
	cfg.RunDir = dir
	cfg.Resume = keep.Resume{Look: true}
	cfg.Checkpoint = keep.Checkpoint{
		Every: j.o.Load.Checkpoint.Every, Keep: true, State: jobdir.NewMirror(jobdir.Below(j.store, shardFolder(i)), lease),
		Repeats: true,
	}
	report, err := pipeline.Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if report.State != pipeline.StateFinished {
		if j.draining().Err() != nil {
			return nil, context.Cause(j.draining())
		}
		return nil, fmt.Errorf("the load did not finish: %s", report.State)
	}
	return report, nil
}

// rowsConfig returns the configuration of a load whose rows are finished.
func (j *Job) rowsConfig(name string) pipeline.Config {
	cfg := j.o.Load
	cfg.Inputs = []string{name}
	cfg.Columns = plan.Columns{}
	to := cfg.Target
	cfg.Target = plan.Target{Client: to.Client, Name: to.Name, Place: to.Place, Table: to.Table, Aging: to.Aging}
	cfg.Write.Order = plan.OrderNone // each key occurs once
	cfg.Write.DeleteNull = false     // finished rows contain their deletions
	cfg.Lanes.Rates.MaxWCU, cfg.Lanes.Rates.MaxRows, cfg.Lanes.Rates.MaxBytes = 0, 0, 0
	cfg.Lanes.Shared = j.together
	cfg.Limits.Records, cfg.Limits.MaxErrors = 0, ledger.MaxErrors{Rows: -1}
	cfg.Compared = false
	cfg.Invocation = keep.Invocation{}
	cfg.Watch = pipeline.Watch{OnWait: cfg.Watch.OnWait, Monitor: cfg.Watch.Monitor}
	cfg.Drain = j.draining()
	return cfg
}

func (j *Job) takeReport(ctx context.Context, r *shardResult, report *pipeline.Report, origin *shardOrigin) error {
	r.written = writtenOf(report)
	if report.Rejected == 0 {
		return nil
	}
	sorted, err := j.sortReasons(report.RunDir, origin.frames())
	if err != nil {
		return err
	}
	defer sorted.Close()
	lists := rejectLists{store: j.store, name: fmt.Sprintf("rejects/shard-%04d.%s", r.Shard, r.Attempt)}
	why := sorted.Range(nil, nil)
	next := func() (number int64, more bool, err error) {
		if !why.Next() {
			return 0, false, why.Err()
		}
		return int64(binary.BigEndian.Uint64(why.Key())), true, nil
	}
	if err := origin.origins(ctx, next, func(number int64, row *runfile.Row) error {
		var w rundir.Reason
		if err := json.Unmarshal(why.Value(), &w); err != nil {
			return err
		}
		one := &keptReject{Source: row.Source, Record: row.Record, Row: number, Reject: table.Reject{
			Reason: table.Reason{Column: w.Column, Code: w.Code, Message: w.Message, Value: w.Value,
				MaybeApplied: w.MaybeApplied},
		}}
		if j.Plan.Live { // a reread record may be a different one
			prepared, err := j.prepare(ctx)
			if err != nil {
				return err
			}
			one.Header, one.Read, one.Reject.Raw = prepared.Plan.Sources[row.Source].Header, true, prepared.RejectText(row.Body)
		}
		return lists.add(ctx, one)
	}); err != nil {
		return err
	}
	if r.Refused != lists.n {
		return fmt.Errorf("the ledger of shard %d does not balance: %d rejects, but %d kept", r.Shard, r.Refused, lists.n)
	}
	return lists.close(ctx, &r.done)
}

// sortReasons sorts the rejection reasons of rows by their numbers in the run.
func (j *Job) sortReasons(run string, read []shardFrame) (*extsort.Sorted, error) {
	sorter, err := j.sorter()
	if err != nil {
		return nil, err
	}
	var failed error
	err = rundir.EachReason(run, func(line *rundir.Reason) {
		text, err := json.Marshal(line)
		if err == nil {
			err = sorter.Add(binary.BigEndian.AppendUint64(nil, uint64(rowOf(read, line.Record-1))), text)
		}
		failed = cmp.Or(failed, err)
	})
	var sorted *extsort.Sorted
	if err = cmp.Or(err, failed); err == nil {
		sorted, err = sorter.Sort()
	}
	if err != nil {
		_ = sorter.Close() // an error leaves only temporary files
	}
	return sorted, err
}

func writtenOf(report *pipeline.Report) written {
	return written{
		Written: report.Written, Refused: report.Rejected, Attempts: report.Attempts, WriteCU: report.WriteCU,
		Requests: report.Requests, RowsSent: report.RowsSent,
		BytesSent: report.BytesSent, Throttled: report.Throttled, Retried: report.Retried, Seconds: report.Seconds,
		Reasons: report.RejectReasons, Maybe: report.MaybeApplied, Expired: report.ExpiredCells,
	}
}

// shard returns the result of a shard, or nil if it was not written.
func (j *Job) shard(ctx context.Context, i int) (*shardResult, error) {
	return cached(ctx, j, j.known.written, i, shardName(i),
		func(r *shardResult) bool { return r.Shard == i && r.From == r.Superseded+r.Written+r.Refused })
}
