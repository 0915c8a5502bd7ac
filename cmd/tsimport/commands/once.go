package commands

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/exitcode"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/knownfiles"
	"example.com/tsimport/jobs/recurring"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
)

// nothingNew reports that no input is new if err says so. It returns other errors.
func nothingNew(c *call, err error) error {
	var nothing *plan.NothingNew
	if only := new(pipeline.OnlyBadError); errors.As(err, &only) {
		for _, note := range only.Notes {
			c.say.Line("%s", note)
		}
		endingOf(c).bad = int64(len(only.Bad))
		return err
	}
	if !errors.As(err, &nothing) {
		return err
	}
	for _, note := range nothing.Notes {
		c.say.Line("%s", note)
	}
	text := fmt.Sprintf("nothing new: none of the %d inputs needs to be loaded", nothing.Found)
	if c.of.FailIfNothingNew {
		return &exitError{code: exitcode.NoInput, err: errors.New(text)}
	}
	c.say.Line("%s", text)
	return nil
}

func filesCommand(in *invocation) *cli.Command {
	flags := append(flagsOf(options.Reaching), &cli.StringFlag{Name: "table", Aliases: []string{"t"},
		Usage: "`TABLE` whose known files to list or forget"})
	return &cli.Command{
		Name:  "files",
		Usage: "list the files that loads with --only-new know",
		Description: "A line for each input whose content the table has: when, bytes, hash, name. Forget one to reload.\n" +
			"With --state bad, a line for each that was set aside: since when, on how many nights, name, why.",
		Flags: append(slices.Clone(flags), &cli.BoolFlag{Name: "json", Usage: "print JSON"},
			&cli.StringSliceFlag{Name: "state",
				Usage: "bad: inputs that were set aside; or `PLACE` as load --state, in which known files are (default: in " +
					"./tsimport-runs); may be given for both"}),
		Action: in.with(options.Reaching, listFiles),
		Subcommands: []*cli.Command{{
			Name: "forget", Usage: "forget files, so that they are loaded again when they are found", ArgsUsage: "NAME...",
			Flags: append(flags, flagNamed("state")), Action: in.with(options.Reaching, forgetFiles),
		}},
	}
}

// placeOfFlags returns the place of the known files of the table and target that flags name.
func placeOfFlags(c *call) (string, error) {
	if c.String("table") == "" {
		return "", usagef("no table: give --table")
	}
	silent := *c
	silent.show = newDisplay(io.Discard)
	t, err := openTarget(&silent, access{readOnly: true})
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

func listFiles(c *call) error {
	if c.Args().Present() {
		return usagef("unknown command %q; see tsimport files --help", c.Args().First())
	}
	place, err := placeOfFlags(c)
	if err != nil {
		return err
	}
	r := new(options.Request)
	var bad bool
	if r.State, bad, err = statesGiven(c.StringSlice("state")); err != nil {
		return err
	}
	ledger, err := recurring.List(c.Context, r, storesOf(c), place)
	if err != nil {
		return err
	}
	if bad {
		return listBad(c, ledger.Bad())
	}
	files := takenFiles(ledger.Files())
	if c.of.JSON {
		return printJSON(c, files)
	}
	if len(files) == 0 {
		c.say.Line("no file is known for table %s; give --store, --instance or --state as for the load", c.String("table"))
	}
	w := results(c)
	for _, f := range files {
		as := ""
		if f.SameAs != "" {
			as = "  (as " + printable(f.SameAs) + ")"
		}
		if f.Rejected > 0 {
			as += fmt.Sprintf("  (its run rejected %s: %s)", counted(f.Rejected, "row"), printable(f.Run))
		}
		if _, err := fmt.Fprintf(w, "%s  %s  %s  %s%s\n", f.Loaded.Local().Format("2006-01-02 15:04:05"),
			words.Grouped(f.Size), f.Hash[:min(16, len(f.Hash))], printable(f.Name), as); err != nil {
			return err
		}
	}
	return nil
}

// takenFile is a known file, with the number of rows that its run rejected from all of the run's files.
type takenFile struct {
	knownfiles.File
	Rejected int64 `json:"run_rejected,omitempty"`
}

// takenFiles adds the rejected rows of files whose run folders are on this machine.
func takenFiles(files []knownfiles.File) []takenFile {
	taken, rejected := make([]takenFile, len(files)), map[string]int64{}
	for i, f := range files {
		n, known := rejected[f.Run]
		if !known && f.Run != "" {
			if sum, err := readSummary(f.Run); err == nil {
				n = sum.Rejected
			}
			rejected[f.Run] = n
		}
		taken[i] = takenFile{f, n}
	}
	return taken
}

// statesGiven returns the place of known files, and whether bad files are requested.
func statesGiven(given []string) (place string, bad bool, err error) {
	for _, state := range given {
		switch {
		case state == "bad":
			bad = true
		case place != "":
			return "", false, usagef("--state: give at most one place, and bad for inputs that were set aside")
		default:
			place = state
		}
	}
	if place == "" {
		place, _, _ = fromEnvironment("state")
	}
	return place, bad, nil
}

func listBad(c *call, all []knownfiles.Bad) error {
	if c.of.JSON {
		return printJSON(c, append([]knownfiles.Bad{}, all...))
	}
	for _, b := range all {
		if _, err := fmt.Fprintf(results(c), "%s  %s  %s: %s\n", b.First.Local().Format("2006-01-02 15:04:05"),
			counted(int64(b.Nights), "night"), printable(b.Name), printable(b.Reason)); err != nil {
			return err
		}
	}
	return nil
}

func forgetFiles(c *call) (err error) {
	place, err := placeOfFlags(c)
	if err != nil {
		return err
	}
	r := &options.Request{Recurring: options.Recurring{State: c.String("state")}}
	o, ledger, err := recurring.Change(c.Context, r, storesOf(c), place, c.say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	if c.NArg() == 0 && !ledger.Empty() {
		return usagef("name the files to forget, as tsimport files lists them")
	}
	var names []string
	for _, name := range c.Args().Slice() {
		if full, err := filepath.Abs(name); err == nil && !ledger.Knows(name) && !strings.Contains(name, "://") {
			name = full
		}
		if !ledger.Knows(name) {
			return usagef("%s is not a known file; tsimport files lists them", printable(name))
		}
		names = append(names, name)
	}
	return ledger.Forget(c.Context, names, time.Now().UTC())
}
