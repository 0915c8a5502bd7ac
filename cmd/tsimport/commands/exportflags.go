package commands

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	archive "example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/tablescan"
	exporting "example.com/tsimport/transfer/export"
	"example.com/tsimport/transfer/fromtable"
	"example.com/tsimport/transfer/verify"
)

// exportFormat returns --format, or by default the format for the output: a folder, or a file with a known extension.
func exportFormat(c *call) string {
	output := c.of.Output
	switch ending := strings.ToLower(filepath.Ext(output)); {
	case c.given.IsSet("format"):
		return c.of.Format
	case isFolder(output):
		return formatArchive
	case ending == ".jsonl", ending == ".ndjson", ending == ".json":
		return exporting.JSONL
	case ending == ".parquet":
		return exporting.Parquet
	case c.of.Typed && ending != ".csv":
		return exporting.JSONL
	}
	return exporting.CSV
}

// lakeOf returns the place and layout of an export to a folder for other programs. For other exports, l is nil.
func lakeOf(c *call, format string) (base string, l *exporting.Layout, err error) {
	output := c.of.Output
	if !slices.Contains(lakeFormats, format) || !isFolder(output) && !strings.Contains(output, "={") {
		return "", nil, nil
	}
	if base, l, err = exporting.ParsePlace(output, format); err != nil {
		return "", nil, usagef("-o %s: %v", redacted(output), err)
	}
	return base, l, nil
}

var lakeFormats = []string{exporting.CSV, exporting.CSVGzip, exporting.CSVZstd, exporting.Parquet}

// checkExportFlags refuses flags that the format does not support.
func checkExportFlags(c *call, format string) error {
	toArchive := format == formatArchive
	output := c.of.Output
	_, lake, err := lakeOf(c, format)
	toFolder := toArchive || lake != nil
	switch address := isAddress(output); {
	case err != nil:
		return err
	case address && !toFolder:
		return usagef("-o %s: want a path on this machine; an oss:// or s3:// address names a folder: end it with / and "+
			"give --format csv, csv.gz, csv.zst, parquet or archive", redacted(output))
	case address && !jobdir.IsAddress(output):
		return usagef("-o %s: want a path on this machine, oss://bucket/prefix or s3://bucket/prefix", redacted(output))
	}
	switch ending := strings.ToLower(filepath.Ext(output)); {
	case toArchive && strings.Contains(output, "={"):
		return usagef("-o %s: an archive has no partition folders; give --format parquet or csv[.gz|.zst]", redacted(output))
	case lake == nil && (format == exporting.CSVGzip || format == exporting.CSVZstd):
		return usagef("--format %s writes files in a folder; name one with -o, such as -o orders/", format)
	case lake == nil && c.given.IsSet("part-size"):
		return usagef("--part-size is for files in a folder: give -o DIR/ and --format csv, csv.gz, csv.zst or parquet")
	case !toFolder && slices.Contains([]string{".gz", ".zst", ".bz2", ".xz", ".zip", ".lz4", ".snappy"}, ending):
		return usagef("-o %s: an export to one file is not compressed; leave %s out of the name, pipe stdout into a "+
			"compressor, or export to a folder with --format csv.gz or csv.zst", output, ending)
	case !toFolder && output != "" && isFolder(output):
		return usagef("-o %s: --format %s writes a file, not a folder; name a file, or leave --format out", output, format)
	case c.of.Typed && format != exporting.JSONL:
		return usagef("--typed is for --format jsonl; archives and Parquet have types anyway")
	case c.given.IsSet("versions") && !toArchive && !c.of.Typed:
		return usagef("--versions: --format %s has one version of each cell; give --format archive, or jsonl --typed", format)
	case toFolder && c.of.JSON:
		return usagef("--json does not apply to an export to a folder, whose manifest says what was exported; leave it out")
	case c.of.JSON && (output == "" || output == "-"):
		return usagef("--json: the rows go to stdout; name a file for them with -o")
	case toFolder && c.given.IsSet("limit"):
		return usagef("--limit does not apply to an export to a folder; choose rows with --from-key and --to-key")
	case toFolder && c.of.Keys != "":
		return usagef("--keys does not apply to an export to a folder; name a file with -o")
	case toArchive && (output == "" || output == "-"):
		return usagef("--format archive: an archive is a folder; name it with -o")
	}
	return nil
}

// exportOf parses the flags that select rows and columns. holds is the selection as the output's manifest records it.
func exportOf(c *call, t *client.Table) (s tablescan.Config, holds archive.Selection, err error) {
	of := c.given
	if s, err = fromtable.Scan(of); err != nil {
		return s, holds, err
	}
	s.Table, s.Gate, s.Waits = t, gateOf(c), waitsOf(c)
	if err := fromtable.SetBounds(&of.Scan, &s, t.Key); err != nil {
		return s, holds, err
	}
	holds = archive.Selection{From: of.FromKey, To: of.ToKey, Filter: of.Filter, Where: of.Where, Versions: s.Versions}
	if of.Columns == nil {
		return s, holds, nil
	}
	s.Columns = []string{}
	for _, name := range of.Columns { // the key is always included
		isKey := slices.ContainsFunc(t.Key, func(k table.KeyColumn) bool { return k.Name == name })
		if !isKey && !slices.Contains(s.Columns, name) {
			s.Columns = append(s.Columns, name)
		}
	}
	holds.Columns = s.Columns
	return s, holds, nil
}

// rowKeys reads the keys in the file of --keys, if given. stop closes them.
func rowKeys(c *call, cfg *exporting.Config) (stop func() error, err error) {
	file := c.of.Keys
	switch s := &cfg.Scan; {
	case file == "":
		return func() error { return nil }, nil
	case s.From != nil || s.To != nil:
		return nil, usagef("--keys: the file names the rows; leave out --prefix, --from-key and --to-key")
	case s.Filter != nil:
		return nil, usagef("--filter: the service reads single rows (--keys) without a filter; give --where instead")
	}
	r, asked := &plan.Request{Inputs: []string{file}, Memory: options.DefaultMemory() / 4, Mode: table.Delete},
		new(options.Request)
	if r.Read, err = options.Read(asked); err != nil {
		return nil, usagef("%v", err)
	}
	completeRead(c, asked, &r.Read)
	r.Target = plan.Target{Name: cfg.Target, Table: cfg.Scan.Table.Name, Create: true, Absent: true,
		Key: slices.Clone(cfg.Scan.Table.Key)}
	for i := range r.Target.Key {
		r.Target.Key[i].Auto = false // the records have the values of all key columns
	}
	keys, err := verify.SortKeys(c.Context, r, options.DefaultMemory(), "")
	if err != nil {
		return nil, fmt.Errorf("--keys: %w", err)
	}
	c.say.Line("reading the rows of %s", counted(keys.Count, "key"))
	cfg.Keys, cfg.Holds.Keys = keys, keys.Sum
	return keys.Close, nil
}
