package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/runmetrics"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/checkpoint"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/open"
	"example.com/tsimport/transfer/restore"
	"example.com/tsimport/transfer/tablesync"
)

func runCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:      "run",
		Usage:     "run the loads of a job file, in their order and several at a time",
		ArgsUsage: "JOB.yaml [NAME...]",
		Description: "A job file names loads, copies, syncs and exports; its keys are the names of flags (docs/jobs.md). " +
			"NAME runs only these loads.\n" +
			"The job's folder has a run folder for each load. The same command again, or tsimport resume FOLDER, resumes a " +
			"job that has not finished; loads that are done are not run again. The flags of loads that are listed below apply " +
			"to every load and override the file; memory, requests in flight and ceilings are for all loads together.\n" +
			"The exit code is the first of 130, 143, 129, 141, 1, 5, 4, 2, 6, 7, 3 and 0 that a load has ended with.",
		Flags:  runFlags(),
		Action: in.with(options.Reaching|options.Ending, func(c *call) error { return runJob(c, in) }),
	}
}

func runFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.IntFlag{Name: "parallel", Usage: "run `N` loads at a time (default: as the file says, or 1)"},
		&cli.BoolFlag{Name: "plan", Usage: "show what each load would do: files, rows, columns, table, write units, time; " +
			"write nothing (docs/jobs.md)"},
		&cli.BoolFlag{Name: "fresh", Usage: "start over, even if this job is unfinished (default: resume it)"},
		&cli.BoolFlag{Name: "accept-changed-input",
			Usage: "resume loads although their inputs have changed; the parts already read must be the same"},
		&cli.StringFlag{Name: "run-dir", Usage: "`DIR` for the job: what it is, how its loads ended, and their run folders " +
			"(default ./tsimport-runs/<time>-<file>)"},
		&cli.StringFlag{Name: "job-dir", Usage: "plan the loads for many machines, in an empty `PLACE` that all of them " +
			"reach; tsimport work does them (docs/many-machines.md)"},
		&cli.IntFlag{Name: "workers", Usage: "--job-dir: how many `PROCESSES` are expected", Value: 4},
		&cli.BoolFlag{Name: "json", Usage: "print how the job ended, or the plan, as JSON on stdout"},
		&cli.BoolFlag{Name: "schema", Usage: "print the JSON schema of job files, for editors (docs/job.schema.json)"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show errors only"},
	}, flagsOf(options.Reaching|options.Jobs|options.Ending)...)
}

// ownFlags are flags of tsimport run that are not keys of a job file.
var ownFlags = []string{"parallel", "plan", "fresh", "accept-changed-input", "run-dir", "job-dir", "workers", "json",
	"schema", "quiet", "help"}

func runJob(c *call, in *invocation) error {
	if c.Bool("schema") {
		text, err := job.NewVocabulary().Schema()
		if err == nil {
			_, err = c.App.Writer.Write(text)
		}
		return err
	}
	if !c.Args().Present() {
		return usagef("no job: give a job file, as in tsimport run job.yaml")
	}
	endingOf(c).load = jobName(c.Args().First())
	if n := c.Int("parallel"); n < 0 || c.IsSet("parallel") && n == 0 {
		return usagef("--parallel %d: want 1 or more", n)
	}
	r, err := readJob(c, c.Args().Tail())
	if err == nil && c.Bool("fresh") && c.NArg() > 1 && c.String("run-dir") == "" {
		r, err = wholeJob(c, r)
	}
	if err != nil {
		return jobError(err)
	}
	switch {
	case len(r.StdinReaders()) > 0 && (c.Bool("plan") || c.IsSet("job-dir")):
		return usagef("load %s reads standard input, which one process can read once; leave out --plan and --job-dir, "+
			"or name other loads", r.StdinReaders()[0].Name)
	case c.Bool("plan"):
		return planJob(c, r)
	case c.IsSet("job-dir"):
		return planJobDirs(c, r, c.String("job-dir"), c.Int("workers"))
	case c.IsSet("workers"):
		return usagef("--workers is for jobs that --job-dir plans for many processes; leave it out, or give --job-dir too")
	}
	r.Command, r.Dir = in.command(), workingDirectory()
	folder, release, err := claimJob(c, r)
	if err != nil {
		return jobError(err)
	}
	defer release()
	return runRecord(c, folder, r)
}

func jobName(file string) string { return strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)) }

func jobError(err error) error {
	if none := new(job.NoInputError); errors.As(err, &none) {
		return &plan.UsageError{Message: err.Error(), Input: true, Nothing: true}
	}
	if wrong := new(job.Error); errors.As(err, &wrong) {
		return usagef("%v", err)
	}
	return err
}

func readJob(c *call, names []string) (*job.Record, error) {
	file, err := readJobFile(c, names)
	if err != nil {
		return nil, err
	}
	return job.NewRecord(file, names, os.LookupEnv)
}

// wholeJob returns the job of all loads of the file if an unfinished one exists, or else the job of the named loads.
func wholeJob(c *call, named *job.Record) (*job.Record, error) {
	whole, err := readJob(c, nil)
	if err != nil {
		return nil, err
	}
	folder, _, err := job.Find(rundir.Root, whole.Identity)
	if folder == "" || err != nil {
		return named, err
	}
	return whole, nil
}

// readJobFile reads the file of the first argument, with the loads that the names select.
func readJobFile(c *call, names []string) (*job.File, error) {
	file, err := job.Read(c.Args().First(), job.NewVocabulary())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("%v", err)
	}
	if err != nil {
		return nil, jobError(err)
	}
	overrideJob(c, file)
	find := func(ctx context.Context, l *job.Single, pattern string) ([]job.Found, error) {
		if err := open.Check(pattern, l.Table()); err != nil {
			return nil, usagef("%v", err)
		}
		if open.IsDatabase(pattern) {
			return tableAddresses(ctx, pattern)
		}
		find := storesOf(c)
		find.NotData = notData(&options.Request{Running: options.Running{RunDir: c.String("run-dir")}}, c.of.Store)
		set, err := input.Expand(ctx, []string{pattern}, find)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, err
		}
		var found []job.Found
		for i := range set.Items {
			found = append(found, job.Found{Name: set.Items[i].Name})
		}
		return found, nil
	}
	expanded, err := file.Expand(c.interrupts.drain, os.LookupEnv, find)
	if err == nil {
		err = expanded.Select(names, file)
	}
	if err == nil {
		err = expanded.Check()
	}
	return expanded, err
}

func overrideJob(c *call, file *job.File) {
	if c.IsSet("parallel") {
		file.Parallel = c.Int("parallel")
	}
	file.Parallel = max(1, file.Parallel)
	for _, f := range c.Command.Flags {
		name := f.Names()[0]
		if !c.IsSet(name) || slices.Contains(ownFlags, name) {
			continue
		}
		s := job.Setting{Key: name, Values: valuesOf(c.line, f)}
		if o := options.Find(name); o != nil && (o.Scope == options.OfJob || o.Scope == options.OfBoth) {
			file.Common = with(file.Common, s)
			continue
		}
		for i := range file.Loads {
			l := &file.Loads[i]
			if slices.Contains(targetKeys, name) && slices.Contains(c.in.ofEnv, name) && namesTarget(l.Settings) {
				continue // the job file names the target
			}
			if o := options.For(l.Command, name); o != nil && o.InJobs(l.Command) {
				l.Settings = with(l.Settings, s)
			}
		}
	}
}

// targetKeys are the keys that select the Tablestore. The environment applies if a job file names none of them.
var targetKeys = []string{"endpoint", "instance", "store", "profile"}

func namesTarget(settings []job.Setting) bool {
	return slices.ContainsFunc(settings, func(s job.Setting) bool { return slices.Contains(targetKeys, s.Key) })
}

func with(all []job.Setting, s job.Setting) []job.Setting {
	all = slices.DeleteFunc(slices.Clone(all), func(t job.Setting) bool { return t.Key == s.Key })
	return append(all, s)
}

// claimJob finds the folder of the job, new or resumed, and takes its lock, so that only one process runs a job.
func claimJob(c *call, r *job.Record) (folder string, release func(), err error) {
	var locks []*rundir.Lock
	release = func() {
		for _, l := range locks {
			_ = l.Release() // if this fails, the end of the process releases it
		}
	}
	fail := func(err error) (string, func(), error) { release(); return "", nil, err }
	folder = c.String("run-dir")
	var before *job.Record
	if folder == "" {
		claim, err := rundir.TakeClaim(filepath.Join(rundir.Root, ".locks"), r.Identity)
		if err != nil {
			return fail(err)
		}
		locks = append(locks, claim)
		folder, before, err = job.Find(rundir.Root, r.Identity)
		if err != nil && !(c.Bool("fresh") && errors.As(err, new(*progress.UnfitError))) {
			return fail(err)
		}
	} else if before, err = job.ReadRecord(folder); err != nil &&
		!errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return fail(err)
	}
	if before != nil {
		lock, err := rundir.TakeLock(folder)
		if err != nil {
			return fail(err)
		}
		locks = append(locks, lock)
		resumes, err := continueJob(c, r, before, folder)
		if err != nil {
			return fail(err)
		}
		if resumes {
			return folder, release, nil
		}
	}
	if c.String("run-dir") == "" {
		folder = rundir.DefaultPath(time.Now(), jobName(r.File))
	}
	lock, err := rundir.TakePassing(folder)
	if err != nil {
		return fail(err)
	}
	lock.Keep()
	locks = append(locks, lock)
	r.Started = time.Now().UTC()
	return folder, release, nil
}

// continueJob reports whether a job resumes the one in a folder. Otherwise it starts that one over.
func continueJob(c *call, r, before *job.Record, folder string) (resumes bool, err error) {
	switch own := c.String("run-dir") != ""; {
	case own || !c.Bool("fresh"):
	case c.NArg() > 1:
		if err := r.Continue(before); err != nil {
			return false, err
		}
		r.Restart(c.Args().Tail())
		c.say.Line("resuming job %s; %s started over", folder, strings.Join(c.Args().Tail(), ", "))
		return true, nil
	default:
		before.State = job.Replaced
		return false, before.Write(folder)
	}
	if err := continues(c, r, before, folder); err != nil {
		return false, err
	}
	if err := r.Continue(before); err != nil {
		return false, err
	}
	again := ""
	if n := r.BeginAgain(before.State == job.Failed); n > 0 {
		again = fmt.Sprintf("; %d finished ones run again for new inputs", n)
	}
	done, all := r.DoneOf()
	c.say.Line("resuming job %s: %d of %d loads are done%s (--fresh starts over)", folder, done, all, again)
	return true, nil
}

// continues refuses a folder in which the job cannot be resumed: it has another job, a finished one, or one that
// --fresh starts over.
func continues(c *call, r, before *job.Record, folder string) error {
	switch {
	case c.Bool("fresh"):
		return usagef("--fresh: %s is the folder of the job that is started over; name another with --run-dir", folder)
	case before.Identity != r.Identity:
		return usagef("--run-dir %s is the folder of another job: %s; name another", folder, before.Command)
	case !before.Unfinished():
		return usagef("--run-dir %s: the job in it has finished; name another", folder)
	}
	return nil
}

func resumeJob(c *call, found *runInfo) error {
	folder := found.Folder
	endingOf(c).load = jobName(found.record.File)
	lock, err := rundir.TakeLock(folder)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }()
	r, err := job.ReadRecord(folder)
	switch {
	case err != nil:
		return err
	case r.State == job.Replaced:
		return usagef("job %s was started over; tsimport runs lists the runs", folder)
	case !r.Unfinished():
		return usagef("job %s is done: there is nothing to resume", folder)
	}
	if folder, err = goBack(r.Dir, folder, "job"); err != nil {
		return err
	}
	if err := r.SameVariables(os.LookupEnv); err != nil {
		return jobError(err)
	}
	return runRecord(c, folder, r)
}

// runRecord runs the remaining loads of a job and reports the results.
func runRecord(c *call, folder string, r *job.Record) (err error) {
	common, err := job.ResolveSettings(r.File, r.Common, os.LookupEnv)
	if err != nil {
		return jobError(err)
	}
	s, err := newSession(common, min(r.Parallel, len(r.Loads)))
	if err != nil {
		return err
	}
	s.quiet = c.of.Quiet
	defer func() { err = closed(err, s.close()) }()
	o := &jobRunner{c: c, session: s, folder: folder, record: r}
	if err := o.shareStdin(os.Stdin); err != nil {
		return err
	}
	if err := takeEarlier(c, folder, r); err != nil {
		return err
	}
	limitMemory(s.memory, false)
	c.interrupts.drains()
	began := time.Now()
	stop := func() {}
	if c.show.terminal && !s.quiet {
		c.show.board = new(board)
		stop = c.show.repaint(c.show.board.lines)
	}
	s.moments = o.readTogether()
	defer s.moments.Close()
	err = r.Run(c.interrupts.drain, folder, o.run, o.told)
	stop()
	o.noteStdin()
	if o.noteMoments() || o.record.ResumeFrom != nil {
		err = errors.Join(err, r.Write(folder))
	}
	o.summarize(time.Since(began))
	o.ending(endingOf(c))
	if c.of.JSON {
		err = errors.Join(err, printJSON(c, r))
	}
	code := r.ExitCode
	switch {
	case err != nil:
		code = exitcode.Of(err)
	case c.interrupts.drain.Err() != nil && r.Unfinished():
		code = exitcode.Of(context.Cause(c.interrupts.drain))
	case code == exitcode.OK:
		return nil
	}
	return endsWith(c, code, err, o.brief())
}

type jobRunner struct {
	c       *call
	session *session
	folder  string
	record  *job.Record
	reads   map[string]*tableRead // loads of database tables, by name
	untold  []*job.State          // unsuccessful loads not yet reported; see told and brief

	ends       map[string]*io.PipeReader // pipes from standard input, by load
	beginStdin func()
}

func (o *jobRunner) run(_ context.Context, s *job.State) job.Outcome {
	dir := s.Folder(o.folder)
	interrupts, stop := o.c.interrupts.ofLoad()
	defer stop()
	in := &invocation{goOn: !s.Fresh || hasRun(dir), folder: dir, mayChange: s.Changed}
	if end := o.ends[s.Name]; end != nil {
		o.beginStdin()
		defer end.Close()
		in.stdin = end
	}
	err := o.command(interrupts.hard, s, in, o.c.show.of(s.Name), interrupts)
	if of := o.reads[s.Name]; of != nil && of.moment != nil {
		of.moment.Ended()
	}
	why := ""
	if err != nil {
		why = input.RedactText(client.OneLine(err.Error()))
	}
	out := soFar(o.folder, s, exitcode.Of(err), why)
	if only := new(pipeline.OnlyBadError); errors.As(err, &only) {
		out.BadInputs = int64(len(only.Bad))
	}
	return out
}

// soFar adds to a load's outcome the counts of its earlier runs of this night, whose inputs are not read again.
func soFar(folder string, s *job.State, code int, why string) job.Outcome {
	out, rejected, in := job.Outcome{ExitCode: code}, int64(0), []string{}
	for i, dir := range s.Folders(folder)[s.Told:] {
		n := countsOf(dir)
		if i < s.Again-s.Told {
			n.BadInputs = 0 // this run has tried them again
			if rejected += n.Rejected; n.Rejected > 0 {
				in = append(in, dir)
			}
		}
		out.Add(n)
	}
	if rejected > 0 {
		out.ExitCode = cmp.Or(code, exitcode.Rejects)
		why += fmt.Sprintf("; an earlier attempt rejected %s, see %s", counted(rejected, "row"), strings.Join(in, ", "))
	}
	out.Error = strings.TrimPrefix(why, "; ")
	return out
}

func (o *jobRunner) command(ctx context.Context, s *job.State, in *invocation, show *display,
	interrupts *interrupts) error {
	resolved, of, err := o.asked(s)
	if err != nil {
		return err
	}
	if err := o.mayRead(s.Name); err != nil {
		return err
	}
	own := *of
	in.args, in.session, in.own = resolved.Arguments(), o.session, &own
	o.share(of)
	of.Fresh = of.Fresh || !in.goOn
	if err := takeEnvironment(of); err != nil {
		return err
	}
	of.FailIfNothingNew = of.FailIfNothingNew && s.Again == s.Told // an earlier attempt found new inputs
	return perform(in.again(ctx, of, io.Discard, interrupts, show))
}

// asked returns a load with its variables resolved, and its command.
func (o *jobRunner) asked(s *job.State) (resolved job.Single, of *options.Command, err error) {
	if s.Refused != "" {
		return resolved, nil, usagef("%s", s.Refused)
	}
	if resolved, err = s.Resolve(o.record.File, os.LookupEnv); err != nil {
		return resolved, nil, jobError(err)
	}
	if resolved.ReadsStdin() && !s.ReadsStdin() {
		return resolved, nil, usagef("from: a variable cannot name standard input; write - there")
	}
	of, err = o.requested(&resolved)
	return resolved, of, err
}

// share gives a load its part of the job's shared limits.
func (o *jobRunner) share(of *options.Command) {
	of.Memory = cmp.Or(of.Memory, o.session.each)
	if of.Name != job.Export { // an export's --concurrency limits reading
		of.Concurrency = cmp.Or(of.Concurrency, o.session.requests)
	}
	of.AcceptChangedInput = o.c.Bool("accept-changed-input")
	of.Quiet = !o.session.readOnly && (o.c.show.log == nil || o.c.of.Quiet)
}

// requested returns the command of a load, without overrides by the environment.
func (o *jobRunner) requested(l *job.Single) (*options.Command, error) {
	of := &options.Command{Name: l.Command, Request: options.Request{From: slices.Clone(l.From), Table: l.Table()}}
	if l.Command == job.Copy {
		of.From, of.Table = append(of.From, of.Table), ""
	}
	for _, t := range l.Settings {
		if _, _, ok := fromEnvironment(t.Key); ok && !o.c.IsSet(t.Key) && !slices.Contains(targetKeys, t.Key) ||
			t.Key == "table" {
			continue
		}
		option := options.For(l.Command, t.Key)
		if option == nil {
			return nil, usagef("the job was given %s, which this version does not support for %s", t.Key, l.Command)
		}
		if err := option.Set(of, t.Values); err != nil {
			return nil, usagef("%v", err)
		}
		if isPath(option.Usage) && isAddress(t.Values[0]) {
			return nil, usagef("--%s %s: want a path on this machine, not an address", t.Key, redacted(t.Values[0]))
		}
	}
	return of, nil
}

// takeEarlier examines the folders of loads for results of earlier processes. A load that ended in a process that was
// killed before recording it is done. Unfinished leftovers of loads that start over are moved away.
func takeEarlier(c *call, folder string, r *job.Record) error {
	for _, s := range r.Loads {
		if !s.ComesAgain() {
			s.Again, s.Told = 0, 0 // a changed load reads all inputs
		}
		dir, before := s.Folder(folder), s.State
		s.Fresh = s.Fresh && (s.State == job.Waiting || !hasRun(dir))
		if before == job.Running {
			endedBefore(c, s, folder)
		}
		switch {
		case s.State == job.Done:
			continue
		case s.ComesAgain() && finished(dir) != nil:
			s.Again++
			dir = s.Folder(folder) // not empty if the job file had another load of this name
			fallthrough
		case before != job.Running && (s.Fresh || !unfinished(dir)):
			if err := rundir.KeepEarlier(dir); err != nil {
				return err
			}
		}
		if r.Later {
			s.Told = s.Again
		}
		if s.Again > 0 {
			s.Counts = soFar(folder, s, exitcode.OK, "").Counts
		}
	}
	return nil
}

// finished returns the summary of a finished load in a folder, or nil.
func finished(dir string) *pipeline.Report {
	if sum, err := readSummary(dir); err == nil && !unfinished(dir) && sum.State == pipeline.StateFinished {
		return sum
	}
	return nil
}

func hasRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, checkpoint.JobFile))
	return err == nil
}

// unfinished reports whether a load's folder holds a resumable run.
func unfinished(dir string) bool {
	is, open := tablesync.Unfinished(dir)
	return is && open || checkpoint.Exists(dir)
}

// endedBefore records the end of a load in an earlier process that was killed before recording it.
func endedBefore(c *call, s *job.State, folder string) {
	if s.Command == job.Export {
		if m, err := restore.At(c.Context, s.Value("output"), storesOf(c)); err == nil && m != nil &&
			m.Ended.After(s.Started) {
			s.State, s.Ended = job.Done, m.Ended
		}
		return // an export writes its file again
	}
	if sum := finished(s.Folder(folder)); sum != nil && (sum.ExitCode == exitcode.OK || sum.ExitCode == exitcode.Rejects) {
		out := soFar(folder, s, sum.ExitCode, "")
		s.State, s.Ended, s.ExitCode, s.Error, s.Counts = job.Done, time.Now().UTC(), out.ExitCode, out.Error, out.Counts
	}
}

// countsOf reads the counts of a load from its run folder.
func countsOf(dir string) (n job.Counts) {
	if sum, err := tablesync.ReadSummary(dir); err == nil && sum.RowsExpected+sum.Puts+sum.Deletes > 0 {
		return job.Counts{Read: sum.Read, Written: sum.Written,
			Rejected: sum.Rejected + sum.PutsRejected + sum.DeletesRejected, Superseded: sum.Superseded,
			ConditionFailed: sum.ConditionFailed}
	}
	sum, err := readSummary(dir)
	if err != nil {
		return n
	}
	return *countsOfReport(sum)
}

// told reports the state of a load. At the end of the job, or if nothing else is shown, it holds back an unsuccessful
// end, because the last line may report it.
func (o *jobRunner) told(s *job.State) {
	open := func(s *job.State) bool { return s.State == job.Running || s.State == job.Waiting }
	if s.Error != "" && s.State != job.Held && o.c.show.log == nil &&
		(o.c.of.Quiet || !slices.ContainsFunc(o.record.Loads, open)) {
		o.untold = append(o.untold, s)
		return
	}
	o.tell(s)
}

func (o *jobRunner) tell(s *job.State) {
	show := o.c.show.of(s.Name)
	switch s.State {
	case job.Running:
	case job.Held:
		if o.c.show.log != nil {
			show.say.Warn("not run: %s", s.Error)
			return
		}
		show.say.Line("not run: %s", s.Error)
	case job.Done:
		done, all := o.record.DoneOf()
		if s.Error != "" { // shown despite --quiet
			o.c.show.say.Warn("%s: %s (%d of %d loads done)", s.Name, s.Error, done, all)
			return
		}
		o.c.say.Line("%s: done: %s (%d of %d loads)", s.Name, countsText(&s.Counts), done, all)
	default:
		if o.c.show.log != nil {
			show.event(slog.LevelError, eventError, cmp.Or(s.Error, s.State), slog.Int("exit_code", s.ExitCode))
			return
		}
		text := ""
		if s.Error != "" {
			text = ": " + s.Error
		}
		show.say.Line("%s, exit code %d%s", s.State, s.ExitCode, text)
	}
}

func countsText(n *job.Counts) string {
	text := fmt.Sprintf("%s read, %s written, %s rejected, %s superseded", words.Grouped(n.Read), words.Grouped(n.Written),
		words.Grouped(n.Rejected), words.Grouped(n.Superseded))
	text = plus(plus(text, n.ConditionFailed, "left by --when"), n.Archived, "archived")
	text = plus(text, n.Unfinished, "unfinished")
	if n.BadInputs > 0 {
		text += fmt.Sprintf(", %s set aside", counted(n.BadInputs, "input"))
	}
	return text
}

// counts formats the job's state and counts, without reasons.
func (o *jobRunner) counts() string {
	done, all := o.record.DoneOf()
	return fmt.Sprintf("job %s: %d of %d loads done, %s", o.record.State, done, all, countsText(&o.record.Counts))
}

// brief shows the failures of other loads, and returns a line with the job's result and the first load that caused it.
func (o *jobRunner) brief() string {
	text := o.counts()
	at := slices.IndexFunc(o.record.Loads,
		func(s *job.State) bool { return s.Error != "" && s.ExitCode == o.record.ExitCode })
	for _, s := range o.untold {
		if at < 0 || s != o.record.Loads[at] {
			o.tell(s)
		}
	}
	if at >= 0 {
		text += fmt.Sprintf("; load %s: %s", o.record.Loads[at].Name, o.record.Loads[at].Error)
	}
	return text
}

func (o *jobRunner) summarize(took time.Duration) {
	o.c.say.Line("%s, in %v", o.counts(), round(took))
	if n, differ := o.verified(); n > 0 {
		o.c.say.Line("%s verified, %s differ", counted(int64(n), "load"), counted(differ, "row"))
	}
	o.sayMoments()
	switch at, again := o.record.ResumeFrom, o.stdinAgain(); {
	case again != "":
		o.c.say.Line("to resume: %s", again)
	case at != nil:
		o.c.say.Line("to follow the source from here: resume_from %v, the earliest of the loads", at)
	case o.record.Unfinished():
		o.c.say.Line("to resume: %s resume %s, or give the same command again", commandName(), suggest.Arg(o.folder))
	}
	o.c.say.Line("job: %s", filepath.Join(o.folder, job.FolderFile))
}

// verified returns the number of loads that compared their tables with their inputs, and of rows missing or different.
func (o *jobRunner) verified() (loads int, differ int64) {
	for _, s := range o.record.Loads {
		sum, err := readSummary(filepath.Join(o.folder, s.Name))
		if err != nil {
			continue // it did not run, or has no summary
		}
		if found, ok := sum.Verify.(map[string]any); ok {
			missing, _ := found["missing"].(float64)
			different, _ := found["different"].(float64)
			loads, differ = loads+1, differ+int64(missing+different)
		}
	}
	return loads, differ
}

func (o *jobRunner) ending(e *ending) {
	e.runDir, e.rows, e.bad = o.folder, countsOfRows(&o.record.Counts), o.record.BadInputs
	for _, s := range o.record.Loads {
		if s.State != job.Done && s.State != job.Failed && s.State != job.Stopped {
			continue // it has not ended
		}
		e.loads = append(e.loads, runmetrics.Run{Command: s.Command, Table: cmp.Or(s.Value("table"), s.Name), Load: s.Name,
			Ended: s.Ended, Took: s.Took(),
			ExitCode: s.ExitCode, Rows: countsOfRows(&s.Counts), BadInputs: s.BadInputs})
	}
}
