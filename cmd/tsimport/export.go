package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/urfave/cli/v2"

	"tsimport/client"
	"tsimport/scan"
)

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:  "export",
		Usage: "write a table's rows as CSV or JSON lines, primary key first, in key order",
		Flags: append(targetFlags(), []cli.Flag{
			&cli.StringFlag{Name: "table", Aliases: []string{"t"}, Usage: "`TABLE` to read"},
			&cli.StringFlag{Name: "format", Usage: "csv or jsonl", Value: "csv"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FILE` to write (default: stdout)"},
			&cli.StringFlag{Name: "columns", Usage: "only these attribute columns `A,B`, in this order"},
			&cli.Int64Flag{Name: "limit", Usage: "stop after `N` rows"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show errors only"},
		}...),
		Action: export,
	}
}

func export(c *cli.Context) (err error) {
	name := c.String("table")
	switch format := c.String("format"); {
	case name == "":
		return usagef("no table: give --table")
	case c.Args().Present():
		return usagef("export takes no file names (%q); the output is named with -o", c.Args().First())
	case format != "csv" && format != "jsonl":
		return usagef("--format %q: want csv or jsonl", format)
	case c.Int64("limit") < 0:
		return usagef("--limit: want 0 (no limit) or more")
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
	e := &exporter{ctx: c.Context, sdk: sdk, table: described, o: scan.Options{Limit: c.Int64("limit")}}
	if c.IsSet("columns") {
		if e.o.Columns, err = splitList(c.String("columns")); err != nil {
			return usagef("--columns: %v", err)
		}
	}
	err = writeOutput(c.String("output"), c.App.Writer, func(w io.Writer) error {
		if c.String("format") == "jsonl" {
			return e.jsonl(w)
		}
		return e.csv(w)
	})
	if err == nil {
		say(c, c.App.ErrWriter, "exported %s rows of table %s", grouped(e.rows), name)
	}
	return err
}

// noTable says what to do about a missing table.
func noTable(err error, t *target) error {
	if errors.Is(err, client.ErrNoTable) {
		return usagef("%v in %s; see tsimport table list", err, t.name)
	}
	return err
}

type exporter struct {
	ctx   context.Context
	sdk   *tablestore.TableStoreClient
	table *client.Table
	o     scan.Options
	rows  int64
}

func (e *exporter) jsonl(w io.Writer) error {
	f := scan.NewJSONL(w)
	if err := e.scan(f.Write); err != nil {
		return err
	}
	return f.Close()
}

// csv needs the columns before the first row: they are given, or known once all rows have been read into a spool.
func (e *exporter) csv(w io.Writer) (err error) {
	columns, rows := e.o.Columns, e.scan
	if columns == nil {
		spool, err := scan.NewSpool("")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, spool.Close()) }()
		if err := e.scan(spool.Write); err != nil {
			return err
		}
		columns, rows = spool.Columns(), spool.Replay
	}
	var keys []string
	for _, k := range e.table.Key {
		keys = append(keys, k.Name)
	}
	f, err := scan.NewCSV(w, keys, columns)
	if err != nil {
		return err
	}
	if err := rows(f.Write); err != nil {
		return err
	}
	return f.Close()
}

func (e *exporter) scan(each func(*scan.Row) error) error {
	return scan.Table(e.ctx, e.sdk, e.table.Name, e.table.Key, e.o, func(r *scan.Row) error {
		e.rows++
		return each(r)
	})
}

// writeOutput writes to a file, which appears under its name only when it is whole, or to stdout.
func writeOutput(path string, stdout io.Writer, write func(io.Writer) error) error {
	if path == "" || path == "-" {
		return write(stdout)
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		// A pipe or a device cannot be replaced by renaming.
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("open output: %w", err)
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.Create(path + ".part")
	if err != nil {
		return fmt.Errorf("create output: %w", err)
	}
	err = errors.Join(write(f), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+".part", path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path+".part"))
	}
	return nil
}
