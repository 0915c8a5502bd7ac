package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/runmetrics"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/transfer/tablesync"
)

// ending collects the result of a command for the log's summary and for metrics.
type ending struct {
	table, runDir string
	load          string // name of the job, if the command runs one
	said          string // progress and first reason
	bad           int64  // number of inputs set aside
	rows          []runmetrics.Rows
	loads         []runmetrics.Run // loads of a job
}

func endingOf(c *call) *ending {
	if c.in.ending == nil {
		return new(ending) // is discarded
	}
	return c.in.ending
}

func (e *ending) count(outcome string, n int64) {
	e.rows = append(e.rows, runmetrics.Rows{Outcome: outcome, N: n})
}

func (e *ending) ofLoad(r *pipeline.Report) {
	e.table, e.runDir, e.bad = r.Table, r.RunDir, int64(len(r.BadInputs))
	e.rows = countsOfRows(countsOfReport(r))
}

func countsOfReport(r *pipeline.Report) *job.Counts {
	return &job.Counts{Read: r.Read, Written: r.Written, Rejected: r.Rejected, Superseded: r.Superseded,
		ConditionFailed: r.ConditionFailed, Archived: r.Archived, Unfinished: r.Unfinished,
		BadInputs: int64(len(r.BadInputs))}
}

func (e *ending) ofSync(s *tablesync.Summary) {
	e.table, e.runDir = s.Table, s.RunDir
	e.count("read", s.Read)
	e.count("rejected", s.Rejected+s.PutsRejected+s.DeletesRejected)
	e.count("superseded", s.Superseded)
	e.count("condition_failed", s.ConditionFailed)
	e.count("equal", s.Equal)
	e.count("written", s.Written)
	e.count("deleted", s.Deleted)
	e.count("surplus", s.Kept)
	e.count("unfinished", s.PutsUnfinished+s.DeletesUnfinished)
}

func countsOfRows(n *job.Counts) []runmetrics.Rows {
	return []runmetrics.Rows{{Outcome: "read", N: n.Read}, {Outcome: "written", N: n.Written},
		{Outcome: "rejected", N: n.Rejected}, {Outcome: "superseded", N: n.Superseded},
		{Outcome: "condition_failed", N: n.ConditionFailed}, {Outcome: "archived", N: n.Archived},
		{Outcome: "unfinished", N: n.Unfinished}}
}

// checkEnding returns an error, before any work, if the ending could not be reported.
func checkEnding(c *call) error {
	if path := c.of.MetricsFile; path != "" {
		if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
			return usagef("--metrics-file %s: there is no folder %s", path, filepath.Dir(path))
		}
		if _, err := atomicfile.Find(path); err != nil {
			return fmt.Errorf("--metrics-file: %w", err)
		}
	}
	return nil
}

// told runs a command within its time limit and reports how it ended.
func told(c *call, command string, action func(*call) error) error {
	if err := checkEnding(c); err != nil {
		return err
	}
	e, began := c.in.ending, time.Now()
	if e == nil {
		e = new(ending)
		c.in.ending = e
	}
	c.interrupts.limit(c.of.Timeout)
	endProfiles, err := startProfiles(c)
	if err == nil {
		err = closed(action(c), endProfiles())
	}
	err = c.interrupts.codeOf(err)
	run := runmetrics.Run{
		Command: command, Table: cmp.Or(tableGiven(c), e.table), Load: e.load, Ended: time.Now(),
		Took: time.Since(began), ExitCode: exitcode.Of(err), Rows: e.rows, BadInputs: e.bad,
	}
	if c.show.log != nil && !c.of.Quiet && c.in.task == nil {
		e.log(c.show, &run)
	}
	err = e.lastLine(err, &run)
	if c.in.session != nil || command == "run" && c.Bool("plan") {
		return err // the job reports its loads, and a plan has no result
	}
	runs := append([]runmetrics.Run{run}, e.loads...)
	if path := c.of.MetricsFile; path != "" {
		// The command has ended, so a failure to write metrics does not change its exit code.
		if err := runmetrics.WriteFile(context.WithoutCancel(c.Context), path, runs); err != nil {
			c.show.say.Warn("--metrics-file: %s", printable(client.OneLine(err.Error())))
		}
	}
	return err
}

// tableGiven returns the table on the command line, for a command that fails early.
func tableGiven(c *call) string {
	if c.Command.Name == job.Copy && c.NArg() > 1 {
		return path.Base(c.Args().Get(1)) // the argument may be an address
	}
	return cmp.Or(c.of.Table, c.String("table"))
}

// lastLine returns the final error line of a failed command, with the cause, the progress and the folder.
func (e *ending) lastLine(err error, r *runmetrics.Run) error {
	exit := new(exitError)
	switch found := errors.As(err, &exit); {
	case err == nil, r.ExitCode == exitcode.Pipe, found && exit.fields != nil: // a load has reported it
		return err
	case found:
		err = exit.err
	}
	text := e.said
	if err != nil {
		text = strings.Trim(err.Error()+"; "+e.said, "; ")
	}
	text = cmp.Or(text, fmt.Sprintf("ended with exit code %d; see tsimport errors %d", r.ExitCode, r.ExitCode))
	if _, gone := os.Stat(e.runDir); e.runDir != "" && !strings.HasSuffix(text, "; see "+e.runDir) &&
		(gone == nil || jobdir.IsAddress(e.runDir)) {
		text += "; see " + e.runDir
	}
	return &exitError{code: r.ExitCode, err: &saidError{err, text}, fields: e.fields(r)}
}

type saidError struct {
	error
	text string
}

func (e *saidError) Error() string { return e.text }
func (e *saidError) Unwrap() error { return e.error }

func (e *ending) fields(r *runmetrics.Run) []slog.Attr {
	fields := []slog.Attr{slog.Int("exit_code", r.ExitCode), slog.Float64("seconds", r.Took.Seconds())}
	if r.Table != "" {
		fields = append(fields, slog.String("table", r.Table))
	}
	if e.runDir != "" {
		fields = append(fields, slog.String("run_dir", e.runDir))
	}
	if r.BadInputs > 0 {
		fields = append(fields, slog.Int64("bad_inputs", r.BadInputs))
	}
	for _, n := range r.Rows {
		fields = append(fields, slog.Int64(n.Outcome, n.N))
	}
	return fields
}

func (e *ending) log(show *display, r *runmetrics.Run) {
	var text []string
	for _, n := range r.Rows {
		if n.N > 0 {
			text = append(text, words.Grouped(n.N)+" "+strings.ReplaceAll(n.Outcome, "_", " "))
		}
	}
	said := fmt.Sprintf("exit code %d", r.ExitCode)
	if len(text) > 0 {
		said += ": " + strings.Join(text, ", ")
	}
	show.event(slog.LevelInfo, eventSummary, said, e.fields(r)...)
}
