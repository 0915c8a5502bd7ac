package commands

import (
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/tablestore/address"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/jobs/recurring"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/fromdatabase"
	"example.com/tsimport/pipeline/keep"
	"example.com/tsimport/pipeline/options"
	loadpage "example.com/tsimport/pipeline/report"
	"example.com/tsimport/pipeline/rundir"
	"example.com/tsimport/reader/open"
	"example.com/tsimport/transfer/restore"
)

func loadCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:      "load",
		Usage:     "load CSV, JSON-lines, Parquet and Arrow files into a table",
		ArgsUsage: "FILE...",
		Description: inputsHelp + "\n" +
			databaseHelp + " The folder of an archive can be given too.\n" +
			"Each record is written, rejected with a reason, superseded by a later record with the same key, left by " +
			"--when, or archived by --age-policy.\n" +
			"The run folder holds the rejected records, their reasons, the summary and report.html, which shows what limited " +
			"the load (docs/tuning.md). Flags may come before or after files.\n" +
			numbersHelp + signalHelp(),
		Flags:  flagsOf(options.Load | options.Ending),
		Action: in.with(options.Load|options.Ending, load),
	}
}

func load(c *call) (err error) {
	if c.of.RetryRejects != "" {
		return retryRejects(c)
	}
	l, err := restore.Open(c.interrupts.drain, c.command(), storesOf(c), c.say)
	if err != nil {
		return err
	}
	if of, ok := l.(*fromdatabase.Load); ok && c.in.session != nil {
		of.Share(c.in.session.moments)
	}
	return runLoad(c, plainLoad{l})
}

// kind is a kind of load. Kinds differ in the source of their rows.
type kind interface {
	// config builds the configuration that a command requests, and completes its request.
	config(c *call, asked *options.Command) (pipeline.Config, error)
	open(c *call, a access) (*target, error)
	// begin completes the configuration once the target is open.
	begin(c *call, cfg *pipeline.Config, t *target) error
	// Compared turns the configuration into one for a comparison with the table.
	Compared(cfg *pipeline.Config)
	// Ended shows the user the final notes of the load.
	Ended(report *pipeline.Report)
}

// plainLoad is a load of files, a database table or an archive.
type plainLoad struct{ restore.Source }

func (l plainLoad) config(c *call, asked *options.Command) (pipeline.Config, error) {
	cfg, err := loadConfigOf(&asked.Request, c)
	l.Config(&cfg, c.in.task != nil)
	return cfg, err
}

func (plainLoad) open(c *call, a access) (*target, error) {
	return openTarget(c, a)
}

func (l plainLoad) begin(c *call, cfg *pipeline.Config, t *target) error {
	return l.Begin(c.interrupts.drain, cfg, &t.Target, t.missing)
}

// runLoad runs a load of any kind, or the action requested instead.
func runLoad(c *call, of kind) (err error) {
	asked := c.command()
	for _, name := range []string{"workers", "plan"} {
		if c.in.own == nil && c.ownCommand().IsSet(name) && asked.JobDir == "" {
			return usagef("--%s is for loads that --job-dir plans for many processes; leave it out, or give --job-dir too", name)
		}
	}
	cfg, err := of.config(c, asked)
	if err != nil {
		return err
	}
	if l := c.in.plan; l != nil {
		return l.load(c, of, &asked.Request, cfg)
	}
	stopWatching, err := watchLoad(c, &cfg.Watch)
	if err != nil {
		return err
	}
	defer stopWatching()
	r := new(readyLoad)
	defer func() { err = r.close(err) }()
	if err := r.prepare(c, of, &asked.Request, &cfg); err != nil {
		return err
	}
	switch {
	case c.in.task != nil:
		limitMemory(cfg.Limits.Memory, false)
		collectLate(cfg.Limits.Memory)
		return doWork(c, c.in.task, &cfg)
	case c.given.IsSet("job-dir"):
		limitMemory(cfg.Limits.Memory, false)
		if asked.Plan {
			return estimateSteps(c, &cfg)
		}
		return planJobDir(c, &cfg)
	}
	return r.run(c, of, cfg)
}

func (r *readyLoad) run(c *call, of kind, cfg pipeline.Config) error {
	if c.in.session == nil {
		limitMemory(cfg.Limits.Memory, r.target.embedded)
	}
	if text := orderWarning(&cfg.Write); text != "" && cfg.Read.Sources == nil {
		c.say.Warn("%s", text)
	}
	if n := client.Affordable(cfg.Lanes.Concurrency); n < cfg.Lanes.Concurrency && !r.target.embedded {
		c.say.Warn("--concurrency %d needs more open files than this process may have; the load uses %d connections (raise "+
			"the limit with ulimit -n)", cfg.Lanes.Concurrency, n)
	}
	screen := newScreen(c)
	screen.attach(&cfg)
	cfg.Drain, cfg.Checkpoint.Keep = c.interrupts.drain, c.of.Verify
	c.interrupts.drains()
	report, err := pipeline.Run(c.interrupts.hard, cfg)
	screen.stop()
	if report == nil {
		return nothingNew(c, err)
	}
	endingOf(c).ofLoad(report)
	if err == nil {
		err = noteRetried(c.in, report)
	}
	if cfg.Checkpoint.Keep && err == nil && report.State == pipeline.StateFinished {
		if report.Read > 0 {
			of.Compared(&cfg)
			err = verifyLoad(c, cfg, report)
		}
		if err == nil { // after an error the same command compares again
			err = report.RemoveCheckpoint()
		}
	}
	screen.report(report, cfg.Write.Mode, lookHint(c, report, r.target))
	of.Ended(report)
	if path, err := loadpage.Write(report); err != nil {
		screen.say.Warn("%v", err)
	} else {
		screen.say.Line("report: %s", path)
	}
	if c.of.JSON {
		if wrong := printSummary(c, report); err == nil && wrong != nil {
			err, report.ExitCode = wrong, exitcode.Failed
		}
	}
	if report.ExitCode != exitcode.OK || err != nil {
		return endsWith(c, report.ExitCode, err, briefOf(report))
	}
	return nil
}

func printSummary(c *call, r *pipeline.Report) error {
	text, err := progress.Encode(rundir.Version, r)
	if err != nil {
		return err
	}
	return printJSON(c, json.RawMessage(text))
}

type readyLoad struct {
	target *target
	again  *recurring.Load
}

// prepare opens the target and the state of a recurring load, and completes the configuration.
func (r *readyLoad) prepare(c *call, of kind, asked *options.Request, cfg *pipeline.Config) (err error) {
	noSync := c.of.Sync == "none"
	if r.target, err = of.open(c, access{readOnly: cfg.DryRun, create: !cfg.DryRun, noSync: noSync}); err != nil {
		return err
	}
	cfg.Target.Create = cfg.Target.Create || r.target.embedded
	if err := r.target.of(cfg, noSync); err != nil {
		return err
	}
	if err := of.begin(c, cfg, r.target); err != nil {
		return err
	}
	r.again, err = recurring.Open(c.interrupts.drain, asked, cfg, c.say)
	return err
}

// close releases the resources, and adds its errors to err.
func (r *readyLoad) close(err error) error {
	err = errors.Join(err, r.again.Close())
	if r.target == nil {
		return err
	}
	return closed(err, r.target.close())
}

// closed combines a command's error with the error of closing its output.
func closed(err, failed error) error {
	if failed == nil {
		return err
	}
	return &exitError{code: exitcode.Failed, err: errors.Join(err, failed)}
}

// checkpointEnv sets the checkpoint interval for tests that crash loads often.
const checkpointEnv = "TSIMPORT_CHECKPOINT_EVERY"

func loadConfig(c *call) (cfg pipeline.Config, err error) {
	r := &c.command().Request
	for _, from := range r.From {
		if err := open.Check(from, r.Table); err != nil && !address.Is(from) { // before the target is opened
			return cfg, usagef("%v", err)
		}
	}
	return loadConfigOf(r, c)
}

func loadConfigOf(r *options.Request, c *call) (cfg pipeline.Config, err error) {
	in := c.in
	if cfg, err = options.Config(r); err != nil {
		return cfg, err
	}
	completeRead(c, r, &cfg.Read)
	cfg.Invocation = keep.Invocation{Command: in.command(), Arguments: in.kept(), Directory: workingDirectory()}
	cfg.Resume = keep.Resume{Look: in.goOn || !c.of.Fresh, MayChange: in.mayChange, AcceptChanged: c.of.AcceptChangedInput,
		Args: in.kept(), Request: c.kept(), Settings: in.settings, LocksDir: options.LocksDir()}
	if cfg.Read.Stdin = in.stdin; in.folder != "" {
		cfg.RunDir = in.folder
	}
	if s := c.in.session; s != nil {
		cfg.Lanes.Shared = s.limits
	}
	if text := os.Getenv(checkpointEnv); text != "" {
		if cfg.Checkpoint.Every, err = time.ParseDuration(text); err != nil || cfg.Checkpoint.Every <= 0 {
			return cfg, usagef("%s %q: want a duration above 0 with a unit, such as 50ms", checkpointEnv, text)
		}
	}
	return cfg, nil
}

func parseSync(text string) (noSync bool, err error) {
	of := new(options.Command)
	if err := options.Find("sync").Set(of, []string{text}); err != nil {
		return false, usagef("%v", err)
	}
	return of.Sync == "none", nil
}

// lookHint returns the command that shows the loaded rows, or "" if that needs the access keys of a profile.
func lookHint(c *call, r *pipeline.Report, to *target) string {
	at := map[string]string{"store": c.given.Store, "endpoint": c.given.Endpoint, "instance": c.given.Instance}
	if c.Command.Name == "copy" {
		if a, err := parseTableArgument(c.Args().Get(1)); err == nil && a.address != nil {
			if a.address.Profile != "" {
				return ""
			}
			at = map[string]string{"endpoint": to.Endpoint, "instance": to.Instance}
		}
	}
	name := r.Table
	for _, t := range r.Tables {
		if t.Written > 0 {
			name = t.Name
		}
	}
	hint := commandName() + " export --table " + name
	for _, f := range []string{"store", "endpoint", "instance"} {
		if at[f] != "" {
			hint += " --" + f + " " + suggest.Arg(at[f])
		}
	}
	return hint + " --limit 10"
}

// round shortens a duration for display.
func round(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
