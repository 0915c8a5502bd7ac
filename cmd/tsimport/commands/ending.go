package commands

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/runmetrics"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/transfer/tablesync"
)

// ending is what a command says of its end, for the summary in the log and for metrics.
type ending struct {
	table, runDir string
	load          string // the job's name, of a job
	bad           int64  // inputs that were set aside
	rows          []runmetrics.Rows
	loads         []runmetrics.Run // of a job
}

// endingOf is where a command says how it ends.
func endingOf(c *call) *ending {
	if c.in.ending == nil {
		return new(ending) // nobody asks
	}
	return c.in.ending
}

// count adds rows that ended in a way.
func (e *ending) count(outcome string, n int64) {
	e.rows = append(e.rows, runmetrics.Rows{Outcome: outcome, N: n})
}

// ofLoad says how a load has ended.
func (e *ending) ofLoad(r *pipeline.Report) {
	e.table, e.runDir, e.bad = r.Table, r.RunDir, int64(len(r.BadInputs))
	e.rows = countsOfRows(&job.Counts{Read: r.Read, Written: r.Written, Rejected: r.Rejected, Superseded: r.Superseded, ConditionFailed: r.ConditionFailed,
		Archived: r.Archived, Unfinished: r.Unfinished})
}

// ofSync says how a sync has ended.
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

// countsOfRows has the rows of loads by how they ended.
func countsOfRows(n *job.Counts) []runmetrics.Rows {
	return []runmetrics.Rows{{Outcome: "read", N: n.Read}, {Outcome: "written", N: n.Written}, {Outcome: "rejected", N: n.Rejected}, {Outcome: "superseded", N: n.Superseded},
		{Outcome: "condition_failed", N: n.ConditionFailed}, {Outcome: "archived", N: n.Archived}, {Outcome: "unfinished", N: n.Unfinished}}
}

// checkEnding refuses what could not be told at the end, before anything is done.
func checkEnding(c *call) error {
	if path := c.String("metrics-file"); path != "" {
		if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
			return usagef("--metrics-file %s: there is no folder %s", path, filepath.Dir(path))
		}
		if _, err := atomicfile.Find(path); err != nil {
			return fmt.Errorf("--metrics-file: %w", err)
		}
	}
	return nil
}

// told runs a command and tells how it ended.
func told(c *call, command string, action func(*call) error) error {
	e, began := &ending{table: tableGiven(c)}, time.Now()
	c.in.ending = e
	err := profiled(c, action)
	run := runmetrics.Run{Command: command, Table: e.table, Load: e.load, Ended: time.Now(), Took: time.Since(began), ExitCode: exitcode.Of(err), Rows: e.rows, BadInputs: e.bad}
	if c.show.log != nil && !c.Bool("quiet") {
		logEnding(c.show, &run, e.runDir)
	}
	if c.in.session != nil || command == "run" && c.Bool("plan") {
		return err // the job tells of all its loads; a plan has nothing to tell
	}
	runs := append([]runmetrics.Run{run}, e.loads...)
	if path := c.String("metrics-file"); path != "" {
		// What was done is done: the exit code stays.
		if err := runmetrics.WriteFile(context.WithoutCancel(c.Context), path, runs); err != nil {
			fmt.Fprintf(c.show, "tsimport: warning: --metrics-file: %s\n", printable(client.OneLine(err.Error())))
		}
	}
	return err
}

// tableGiven is the table that a command line names: of a command that fails before it knows more.
func tableGiven(c *call) string {
	if c.Command.Name == job.Copy && c.NArg() > 1 {
		return path.Base(c.Args().Get(1)) // of an address, too
	}
	return c.String("table")
}

// logEnding logs the summary of a command.
func logEnding(show *display, r *runmetrics.Run, runDir string) {
	fields := []slog.Attr{slog.Int("exit_code", r.ExitCode), slog.Float64("seconds", r.Took.Seconds())}
	if r.Table != "" {
		fields = append(fields, slog.String("table", r.Table))
	}
	if runDir != "" {
		fields = append(fields, slog.String("run_dir", runDir))
	}
	if r.BadInputs > 0 {
		fields = append(fields, slog.Int64("bad_inputs", r.BadInputs))
	}
	var text []string
	for _, n := range r.Rows {
		fields = append(fields, slog.Int64(n.Outcome, n.N))
		if n.N > 0 {
			text = append(text, words.Grouped(n.N)+" "+strings.ReplaceAll(n.Outcome, "_", " "))
		}
	}
	said := fmt.Sprintf("exit code %d", r.ExitCode)
	if len(text) > 0 {
		said += ": " + strings.Join(text, ", ")
	}
	show.event(slog.LevelInfo, eventSummary, said, fields...)
}
