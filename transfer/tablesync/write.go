package tablesync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/ratelimit"
	"example.com/tsimport/reader"
)

// Names of the run folders for the loads of changes, in the sync's run folder.
const (
	putDir    = "put"
	deleteDir = "delete"
)

// write loads the changes: first the rows, then the deletes.
func (r *run) write(ctx context.Context) error {
	s, st := r.summary, r.state
	if r.cfg.Load.Limits.MaxErrors.Exceeded(s.Rejected, s.Read, true) {
		s.State, s.ExitCode = pipeline.StateErrorLimit, exitcode.ErrorLimit
		r.cfg.Say.Line("%d of %d records were rejected, above --max-errors: nothing was written", s.Rejected, s.Read)
		st.Phase = comparing
		return st.write(r.dir)
	}
	if len(st.Put) > 0 {
		report, err := r.load(ctx, putDir, st.Put, r.cfg.Load.Write.Mode)
		if report != nil {
			s.put(report)
		}
		if err != nil || report.State != pipeline.StateFinished {
			return r.stopped(report, err)
		}
	}
	if st.Phase == putting {
		st.Phase = deleting
		if err := st.write(r.dir); err != nil {
			return err
		}
	}
	if !r.cfg.Delete || s.Withheld != "" || len(st.Delete) == 0 {
		return nil
	}
	why, err := r.mayDelete()
	if r.drain.Err() != nil { // the run was stopped before the inputs were checked
		return r.stopped(nil, nil)
	}
	if err != nil {
		return err
	}
	if why != "" {
		s.Withheld, s.Kept, s.Deletes, s.DeletesUnfinished, s.Costs.DeleteCU = why, s.Surplus, 0, 0, 0
		return nil
	}
	report, err := r.load(ctx, deleteDir, st.Delete, table.Delete)
	if report != nil {
		s.delete(report)
	}
	if err != nil || report.State != pipeline.StateFinished {
		return r.stopped(report, err)
	}
	return nil
}

// mayDelete returns why no row may be deleted, or "". An error means that the service is unreachable; runs can resume.
func (r *run) mayDelete() (why string, err error) {
	if n := r.summary.PutsRejected; n > 0 {
		return fmt.Sprintf("%d rows to put were rejected", n), nil
	}
	if isStream(r.cfg.Load.Inputs) && r.cfg.Load.Read.Sources == nil {
		return "", nil // the stream was read completely
	}
	details, err := r.details()
	switch {
	case err != nil && unreachable(err):
		return "", fmt.Errorf("check the inputs again before deleting rows: %w; repeat the command to resume", err)
	case err != nil:
		return "the inputs cannot be checked again: " + err.Error(), nil
	}
	if changes, _ := progress.Changes(r.state.Details, details); len(changes) > 0 {
		return "the inputs have changed since they were compared: " + changes[0], nil
	}
	return "", nil
}

// unreachable reports whether an error comes from the network or a service that may recover.
func unreachable(err error) bool {
	var answer *tablestore.OtsError
	return errors.As(err, new(*net.OpError)) || errors.As(err, new(*url.Error)) || errors.As(err, &answer) &&
		client.Classify(answer).Passes()
}

func (r *run) stopped(report *pipeline.Report, err error) error {
	if report != nil {
		r.summary.State, r.summary.ExitCode, r.summary.Error = report.State, report.ExitCode, report.Error
	}
	if report == nil && r.drain.Err() != nil {
		err = context.Cause(r.drain)
	}
	if interrupted := new(pipeline.Interrupted); report == nil && errors.As(err, &interrupted) {
		r.summary.State, r.summary.ExitCode = pipeline.StateInterrupted, interrupted.ExitCode
		return nil
	}
	return err
}

// load loads changes in a run folder of their own, or resumes that load.
func (r *run) load(ctx context.Context, name string, parts []part, mode table.Mode) (*pipeline.Report, error) {
	was := *r.table
	was.Created = r.state.Made // detects a table recreated after the comparison
	if err := r.admin.Same(&was); err != nil {
		return nil, err
	}
	cfg := r.cfg.Load
	cfg.Inputs = nil
	for _, p := range parts {
		cfg.Inputs = append(cfg.Inputs, plainName(filepath.Join(r.dir, changesDir, p.Name)))
	}
	ages := cfg.Read.Sources != nil
	cfg.Read = plan.Read{Options: reader.Options{Format: reader.JSONLines, SplitBytes: cfg.Read.SplitBytes},
		Parsers: cfg.Read.Parsers}
	cfg.Columns = plan.Columns{Types: map[string]plan.Type{}}
	to := &cfg.Target
	*to = plan.Target{Client: to.Client, Name: to.Name, Place: to.Place, Table: to.Table, Aging: plan.Aging{Expires: ages}}
	w := &cfg.Write
	w.Mode, w.Marks = mode, pipeline.Marks{}
	w.DeleteNull = mode == table.Update // a null deletes the column
	if mode == table.Delete {
		w.Condition = table.Ignore
		w.When = nil
	}
	w.Unchanged = r.cfg.IfUnchanged && mode != table.Delete
	if w.Order = plan.OrderNone; mode != table.Delete && r.state.Total.Repeats {
		w.Order = plan.LastWins
	}
	cfg.Limits.Records = 0
	cfg.RunDir, cfg.DryRun, cfg.Compared = filepath.Join(r.dir, name), false, false
	cfg.Resume = keep.Resume{Look: true, OnResume: cfg.Resume.OnResume}
	cfg.Invocation = keep.Invocation{Directory: cfg.Invocation.Directory}
	// Keep the checkpoint until the sync has recorded the load's end, so that the load does not begin again.
	cfg.Checkpoint.Keep = true
	ended := func(*pipeline.Report) {}
	if r.cfg.OnLoad != nil {
		ended = r.cfg.OnLoad(&cfg)
	}
	report, err := pipeline.Run(ctx, cfg)
	if report != nil {
		ended(report)
	}
	if err != nil {
		return report, fmt.Errorf("%s rows: %w", name, err)
	}
	return report, nil
}

// plainName returns a path in a form that cannot be mistaken for another kind of input.
func plainName(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return "." + string(os.PathSeparator) + strings.TrimPrefix(path, "."+string(os.PathSeparator))
}

func (r *run) forget(name string) error {
	if dir := filepath.Join(r.dir, name); checkpoint.Exists(dir) {
		return checkpoint.Remove(dir)
	}
	return nil
}

// lateness is the maximum time between a killed load's last checkpoint and its last request.
const lateness = 10 * time.Second

// waitForLate waits until no request of an earlier attempt can be applied any more. It would undo this run's writes.
func (r *run) waitForLate(dir string) error {
	l := &r.cfg.Load
	if l.Target.Client.Transport != nil {
		return nil
	}
	var last time.Time
	for _, name := range []string{putDir, deleteDir} {
		for _, file := range []string{"checkpoint.bin", "checkpoint.prev"} {
			if info, err := os.Stat(filepath.Join(dir, name, file)); err == nil && info.ModTime().After(last) {
				last = info.ModTime()
			}
		}
	}
	timeout := cmp.Or(l.Target.Client.RequestTimeout, client.DefaultRequestTimeout)
	settle := cmp.Or(l.Write.Settle, timeout) // how late the last request may be applied
	wait := min(settle, time.Until(last.Add(lateness+client.LongestRequest(timeout)+settle)))
	if last.IsZero() || wait <= 0 {
		return nil
	}
	r.cfg.Say.Line("waiting %v: requests of the previous attempt may still be applied", wait.Round(time.Second))
	return ratelimit.Wait(r.drain, wait)
}
