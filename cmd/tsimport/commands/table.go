package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
)

func tableCommand(in *invocation) *cli.Command {
	quiet := &cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show errors only"}
	asJSON := &cli.BoolFlag{Name: "json", Usage: "print JSON"}
	name := &cli.StringFlag{Name: "table", Aliases: []string{"t"}, Usage: "`TABLE`; may also be given as the argument"}
	const unchanged = " (default: unchanged)"
	return &cli.Command{
		Name:  "table",
		Usage: "list, describe, create and drop tables, count and delete rows",
		Subcommands: append([]*cli.Command{
			{Name: "list", Usage: "list the tables", Flags: append(flagsOf(options.Reaching), quiet, asJSON),
				Action: in.with(options.Reaching, tableList)},
			{Name: "describe", Usage: "show a table's key and options", ArgsUsage: "TABLE",
				Flags: append(flagsOf(options.Reaching), quiet, asJSON, name), Action: in.with(options.Reaching, tableDescribe)},
			{Name: "create", Usage: "create a table", ArgsUsage: "TABLE", Action: in.with(options.Reaching, tableCreate),
				Flags: append(flagsOf(options.Reaching), quiet, name,
					textsFlag("pk", "primary-key column `NAME:TYPE`, in order, 1 to 4 times; TYPE is string, integer, binary, or "+
						"auto for one that the service numbers (not the first)"),
					textsFlag("define", "a predefined column, 'column NAME:TYPE', or a secondary index, '[local] index "+
						"NAME(COLUMN:TYPE,…) [COLUMN:TYPE,…]'; may be repeated"),
					&cli.IntFlag{Name: "ttl", Usage: "`SECONDS` until data expires, a day (86400) or more; -1 means never", Value: -1},
					&cli.IntFlag{Name: "max-versions", Usage: "versions to keep of each cell", Value: 1},
					&cli.Int64Flag{Name: "max-deviation",
						Usage: "`SECONDS` by which a cell's timestamp may differ from the clock; 0 means the service's default, 86400"},
					&cli.IntFlag{Name: "reserved-read", Usage: "reserved read throughput in capacity `UNITS`"},
					&cli.IntFlag{Name: "reserved-write", Usage: "reserved write throughput in capacity `UNITS`"})},
			{Name: "update", Usage: "change a table's throughput and options", ArgsUsage: "TABLE",
				Action: in.with(options.Reaching, tableUpdate),
				Description: "Changes what flags name, in one request, and shows it before and after; without a difference " +
					"nothing is sent. The service lets reserved throughput change once in two minutes. Changes that lose data " +
					"at once, a shorter time to live or fewer versions, need --yes.",
				Flags: append(flagsOf(options.Reaching), quiet, asJSON, name,
					&cli.IntFlag{Name: "reserved-read", Usage: "reserved read throughput in capacity `UNITS`" + unchanged},
					&cli.IntFlag{Name: "reserved-write", Usage: "reserved write throughput in capacity `UNITS`" + unchanged},
					&cli.IntFlag{Name: "ttl",
						Usage: "`SECONDS` until data expires, at least a day (86400); -1 means never" + unchanged},
					&cli.IntFlag{Name: "max-versions", Usage: "versions to keep of each cell" + unchanged},
					&cli.Int64Flag{Name: "max-deviation",
						Usage: "`SECONDS` by which a cell's timestamp may differ from the clock" + unchanged},
					&cli.BoolFlag{Name: "allow-update", Usage: "take updates of rows; --allow-update=false refuses them" + unchanged},
					&cli.BoolFlag{Name: "yes", Usage: "change it although cells are lost (default: say what would be lost)"})},
			{Name: "drop", Usage: "delete a table and all its rows", ArgsUsage: "TABLE",
				Action: in.with(options.Reaching, tableDrop),
				Flags: append(flagsOf(options.Reaching), quiet, name,
					&cli.BoolFlag{Name: "yes", Usage: "delete it (default: only show what would be deleted)"})},
		}, rowsCommands(in, quiet, asJSON, name)...),
	}
}

// withAdmin runs f on the tables of the target.
func withAdmin(c *call, a access, f func(*client.Admin, *target) error) (err error) {
	t, err := openTarget(c, a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if err := t.mustExist(); err != nil {
		return err
	}
	traffic := new(client.Traffic)
	sdk, err := client.New(c.Context, t.Target, traffic)
	if err != nil {
		return usagef("%v", err)
	}
	connection, err := client.Connect(c.Context, t.Target, traffic)
	if err != nil {
		return usagef("%v", err)
	}
	return f(&client.Admin{Client: sdk, Context: c.Context, Connection: connection}, t)
}

// checkTable refuses an invalid table name. The load checks names that differ by row.
func checkTable(name string) error {
	if name == "" {
		return usagef("no table: give --table")
	}
	if err := table.CheckTableName(name); err != nil && !plan.IsTemplate(name) {
		return usagef("%v; give another with --table", err)
	}
	return nil
}

// tableName returns the table of a command, from the flag or the argument.
func tableName(c *call) (string, error) {
	name := c.String("table")
	switch {
	case name == "" && c.NArg() == 1:
		name = c.Args().First()
	case name == "" || c.NArg() > 0:
		return "", usagef("name one table: tsimport table %s TABLE", c.Command.Name)
	}
	if err := table.CheckTableName(name); err != nil {
		return "", usagef("%v", err)
	}
	return name, nil
}

func tableList(c *call) error {
	return withAdmin(c, access{readOnly: true}, func(a *client.Admin, _ *target) error {
		names, err := a.List()
		if err != nil {
			return err
		}
		if c.of.JSON {
			return printJSON(c, append([]string{}, names...)) // [] instead of null
		}
		for _, n := range names {
			fmt.Fprintln(results(c), n)
		}
		return nil
	})
}

// description is the output of `table describe --json`.
type description struct {
	Table         string        `json:"table"`
	PrimaryKey    []describedPK `json:"primary_key"`
	TimeToLive    int           `json:"ttl"` // seconds; -1 means never
	MaxVersions   int           `json:"max_versions"`
	MaxDeviation  int64         `json:"max_deviation"` // seconds
	ReservedRead  int           `json:"reserved_read"` // capacity units
	ReservedWrite int           `json:"reserved_write"`
	AllowUpdate   bool          `json:"allow_update"`
	Indexes       []table.Index `json:"indexes,omitempty"`
	LargeValue    *largeValue   `json:"large_value,omitempty"`
}

// largeValue is a partition-key value that exceeds the recommended size.
type largeValue struct {
	Value string `json:"value"`
	Bytes int64  `json:"bytes"` // minimum size
}

type describedPK struct {
	Name          string `json:"name"`
	Type          string `json:"type"`
	AutoIncrement bool   `json:"auto_increment,omitempty"`
}

func tableDescribe(c *call) error {
	name, err := tableName(c)
	if err != nil {
		return err
	}
	return withAdmin(c, access{readOnly: true}, func(a *client.Admin, target *target) error {
		t, err := a.Describe(name)
		if err != nil {
			return noTable(err, target)
		}
		d := describe(t)
		switch v, size, err := scan.NewPartitions(a, a.Client, name).LargeValue(); {
		case c.Context.Err() != nil:
			return context.Cause(c.Context)
		case err != nil:
			c.say.Note("cannot determine whether the rows of one value of %s take more than 10 GB: %v", t.Key[0].Name, err)
		case size > 0:
			d.LargeValue = &largeValue{plan.ShowKey(v), size}
			c.say.Warn("rows with %s %s take more than %s, but %s; tsimport advise ots://INSTANCE/%s proposes a key that "+
				"divides them", t.Key[0].Name, printable(d.LargeValue.Value), words.Bytes(size), valueTooLarge, name)
		}
		return printed(c, d, d.print)
	})
}

func describe(t *client.Table) description {
	d := description{Table: t.Name, TimeToLive: t.TimeToLive, MaxVersions: t.MaxVersions, MaxDeviation: t.MaxDeviation,
		ReservedRead: t.ReservedRead, ReservedWrite: t.ReservedWrite, AllowUpdate: !t.NoUpdates, Indexes: t.IndexesAre}
	for _, k := range t.Key {
		d.PrimaryKey = append(d.PrimaryKey, describedPK{k.Name, k.Type.String(), k.Auto})
	}
	return d
}

func (d *description) print(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "table\t%s\n", d.Table)
	for i, k := range d.PrimaryKey {
		auto := ""
		if k.AutoIncrement {
			auto = ", auto-increment"
		}
		fmt.Fprintf(w, "primary key %d\t%s (%s%s)\n", i+1, printable(k.Name), k.Type, auto)
	}
	fmt.Fprintf(w, "time to live\t%s\nmax versions\t%d\nmax deviation\t%d seconds\n", timeToLiveText(d.TimeToLive),
		d.MaxVersions, d.MaxDeviation)
	fmt.Fprintf(w, "reserved throughput\t%d read, %d write capacity units\n", d.ReservedRead, d.ReservedWrite)
	for _, i := range d.Indexes {
		fmt.Fprintf(w, "index\t%s\n", printable(i.String()))
	}
	if !d.AllowUpdate {
		fmt.Fprintf(w, "updates of rows\trefused\n")
	}
	return w.Flush()
}

func timeToLiveText(seconds int) string {
	if seconds == -1 {
		return "never expires"
	}
	return fmt.Sprintf("%d seconds", seconds)
}

func printJSONLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printed prints a result as JSON if requested, or else as text.
func printed(c *call, result any, write func(io.Writer) error) error {
	if c.of.JSON {
		return printJSON(c, result)
	}
	return write(results(c))
}

func printJSON(c *call, v any) error {
	e := json.NewEncoder(c.App.Writer)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print result: %w", err)
	}
	return nil
}

func tableCreate(c *call) error {
	name, err := tableName(c)
	if err != nil {
		return err
	}
	to, columns := new(plan.Target), new(plan.Columns)
	if err := options.Computed(&options.Request{Mapping: options.Mapping{PK: textsOf(c.line, "pk")}}, to,
		columns); err != nil {
		return usagef("%v", err)
	}
	if len(columns.Keys) > 0 {
		return usagef("--pk %s: a table has no expressions; give NAME:TYPE here, and the expression to the load",
			columns.Keys[0].Name)
	}
	key := to.Key
	if n := len(key); n < 1 || n > table.MaxKeyColumns {
		return usagef("give the primary key with --pk NAME:TYPE, 1 to %d times in order", table.MaxKeyColumns)
	}
	for _, k := range key {
		if k.Type == table.Null {
			return usagef("--pk %s: give the type too, such as %s:string", k.Name, k.Name)
		}
	}
	if err := table.CheckKey(key); err != nil {
		return usagef("%v", err)
	}
	if err := table.CheckTimeToLive(c.Int("ttl")); err != nil {
		return usagef("--ttl %d: %v", c.Int("ttl"), err)
	}
	d := table.Definition{TimeToLive: c.Int("ttl"), MaxVersions: c.Int("max-versions"),
		MaxDeviation: c.Int64("max-deviation"),
		ReservedRead: c.Int("reserved-read"), ReservedWrite: c.Int("reserved-write")}
	if err := tableDefines(c, to, d); err != nil {
		return err
	}
	return withAdmin(c, access{create: true}, func(a *client.Admin, t *target) error {
		for _, i := range to.Indexes {
			if _, err := a.Describe(i.Name); err == nil || i.Name == name {
				return usagef("index %s: the instance already has a table or an index with that name; give it another name", i.Name)
			}
		}
		if err := a.CreateDefined(name, key, d, to.Defined); err != nil {
			return err
		}
		for _, i := range to.Indexes {
			if err := a.CreateIndex(name, i); err != nil {
				return fmt.Errorf("%w; table %s was created; drop it before you repeat the command", err, name)
			}
		}
		c.say.Line("table %s created", name)
		return nil
	})
}

func tableDefines(c *call, to *plan.Target, d table.Definition) error {
	to.Define = d
	if err := options.Define(textsOf(c.line, "define"), to); err != nil {
		return usagef("%v", err)
	}
	for name, of := range to.Defined {
		if slices.ContainsFunc(to.Key, func(k table.KeyColumn) bool { return k.Name == name }) {
			delete(to.Defined, name)
		} else if of == table.Null {
			return usagef("--define: give the type of column %s too, such as %s:string", name, name)
		}
	}
	return plan.CheckIndexes(to, to.Key)
}

func tableDrop(c *call) error {
	name, err := tableName(c)
	if err != nil {
		return err
	}
	return withAdmin(c, access{}, func(a *client.Admin, t *target) error {
		if !c.Bool("yes") {
			return usagef("this would delete table %s and all its rows in %s; add --yes to do it", name, t.name)
		}
		if err := a.Drop(name); err != nil {
			return noTable(err, t)
		}
		c.say.Line("table %s deleted", name)
		return nil
	})
}
