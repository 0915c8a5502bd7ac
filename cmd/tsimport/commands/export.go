package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/spill"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	archive "example.com/tsimport/reader/archivefile"
	exporting "example.com/tsimport/transfer/export"
	"example.com/tsimport/transfer/fromtable"
)

func exportCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:  "export",
		Usage: "write a table's rows as CSV, JSON lines or Parquet, in key order, or an exact archive of the table",
		Description: "An archive is a folder, or a prefix of a store of objects, that keeps every cell with its type, " +
			"timestamp and versions; tsimport load FOLDER restores it (docs/archive.md).\n" +
			"CSV, JSON lines and Parquet have the newest version of each cell, without timestamps; jsonl --typed keeps all.",
		Flags:  flagsOf(options.Export | options.Ending),
		Action: in.with(options.Export|options.Ending, export),
	}
}

func export(c *call) (err error) {
	name, format := c.of.Table, exportFormat(c)
	if err := checkExport(c, name, format); err != nil {
		return err
	}
	t, err := openTarget(c, access{readOnly: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	l := c.in.plan
	sdk, described, err := describeSource(c, t, name)
	switch {
	case err != nil && l != nil:
		return l.later(t.place(name), err)
	case err != nil:
		return err
	case l != nil:
		return l.export(c, sdk, described, t)
	case format == formatArchive:
		return exportArchive(c, sdk, described, t, nil)
	}
	base, lake, err := lakeOf(c, format)
	if lake != nil {
		c.of.Output = base
		return exportArchive(c, sdk, described, t, lake)
	}
	cfg := exporting.Config{Target: t.name, Format: format, Limit: c.of.Limit, Path: c.of.Output, Fresh: c.of.Fresh,
		Readers: c.of.Concurrency}
	if cfg.Scan, cfg.Holds, err = exportOf(c, described); err != nil {
		return err
	}
	closeKeys, err := rowKeys(c, &cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeKeys()) }()
	cfg.Scan.Client = sdk
	if c.of.Typed {
		cfg.Format = exporting.Typed
	}
	if text := beforehand[cfg.Format]; text != "" {
		c.say.Note("%s", text)
	}
	r, err := exportTo(c.Context, c.App.Writer, cfg)
	if err != nil {
		return stoppedExport(c, err, r.Kept)
	}
	return endExport(c, &cfg, &r)
}

func checkExport(c *call, name, format string) error {
	if err := checkTable(name); err != nil {
		return err
	}
	if c.Args().Present() {
		return usagef("export takes no file names (%q); the output is named with -o", c.Args().First())
	}
	return checkExportFlags(c, format)
}

func describeSource(c *call, t *target, name string) (*tablestore.TableStoreClient, *client.Table, error) {
	if err := t.mustExist(); err != nil {
		return nil, nil, err
	}
	sdk, err := client.New(c.Context, t.Target, nil)
	if err != nil {
		return nil, nil, usagef("%v", err)
	}
	if l := c.in.plan; l != nil {
		if err := l.reach(t); err != nil {
			return nil, nil, err
		}
	}
	described, err := (&client.Admin{Client: sdk, Context: c.Context}).Describe(name)
	return sdk, described, noTable(err, t)
}

func endExport(c *call, cfg *exporting.Config, r *exporting.Result) error {
	if r.Resumed > 0 {
		c.say.Line("continued after the %s rows already in the file", words.Grouped(r.Resumed))
	}
	name := cfg.Scan.Table.Name
	endingOf(c).table = name
	endingOf(c).count("exported", r.Rows)
	c.say.Line("exported %s of table %s", counted(r.Rows, "row"), name)
	if r.LeftOut > 0 {
		c.say.Line("%s rows were left out by --where", words.Grouped(r.LeftOut))
	}
	if r.Missing > 0 {
		c.say.Warn("the table has no rows for %s", counted(r.Missing, "key"))
	}
	sayNothing(c, cfg, r)
	flags := loadFlagsOf(cfg, r)
	sayLost(c.say, &r.Lost, r.Columns)
	if cfg.ServerText() {
		c.say.Line("to load it: %s", serverStatement(cfg, r))
	} else {
		sayFlags(c, flags, "--json prints as load_flags")
	}
	if c.of.JSON {
		return printJSON(c, exportSummary{Table: name, Format: exportFormat(c), Rows: r.Rows, Missing: r.Missing,
			Columns: r.Columns, Lost: r.Lost, LoadFlags: flags, ReadUnits: r.Units})
	}
	return nil
}

// sayFlags prints the flags that give a load the column types or, if there are many, where to find them.
func sayFlags(c *call, flags []string, elsewhere string) {
	if len(flags) > shownFlags {
		c.say.Line("to load the same types, give the load the %d flags that %s", len(flags)/2, elsewhere)
		return
	}
	if len(flags) > 0 {
		c.say.Line("to load the same types:%s", shellArgs(flags))
	}
}

// plainFormat returns the format of a lake's rows, without compression.
func plainFormat(l *exporting.Layout) string {
	if l.Format == exporting.Parquet {
		return l.Format
	}
	return exporting.CSV
}

func endLake(c *call, cfg *exporting.ArchiveConfig, r *exporting.ArchiveResult) {
	m := r.Lake
	endingOf(c).table = m.Table
	endingOf(c).count("exported", m.Rows)
	c.say.Line("exported %s of table %s to %s of %s in %s; %s", counted(m.Rows, "row"), m.Table,
		counted(int64(len(m.Files)), "file"), counted(m.Bytes, "byte"),
		redacted(cmp.Or(c.of.Output, ".")), counted(r.Units, "read capacity unit"))
	if n := r.Unknown.Rows; n > 0 {
		c.say.Warn("%s in the folders for missing values: %s", are(n, "row"), r.Unknown.Why)
	}
	rows, of := exporting.Result{Rows: m.Rows}, exporting.Config{Scan: cfg.Scan, Format: plainFormat(cfg.Lake)}
	for _, column := range m.Columns {
		types := map[string]int64{}
		for _, t := range column.Types {
			types[t.String()] = 1
		}
		rows.Columns = append(rows.Columns, exporting.Column{Name: column.Name, Types: types})
	}
	sayNothing(c, &of, &rows)
	sayFlags(c, loadFlagsOf(&of, &rows), archive.LakeManifestName+" has as columns and primary_key")
}

// exportSummary is the output of an export with --json.
type exportSummary struct {
	Table     string             `json:"table"`
	Format    string             `json:"format"`
	Rows      int64              `json:"rows"`
	Missing   int64              `json:"missing,omitempty"` // keys without a row
	Columns   []exporting.Column `json:"columns"`
	Lost      exporting.Lost     `json:"lost"`
	LoadFlags []string           `json:"load_flags"` // flags that give a load the column types
	ReadUnits int64              `json:"read_units"` // charged to this process
}

func serverStatement(cfg *exporting.Config, r *exporting.Result) string {
	file, name := cmp.Or(cfg.Path, "FILE"), cfg.Scan.Table.Name
	columns := cfg.Columns(r.Columns)
	for i, c := range columns {
		if columns[i] = "`" + strings.ReplaceAll(c, "`", "``") + "`"; cfg.Format == exporting.Postgres {
			columns[i] = `"` + strings.ReplaceAll(c, `"`, `""`) + `"`
		}
	}
	if cfg.Format == exporting.Postgres {
		return fmt.Sprintf(`\copy %s (%s) FROM '%s'`, name, strings.Join(columns, ", "), strings.ReplaceAll(file, "'", "''"))
	}
	return fmt.Sprintf("LOAD DATA LOCAL INFILE '%s' INTO TABLE %s CHARACTER SET utf8mb4 (%s)",
		strings.NewReplacer("'", "''", `\`, `\\`).Replace(file), name, strings.Join(columns, ", "))
}

// beforehand maps formats to notes on what they lose.
var beforehand = map[string]string{
	exporting.CSV: "CSV has the newest version of each cell, without its timestamp, and a load needs flags for the " +
		"types, which are printed at the end; " +
		"--format archive keeps everything, jsonl with --typed every row",
	exporting.JSONL: "JSON lines have the newest version of each cell, without its timestamp, and a load gives all " +
		"values of a column one type; " +
		"--typed keeps versions, timestamps and types",
	exporting.MySQL:    "the text has the newest version of each cell, without its timestamp",
	exporting.Postgres: "the text has the newest version of each cell, without its timestamp",
	exporting.Parquet:  "Parquet has the newest version of each cell, without timestamp; --format archive keeps all",
}

// sayNothing warns of requested columns that no row had, and of conditions that no row met, as they may be misspelt.
func sayNothing(c *call, cfg *exporting.Config, r *exporting.Result) {
	for _, name := range cfg.Scan.Columns {
		has := func(of exporting.Column) bool { return of.Name == name && len(of.Types) > 0 }
		if r.Rows > 0 && !slices.ContainsFunc(r.Columns, has) {
			c.say.Warn("no exported row has the column %s (--columns)", name)
		}
	}
	for _, condition := range [][2]string{{"filter", c.of.Filter}, {"where", c.of.Where}} {
		if condition[1] != "" && r.Rows == 0 {
			c.say.Warn("no row passes --%s %s; comparisons with a missing column fail", condition[0], suggest.Arg(condition[1]))
		}
	}
}

func sayLost(say words.Say, lost *exporting.Lost, columns []exporting.Column) {
	if lost.Timestamps > 0 {
		say.Note("not in the output: the timestamps of %s", counted(lost.Timestamps, "cell"))
	}
	if lost.OlderVersions > 0 {
		say.Warn("not in the output: %s of cells", counted(lost.OlderVersions, "older version"))
	}
	if lost.Types > 0 {
		var mixed []string
		for i := range columns {
			if columns[i].Others() > 0 {
				mixed = append(mixed, columns[i].Name)
			}
		}
		say.Warn("%s not strings, in columns that also have values of other types: a load takes such columns as strings (%s)",
			are(lost.Types, "value"), shortList(mixed))
	}
}

// shownMixed limits the column names in a line, shownFlags the words of flags. --json has all of them.
const (
	shownMixed = 10
	shownFlags = 80
)

func shortList(names []string) string {
	if more := len(names) - shownMixed; more > 0 {
		return strings.Join(names[:shownMixed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// loadFlagsOf returns the flags that give a load the column types of an export: for the key, for all columns of CSV,
// which has no types, and for JSON columns with mixed types.
func loadFlagsOf(cfg *exporting.Config, r *exporting.Result) []string {
	flags := []string{}
	if cfg.Format == exporting.Typed || cfg.ServerText() {
		return flags
	}
	for _, k := range cfg.Scan.Table.Key {
		flags = append(flags, "--pk", k.Name+":"+k.Type.String())
	}
	if cfg.Format == exporting.Parquet {
		return flags
	}
	for i := range r.Columns {
		t := r.Columns[i].Type()
		if cfg.Format == exporting.CSV || r.Columns[i].Others() > 0 {
			flags = append(flags, "--type", r.Columns[i].Name+"="+t)
		}
	}
	return flags
}

// stoppedExport returns the error of an unfinished export, which says where the same command will resume.
func stoppedExport(c *call, err error, kept int64) error {
	changed, occupied, cannot := new(archive.ChangedError), new(archive.OccupiedError), new(exporting.CannotHold)
	switch {
	case errors.As(err, new(*exporting.BusyError)), errors.As(err, &changed), errors.As(err, &occupied),
		errors.As(err, &cannot):
		return usagef("%v", err)
	case kept > 0:
		them := "them"
		if kept == 1 {
			them = "it"
		}
		endingOf(c).said = fmt.Sprintf("%s kept; give the same command again to continue after %s", are(kept, "row"), them)
	case errors.As(err, new(*pipeline.Interrupted)) && c.of.Output != "-" &&
		(c.of.Output != "" || c.Command.Name == "copy"):
		endingOf(c).said = "no rows are kept yet; give the same command again to start over"
	}
	return plainFull(err)
}

// plainFull reduces the errors of a full disk to the first one, because the others have the same cause.
func plainFull(err error) error {
	at := new(fs.PathError)
	if !spill.IsFull(err) || !errors.As(err, &at) {
		return err
	}
	return fmt.Errorf("the disk of %s is full: %w; free some space and repeat the command", at.Path, at.Err)
}

// noTable adds advice to the error of a missing table.
func noTable(err error, t *target) error {
	if errors.Is(err, client.ErrNoTable) {
		return &plan.UsageError{Message: fmt.Sprintf("%v in %s; see tsimport table list", err, t.name), NoTable: true}
	}
	return err
}

// exportTo writes to the file or device of a path (atomicfile.Find), or to stdout.
func exportTo(ctx context.Context, stdout io.Writer, cfg exporting.Config) (r exporting.Result, err error) {
	if cfg.Path != "" && cfg.Path != "-" {
		o, err := atomicfile.Find(cfg.Path)
		if err != nil {
			return r, err
		}
		if !o.Stream {
			cfg.Path = o.Path
			return exporting.ToFile(ctx, cfg)
		}
	}
	err = writeOutput(ctx, cfg.Path, stdout, func(w io.Writer) (err error) {
		r, err = exporting.To(ctx, cfg, w)
		return err
	})
	return r, err
}

const formatArchive = "archive"

// exportArchive writes an archive of a table, or a lake.
func exportArchive(c *call, sdk *tablestore.TableStoreClient, described *client.Table, t *target,
	lake *exporting.Layout) error {
	cfg := exporting.ArchiveConfig{Target: t.name, Dir: c.of.Output, Fresh: c.of.Fresh, Readers: c.of.Concurrency,
		Lake: lake, PartBytes: c.of.PartSize}
	var err error
	if cfg.Scan, cfg.Holds, err = exportOf(c, described); err != nil {
		return err
	}
	if jobdir.IsAddress(cfg.Dir) {
		stores := storesOf(c)
		if cfg.Store, err = jobdir.Open(c.Context, cfg.Dir, jobdir.Options{OSS: stores.OSS, S3: stores.S3}); err != nil {
			return usagef("-o %v", err)
		}
		cfg.OnWait = c.waits(cfg.Store.String(), "export")
	}
	cfg.Scan.Client = sdk
	if cfg.Scan.Columns != nil && len(cfg.Scan.Columns) == 0 {
		c.say.Note("%s", fromtable.OnlyKeys)
	}
	if lake != nil {
		c.say.Note("%s", beforehand[plainFormat(lake)])
	} else {
		c.say.Line("archiving table %s: each row as of the time its page is read, with types and timestamps", described.Name)
	}
	r, err := exporting.ToArchive(c.Context, cfg)
	if err != nil {
		return stoppedExport(c, err, r.Kept)
	}
	if r.Resumed > 0 {
		c.say.Line("continued after the %s rows already in the folder", words.Grouped(r.Resumed))
	}
	if r.LeftOut > 0 {
		c.say.Line("%s rows were left out by --where", words.Grouped(r.LeftOut))
	}
	if lake != nil {
		endLake(c, &cfg, &r)
		return nil
	}
	m := r.Manifest
	endingOf(c).table = m.Table
	endingOf(c).count("exported", m.Rows)
	c.say.Line("archived %s with %s of table %s in %s, %s; %s",
		counted(m.Rows, "row"), counted(m.Cells, "cell"), m.Table, counted(int64(len(m.Parts)), "part"),
		counted(m.Bytes, "byte"), counted(r.Units, "read capacity unit"))
	for _, k := range described.Key {
		if k.Auto {
			c.say.Note("the archive has the values of auto-increment column %s; a load writes them to a plain integer "+
				"column, or has the service assign new ones in the same order and records both (--returned-keys)", k.Name)
		}
	}
	return nil
}
