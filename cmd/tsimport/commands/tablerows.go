package commands

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/condition"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/rundir"
	exporting "example.com/tsimport/transfer/export"
)

// ofRows lists the flags of export that select rows.
var ofRows = []string{"from-key", "to-key", "prefix", "keys", "filter", "where", "concurrency", "max-rcu"}

func rowsCommands(in *invocation, quiet, asJSON, name cli.Flag) []*cli.Command {
	of := slices.DeleteFunc(flagsOf(options.Export),
		func(f cli.Flag) bool { return !slices.Contains(ofRows, f.Names()[0]) })
	of = append(append(of, flagsOf(options.Reaching)...), quiet, name)
	deleting := slices.DeleteFunc(slices.Clone(of), func(f cli.Flag) bool { return f.Names()[0] == "where" })
	deleting = append(deleting, flagOf(options.Find("where"), true)) // which tableDelete refuses, with advice
	return []*cli.Command{
		{Name: "count", Usage: "count a table's rows", ArgsUsage: "TABLE", Action: in.with(options.Export, tableCount),
			Flags: append(slices.Clone(of), asJSON),
			Description: "Reads the keys of all rows, or of those that flags name, by ranges in parallel. Each row counts as " +
				"it was when its page was read."},
		{Name: "delete", Usage: "delete rows of a table", ArgsUsage: "TABLE", Action: in.with(options.Export, tableDelete),
			Description: "Without --yes it only counts the rows. A row that was changed meanwhile is kept if --filter is no " +
				"longer true for it.\n" +
				"An interrupted deletion is resumed by the same command.",
			Flags: append(deleting,
				&cli.Int64Flag{Name: "max-delete", Usage: "delete nothing if there are more than `N` rows (default: no limit)"},
				&cli.BoolFlag{Name: "yes", Usage: "delete them (default: count them)"})},
	}
}

// rowsOf opens a table, as export does, for a scan of its keys.
func rowsOf(c *call, name string) (cfg exporting.Config, close func() error, err error) {
	t, err := openTarget(c, access{readOnly: true})
	if err != nil {
		return cfg, nil, err
	}
	sdk, described, err := describeSource(c, t, name)
	if err != nil {
		return cfg, nil, errors.Join(err, t.close())
	}
	cfg = exporting.Config{Target: t.name, Format: exporting.Typed, Readers: c.of.Concurrency}
	closeKeys := func() error { return nil }
	if cfg.Scan, cfg.Holds, err = exportOf(c, described); err == nil {
		closeKeys, err = rowKeys(c, &cfg)
	}
	if err != nil {
		return cfg, nil, errors.Join(err, t.close())
	}
	cfg.Scan.Client, cfg.Scan.Columns = sdk, []string{}
	if bytes, err := scan.NewPartitions(&client.Admin{Client: sdk, Context: c.Context}, sdk, name).Size(); err == nil &&
		cfg.Scan.From == nil && cfg.Scan.To == nil && cfg.Keys == nil {
		c.say.Line("reading table %s takes up to %s read units", name, words.Grouped(bytes/unitBytes+1))
	}
	return cfg, func() error { return errors.Join(closeKeys(), t.close()) }, nil
}

// unitBytes is the number of bytes per read unit.
const unitBytes = 4 << 10

func tableCount(c *call) (err error) {
	name, err := tableName(c)
	if err != nil {
		return err
	}
	cfg, closeTarget, err := rowsOf(c, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeTarget()) }()
	r, err := exporting.To(c.Context, cfg, io.Discard)
	if err != nil {
		return err
	}
	counted := rowsCounted{Table: name, Rows: r.Rows, ReadUnits: r.Units}
	return printed(c, counted, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, r.Rows)
		return err
	})
}

type rowsCounted struct {
	Table     string `json:"table"`
	Rows      int64  `json:"rows"`
	ReadUnits int64  `json:"read_units"`
}

func tableDelete(c *call) error {
	name, err := tableName(c)
	keys, ranged := c.of.Keys, c.IsSet("prefix") || c.IsSet("from-key") || c.IsSet("to-key")
	switch {
	case err != nil:
		return err
	case keys != "" && (ranged || c.IsSet("max-delete")):
		return usagef("--keys: the file names the rows; leave out --prefix, --from-key, --to-key and --max-delete")
	case c.IsSet("where"):
		return usagef("--where: a row may change before it is deleted; give --filter, which the service checks as it deletes")
	case keys == "" && !ranged && !c.IsSet("filter"):
		return usagef("name the rows by a key range, --filter or --keys; tsimport table drop deletes a whole table")
	}
	own, resumed := "", false
	if keys == "" {
		n := int64(0)
		if own, n, resumed, err = deletedKeys(c, name); err != nil {
			return err
		}
		switch most := c.Int64("max-delete"); {
		case c.IsSet("max-delete") && n > most:
			return errors.Join(usagef("--max-delete %d: %s would be deleted; none was", most, counted(n, "row")), removed(own))
		case !c.Bool("yes"):
			return usagef("this would delete %s of table %s, a write unit or more each; add --yes", counted(n, "row"), name)
		case n == 0:
			c.say.Line("nothing to delete: table %s has no such rows", name)
			return removed(own)
		}
		keys = own
	}
	of := c.command()
	of.Name = job.Load
	of.From, of.Table, of.Mode, of.Order, of.DryRun = []string{keys}, name, "delete", "none", !c.Bool("yes")
	of.FromKey, of.ToKey, of.Prefix, of.Keys, of.Filter, of.Concurrency, of.MaxRCU = "", "", "", "", "", 0, 0
	if filter := c.of.Filter; filter != "" {
		of.When = condition.Matching + filter
	}
	if err := load(c.again(c.in, of)); err != nil || own == "" {
		return err
	}
	if err := removed(own); err != nil || !resumed {
		return err
	}
	return tableDelete(c) // for rows added since the interrupted deletion
}

// removed removes a file of keys. An empty name means no file.
func removed(file string) error {
	if file == "" {
		return nil
	}
	return os.Remove(file)
}

// deletedKeys counts the rows to be deleted and, with --yes, stores their keys in a file. resumed is set if the file is
// that of an interrupted deletion. After that deletion, the rows must be searched again.
func deletedKeys(c *call, name string) (file string, n int64, resumed bool, err error) {
	cfg, closeTarget, err := rowsOf(c, name)
	if err != nil {
		return "", 0, false, err
	}
	defer func() { err = errors.Join(err, closeTarget()) }()
	if !c.Bool("yes") {
		r, err := exporting.To(c.Context, cfg, io.Discard)
		return "", r.Rows, false, err
	}
	file = deletedKeysFile(cfg.Target, name, fmt.Sprint(cfg.Scan.Table.Created), c.given.FromKey, c.given.ToKey,
		c.of.Filter)
	if text, err := os.Open(file); err == nil { // it is complete: an incomplete export has another name
		defer text.Close()
		for lines := bufio.NewScanner(text); lines.Scan(); {
			n++
		}
		c.say.Line("resuming the interrupted deletion of %s rows", words.Grouped(n))
		return file, n, true, nil
	}
	if err := os.MkdirAll(rundir.Root, 0o700); err != nil {
		return "", 0, false, fmt.Errorf("create run folder: %w", err)
	}
	cfg.Path = file
	r, err := exporting.ToFile(c.Context, cfg)
	return file, r.Rows, false, err
}

func deletedKeysFile(target, name string, which ...string) string {
	return filepath.Join(rundir.Root, "delete-"+name+"-"+progress.Identify(append([]string{target, name}, which...)...)+
		".jsonl")
}
