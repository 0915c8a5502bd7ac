package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/writer"
)

// finishTables completes the tables once every row is final. It checks that they are still the tables written to.
func (a *attempt) finishTables(ctx context.Context, d *dispatcher) error {
	if err := a.cfg.Checkpoint.MayAct(); err != nil {
		return err
	}
	admin := a.cfg.admin(ctx, a.service.sdk)
	admin.Proven = true
	if err := a.from.IDs.Confirm(admin); err != nil {
		return err // nothing may be deleted from other tables
	}
	if s := d.files.Stamps; s != nil {
		a.counts.Stamp = s.Last()
	}
	if err := a.sweep(ctx, d, admin); err != nil || a.from.Job.IndexesFirst {
		return err
	}
	return a.makeIndexes(ctx)
}

// sweep deletes surplus copies of rows that repeated requests have left.
func (a *attempt) sweep(ctx context.Context, d *dispatcher, admin *client.Admin) error {
	if d.files.RepeatedRows.Empty() {
		return nil
	}
	s := &sweeper{
		numbers: d.annotations.AutoIncrement, table: a.cfg.Target.Table, lanes: &a.cfg.Lanes, drain: a.cfg.Drain,
		report: &a.counts.ReportMarks, progress: a.cfg.Watch.Progress,
	}
	err := d.files.RepeatedRows.Each(sweepRows, func(byKey [][]writer.Doubt) error { return s.sweepKeys(ctx, byKey) })
	if err != nil {
		return err
	}
	return a.from.IDs.Confirm(admin)
}

// end saves what a resumed load needs, and closes all that the load opened. err, if not nil, ended the load early.
func (a *attempt) end(d *dispatcher, err error) error {
	if n := d.annotations.AutoIncrement; n != nil {
		a.counts.SearchRequests = n.Requests.Load()
	}
	if by, known := a.service.clock().Lag(); known {
		a.counts.ClockBehind = float64(by.Round(time.Millisecond)) / float64(time.Second)
	}
	if late := &a.counts.LateUntil; late.After(time.Now()) {
		_, *late, _ = a.service.clock().Range(*late)
	} else {
		*late = time.Time{}
	}
	a.counts.Sections = d.input.flow.Sections()
	d.account.Asides.End()
	finished := err == nil && (a.cfg.Limits.SetAside || !a.counts.OverLimit(a.cfg.Limits.MaxErrors, true))
	if d.checkpointer != nil && (!finished || a.cfg.Checkpoint.Keep) {
		if keepErr := d.keepLast(); keepErr != nil {
			a.counts.CheckpointError = keepErr.Error() // the previous checkpoint remains valid
		}
	}
	if finished {
		d.follow(math.MaxInt64)
		err = errors.Join(d.files.Stamps.Close(), d.files.Stamps.Remove())
	}
	if closeErr := d.lanes.Close(); closeErr != nil {
		a.counts.SpillError = closeErr.Error() // the rows are written, but a folder is left behind
	}
	return errors.Join(err, d.files.Close(a.counts))
}

// finish closes the run folder and completes the report. err, if not nil, is why the load ended early.
func finish(ctx context.Context, cfg *Config, report *Report, folder *rundir.Folder, start time.Time,
	err error) (*Report, error) {
	report.BadInputs = allBad(cfg, report.BadInputs)
	err = report.conclude(cfg, err)
	err = errors.Join(err, report.Balance(), folder.Close())
	report.RejectsFiles = folder.RejectsFiles()
	if reasons, readErr := rundir.CountReasons(folder.Path); readErr == nil {
		report.RejectReasons = reasons // on an error, the files are complete without them
	}
	if err == nil && report.State == StateFinished && cfg.Resume.Once() && !cfg.DryRun {
		err = cfg.Resume.Known.Loaded(ctx, report.BadInputs)
	}
	report.measure(time.Since(start))
	report.countIndexes()
	if err != nil {
		report.fail(err)
		report.Remade = errors.As(err, new(*keep.ReplacedError))
	}
	sumErr := rundir.WriteSummary(folder.Path, report)
	report.folder, report.mirror = folder, cfg.Checkpoint.State
	if sumErr == nil && report.State == StateFinished && !cfg.DryRun && !cfg.Checkpoint.Keep {
		sumErr = report.RemoveCheckpoint()
	}
	if err == nil && sumErr != nil {
		report.fail(sumErr)
		err = sumErr
	}
	if err != nil {
		err = fmt.Errorf("load into table %s: %w", cfg.Target.Table, err)
	}
	return report, err
}

// RemoveCheckpoint removes the checkpoint of a finished load and sorts its rejects into the order of the inputs.
func (r *Report) RemoveCheckpoint() error {
	if r.mirror != nil {
		if err := keep.FinishState(r.mirror); err != nil {
			return err
		}
	}
	if err := checkpoint.Remove(r.RunDir); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(r.RunDir, rundir.BlocksFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return r.sortRejects(r.folder)
}

func (r *Report) countIndexes() {
	rows := r.Written
	if r.DryRun {
		rows = r.Unfinished
	}
	r.IndexWriteCU = rows * int64(len(r.Indexes))
	r.IndexReadCU = r.IndexWriteCU
}

// conclude sets how the load ended and returns its error. The error limit and interruptions are not errors.
func (r *Report) conclude(cfg *Config, err error) error {
	var interrupted *Interrupted
	switch {
	case errors.Is(err, ledger.ErrLimit), err == nil && r.OverLimit(cfg.Limits.MaxErrors, true) && !cfg.Limits.SetAside:
		r.State, r.ExitCode = StateErrorLimit, exitcode.ErrorLimit
	case errors.As(err, &interrupted):
		r.State, r.ExitCode = StateInterrupted, interrupted.ExitCode
	case err != nil:
		return err
	case r.Rejected > 0:
		r.State, r.ExitCode = StateFinished, exitcode.Rejects
	default:
		r.State, r.ExitCode = StateFinished, exitcode.OK
	}
	if r.State == StateFinished {
		r.ExitCode = r.BadCode(r.ExitCode)
	}
	if r.State == StateFinished && r.Unfinished > 0 && !cfg.DryRun {
		return fmt.Errorf("%d rows read by an earlier attempt are now missing; has the input changed?", r.Unfinished)
	}
	return nil
}

func (r *Report) fail(err error) {
	r.State, r.ExitCode, r.Error = StateFailed, exitcode.Of(err), client.OneLine(err.Error())
}

func (r *Report) measure(took time.Duration) {
	r.Seconds = took.Seconds()
	if r.Seconds > 0 {
		r.RowsPerSecond = float64(r.Written-r.WrittenBefore) / r.Seconds
	}
	r.CPUSeconds, r.PeakRSSBytes = Resources()
	r.CPUWaitSeconds = processorWait()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	r.Allocations, r.AllocatedBytes = memory.Mallocs, memory.TotalAlloc
}
