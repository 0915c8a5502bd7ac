package commands

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/words"
	"example.com/tsimport/jobs/job"
	"example.com/tsimport/reader/open"
	"example.com/tsimport/reader/sqltable"
)

func tablesCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:      "tables",
		Usage:     "list the tables of a database: rows, bytes, keys, and why one cannot be loaded",
		ArgsUsage: "ADDRESS",
		Description: "ADDRESS is one such as postgres://USER@HOST/DATABASE, mysql://USER@HOST/DATABASE or sqlite:FILE " +
			"(docs/sql.md); ?table=o* lists the tables that match.\n" +
			"Rows and bytes are the server's own estimates. No row is read.",
		Flags:  []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON, one object a line for each table"}},
		Action: in.act(tables),
	}
}

func tables(c *call) error {
	if c.NArg() != 1 {
		return usagef("%v", open.ErrNoDatabase)
	}
	found, err := open.Tables(c.Context, c.Args().First())
	if err != nil {
		return usagef("%v", err)
	}
	if !c.of.JSON {
		return writeTables(results(c), found)
	}
	for i := range found {
		if err := printJSONLine(c.App.Writer, &found[i]); err != nil {
			return err
		}
	}
	return nil
}

// tableAddresses returns the tables that match a pattern, without views.
func tableAddresses(ctx context.Context, pattern string) (found []job.Found, err error) {
	all, err := open.Tables(ctx, pattern)
	if err != nil {
		return nil, usagef("%v", err)
	}
	for _, one := range all {
		if one.Kind == "table" {
			found = append(found, job.Found{Name: one.Address, Table: one.Table})
		}
	}
	return found, nil
}

func writeTables(w io.Writer, found []sqltable.Listed) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "table\trows\tbytes\tkey")
	for _, one := range found {
		rows := "?"
		if one.Rows >= 0 {
			rows = "~" + words.Grouped(one.Rows)
		}
		bytes := "?"
		if one.Bytes >= 0 {
			bytes = words.Grouped(one.Bytes)
		}
		key := strings.Join(one.Key, ", ")
		if one.Refused != "" {
			key = "cannot be loaded: " + one.Refused
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", printable(one.Table), rows, bytes, printable(key))
	}
	return t.Flush()
}
