package commands

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/cmd/tsimport/collection"
	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/jobs/scaleout"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/open"
)

func workCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:  "work",
		Usage: "do a part of a load or job that was planned for many machines",
		Description: "Takes tasks until the whole load or job is done, together with any number of other processes, and " +
			"may be killed at any moment\n" +
			"(docs/many-machines.md). The process that ends the load ends with the load's exit code, the others with 0.\n" +
			signalHelp(),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "job-dir", Usage: "`PLACE` that tsimport load or run --job-dir has planned"},
			&cli.IntFlag{Name: "rejects-exit", Usage: "end with this `CODE`, 0 or 3, if the load is done and records were " +
				"rejected", Value: exitcode.Rejects},
		}, flagsOf(options.Machine|options.Ending)...),
		Action: in.with(options.Machine|options.Ending, workTyped),
	}
}

// workTask is the task of a process in a job directory, which runs instead of the planned load.
type workTask struct {
	store       jobdir.Store
	rejectsExit int          // exit code for rejected records
	resume      bool         // undo a stop, and end with the job's exit code
	whole       jobdir.Store // the directory of the job to which this load belongs, or nil
}

// program returns the version that all processes of a job must share, on any platform.
func program() string {
	text, platform, _ := strings.Cut(versionText(debug.ReadBuildInfo()), ", go")
	if platform != "" {
		text += ")"
	}
	return text
}

// openJobDir opens the directory of a job. It makes a folder's name absolute, as the plan may run in another folder.
func openJobDir(c *call, place string) (jobdir.Store, error) {
	if place == "" {
		return nil, usagef("no job directory: give --job-dir")
	}
	if !jobdir.IsAddress(place) && !strings.Contains(place, "://") {
		full, err := filepath.Abs(place)
		if err != nil {
			return nil, fmt.Errorf("find job directory: %w", err)
		}
		if err := rundir.CheckShared(full); err != nil {
			return nil, usagef("job directory %v", err)
		}
		place = full
	}
	find := storesOf(c)
	s, err := jobdir.Open(c.Context, place, jobdir.Options{OSS: find.OSS, S3: find.S3})
	if err != nil {
		return nil, usagef("job directory %v", err)
	}
	return s, nil
}

// isJobDir reports whether a place is a job directory, judging by its name or folder.
func isJobDir(place string) bool {
	return jobdir.IsAddress(place) || slices.ContainsFunc([]string{scaleout.PlanName, scaleout.LoadsName},
		func(name string) bool {
			_, err := os.Stat(filepath.Join(place, name))
			return place != "" && err == nil
		})
}

func workTyped(c *call) error {
	if c.Args().Present() {
		return usagef("work takes no arguments (%q); the job directory is named with --job-dir", c.Args().First())
	}
	code := c.Int("rejects-exit")
	if code != exitcode.OK && code != exitcode.Rejects {
		return usagef("--rejects-exit %d: want %d or %d", code, exitcode.OK, exitcode.Rejects)
	}
	return workOn(c, c.String("job-dir"), &workTask{rejectsExit: code})
}

// workOn works on a job directory: it runs the task in place of the planned load.
func workOn(c *call, place string, t *workTask) error {
	store, err := openJobDir(c, place)
	if err != nil {
		return err
	}
	t.store = store
	if l, err := scaleout.ReadLoads(c.Context, store); l != nil || err != nil {
		if err != nil {
			return err
		}
		endingOf(c).runDir = store.String()
		return workOnSeveral(c, store.String(), store, l, t)
	}
	p, err := scaleout.ReadPlan(c.Context, store)
	if err != nil {
		return err
	}
	of, err := commandOf(p.Job.Request)
	if err != nil {
		return usagef("%s: %v", store, err)
	}
	if here := strings.TrimRight(os.Getenv(endpointEnv), "/"); here != "" && p.Endpoint != "" &&
		here != strings.TrimRight(p.Endpoint, "/") {
		c.show.say.Warn("requests go to %s, as planned in %s; %s of this machine is %s", p.Endpoint, store, endpointEnv, here)
	}
	if dir := p.Job.Dir; dir != "" && !options.Same(dir, ".") {
		if _, err := os.Stat(dir); err == nil { // if missing, inputs are relative to this folder, or absolute
			if err := os.Chdir(dir); err != nil {
				return fmt.Errorf("change to the folder in which the load was planned: %w", err)
			}
		}
	}
	of.Clear("job-dir", "workers", "json", "quiet") // options of the planning process
	endingOf(c).runDir = store.String()
	// This machine's environment may name a different service or none.
	of.Endpoint, of.Instance = cmp.Or(p.Endpoint, of.Endpoint), cmp.Or(p.Instance, of.Instance)
	takeMachine(of, c.given)
	if err := takeEnvironment(of); err != nil {
		return err
	}
	in := &invocation{goOn: true, own: of, within: within{task: t}, ending: c.in.ending}
	again := c.again(in, of)
	endingOf(c).table = tableGiven(again)
	return perform(again)
}

// collectLate delays garbage collection until the memory limit is near, because tasks are many loads with small heaps.
func collectLate(memory int64) {
	if memory >= 4*smallMemory && os.Getenv("GOGC") == "" {
		collection.At(400)
	}
}

// takeMachine gives a repeated command the machine settings of the command that repeats it.
func takeMachine(of, given *options.Command) {
	of.Memory, of.Concurrency = cmp.Or(given.Memory, of.Memory), cmp.Or(given.Concurrency, of.Concurrency)
	of.Status = cmp.Or(given.Status, of.Status)
	if given.IsSet("quiet") {
		of.Quiet = given.Quiet
	}
}

// refuseInJobs refuses options that would apply to each process separately.
func refuseInJobs(c *call) error {
	sql := slices.ContainsFunc(c.Args().Slice(), open.IsDatabase)
	switch {
	case c.of.RequireSnapshot:
		return usagef("--job-dir: --require-snapshot: each process reads a snapshot of its own; load without --job-dir, or " +
			"from a standby that is not replaying")
	case sql && c.given.IsSet("max-rows-per-second"):
		return usagef("--job-dir: --max-rows-per-second: each process would have the limit to itself; load without --job-dir")
	case c.of.MaxRCU > 0:
		return usagef("--job-dir: --max-rcu: each process would have the limit to itself; copy without --job-dir")
	}
	return nil
}

func planJobDir(c *call, cfg *pipeline.Config) error {
	if err := refuseRunOptions(c.given.IsSet); err != nil {
		return err
	}
	if cfg.Resume.Request == nil {
		return usagef("--job-dir: an address contains a secret, which would be stored; give keys in the environment")
	}
	store, err := openJobDir(c, c.of.JobDir)
	if err != nil {
		return err
	}
	if err := refuseInJobs(c); err != nil {
		return err
	}
	endpoint, instance, err := serviceOf(c)
	if err != nil {
		return err
	}
	_, readers, err := sourceOf(c.command())
	if err != nil {
		return err
	}
	p, isNew, err := scaleout.Make(c.interrupts.drain, store, scaleout.Request{
		Options:  scaleout.Options{Load: *cfg, Program: program(), Say: c.say},
		Endpoint: endpoint, Instance: instance, Workers: c.of.Workers, Readers: readers,
	})
	if err != nil {
		return err
	}
	what := "planned"
	if !isNew {
		what = "this load is planned already"
	}
	c.say.Line("%s in %s: %s to read, %s to write", what, store, counted(int64(len(p.Splits)), "split"),
		counted(int64(len(p.Shards)), "shard"))
	if c.in.own == nil { // only once per job
		c.say.Line("start on each machine, as often as you like: %s work --job-dir %s", commandName(),
			suggest.Arg(c.of.JobDir))
	}
	if c.of.JSON {
		return printJSON(c, map[string]any{"job_dir": store.String(), "plan": p.ID, "new": isNew, "splits": len(p.Splits),
			"shards": len(p.Shards), "verify": p.Verify})
	}
	return nil
}

func doWork(c *call, t *workTask, cfg *pipeline.Config) (err error) {
	c.interrupts.drains()
	j, err := scaleout.Open(c.interrupts.hard, t.store, scaleout.Options{
		Load: *cfg, Program: program(), Whole: t.whole, Drain: c.interrupts.drain, Say: c.say,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	ctx := c.interrupts.hard
	if t.resume {
		if err := j.Continue(ctx); err != nil {
			return err
		}
	}
	s, err := j.Work(ctx)
	if err != nil {
		return err
	}
	return endWork(c, t, s)
}

func endWork(c *call, t *workTask, s *scaleout.Summary) error {
	e := endingOf(c)
	e.table = s.Table
	e.rows = countsOfRows(&job.Counts{Read: s.Read, Written: s.Written, Rejected: s.Rejected, Superseded: s.Superseded})
	said := fmt.Sprintf("%s: %s read, %s written, %s rejected, %s superseded, by %s", s.State, words.Grouped(s.Read),
		words.Grouped(s.Written), words.Grouped(s.Rejected), words.Grouped(s.Superseded),
		counted(int64(s.Processes), "worker"))
	c.say.Line("%s", said)
	if text := s.Follow(); text != "" {
		c.say.Line("%s", text)
	}
	return endsAs(c, t, "load", s.ExitCode, s.Here, brief(said, s.Reasons))
}

// estimateSteps prints the expected steps of a load by many processes. It changes nothing.
func estimateSteps(c *call, cfg *pipeline.Config) error {
	if err := refuseInJobs(c); err != nil {
		return err
	}
	o, err := scaleout.Look(c.interrupts.drain, cfg)
	if err != nil {
		return err
	}
	o.Workers = c.of.Workers
	steps := scaleout.Forecast(o)
	if c.of.JSON {
		return printJSON(c, map[string]any{"workers": o.Workers, "processors": o.Processors, "rows": o.Rows,
			"write_units": o.Units, "steps": steps})
	}
	w := tabwriter.NewWriter(results(c), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "step\ttasks\tbytes\trequests\ttime\tmemory of each worker")
	for _, s := range steps {
		took := time.Duration(s.Seconds * float64(time.Second)).Round(time.Second)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%v\t%s\n", s.Name, words.Grouped(s.Tasks), words.Bytes(s.Bytes),
			words.Grouped(s.Requests), took, words.Bytes(s.Memory))
	}
	fmt.Fprintf(w, "%s of %s, %s rows, %s write units; a table with less capacity takes longer "+
		"(docs/internals/scale-out.md has the measurements)\n",
		counted(int64(o.Workers), "worker"), counted(int64(o.Processors), "processor"), words.Grouped(o.Rows),
		words.Grouped(o.Units))
	return w.Flush()
}
