package commands

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/csv"
	"example.com/tsimport/transfer/verify"
)

func resumeCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:      "resume",
		Usage:     "resume an unfinished load, sync or job",
		ArgsUsage: "[FOLDER|JOBDIR]",
		Description: "Runs the load's own command again, from its last checkpoint; of a job, the loads that are not done. " +
			"Without FOLDER it resumes the newest unfinished run; tsimport runs lists them all. For a job directory " +
			"(docs/many-machines.md), this machine does the tasks that are left, even if the job was stopped.",
		Flags: append([]cli.Flag{flagNamed("metrics-file")}, flagsOf(options.Machine)...),
		Action: in.with(options.Machine, func(c *call) error {
			if c.NArg() > 1 {
				return told(c, "resume", func(c *call) error {
					return usagef("tsimport resume takes at most one folder, not %d", c.NArg())
				})
			}
			if isJobDir(c.Args().First()) {
				return told(c, "work", func(c *call) error {
					return workOn(c, c.Args().First(), &workTask{resume: true})
				})
			}
			r, err := runToResume(c.Args().First())
			if err == nil && r.record != nil {
				return told(c, "run", func(c *call) error { return resumeJob(c, r) })
			}
			again := c
			if err == nil {
				again, err = runAgain(c, r)
			}
			if err != nil {
				return told(c, "resume", func(*call) error { return err })
			}
			return perform(again)
		}),
	}
}

// runAgain returns the command of a run, to be repeated in the folder where it was started.
func runAgain(c *call, r *runInfo) (*call, error) {
	folder, err := goBack(r.job.Dir, r.Folder, "load")
	if err != nil {
		return nil, err
	}
	of, err := commandOf(r.job.Request)
	if err != nil {
		return nil, err
	}
	of.AcceptChangedInput = false // the flag accepted an earlier change
	own := *of
	takeMachine(of, c.ownCommand())
	of.MetricsFile = cmp.Or(c.of.MetricsFile, of.MetricsFile)
	again := &invocation{args: r.job.Args, goOn: true, folder: folder, own: &own, within: c.in.within}
	if err := takeEnvironment(of); err != nil {
		return nil, err
	}
	return c.again(again, of), nil
}

// goBack changes to the folder where a load or job was started, and returns its own folder's name from there, or "".
func goBack(dir, folder, what string) (string, error) {
	full, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("find the folder of the %s: %w", what, err)
	}
	if dir != "" && !options.Same(dir, ".") {
		if err := os.Chdir(dir); err != nil {
			return "", fmt.Errorf("change to the folder in which the %s was started: %w", what, err)
		}
	}
	if folder == "" {
		return "", nil
	}
	if base, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(base, full); err == nil && !strings.HasPrefix(rel, "..") {
			return rel, nil
		}
	}
	return full, nil
}

// runToResume finds the run in the folder, or the newest unfinished one.
func runToResume(folder string) (*runInfo, error) {
	if folder != "" {
		if err := rundir.CheckOwner(folder); err != nil {
			return nil, usagef("%v", err)
		}
		r := readRun(folder)
		by, held := rundir.HolderOf(folder)
		switch {
		case r == nil:
			return nil, usagef("%s is not a run folder; tsimport runs lists them", folder)
		case r.unfit != nil:
			return nil, r.unfit
		case held:
			return nil, &rundir.HeldError{Path: folder, By: by}
		case r.record != nil:
			return r, nil
		case r.ReplacedBy != "":
			return nil, usagef("run %s was started over as run %s: resume that one", folder, r.ReplacedBy)
		case r.DryRun:
			return nil, usagef("run %s was a dry run, which writes nothing; to load, give its command without --dry-run", folder)
		case !r.Unfinished:
			return nil, usagef("run %s is %s: there is nothing to resume", folder, r.State)
		case len(r.job.Args) == 0 && r.Command == "":
			return nil, usagef("run %s was started by a program through the Go library: start that program again", folder)
		case len(r.job.Args) == 0:
			return nil, usagef("run %s: its command's secret is not kept; repeat the command with it: %s", folder, r.Command)
		}
		return r, nil
	}
	all, err := findRuns(nil)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(r *runInfo) bool {
		return r.Unfinished && r.State != stateRunning && rundir.CheckOwner(r.Folder) == nil
	})
	if j := keep.Begun(); i < 0 && j != nil {
		return &runInfo{job: j}, nil
	}
	if i < 0 { // another process may be working on a run, which the error then names
		i = slices.IndexFunc(all, func(r *runInfo) bool { return r.State == stateRunning })
	}
	if i < 0 {
		return nil, usagef("no run below %s is unfinished", rundir.Root)
	}
	return runToResume(all[i].Folder)
}

// rejectsToRetry finds the rejects of a run that may be loaded now.
func rejectsToRetry(c *call, folder string) (r *runInfo, files []string, sum *pipeline.Report, err error) {
	fail := func(err error) (*runInfo, []string, *pipeline.Report, error) { return nil, nil, nil, err }
	if c.Args().Present() {
		return fail(usagef("--retry-rejects %s: the inputs are the run's rejects; name no others", folder))
	}
	if err := rundir.CheckOwner(folder); err != nil {
		return fail(usagef("--retry-rejects: %v", err))
	}
	r = readRun(folder)
	switch {
	case r != nil && r.unfit != nil:
		return fail(r.unfit)
	case r != nil && r.DryRun:
		return fail(usagef("--retry-rejects %s: that was a dry run; load the corrected input without --dry-run", folder))
	case r != nil && len(r.Loads) > 0:
		at := max(0, slices.IndexFunc(r.Loads, func(l *runInfo) bool { return l.Rejected > 0 }))
		return fail(usagef("--retry-rejects %s: that is the folder of a job; give one of its loads, such as %s",
			folder, r.Loads[at].Folder))
	case r == nil || r.job == nil:
		return fail(usagef("--retry-rejects %s: that is not a run folder; tsimport runs lists them", folder))
	case r.Sync:
		return fail(usagef("--retry-rejects %s: that is a run of tsimport sync; correct its inputs and sync again", folder))
	case r.Unfinished:
		return fail(usagef("--retry-rejects %s: the run is unfinished; run tsimport resume %s", folder, suggest.Arg(folder)))
	case len(r.job.Args) == 0:
		return fail(usagef("--retry-rejects %s: the run's command holds a secret, which is not kept; load the reject files "+
			"with a command of your own", folder))
	case len(r.Retried) > 0 && !c.of.Fresh:
		by := r.Retried[len(r.Retried)-1]
		if left := readRun(by); left != nil && left.Rejected > 0 {
			return fail(usagef("--retry-rejects %s: its rejects were loaded by run %s, which has rejected %s of them again: "+
				"correct them there and give --retry-rejects %s; or give --fresh to load all of them again",
				folder, by, words.Grouped(left.Rejected), suggest.Arg(by)))
		}
		return fail(usagef("--retry-rejects %s: run %s loaded its rejects; give --fresh to load them again", folder, by))
	}
	files, sum, err = rejectsOf(folder)
	if err != nil {
		return fail(err)
	}
	if sum.RejectsMixed && len(files) > 1 {
		return fail(usagef("--retry-rejects %s: its reject files use different dialects or encodings; load each one "+
			"separately, with the flags for it", folder))
	}
	return r, files, sum, nil
}

// retryRejects loads the rejects of a run with that run's settings, which flags can override.
func retryRejects(c *call) error {
	folder := c.of.RetryRejects
	r, files, sum, err := rejectsToRetry(c, folder)
	if err != nil {
		return err
	}
	before, err := settingsOf(folder, r.job)
	if err != nil {
		return err
	}
	if before.Mode == "changes" {
		return usagef("--retry-rejects %s: that was a load of changes, and applying it after later ones would undo them; "+
			"run that command again with --fresh", folder)
	}
	of := c.ownCommand()
	of.RetryRejects = ""
	// Rejects have their own format and are loaded completely.
	before.Clear(options.Names(func(o *options.Option) bool { return o.OfInputs || o.In == options.Load })...)
	if len(sum.RejectsFlags) > 0 {
		before.Clear(options.DialectFlags...)
		if !c.given.IsSet("dialect") {
			if err := setFlags(before, sum.RejectsFlags); err != nil {
				return err
			}
		}
	}
	if sum.RejectsEncoding != "" {
		before.Encoding = sum.RejectsEncoding
	}
	of.After(before)
	of.From = files
	endingOf(c).table = of.Table
	if err := takeEnvironment(of); err != nil {
		return err
	}
	in := &invocation{args: c.in.args, goOn: c.in.goOn, mayChange: c.in.mayChange, folder: c.in.folder, settings: r.job,
		rejects: folder, own: c.ownCommand(), within: c.in.within, ending: c.in.ending}
	return load(c.again(in, of))
}

func setFlags(of *options.Command, flags []string) error {
	for i := 0; i+1 < len(flags); i += 2 {
		name := strings.TrimLeft(flags[i], "-")
		o := options.Find(name)
		if o == nil {
			return usagef("the summary of the run names the flag %s, which this version does not have", flags[i])
		}
		if err := o.Set(of, flags[i+1:i+2]); err != nil {
			return usagef("%v", err)
		}
	}
	return nil
}

// maxRetries limits the length of a chain of loads of rejects.
const maxRetries = 100

// settingsOf returns the command of a run, with the settings of the runs whose rejects it loaded.
func settingsOf(folder string, job *checkpoint.Job) (all *options.Command, err error) {
	of := folder
	for range maxRetries {
		c, err := commandOf(job.Request)
		if err != nil {
			return nil, err
		}
		if c.Name != "load" {
			return nil, usagef("--retry-rejects %s: that run was a %s; correct its source and repeat it", folder, c.Name)
		}
		next := c.RetryRejects
		c.RetryRejects = ""
		if all == nil {
			all = c
		} else {
			all.After(c)
		}
		if next == "" {
			return all, nil
		}
		if of = next; !filepath.IsAbs(of) {
			of = filepath.Join(job.Dir, of)
		}
		if job, err = checkpoint.ReadJob(of); err != nil || len(job.Args) == 0 {
			break
		}
	}
	return nil, usagef("--retry-rejects %s: it loaded the rejects of run %s, whose settings are no longer known; load "+
		"the reject files with a command of your own", folder, of)
}

// rejectsOf returns the files of a run's rejected records, and its summary.
func rejectsOf(folder string) (files []string, sum *pipeline.Report, err error) {
	sum, err = readSummary(folder)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range sum.RejectsFiles {
		// Names in the summary are relative to the folder where the load was started, and the run folder may have been moved.
		below, err := filepath.Rel(sum.RunDir, name)
		if err != nil || !filepath.IsLocal(below) {
			return nil, nil, usagef("--retry-rejects %s: its summary names %s, which is not in the folder", folder, name)
		}
		if filepath.Base(below) == rundir.ReasonsFile {
			continue
		}
		file := filepath.Join(folder, below)
		if _, err := os.Stat(file); err != nil {
			return nil, nil, usagef("--retry-rejects %s: %v; put it back, or load the corrected file yourself", folder, err)
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, nil, usagef("--retry-rejects %s: the run rejected nothing", folder)
	}
	return files, sum, nil
}

// noteRetried marks the run whose rejects this load read as retried, unless all were rejected again.
func noteRetried(in *invocation, r *pipeline.Report) error {
	if in.rejects == "" || r.State != pipeline.StateFinished || r.Written+r.Superseded+r.ConditionFailed+r.Archived == 0 {
		return nil
	}
	job, err := checkpoint.ReadJob(in.rejects)
	if err != nil {
		return err
	}
	by := r.RunDir
	if abs, err := filepath.Abs(by); err == nil {
		by = abs
	}
	job.Retried = append(job.Retried, by)
	return job.Write(in.rejects)
}

// addRetried extends a comparison with a run by the files of loads of its rejects, after the run's own inputs: their
// rows are not surplus. It returns the runs whose files are read differently from the run's inputs.
func addRetried(v *verify.Config, run *rundir.Run) (without []string) {
	own, err := commandOf(run.Request)
	alike := err == nil && v.Request.Read.Sources == nil && run.RejectsEncoding == "" &&
		(len(run.RejectsFlags) == 0 || slices.Equal(run.RejectsFlags, csv.Default.Flags())) &&
		!slices.ContainsFunc(append(slices.Clone(options.DialectFlags), "format", "encoding", "skip-lines", "limit"),
			own.IsSet)
	request := *v.Request
	request.Inputs = slices.Clone(request.Inputs)
	rejected := rundir.Rejected{}
	maps.Copy(rejected, v.Rejected)
	for queue := slices.Clone(run.Retried); len(queue) > 0; queue = queue[1:] {
		by, err := rundir.ReadRun(queue[0])
		if err != nil || !alike || !sameRows(by) {
			without = append(without, queue[0])
			continue
		}
		for _, name := range by.Inputs {
			at := name
			if !filepath.IsAbs(at) {
				at = filepath.Join(by.Directory, name)
			}
			if here, err := os.Getwd(); err == nil && filepath.Clean(here) == filepath.Clean(by.Directory) {
				at = name
			}
			request.Inputs = append(request.Inputs, at)
			if records := by.Rejected[name]; len(records) > 0 {
				rejected[at] = records
			}
		}
		queue = append(queue, by.Retried...)
	}
	v.Request, v.Rejected = &request, rejected
	return without
}

// sameRows reports whether a load of rejects has no options that change its rows.
func sameRows(run *rundir.Run) bool {
	load, err := commandOf(run.Request)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(options.OfCommand(load.Name), func(o *options.Option) bool {
		return load.IsSet(o.Name) && !o.MayChange
	})
}
