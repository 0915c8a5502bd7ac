package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"tsimport"
	"tsimport/internal/exitcode"

	"github.com/urfave/cli/v2"

	"tsimport/internal/suggest"
	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
	"tsimport/pipeline"
	"tsimport/pipeline/options"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/recurring"
	loadpage "tsimport/pipeline/report"
)

func loadCommand(interrupts *interrupts, show *display, in *invocation) *cli.Command {
	return &cli.Command{
		Name:      "load",
		Usage:     "load CSV, JSON-lines, Parquet and Arrow files into a table",
		ArgsUsage: "FILE...",
		Description: inputsHelp + "\n" +
			databaseHelp + " The folder of an archive can be given too.\n" +
			"Each record is written, rejected with a reason, or superseded by a later record with the same key.\n" +
			"The run folder holds the rejected records, their reasons and the summary. Flags may come before or after files.\n" +
			numbersHelp + signalHelp(),
		Flags:  loadCommandFlags(),
		Action: func(c *cli.Context) error { return load(c, interrupts, show, in) },
	}
}

// loadCommandFlags are those of load. loadFlags are those of them that other commands accept too.
func loadCommandFlags() []cli.Flag {
	return slices.Concat(loadFlags(), onceFlags(), sqlFlags(), indexFlags(), scaleFlags())
}

func loadFlags() []cli.Flag {
	flags := append(append(targetFlags(), readFlags()...), []cli.Flag{
		&cli.StringFlag{Name: "table", Aliases: []string{"t"}, Usage: "`TABLE` to load into; with an expression in braces, such as 'consume_{month(PaidAt)}', each row goes to the table of its period (docs/periods.md)"},
		&cli.IntFlag{Name: "max-tables", Usage: "stop before rows go to more than `N` tables, if --table has an expression", Value: plan.DefaultMaxTables},
		&cli.StringFlag{Name: "age-policy", Usage: "`FILE` with a lifecycle policy: new tables get the throughput and time to live for their age, and rows that are too old go to an archive (docs/periods.md)"},
		&cli.StringFlag{Name: "now", Usage: "count ages from `TIME` (RFC 3339) instead of now", Hidden: true}, // for tests of what comes with the months
		&cli.BoolFlag{Name: "create", Usage: "create the table if it does not exist (implied on an embedded store)"},
		textsFlag("pk", "primary-key column `NAME[:TYPE][=EXPR]`, in order, 1 to 4 times; TYPE is string, integer, binary (default: inferred from a sample), or auto for a column that the service numbers (docs/auto-increment.md); EXPR computes it from input columns (docs/keys.md)"),
		textsFlag("set", "attribute column `NAME[:TYPE]=EXPR`, computed from input columns; replaces a column of that name; may be repeated"),
		&cli.IntFlag{Name: "ttl", Usage: "new table: `SECONDS` until data expires, at least a day (86400); -1 means never", Value: -1},
		&cli.IntFlag{Name: "max-versions", Usage: "new table: versions to keep of each cell", Value: 1},

		&cli.StringFlag{Name: "columns", Usage: "load only these attribute columns `A,B`; key columns are always loaded"},
		textsFlag("exclude", "leave out these columns `X,Y`"),
		textsFlag("rename", "rename a column, `OLD=NEW`; may be repeated"),
		textsFlag("type", "type of a column, `NAME=TYPE`: string, integer, double, boolean, binary (base64), binary(hex) or timestamp(layout,zone,unit); may be repeated (default: inferred from a sample)"),

		&cli.StringFlag{Name: "version-column", Usage: "column with the timestamp of each row's cells, in milliseconds; it is also loaded unless excluded. A new table takes timestamps of any age then"},
		&cli.StringFlag{Name: "mode", Usage: "put (replace rows), update (write only the columns given), delete, or increment (add to integer columns; docs/counters.md)", Value: "put"},
		&cli.StringFlag{Name: "condition", Usage: "write a row only if it exists, or does not: ignore, exist or not-exist", Value: "ignore"},
		&cli.StringFlag{Name: "when", Usage: "write a row only if the one in the table passes `CONDITION`, such as 'stored.updated_at < new.updated_at'; a column that it lacks passes (docs/loading.md)"},
		&cli.StringFlag{Name: "types", Usage: "types of columns: those that the table has where the values fit (table); refuse others, and reject the few values that are not of the type of nearly all (strict); or use only the input (infer)", Value: "table"},
		&cli.StringFlag{Name: "on-null", Usage: "skip a null, or (update mode) delete the column", Value: "skip"},
		&cli.StringFlag{Name: "missing", Usage: "if files lack columns: refuse to load them together (refuse), or load their rows without those columns (null)", Value: "refuse"},

		&cli.Int64Flag{Name: "limit", Usage: "stop after `N` records"},
		&cli.BoolFlag{Name: "drop-expired", Usage: "archive: leave out cells that are older than the table's time to live or maximum deviation, and count them (default: refuse to load)"},

		&cli.BoolFlag{Name: "verify", Usage: "compare the table with the files after the load, as tsimport verify does; exit code 6 if a row is missing or different"},
		&cli.BoolFlag{Name: "dry-run", Usage: "read, convert and check everything; write nothing"},
		&cli.StringFlag{Name: "max-errors", Usage: "stop (exit code 4) when more than `N` rows, or N% of those read, are rejected; a percentage counts from 1,000 rows on; -1 means never", Value: "100"},
		&cli.DurationFlag{Name: "retry-for", Usage: "give up after this long without progress, such as 30s or 15m", Value: pipeline.DefaultRetryFor},
		&cli.DurationFlag{Name: "settle", Usage: "how long a request without an answer may still be applied, such as 90s or 2m; 0s means --request-timeout"},
		&cli.StringFlag{Name: "sync", Usage: "embedded store: always (acknowledged rows survive a crash) or none", Value: "always"},

		&cli.BoolFlag{Name: "fresh", Usage: "start over, even if an earlier run of this load is unfinished (default: resume it)"},
		&cli.BoolFlag{Name: "accept-changed-input", Usage: "resume a run although its inputs have changed; the parts already read must be the same"},
		&cli.StringFlag{Name: "retry-rejects", Usage: "load the corrected rejects of the run in `FOLDER`, with that run's settings; other flags override them"},
		&cli.StringFlag{Name: "run-dir", Usage: "`DIR` for the summary and rejects (default ./tsimport-runs/<time>-<table>)"},
		&cli.BoolFlag{Name: "json", Usage: "print the summary as JSON on stdout"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show errors only"},
	}...)
	flags = append(append(flags, numberFlags()...), profileFlags()...)
	return append(flags, rateFlags()...)
}

func load(c *cli.Context, interrupts *interrupts, show *display, in *invocation) (err error) {
	if c.String("retry-rejects") != "" {
		return retryRejects(c, interrupts, show, in)
	}
	l, err := sqlOf(c, show)
	if err != nil {
		return err
	}
	if l == nil {
		m, err := archiveOf(interrupts.drain, c.Args().Slice(), storesOf(c))
		if err != nil {
			return err
		}
		if m != nil {
			return runLoad(c, interrupts, show, in, &archiveLoad{c: c, show: show, archive: m})
		}
	}
	switch {
	case c.Bool("drop-expired"):
		return usagef("--drop-expired: only an archive of a table is checked for cells that are too old; a file's rejects say which are")
	case c.IsSet("rename-index"):
		return usagef("--rename-index: only an archive of a table has indexes; leave it out")
	case l != nil:
		return runLoad(c, interrupts, show, in, l)
	}
	return runLoad(c, interrupts, show, in, new(fileLoad))
}

// kind is what loads differ by: where their rows come from.
type kind interface {
	// config reads the flags.
	config(c *cli.Context, in *invocation) (pipeline.Config, error)
	// open opens the target.
	open(c *cli.Context, a access, show *display) (*target, error)
	// begin completes the load, once the target is open.
	begin(interrupts *interrupts, cfg *pipeline.Config, t *target, o *tsimport.LoadOptions) error
	// compared changes the load into what the table is compared with.
	compared(cfg *pipeline.Config)
	// ended says what the user should know when the load has ended.
	ended(report *pipeline.Report) []string
}

// fileLoad is a load of files.
type fileLoad struct{}

func (*fileLoad) config(c *cli.Context, in *invocation) (pipeline.Config, error) {
	return loadConfig(c, in)
}

func (*fileLoad) open(c *cli.Context, a access, show *display) (*target, error) {
	return openTarget(c, a, show)
}

func (*fileLoad) begin(*interrupts, *pipeline.Config, *target, *tsimport.LoadOptions) error {
	return nil
}

func (*fileLoad) compared(*pipeline.Config) {}

func (*fileLoad) ended(*pipeline.Report) []string { return nil }

// runLoad runs a load of any kind.
func runLoad(c *cli.Context, interrupts *interrupts, show *display, in *invocation, of kind) (err error) {
	cfg, err := of.config(c, in)
	if err != nil {
		return err
	}
	if l := planOf(c); l != nil {
		return l.load(c, interrupts, show, of, cfg)
	}
	stopProfiles, err := startProfiles(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopProfiles()) }()
	cfg.Watch.Monitor = pipeline.NewMonitor()
	defer onStateSignals(cfg.Watch.Monitor, show)()
	stopStatus, err := serveStatus(c, cfg.Watch.Monitor, show)
	if err != nil {
		return err
	}
	defer stopStatus()
	r := new(readyLoad)
	defer func() { err = r.close(err) }()
	if err := r.prepare(c, interrupts, show, of, &cfg); err != nil {
		return err
	}
	if t := workTaskOf(c); t != nil {
		limitMemory(cfg.Limits.Memory, false)
		collectLate(cfg.Limits.Memory)
		return doWork(c, interrupts, show, t, &cfg)
	}
	if c.IsSet("job-dir") {
		limitMemory(cfg.Limits.Memory, false)
		return planJobDir(c, interrupts, show, in, &cfg)
	}
	t, o, noSync := r.target, r.options, r.noSync

	if t.store != nil && noSync {
		cfg.Checkpoint.Sync = t.store.Sync
	}

	if sessionOf(c.Context) == nil {
		limitMemory(cfg.Limits.Memory, t.embedded)
	}
	if text := orderWarning(&cfg.Write); text != "" && cfg.Read.Sources == nil {
		say(c, show, "warning: %s", text)
	}

	if n := client.Affordable(cfg.Write.Concurrency); n < cfg.Write.Concurrency && !t.embedded {
		say(c, show, "warning: --concurrency %d needs more open files than this process may have; it uses %d connections (raise the limit with ulimit -n)", cfg.Write.Concurrency, n)
	}

	screen := newScreen(c, show)
	cfg.Watch.Progress = &screen.progress
	cfg.Watch.OnPlan = screen.plan
	screen.awaitInputs()
	cfg.Watch.OnHotKey = screen.hotKey
	if show.log != nil {
		cfg.Watch.OnReject = screen.reject
	}
	cfg.Watch.OnWait = func(why string, most time.Duration) {
		say(c, show, "waiting: %s; retrying for up to %v", why, most)
	}
	cfg.Resume.OnResume = screen.resume
	cfg.Drain = interrupts.drain
	interrupts.drains()
	cfg.Checkpoint.Keep = c.Bool("verify")
	command := &options.Command{Complete: func(own *pipeline.Config) {
		own.Read.Find.NotData, own.Read.Find.OSS.Credentials = cfg.Read.Find.NotData, cfg.Read.Find.OSS.Credentials
		own.Target.Name, own.Target.Place, own.Target.Absent = cfg.Target.Name, cfg.Target.Place, cfg.Target.Absent
		own.Read.Sources, own.Read.Look, own.Read.Merges, own.Read.Archived = cfg.Read.Sources, cfg.Read.Look, cfg.Read.Merges, cfg.Read.Archived
		own.Target.Aging = cfg.Target.Aging
		own.Target.Key, own.Target.Define, own.Target.Defined, own.Target.Indexes, own.Target.PreSplit = cfg.Target.Key, cfg.Target.Define, cfg.Target.Defined, cfg.Target.Indexes, cfg.Target.PreSplit
		own.Target.PolicyNow, own.Target.DefineSet = cfg.Target.PolicyNow, cfg.Target.DefineSet
		own.RunDir, own.Compared, own.Resume, own.Invocation = cfg.RunDir, cfg.Compared, cfg.Resume, cfg.Invocation
		own.Checkpoint, own.Watch, own.Drain, own.Shared = cfg.Checkpoint, cfg.Watch, cfg.Drain, cfg.Shared
	}}
	_, err = tsimport.LoadFiles(options.ForCommand(interrupts.hard, command), t.library(), cfg.Target.Table, cfg.Inputs, o)
	report := command.Report
	if report != nil {
		err = command.Err
	}
	screen.stop()
	if report != nil {
		endingOf(c).ofLoad(report)
	}
	if report != nil && err == nil {
		err = noteRetried(in, report)
	}
	if report == nil {
		return nothingNew(c, show, err)
	}
	if cfg.Checkpoint.Keep && err == nil && report.State == pipeline.StateFinished {
		if report.Read > 0 {
			of.compared(&cfg)
			err = verifyLoad(cfg, interrupts, t, show, c, report)
		}
		if err == nil { // else the same command compares again
			err = report.RemoveCheckpoint()
		}
	}
	screen.report(report, cfg.Write.Mode, lookHint(c, report, t))
	for _, text := range of.ended(report) {
		screen.line("%s", text)
	}
	if path, err := loadpage.Write(report); err != nil {
		screen.line("warning: %v", err)
	} else {
		screen.line("report: %s", path)
	}
	if c.Bool("json") {
		text, jsonErr := json.MarshalIndent(report, "", "  ")
		if jsonErr == nil {
			_, jsonErr = fmt.Fprintf(c.App.Writer, "%s\n", text)
		}
		if err == nil && jsonErr != nil {
			err = fmt.Errorf("print summary: %w", jsonErr)
			report.ExitCode = exitcode.Failed
		}
	}
	if report.ExitCode != exitcode.OK || err != nil {
		return endsWith(c, report.ExitCode, err, briefOf(report))
	}
	return nil
}

// readyLoad is what a load has open before it begins.
type readyLoad struct {
	target  *target
	options tsimport.LoadOptions
	noSync  bool
	again   *recurring.Load
}

// prepare opens the target and what a load that comes again needs, and completes the load.
func (r *readyLoad) prepare(c *cli.Context, interrupts *interrupts, show *display, of kind, cfg *pipeline.Config) (err error) {
	if r.noSync, err = parseSync(c.String("sync")); err != nil {
		return err
	}
	t, err := of.open(c, access{readOnly: cfg.DryRun, create: !cfg.DryRun, noSync: r.noSync}, show)
	if err != nil {
		return err
	}
	r.target = t
	if t.embedded && sameFolder(cfg.RunDir, t.dir) {
		return usagef("--run-dir %s is the folder of the embedded store; give another", cfg.RunDir)
	}
	if r.options, err = libraryOptions(c, cfg, t); err != nil {
		return err
	}
	if err := of.begin(interrupts, cfg, t, &r.options); err != nil {
		return err
	}
	cfg.Write.Settle = r.options.Settle
	cfg.Target.Client, cfg.Target.Name = t.Target, t.name
	if t.embedded {
		if cfg.Target.Place, err = t.identity(); err != nil {
			return err
		}
	}
	cfg.Target.Absent, cfg.Target.Create = t.missing, r.options.Create
	r.again, err = recurring.Open(interrupts.drain, givenFlags{c}, cfg, sayer(c, show))
	return err
}

// close gives back what was opened.
func (r *readyLoad) close(err error) error {
	err = errors.Join(err, r.again.Close())
	if r.target == nil {
		return err
	}
	if closeErr := r.target.close(); closeErr != nil {
		return &exitError{code: exitcode.Failed, err: errors.Join(err, closeErr)}
	}
	return err
}

// checkpointEnv sets the time between checkpoints, for tests that crash loads often.
const checkpointEnv = "TSIMPORT_CHECKPOINT_EVERY"

func loadConfig(c *cli.Context, in *invocation) (cfg pipeline.Config, err error) {
	return loadConfigOf(givenFlags{c}, c.Args().Slice(), c, in)
}

// loadConfigOf is loadConfig of given options and inputs.
func loadConfigOf(given options.Given, inputs []string, c *cli.Context, in *invocation) (cfg pipeline.Config, err error) {
	if cfg, err = options.Config(given, inputs); err != nil {
		return cfg, err
	}
	completeRead(c, &cfg.Read)
	cfg.Invocation = pipeline.Invocation{Command: in.command(), Arguments: in.kept(), Directory: workingDirectory()}
	cfg.Resume = pipeline.Resume{Look: in.goOn || !c.Bool("fresh"), AcceptChanged: c.Bool("accept-changed-input"), Args: in.kept(), Settings: in.settings, LocksDir: options.LocksDir()}
	if in.folder != "" {
		cfg.RunDir = in.folder
	}
	if s := sessionOf(c.Context); s != nil {
		cfg.Shared = s.limits
	}
	if text := os.Getenv(checkpointEnv); text != "" {
		if cfg.Checkpoint.Every, err = time.ParseDuration(text); err != nil || cfg.Checkpoint.Every <= 0 {
			return cfg, usagef("%s %q: want a duration with a unit, such as 50ms", checkpointEnv, text)
		}
	}
	return cfg, nil
}

func parseKey(flags []string) (key []table.KeyColumn, err error) {
	for _, f := range flags {
		k := table.KeyColumn{Name: f}
		if i := strings.LastIndexByte(f, ':'); i >= 0 {
			if k.Auto = f[i+1:] == "auto"; k.Auto {
				k.Type = table.Integer
			} else if k.Type, err = table.ParseType(f[i+1:]); err != nil {
				return nil, fmt.Errorf("--pk %s: %w", f, err)
			}
			if !k.Type.KeyType() {
				return nil, fmt.Errorf("--pk %s: a primary-key column is string, integer or binary", f)
			}
			k.Name = f[:i]
		}
		if err := table.CheckColumnName(k.Name); err != nil {
			return nil, fmt.Errorf("--pk %s: %w", f, err)
		}
		key = append(key, k)
	}
	return key, nil
}

func parseSync(text string) (noSync bool, err error) {
	switch text {
	case "always":
		return false, nil
	case "none":
		return true, nil
	}
	return false, usagef("--sync %q: want always or none", text)
}

// lookHint says how to look at the rows of a load; "" where it takes keys of a profile of the target.
func lookHint(c *cli.Context, r *pipeline.Report, to *target) string {
	at := func(name string) string { return c.String(name) }
	given := c.IsSet
	if c.Command.Name == "copy" {
		if a, err := parseTableArgument(c.Args().Get(1)); err == nil && a.address != nil {
			if a.address.Profile != "" {
				return ""
			}
			of := map[string]string{"endpoint": to.Endpoint, "instance": to.Instance}
			at = func(name string) string { return of[name] }
			given = func(name string) bool { return of[name] != "" }
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
		if given(f) {
			hint += " --" + f + " " + suggest.Arg(at(f))
		}
	}
	return hint + " --limit 10"
}

// round makes a duration fit to read.
func round(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
