package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"tsimport/internal/exitcode"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/recurring"
)

// onceFlags are about loads that come again.
func onceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "only-new", Usage: "load each input once per table: leave out those whose content the table has taken (docs/nightly.md)"},
		&cli.BoolFlag{Name: "reload-changed", Usage: "--only-new: load a known input again whose content has changed (default: refuse it)"},
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
	flags := append(targetFlags(), stateFlag(), &cli.StringFlag{Name: "table", Aliases: []string{"t"}, Usage: "`TABLE` whose known files are meant"})
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
	return recurring.PlaceOf(place, t.name, c.String("table")), t.close()
}

func listFiles(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("unknown command %q; see tsimport files --help", c.Args().First())
	}
	place, err := placeOfFlags(c)
	if err != nil {
		return err
	}
	store, err := recurring.OpenStore(c.Context, givenFlags{c}, storesOf(c))
	if err != nil {
		return err
	}
	ledger, err := recurring.OpenKnown(c.Context, givenFlags{c}, store, place)
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
	o, ledger, err := recurring.Change(c.Context, givenFlags{c}, storesOf(c), place, sayer(c, c.App.ErrWriter))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
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

// sayer says what say does.
func sayer(c *cli.Context, stderr io.Writer) func(format string, a ...any) {
	return func(format string, a ...any) { say(c, stderr, format, a...) }
}
