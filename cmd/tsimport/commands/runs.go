package commands

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/transfer/tablesync"
)

// States that the list shows besides the final states of loads and jobs.
const (
	stateRunning = "running"
	stateUnread  = "unread"  // damaged, or written by another version
	stateCrashed = "crashed" // its process ended without recording a final state
	stateDryRun  = "dry run" // finished without writing, as requested
)

// runInfo describes a run according to its folder.
type runInfo struct {
	Folder     string    `json:"folder"`
	State      string    `json:"state"`
	Unfinished bool      `json:"unfinished"` // whether it can be resumed
	Started    time.Time `json:"started"`
	Target     string    `json:"target"`
	Table      string    `json:"table"`
	Read       int64     `json:"read"`
	Final      int64     `json:"final"` // rows with an outcome
	Rejected   int64     `json:"rejected"`
	BadInputs  int64     `json:"bad_inputs"`          // number of inputs set aside
	ExitCode   *int      `json:"exit_code,omitempty"` // the last attempt's; nil while it runs, or after a crash
	Command    string    `json:"command"`
	Retried    []string  `json:"retried,omitempty"` // runs that loaded its rejects
	DryRun     bool      `json:"dry_run"`

	// Sync is set for a run of tsimport sync, whose rows are to be written or deleted.
	Sync bool `json:"sync,omitempty"`

	// Loads are the loads of a job.
	Loads []*runInfo `json:"loads,omitempty"`

	// ReplacedBy is the run that started this one over.
	ReplacedBy string `json:"replaced_by,omitempty"`

	job    *checkpoint.Job
	record *job.Record          // record of a job; nil for a load
	unfit  *progress.UnfitError // why other fields are unknown, or nil
	wrote  bool                 // whether it wrote rows to a table
}

func runsCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:  "runs",
		Usage: "list loads, syncs and jobs with their state, progress and command",
		Description: "Lists the runs below ./" + rundir.Root +
			", or those in the folders named, and the loads of a named job. To resume an unfinished run, use\n" +
			"tsimport resume FOLDER or give the same command again.",
		ArgsUsage:   "[FOLDER...]",
		Flags:       []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON"}},
		Subcommands: []*cli.Command{pruneCommand(in)},
		Action: in.act(func(c *call) error {
			if name := c.Args().First(); c.NArg() > 0 {
				if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) &&
					len(suggest.Nearest(name, commandNames(c.Command.Subcommands))) > 0 {
					return usagef("there is no folder %s%s", name, suggest.Hint(name, commandNames(c.Command.Subcommands)))
				}
			}
			all, err := findRuns(c.Args().Slice())
			if err != nil {
				return err
			}
			if c.of.JSON {
				return printJSON(c, append([]*runInfo{}, all...)) // [] instead of null
			}
			w := tabwriter.NewWriter(results(c), 0, 0, 2, ' ', 0)
			for _, r := range withLoads(all, c.Args().Present()) {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n",
					r.Started.Local().Format("2006-01-02 15:04:05"), r.State, r.counts(), printable(r.Folder), printable(r.Command))
			}
			return w.Flush()
		}),
	}
}

// withLoads inserts the loads of jobs after their jobs.
func withLoads(all []*runInfo, wanted bool) (rows []*runInfo) {
	for _, r := range all {
		rows = append(rows, r)
		if wanted {
			rows = append(rows, r.Loads...)
		}
	}
	return rows
}

func (r *runInfo) counts() string {
	if r.DryRun {
		return fmt.Sprintf("%s rows read, %s would be rejected", words.Grouped(r.Read), words.Grouped(r.Rejected))
	}
	text := fmt.Sprintf("%s of %s rows final", words.Grouped(r.Final), words.Grouped(r.Read))
	if r.record != nil {
		done, all := r.record.DoneOf()
		text = fmt.Sprintf("%d of %d loads done, %s", done, all, text)
	}
	text = plus(text, r.Rejected, "rejected")
	if r.BadInputs > 0 {
		text += fmt.Sprintf(", %s set aside", counted(r.BadInputs, "input"))
	}
	if r.ExitCode != nil && *r.ExitCode != exitcode.OK {
		text += fmt.Sprintf(", exit code %d", *r.ExitCode)
	}
	return text
}

// findRuns returns the runs in the folders, which must exist, newest first. Without folders, it returns all runs.
func findRuns(folders []string) (all []*runInfo, err error) {
	named := len(folders) > 0
	if !named {
		entries, err := os.ReadDir(rundir.Root)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list runs: %w", err)
		}
		for _, e := range entries {
			if e.IsDir() {
				folders = append(folders, filepath.Join(rundir.Root, e.Name()))
			}
		}
	}
	for _, f := range folders {
		if r := readRun(f); r != nil {
			all = append(all, r)
		} else if _, err := os.Stat(f); err != nil && named {
			return nil, usagef("list runs: %v", err)
		}
	}
	slices.SortStableFunc(all, func(a, b *runInfo) int { return b.Started.Compare(a.Started) })
	return all, nil
}

// readRun reads a run folder. It returns nil if the folder holds no run.
func readRun(folder string) *runInfo {
	unread := func(err error) *runInfo {
		unfit, ok := errors.AsType[*progress.UnfitError](err)
		if !ok {
			return nil
		}
		return &runInfo{Folder: folder, State: stateUnread, Unfinished: checkpoint.Exists(folder), unfit: unfit}
	}
	r, err := job.ReadRecord(folder)
	if err == nil {
		return readJobRun(folder, r)
	}
	if info := unread(err); info != nil {
		return info
	}
	sum, err := readSummary(folder)
	if err != nil {
		if rundir.IsRun(folder) {
			return unread(err)
		}
		return nil
	}
	info := &runInfo{
		Folder: folder, State: sum.State, Started: cmp.Or(sum.FirstStarted, sum.Started), Target: sum.Target, Table: sum.Table,
		Command: sum.Command, DryRun: sum.DryRun, Read: sum.Read, Rejected: sum.Rejected, BadInputs: int64(len(sum.BadInputs)),
		ExitCode: &sum.ExitCode,
		Final:    sum.Written + sum.Rejected + sum.Superseded + sum.ConditionFailed + sum.Archived,
		wrote:    sum.Written > 0 && !sum.DryRun,
	}
	if j, err := checkpoint.ReadJob(folder); err == nil {
		info.job, info.Started, info.Target, info.Table, info.Command, info.Retried = j, j.Started, j.Target, j.Table,
			j.Command, j.Retried
	}
	if info.Unfinished = checkpoint.Exists(folder) && info.job != nil; info.Unfinished {
		if s, err := checkpoint.Read(folder); err == nil {
			info.Read, info.Rejected, info.Final = s.Counters["read"], s.Counters["rejected"], finalOf(s.Counters)
		}
	}
	if is, open := tablesync.Unfinished(folder); is {
		info.Sync, info.Unfinished = true, open
		if s, err := tablesync.ReadSummary(folder); err == nil {
			info.Read, info.Final = s.Puts+s.Deletes, s.Written+s.PutsRejected+s.ConditionFailed+s.Deleted+s.DeletesRejected
		}
	}
	if info.DryRun && info.State == pipeline.StateFinished {
		info.State = stateDryRun
	}
	if info.State == stateRunning {
		info.ExitCode = nil
		if !held(folder) {
			info.State = stateCrashed
			info.Unfinished = info.job != nil && (!info.Sync || info.Unfinished) // a sync without a checkpoint starts over
		}
	}
	if info.job != nil && info.job.ReplacedBy != "" {
		info.Unfinished, info.ReplacedBy = false, info.job.ReplacedBy
	}
	return info
}

// finalOf returns the number of rows with an outcome, by the counters of a checkpoint.
func finalOf(n map[string]int64) int64 {
	return n["written"] + n["rejected"] + n["superseded"] + n["condition_failed"] + n["archived"]
}

func readJobRun(folder string, r *job.Record) *runInfo {
	info := &runInfo{Folder: folder, State: r.State, Started: r.Started, Command: r.Command, Unfinished: r.Unfinished() &&
		r.State != job.Replaced, record: r, ExitCode: &r.ExitCode}
	if info.State == job.Running {
		info.ExitCode = nil
		if !held(folder) {
			info.State = stateCrashed
		}
	}
	for _, s := range r.Loads {
		for _, at := range s.Folders(folder) {
			l := readRun(at)
			if l == nil && s.Again > 0 && s.State == job.Done {
				continue // the load found nothing new
			}
			if l == nil {
				l = &runInfo{Folder: at, State: s.State, Table: s.Table(), Started: s.Started}
				if s.ExitCode != exitcode.OK {
					l.ExitCode = &s.ExitCode
				}
			}
			info.Read, info.Final, info.Rejected = info.Read+l.Read, info.Final+l.Final, info.Rejected+l.Rejected
			info.BadInputs += l.BadInputs
			info.Target = cmp.Or(info.Target, l.Target)
			info.Loads = append(info.Loads, l)
		}
	}
	return info
}

func readSummary(folder string) (*pipeline.Report, error) {
	sum := new(pipeline.Report)
	return sum, rundir.ReadSummary(folder, sum)
}

// held reports whether a process is working on the run.
func held(folder string) bool {
	_, is := rundir.HolderOf(folder)
	return is
}
