package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tsimport/internal/exitcode"
	"tsimport/internal/jobdir"
	"tsimport/knownfiles"
	"tsimport/pipeline"
	"tsimport/pipeline/checkpoint"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/rundir"
	"tsimport/reader/input"
)

// onceFlags are about loads that come again.
func onceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "only-new", Usage: "load each input once per table: leave out those whose content the table has taken (docs/nightly.md)"},
		&cli.BoolFlag{Name: "reload-changed", Usage: "--only-new: load a known input again whose content has changed (default: refuse it)"},
		&cli.BoolFlag{Name: "reload-renamed", Usage: "--only-new: load an input whose content is known under another name (default: leave it out)"},
		&cli.BoolFlag{Name: "fail-if-nothing-new", Usage: "exit code 7 if no input is new, instead of 0"},
		&cli.StringFlag{Name: "files-by", Usage: "order of the inputs: name, or time (when they were changed), over all arguments (default: as the arguments come; name with --only-new)"},
		&cli.DurationFlag{Name: "settle-files", Usage: "leave out inputs that were changed less than this long ago, such as 2m; they may be half written"},
		stateFlag(),
		&cli.StringFlag{Name: "done-marker", Usage: "load an input only if `MARKER` stands beside it, such as '{}.done', where {} is the input's name"},
	}
}

// onceNames are the names of onceFlags.
func onceNames() (names []string) {
	for _, f := range onceFlags() {
		names = append(names, f.Names()[0])
	}
	return names
}

func stateFlag() cli.Flag {
	return &cli.StringFlag{Name: "state", Usage: "keep known files, checkpoints and a lease at `PLACE`, a folder, oss://bucket/prefix or s3://bucket/prefix, where a load on another machine finds them (default: in ./tsimport-runs, on this machine; docs/nightly.md)"}
}

// once is what a load that comes again has open.
type once struct {
	known  *knownfiles.Selector
	state  *jobdir.Mirror       // nil without --state
	raised *pipeline.RaiseNotes // nil without --state and --raise-write
	lock   *rundir.Lock
	leases []*jobdir.Lease
}

// close gives back what was taken. It is called when nothing is sent any more.
func (o *once) close() error {
	if o == nil {
		return nil
	}
	err := o.lock.Release()
	for _, l := range o.leases {
		err = errors.Join(err, l.Release())
	}
	return err
}

// inState reports whether there is a --state.
func inState(c *cli.Context) bool { return c.String("state") != "" }

// openStore opens the place of --state, or this machine's.
func openStore(ctx context.Context, c *cli.Context, find input.Options) (jobdir.Store, error) {
	if !inState(c) {
		return jobdir.Open(ctx, rundir.Root, jobdir.Options{})
	}
	s, err := jobdir.Open(ctx, c.String("state"), jobdir.Options{OSS: find.OSS, S3: find.S3})
	if err != nil {
		return nil, usagef("--state %v", err)
	}
	return s, nil
}

// lease takes the lease of a directory. One that another process may hold is waited for, for as long as it takes to know. Former is what
// was seen of it before other leases were taken: those of one process that is gone are waited for together.
func (o *once) lease(ctx context.Context, c *cli.Context, stderr io.Writer, s jobdir.Store, former *jobdir.Seen) (*jobdir.Lease, error) {
	l, err := jobdir.Acquire(ctx, s, jobdir.LeaseOptions{Wait: 2 * jobdir.Term, Seen: former, OnWait: func(owner string) {
		say(c, stderr, "waiting: %s may work on this load; if it does not say so for %v, the load is taken over", owner, jobdir.Term)
	}})
	if err == nil {
		o.leases = append(o.leases, l)
	}
	return l, err
}

// seenLeases is what was seen of leases before the first one was taken.
type seenLeases struct{ known, raised *jobdir.Seen }

// openState opens the state of the load.
func (o *once) openState(ctx context.Context, c *cli.Context, show *display, cfg *pipeline.Config, job, place string) (store jobdir.Store, seen seenLeases, err error) {
	store, err = openStore(ctx, c, cfg.Read.Find)
	if err != nil || !inState(c) || cfg.DryRun {
		return store, seen, err
	}
	if cfg.Target.Policy != nil {
		return nil, seen, usagef("--state and --age-policy: archives of rows are files of this machine, which the next one does not have")
	}
	if err := jobdir.Probe(ctx, store); err != nil {
		return nil, seen, fmt.Errorf("--state %w", err)
	}
	if seen.known, err = jobdir.Look(ctx, knownIn(c, store, place)); err != nil {
		return nil, seen, err
	}
	if seen.raised, err = jobdir.Look(ctx, raisedIn(store, place)); err != nil {
		return nil, seen, err
	}
	load := jobdir.Below(store, "loads/"+job)
	l, err := o.lease(ctx, c, show, load, nil)
	if err != nil {
		return nil, seen, err
	}
	o.state = jobdir.NewMirror(load, l)
	return store, seen, nil
}

// raisedIn is where the note of a table's raised throughput is, in a state.
func raisedIn(store jobdir.Store, place string) jobdir.Store {
	return jobdir.Below(store, "raised/"+place)
}

// lockRaise keeps other loads from raising the table's throughput, and takes over what one has raised that is gone.
func (o *once) lockRaise(ctx context.Context, c *cli.Context, show *display, cfg *pipeline.Config, store jobdir.Store, place string, seen *jobdir.Seen) error {
	in := raisedIn(store, place)
	l, err := o.lease(ctx, c, show, in, seen)
	if err != nil {
		if errors.As(err, new(*jobdir.HeldError)) {
			err = fmt.Errorf("--raise-write: one load at a time raises the throughput of table %s: %w", cfg.Target.Table, err)
		}
		return err
	}
	o.raised = &pipeline.RaiseNotes{Store: in, Lease: l}
	return nil
}

// openOnce opens what the flags of onceFlags need. It returns nil if none is given.
func openOnce(ctx context.Context, c *cli.Context, show *display, cfg *pipeline.Config) (o *once, err error) {
	if err := checkOnce(c, cfg); err != nil {
		return nil, err
	}
	only := c.Bool("only-new")
	if !only && !inState(c) && c.String("files-by") == "" && c.Duration("settle-files") == 0 && c.String("done-marker") == "" {
		return nil, nil
	}
	o = new(once)
	defer func() {
		if err != nil {
			err = errors.Join(err, o.close())
		}
	}()
	options := knownfiles.Options{
		ReloadChanged: c.Bool("reload-changed"), ReloadRenamed: c.Bool("reload-renamed"),
		Order: c.String("files-by"), Settle: c.Duration("settle-files"), DoneMarker: c.String("done-marker"),
		Job:     checkpoint.Identify(append([]string{cfg.Target.Name, cfg.Target.Table}, cfg.Inputs...)...),
		Command: cfg.Invocation.Command,
		Exists:  func(ctx context.Context, name string) (bool, error) { return inputExists(ctx, name, cfg.Read.Find) },
	}
	place := placeOf(cfg.Target.Place, cfg.Target.Name, cfg.Target.Table)
	store, seen, err := o.openState(ctx, c, show, cfg, options.Job, place)
	if err != nil {
		return nil, err
	}
	if o.state != nil && cfg.Write.Rates.RaiseWrite > 0 {
		if err := o.lockRaise(ctx, c, show, cfg, store, place, seen.raised); err != nil {
			return nil, err
		}
	}
	if !only {
		if options.Order != "" || options.Settle != 0 || options.DoneMarker != "" {
			o.known = knownfiles.NewSelector(nil, options)
		}
		return o, nil
	}
	options.Order = cmp.Or(options.Order, knownfiles.OrderName)
	if !cfg.DryRun {
		if err := o.lockKnown(ctx, c, show, store, place, seen.known); err != nil {
			return nil, err
		}
	}
	ledger, err := openKnown(ctx, c, store, place)
	if err != nil {
		return nil, err
	}
	o.known = knownfiles.NewSelector(ledger, options)
	return o, nil
}

// checkOnce refuses flags with which nobody could say what was loaded.
func checkOnce(c *cli.Context, cfg *pipeline.Config) error {
	switch by := c.String("files-by"); by {
	case knownfiles.OrderGiven, knownfiles.OrderName, knownfiles.OrderTime:
	default:
		return usagef("--files-by %q: want name or time", by)
	}
	if c.Duration("settle-files") < 0 {
		return usagef("--settle-files: want 0s or more")
	}
	if err := knownfiles.CheckMarker(c.String("done-marker")); err != nil {
		return usagef("--done-marker %s: %v", c.String("done-marker"), err)
	}
	if !c.Bool("only-new") {
		for _, name := range []string{"reload-changed", "reload-renamed"} {
			if c.Bool(name) {
				return usagef("--%s needs --only-new", name)
			}
		}
		return nil
	}
	for _, bad := range []struct {
		is   bool
		flag string
		why  string
	}{
		{cfg.Read.Sources != nil, "--only-new", "only files are known by their content, not tables and archives"},
		{cfg.Limits.Records > 0, "--limit", "a file that was loaded in part is neither new nor known"},
		{c.Bool("verify"), "--verify", "the table has the rows of earlier files too; run tsimport verify with all files"},
		{cfg.Resume.AcceptChanged, "--accept-changed-input", "the content of a changed input could not be known; start over with --fresh"},
		{plan.IsTemplate(cfg.Target.Table), "--table " + cfg.Target.Table, "files are known for one table, and rows go to several"},
		{c.String("retry-rejects") != "", "--retry-rejects", "rejects are loaded by the run that has them"},
	} {
		if bad.is {
			return usagef("--only-new and %s: %s", bad.flag, bad.why)
		}
	}
	return nil
}

// inputExists reports whether there is an input of that very name.
func inputExists(ctx context.Context, name string, find input.Options) (bool, error) {
	find.NotData, find.PathColumns, find.Extensions = nil, false, nil
	set, err := input.Expand(ctx, []string{name}, find)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return len(set.Items) == 1 && set.Items[0].Name == name, nil
}

// placeOf identifies a table, wherever a process asks for it.
func placeOf(place, target, tableName string) string {
	return checkpoint.Identify(cmp.Or(place, target), tableName)
}

// lockKnown keeps other loads of new files, and tsimport files forget, from the table's known files.
func (o *once) lockKnown(ctx context.Context, c *cli.Context, stderr io.Writer, store jobdir.Store, place string, seen *jobdir.Seen) (err error) {
	if inState(c) {
		_, err = o.lease(ctx, c, stderr, knownIn(c, store, place), seen)
	} else {
		o.lock, err = rundir.TakeClaim(filepath.Join(rundir.Root, ".locks"), "known-"+place)
	}
	if err != nil && (errors.As(err, new(*rundir.HeldError)) || errors.As(err, new(*jobdir.HeldError))) {
		err = fmt.Errorf("--only-new: one load at a time finds out what is new for a table: %w", err)
	}
	return err
}

// knownIn is where the known files of a table are.
func knownIn(c *cli.Context, store jobdir.Store, place string) jobdir.Store {
	if inState(c) {
		return jobdir.Below(store, "known/"+place)
	}
	return jobdir.Below(store, ".known/"+place) // beside run folders
}

func openKnown(ctx context.Context, c *cli.Context, store jobdir.Store, place string) (*knownfiles.Ledger, error) {
	return knownfiles.Open(ctx, knownIn(c, store, place))
}

// nothingNew says that no input is new, if that is what err is about. Any other error stays.
func nothingNew(c *cli.Context, show *display, err error) error {
	var nothing *plan.NothingNew
	if !errors.As(err, &nothing) {
		return err
	}
	for _, note := range nothing.Notes {
		say(c, show, "%s", note)
	}
	text := fmt.Sprintf("nothing new: none of %d inputs is to be loaded", nothing.Found)
	if c.Bool("fail-if-nothing-new") {
		return &exitError{code: exitcode.NoInput, err: errors.New(text)}
	}
	say(c, show, "%s", text)
	return nil
}

func filesCommand() *cli.Command {
	flags := append(append(targetFlags(), storeFlags()...), stateFlag(), &cli.StringFlag{Name: "table", Aliases: []string{"t"}, Usage: "`TABLE` whose known files are meant"})
	return &cli.Command{
		Name:        "files",
		Usage:       "list the files that loads with --only-new know",
		Description: "A line for each input whose content the table has taken: when, bytes, hash, name. To have one loaded again, forget it.",
		Flags:       append(flags, &cli.BoolFlag{Name: "json", Usage: "print JSON"}),
		Action:      listFiles,
		Subcommands: []*cli.Command{{
			Name: "forget", Usage: "forget files, so that they are loaded again when they are found", ArgsUsage: "NAME...",
			Flags: flags, Action: forgetFiles,
		}},
	}
}

// placeOfFlags is placeOf of a command that has no load.
func placeOfFlags(c *cli.Context) (string, error) {
	if c.String("table") == "" {
		return "", usagef("no table: give --table")
	}
	t, err := openTarget(c, access{readOnly: true}, io.Discard)
	if err != nil {
		return "", err
	}
	place := ""
	if t.embedded {
		if place, err = t.identity(); err != nil {
			return "", errors.Join(err, t.close())
		}
	}
	return placeOf(place, t.name, c.String("table")), t.close()
}

func listFiles(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("unknown command %q; see tsimport files --help", c.Args().First())
	}
	place, err := placeOfFlags(c)
	if err != nil {
		return err
	}
	store, err := openStore(c.Context, c, storeOptions(c))
	if err != nil {
		return err
	}
	ledger, err := openKnown(c.Context, c, store, place)
	if err != nil {
		return err
	}
	files := ledger.Files()
	if c.Bool("json") {
		text, err := json.MarshalIndent(files, "", "  ")
		if err == nil {
			_, err = fmt.Fprintf(c.App.Writer, "%s\n", text)
		}
		return err
	}
	w := results(c)
	for _, f := range files {
		as := ""
		if f.SameAs != "" {
			as = "  (as " + printable(f.SameAs) + ")"
		}
		if _, err := fmt.Fprintf(w, "%s  %s  %s  %s%s\n", f.Loaded.Local().Format("2006-01-02 15:04:05"), grouped(f.Size), f.Hash[:min(16, len(f.Hash))], printable(f.Name), as); err != nil {
			return err
		}
	}
	return nil
}

func forgetFiles(c *cli.Context) (err error) {
	if c.NArg() == 0 {
		return usagef("name the files to forget, as tsimport files lists them")
	}
	place, err := placeOfFlags(c)
	if err != nil {
		return err
	}
	store, err := openStore(c.Context, c, storeOptions(c))
	if err != nil {
		return err
	}
	o := new(once)
	defer func() { err = errors.Join(err, o.close()) }()
	if err := o.lockKnown(c.Context, c, c.App.ErrWriter, store, place, nil); err != nil {
		return err
	}
	ledger, err := openKnown(c.Context, c, store, place)
	if err != nil {
		return err
	}
	var names []string
	for _, name := range c.Args().Slice() {
		if full, err := filepath.Abs(name); err == nil && !ledger.Knows(name) && !strings.Contains(name, "://") {
			name = full
		}
		if !ledger.Knows(name) {
			return usagef("%s is not known; tsimport files lists those that are", printable(name))
		}
		names = append(names, name)
	}
	return ledger.Forget(c.Context, names, time.Now().UTC())
}
