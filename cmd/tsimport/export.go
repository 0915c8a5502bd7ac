package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"tsimport/internal/spill"
	"tsimport/internal/tablestore/client"
	"tsimport/pipeline/options"
	"tsimport/transfer/archive"
	exporting "tsimport/transfer/export"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:  "export",
		Usage: "write a table's rows as CSV or JSON lines, primary key first, in key order, or an exact archive of the table",
		Description: "An archive is a folder, or a prefix of a store of objects, that keeps every cell with its type, timestamp and versions; tsimport load FOLDER restores it (docs/archive.md).\n" +
			"CSV and JSON lines have the newest version of each cell, without its timestamp.",
		Flags: append(append(targetFlags(), storeFlags()...), []cli.Flag{
			&cli.StringFlag{Name: "table", Aliases: []string{"t"}, Usage: "`TABLE` to read"},
			&cli.StringFlag{Name: "format", Usage: "csv, jsonl or archive; the default for a folder is archive", Value: "csv"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`PLACE` to write to: a file, or the folder of an archive, which may be oss://bucket/prefix or s3://bucket/prefix (default: stdout)"},
			&cli.StringFlag{Name: "columns", Usage: "only these attribute columns `A,B`, in this order"},
			&cli.Int64Flag{Name: "limit", Usage: "stop after `N` rows"},
			&cli.BoolFlag{Name: "fresh", Usage: "start over; without it, an export to a file that was interrupted is continued"},
			&cli.StringFlag{Name: "versions", Usage: "archive: versions of each cell to keep, the newest `N`, or all", Value: "all"},
			&cli.StringFlag{Name: "from-key", Usage: "archive: rows from `KEY` on: values of the first key columns, with commas between them; text as it is or in quotes as in JSON, binary as 0x and hexadecimal digits"},
			&cli.StringFlag{Name: "to-key", Usage: "archive: rows before `KEY`"},
			&cli.StringFlag{Name: "filter", Usage: "archive: only rows for which the service finds `CONDITION` true, such as 'age >= 18 and city == \"Hangzhou\"'; they alone travel, all are charged"},
			&cli.StringFlag{Name: "where", Usage: "archive: only rows for which `EXPR` is true, such as 'age >= 18 and city == \"Hangzhou\"' (docs/keys.md); all rows are read"},
			&cli.Float64Flag{Name: "max-rcu", Usage: "archive: read at most `UNITS` of capacity a second; 0 means no limit"},
			&cli.IntFlag{Name: "concurrency", Usage: "archive: ranges of keys that are read at a time", Value: exporting.DefaultReaders},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show errors only"},
		}...),
		Action: export,
	}
}

func export(c *cli.Context) (err error) {
	name, format := c.String("table"), c.String("format")
	if !c.IsSet("format") && isFolder(c.String("output")) {
		format = formatArchive
	}
	switch {
	case name == "":
		return usagef("no table: give --table")
	case c.Args().Present():
		return usagef("export takes no file names (%q); the output is named with -o", c.Args().First())
	case format == "parquet":
		return usagef("--format parquet: Parquet is read, not written; want csv, jsonl or archive")
	case format != exporting.CSV && format != exporting.JSONL && format != formatArchive:
		return usagef("--format %q: want csv, jsonl or archive", format)
	case c.Int64("limit") < 0:
		return usagef("--limit: want 0 (no limit) or more")
	}
	if err := checkArchiveFlags(c, format == formatArchive); err != nil {
		return err
	}
	t, err := openTarget(c, access{readOnly: true}, c.App.ErrWriter)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.mustExist(); err != nil {
		return err
	}
	sdk, err := client.New(c.Context, t.Target, nil)
	if err != nil {
		return usagef("%v", err)
	}
	described, err := (&client.Admin{Client: sdk, Context: c.Context}).Describe(name)
	if err != nil {
		return noTable(err, t)
	}
	if format == formatArchive {
		return exportArchive(c, sdk, described, t)
	}
	cfg := exporting.Config{Client: sdk, Table: described, Target: t.name, Format: format, Limit: c.Int64("limit"), Path: c.String("output"), Fresh: c.Bool("fresh")}
	if c.IsSet("columns") {
		if cfg.Columns, err = options.List(c.String("columns")); err != nil {
			return usagef("--columns: %v", err)
		}
	}
	r, err := exportTo(c.Context, c.App.Writer, cfg)
	if err != nil {
		return stoppedExport(c, err, r.Kept)
	}
	if r.Resumed > 0 {
		say(c, c.App.ErrWriter, "continued after the %s rows already in the file", grouped(r.Resumed))
	}
	endingOf(c).table = name
	endingOf(c).count("exported", r.Rows)
	say(c, c.App.ErrWriter, "exported %s rows of table %s", grouped(r.Rows), name)
	for _, text := range exportNotes(described, &r) {
		say(c, c.App.ErrWriter, "%s", text)
	}
	return nil
}

// stoppedExport is the error of an export that did not finish. It says what the same command continues after.
func stoppedExport(c *cli.Context, err error, kept int64) error {
	lines, changed, occupied := new(exporting.ChangedError), new(archive.ChangedError), new(archive.OccupiedError)
	switch {
	case errors.As(err, &lines), errors.As(err, &changed), errors.As(err, &occupied):
		return usagef("%v", err)
	case kept > 0:
		say(c, c.App.ErrWriter, "%s rows are kept; give the same command again to continue after them", grouped(kept))
	}
	return plainFull(err)
}

// plainFull says once which file does not fit. What fails after that, fails for the same reason.
func plainFull(err error) error {
	at := new(fs.PathError)
	if !spill.IsFull(err) || !errors.As(err, &at) {
		return err
	}
	return fmt.Errorf("%s does not fit on its disk: %w; make room and give the same command again", at.Path, at.Err)
}

// exportNotes say what of the table is not in the export, or not as a load takes it by itself.
func exportNotes(t *client.Table, r *exporting.Result) (notes []string) {
	if t.MaxVersions > 1 {
		notes = append(notes, fmt.Sprintf("warning: the table keeps %d versions of a cell, and the export has the newest of each without its timestamp: %s cells have older ones, which are left out",
			t.MaxVersions, grouped(r.OlderCells)))
	}
	if len(r.Binary) > 0 {
		var flags string
		for _, name := range r.Binary {
			flags += " --type " + quoteArg(name+"=binary")
		}
		notes = append(notes, "warning: some values are binary, which the export has as base64; a load needs to be told:"+flags)
	}
	return notes
}

// noTable says what to do about a missing table.
func noTable(err error, t *target) error {
	if errors.Is(err, client.ErrNoTable) {
		return usagef("%v in %s; see tsimport table list", err, t.name)
	}
	return err
}

// exportTo writes to a file, which appears under its name only when it is whole, or to stdout.
func exportTo(ctx context.Context, stdout io.Writer, cfg exporting.Config) (exporting.Result, error) {
	if cfg.Path == "" || cfg.Path == "-" {
		return exporting.To(ctx, cfg, stdout)
	}
	if info, err := os.Stat(cfg.Path); err == nil && !info.Mode().IsRegular() {
		// A pipe or a device cannot be replaced by renaming.
		f, err := os.OpenFile(cfg.Path, os.O_WRONLY, 0)
		if err != nil {
			return exporting.Result{}, fmt.Errorf("open output: %w", err)
		}
		r, err := exporting.To(ctx, cfg, f)
		return r, errors.Join(err, f.Close())
	}
	return exporting.ToFile(ctx, cfg)
}
