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

// once is what a load that comes again has open.
type once struct {
	known *knownfiles.Selector
	lock  *rundir.Lock
}

func (o *once) close() error {
	if o == nil {
		return nil
	}
	return o.lock.Release()
}

// openOnce opens what the flags of onceFlags need. It returns nil if none is given.
func openOnce(ctx context.Context, c *cli.Context, cfg *pipeline.Config) (o *once, err error) {
	if err := checkOnce(c, cfg); err != nil {
		return nil, err
	}
	only := c.Bool("only-new")
	if !only && c.String("files-by") == "" && c.Duration("settle-files") == 0 && c.String("done-marker") == "" {
		return nil, nil
	}
	options := knownfiles.Options{
		ReloadChanged: c.Bool("reload-changed"), ReloadRenamed: c.Bool("reload-renamed"),
		Order: c.String("files-by"), Settle: c.Duration("settle-files"), DoneMarker: c.String("done-marker"),
		Job:     checkpoint.Identify(append([]string{cfg.Target.Name, cfg.Target.Table}, cfg.Inputs...)...),
		Command: cfg.Invocation.Command,
		Exists:  func(ctx context.Context, name string) (bool, error) { return inputExists(ctx, name, cfg.Read.Find) },
	}
	if !only {
		return &once{known: knownfiles.NewSelector(nil, options)}, nil
	}
	options.Order = cmp.Or(options.Order, knownfiles.OrderName)
	o = new(once)
	place := placeOf(cfg.Target.Place, cfg.Target.Name, cfg.Target.Table)
	if !cfg.DryRun {
		if o.lock, err = lockKnown(place); err != nil {
			return nil, err
		}
	}
	ledger, err := openKnown(ctx, place)
	if err != nil {
		return nil, errors.Join(err, o.close())
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

const (
	knownFolder = ".known"
	locksFolder = ".locks"
)

// lockKnown keeps other loads of new files, and tsimport files forget, from the table's known files.
func lockKnown(place string) (*rundir.Lock, error) {
	l, err := rundir.TakeClaim(filepath.Join(rundir.Root, locksFolder), "known-"+place)
	if held := new(rundir.HeldError); errors.As(err, &held) {
		err = fmt.Errorf("--only-new: one load at a time finds out what is new for a table: %w", err)
	}
	return l, err
}

func openKnown(ctx context.Context, place string) (*knownfiles.Ledger, error) {
	store, err := jobdir.Open(ctx, filepath.Join(rundir.Root, knownFolder), jobdir.Options{})
	if err != nil {
		return nil, err
	}
	return knownfiles.Open(ctx, jobdir.Below(store, place))
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
	flags := append(targetFlags(), &cli.StringFlag{Name: "table", Aliases: []string{"t"}, Usage: "`TABLE` whose known files are meant"})
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
	ledger, err := openKnown(c.Context, place)
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

func forgetFiles(c *cli.Context) error {
	if c.NArg() == 0 {
		return usagef("name the files to forget, as tsimport files lists them")
	}
	place, err := placeOfFlags(c)
	if err != nil {
		return err
	}
	lock, err := lockKnown(place)
	if err != nil {
		return err
	}
	defer lock.Release() //nolint:errcheck // the process's end would do
	ledger, err := openKnown(c.Context, place)
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
