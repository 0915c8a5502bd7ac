package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader"
)

func resumeCommand(interrupts *interrupts, show *display, in *invocation) *cli.Command {
	return &cli.Command{
		Name:      "resume",
		Usage:     "resume an unfinished load, sync or job",
		ArgsUsage: "[FOLDER|JOBDIR]",
		Description: "Runs the load's own command again, from its last checkpoint; of a job, the loads that are not done. Without FOLDER it resumes the newest unfinished run;\n" +
			"tsimport runs lists them all. Of a job directory (docs/scale-out.md) it does what is left on this machine, also after the job was stopped.",
		Flags: append([]cli.Flag{flagNamed("metrics-file")}, workFlags()...),
		Action: in.act(func(c *call) error {
			if err := checkEnding(c); err != nil {
				return err
			}
			if c.NArg() > 1 {
				return usagef("tsimport resume takes one run folder, not %d", c.NArg())
			}
			if isJobDir(c.Args().First()) {
				return told(c, show, "work", func(c *call) error { return workOn(c, interrupts, show, true) })
			}
			r, err := runToResume(c.Args().First())
			if err != nil {
				return err
			}
			if r.record != nil {
				return told(c, show, "run", func(c *call) error { return resumeJob(c, interrupts, show, r.Folder) })
			}
			if left := r.toRestore(); left != "" {
				say(c, show, "warning: %s", left)
			}
			folder, err := filepath.Abs(r.Folder)
			if err != nil {
				return fmt.Errorf("find run folder: %w", err)
			}
			if r.job.Dir != "" && !sameFolder(r.job.Dir, ".") {
				if err := os.Chdir(r.job.Dir); err != nil {
					return fmt.Errorf("go to the folder in which the load was started: %w", err)
				}
			}
			if base, err := os.Getwd(); err == nil {
				if rel, err := filepath.Rel(base, folder); err == nil && !strings.HasPrefix(rel, "..") {
					folder = rel
				}
			}
			args, err := resumedArguments(newApp(c.App.Writer, show, interrupts, nil), r.job.Args, c)
			if err != nil {
				return err
			}
			return again(c, interrupts, show, &invocation{args: args, goOn: true, folder: folder, within: c.in.within})
		}),
	}
}

// runToResume finds the run in the folder, or the newest one that did not finish.
func runToResume(folder string) (*runInfo, error) {
	if folder != "" {
		if err := rundir.CheckOwner(folder); err != nil {
			return nil, usagef("%v", err)
		}
		r := readRun(folder)
		switch {
		case r == nil:
			return nil, usagef("%s is not a run folder; tsimport runs lists them", folder)
		case r.record != nil:
			return r, nil
		case r.ReplacedBy != "":
			return nil, usagef("run %s was started over as run %s: resume that one", folder, r.ReplacedBy)
		case r.DryRun:
			return nil, usagef("run %s was a dry run, which writes nothing; to load, give its command without --dry-run", folder)
		case !r.Unfinished && r.Raised != nil:
			return nil, usagef("run %s is %s, with the %s", folder, r.State, r.toRestore())
		case !r.Unfinished:
			return nil, usagef("run %s is %s: there is nothing to resume", folder, r.State)
		case len(r.job.Args) == 0 && r.Command == "":
			return nil, usagef("run %s was started by a program through the Go library: start that program again", folder)
		case len(r.job.Args) == 0:
			return nil, usagef("run %s: its command holds a secret, which is not kept; give the command again: %s", folder, r.Command)
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
	if i < 0 {
		return nil, usagef("no run below %s is unfinished", rundir.Root)
	}
	return runToResume(all[i].Folder)
}

// resumedArguments are a load's arguments without --accept-changed-input, for what was accepted then was another change. Flags that say who
// is told how it ends come from the command that resumes it, if that has them.
func resumedArguments(app *cli.App, args []string, c *call) ([]string, error) {
	args, err := withoutGone(args)
	if err != nil {
		return nil, err
	}
	sorted, err := flagsFirst(app, append([]string{os.Args[0]}, args...))
	if err != nil {
		return nil, err
	}
	flags, inputs := cutInputs(sorted[2:])
	command := findCommand(app.Commands, sorted[1])
	if command == nil {
		return nil, usagef("the run's command is %q, which this version does not have", sorted[1])
	}
	without, more := []string{"accept-changed-input"}, []string{}
	for _, name := range endingNames {
		if c.IsSet(name) {
			without, more = append(without, name), append(more, "--"+name+"="+c.String(name))
		}
	}
	rest := slices.Concat([]string{sorted[1]}, withoutFlags(command.Flags, flags, without), more)
	if len(inputs) > 0 {
		rest = append(append(rest, "--"), inputs...)
	}
	return rest, nil
}

// again runs a command of a run.
func again(c *call, interrupts *interrupts, show *display, in *invocation) error {
	app := newApp(c.App.Writer, show, interrupts, in)
	args, err := flagsFirst(app, append([]string{os.Args[0]}, in.args...))
	if err != nil {
		return err
	}
	return app.RunContext(c.Context, withEnvironment(app, args))
}

// otherSettings are flags that a load of rejects does not take over from the load that rejected them: rejects have a form
// of their own, and are loaded whole.
var otherSettings = []string{
	"format", "source-table", "encoding", "skip-lines", "limit", "run-dir", "fresh", "accept-changed-input", "retry-rejects", "dry-run",
	"query", "require-snapshot",
}

// retryRejects loads what a run has rejected with the settings of that run; flags that are given now come after its own.
func retryRejects(c *call, interrupts *interrupts, show *display, asked *invocation) error {
	folder := c.String("retry-rejects")
	if c.Args().Present() {
		return usagef("--retry-rejects %s: the inputs are the run's rejects; name no others", folder)
	}
	if err := rundir.CheckOwner(folder); err != nil {
		return usagef("--retry-rejects: %v", err)
	}
	r := readRun(folder)
	switch {
	case r != nil && r.DryRun:
		return usagef("--retry-rejects %s: that was a dry run, which writes nothing; load the corrected input without --dry-run", folder)
	case r == nil || r.job == nil:
		return usagef("--retry-rejects %s: that is not a run folder; tsimport runs lists them", folder)
	case r.Sync:
		return usagef("--retry-rejects %s: that is a run of tsimport sync; correct its inputs and sync again", folder)
	case r.Unfinished:
		return usagef("--retry-rejects %s: the run is not finished; finish it first: tsimport resume %s", folder, suggest.Arg(folder))
	case len(r.job.Args) == 0:
		return usagef("--retry-rejects %s: the run's command holds a secret, which is not kept; load the reject files with a command of your own", folder)
	case len(r.Retried) > 0 && !c.Bool("fresh"):
		by := r.Retried[len(r.Retried)-1]
		if left := readRun(by); left != nil && left.Rejected > 0 {
			return usagef("--retry-rejects %s: its rejects were loaded by run %s, which has rejected %s of them again: correct them there and give --retry-rejects %s; or give --fresh to load all of them again",
				folder, by, words.Grouped(left.Rejected), suggest.Arg(by))
		}
		return usagef("--retry-rejects %s: its rejects were loaded by run %s; give --fresh to load them again", folder, by)
	}
	files, sum, err := rejectsOf(folder)
	if err != nil {
		return err
	}
	if sum.RejectsMixed && len(files) > 1 {
		return usagef("--retry-rejects %s: its reject files use different dialects or encodings; load each one separately, with the flags for it", folder)
	}
	app := newApp(c.App.Writer, show, interrupts, nil)
	load := findCommand(app.Commands, "load")
	flags, inputs, err := settingsOf(app, load.Flags, folder, r.job)
	if err != nil {
		return err
	}
	args := append([]string{"load"}, withoutFlags(load.Flags, flags, append(onceNames(), otherSettings...))...)
	switch {
	case len(sum.RejectsFlags) > 0:
		args = withoutFlags(load.Flags, args, options.DialectFlags)
		if !c.IsSet("dialect") {
			args = append(args, sum.RejectsFlags...)
		}
	case len(inputs) > 0 && !slices.Contains(args, "--delimiter") && byTabs(inputs[0]): // a run of an earlier version
		args = append(args, "--delimiter", `\t`)
	}
	if sum.RejectsEncoding != "" {
		args = append(args, "--encoding", sum.RejectsEncoding)
	}
	given, err := flagsFirst(app, append([]string{os.Args[0]}, asked.args...))
	if err != nil {
		return err
	}
	now, _ := cutInputs(given[2:])
	args = append(args, withoutFlags(load.Flags, now, []string{"retry-rejects"})...)
	args = append(append(args, "--"), files...)
	full, err := flagsFirst(app, append([]string{os.Args[0]}, args...))
	if err != nil {
		return err
	}
	in := &invocation{args: asked.args, goOn: asked.goOn, folder: asked.folder, settings: r.job, rejects: folder, within: asked.within}
	return newApp(c.App.Writer, show, interrupts, in).RunContext(c.Context, withEnvironment(app, full))
}

// maxRetries is how many loads of each other's rejects are followed.
const maxRetries = 100

// settingsOf returns the flags of a run and its inputs. Before its own flags stand those of the runs whose rejects it loaded.
func settingsOf(app *cli.App, known []cli.Flag, folder string, job *checkpoint.Job) (flags, inputs []string, err error) {
	of := folder
	for n := range maxRetries {
		kept, err := withoutGone(job.Args)
		if err != nil {
			return nil, nil, err
		}
		sorted, err := flagsFirst(app, append([]string{os.Args[0]}, kept...))
		if err != nil {
			return nil, nil, err
		}
		if sorted[1] != "load" {
			return nil, nil, usagef("--retry-rejects %s: that run was a %s; correct the rows in its source and give its command again", folder, sorted[1])
		}
		own, named := cutInputs(sorted[2:])
		if n == 0 {
			inputs = named
		}
		flags = append(withoutFlags(known, own, []string{"retry-rejects"}), flags...)
		asked, err := contextOf(job.Args)
		if err != nil {
			return nil, nil, err
		}
		next := asked.String("retry-rejects")
		if next == "" {
			return flags, inputs, nil
		}
		if of = next; !filepath.IsAbs(of) {
			of = filepath.Join(job.Dir, of)
		}
		if job, err = checkpoint.ReadJob(of); err != nil || len(job.Args) == 0 {
			break
		}
	}
	return nil, nil, usagef("--retry-rejects %s: it loaded the rejects of run %s, which no longer says its settings; load the reject files with a command of your own", folder, of)
}

// rejectsOf returns the files with a run's rejected records, and the run's summary.
func rejectsOf(folder string) (files []string, sum *pipeline.Report, err error) {
	sum, err = readSummary(folder)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range sum.RejectsFiles {
		// Names in the summary are those of the folder in which the load was started; the run folder may have been moved.
		below, err := filepath.Rel(sum.RunDir, name)
		if err != nil || !filepath.IsLocal(below) {
			return nil, nil, usagef("--retry-rejects %s: its summary names %s, which is not in the folder", folder, name)
		}
		if filepath.Base(below) == rundir.ReasonsFile {
			continue
		}
		file := filepath.Join(folder, below)
		if _, err := os.Stat(file); err != nil {
			return nil, nil, usagef("--retry-rejects %s: %v; put it back, or load the corrected file with a command of your own", folder, err)
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, nil, usagef("--retry-rejects %s: the run rejected nothing", folder)
	}
	return files, sum, nil
}

// cutInputs cuts sorted arguments into flags and what follows --.
func cutInputs(args []string) (flags, inputs []string) {
	if i := slices.Index(args, "--"); i >= 0 {
		return args[:i], args[i+1:]
	}
	return args, nil
}

// withoutFlags leaves out flags, and their values, by their names.
func withoutFlags(known []cli.Flag, args, names []string) (rest []string) {
	drop := map[string]bool{}
	for _, f := range known {
		for _, name := range f.Names() {
			drop[name] = slices.ContainsFunc(f.Names(), func(n string) bool { return slices.Contains(names, n) })
		}
	}
	values := valueFlags(known)
	for i := 0; i < len(args); i++ {
		name, _, inOne := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		n := 1
		if values[name] && !inOne {
			n = 2
		}
		if !drop[name] {
			rest = append(rest, args[i:min(i+n, len(args))]...)
		}
		i += n - 1
	}
	return rest
}

// byTabs reports whether an input's name says that its fields stand between tabs.
func byTabs(name string) bool {
	extension := reader.Extension(name)
	return extension == ".tsv" || extension == ".tab"
}

// noteRetried makes the run whose rejects were loaded remember it, if a row of them was loaded: the others are rejects of this
// load.
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
