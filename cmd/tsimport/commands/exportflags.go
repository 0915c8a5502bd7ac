package commands

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/condition"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/tablescan"
	exporting "example.com/tsimport/transfer/export"
)

// exportFormat is what --format says, and without it what the output is: a folder, or a file whose name has an ending.
func exportFormat(c *call) string {
	output := c.String("output")
	switch ending := strings.ToLower(filepath.Ext(output)); {
	case c.IsSet("format"):
		return c.String("format")
	case isFolder(output):
		return formatArchive
	case ending == ".jsonl", ending == ".ndjson", ending == ".json":
		return exporting.JSONL
	case ending == ".parquet":
		return exporting.Parquet
	case c.Bool("typed") && ending != ".csv":
		return exporting.JSONL
	}
	return exporting.CSV
}

// checkExportFlags refuses flags that do not fit a format.
func checkExportFlags(c *call, format string) error {
	toArchive := format == formatArchive
	output := c.String("output")
	switch address := isAddress(output); {
	case address && !toArchive:
		return usagef("-o %s: want a path on this machine; only archives are written to oss:// and s3:// addresses", redacted(output))
	case address && !jobdir.IsAddress(output):
		return usagef("-o %s: want a path on this machine, oss://bucket/prefix or s3://bucket/prefix", redacted(output))
	}
	switch n, ending := c.Int("concurrency"), strings.ToLower(filepath.Ext(output)); {
	case !toArchive && slices.Contains([]string{".gz", ".zst", ".bz2", ".xz", ".zip", ".lz4", ".snappy"}, ending):
		return usagef("-o %s: an export is not compressed; leave %s out of the name, or write to stdout and pipe it into a compressor", output, ending)
	case !toArchive && output != "" && isFolder(output):
		return usagef("-o %s: it is a folder, and --format %s writes a file; name a file, or leave --format out for an archive", output, format)
	case c.Bool("typed") && format != exporting.JSONL:
		return usagef("--typed: it is for --format jsonl; an archive and Parquet have types")
	case c.IsSet("versions") && !toArchive && !c.Bool("typed"):
		return usagef("--versions: --format %s has the newest version of each cell; give --format archive, or jsonl with --typed", format)
	case toArchive && c.Bool("json"):
		return usagef("--json: the archive's manifest.json says what was exported")
	case c.Bool("json") && (output == "" || output == "-"):
		return usagef("--json: the rows go to stdout; name a file for them with -o")
	case toArchive && c.IsSet("limit"):
		return usagef("--limit: an archive has all rows of a range of keys; give --from-key and --to-key")
	case toArchive && (output == "" || output == "-"):
		return usagef("--format archive: an archive is a folder; name it with -o")
	case n < 1 || n > 4096:
		return usagef("--concurrency: want 1 to 4096")
	case !(c.Float64("max-rcu") >= 0):
		return usagef("--max-rcu %v: want a number above 0, or 0 for no limit", c.Float64("max-rcu"))
	}
	return nil
}

// exportOf reads the flags that say what of a table is exported, also in words.
func exportOf(c *call, t *client.Table) (s tablescan.Config, holds archive.Selection, err error) {
	s.Table, s.Gate, s.Waits = t, gateOf(c), waitsOf(c, c.App.ErrWriter)
	if err := setBounds(c, &s, t.Key); err != nil {
		return s, holds, err
	}
	holds.From, holds.To = c.String("from-key"), c.String("to-key")
	if c.IsSet("columns") {
		names, err := options.ParseList(c.String("columns"))
		if err != nil {
			return s, holds, usagef("--columns: %v", err)
		}
		if err := namedAll(names); err != nil {
			return s, holds, err
		}
		s.Columns = []string{}
		for _, name := range names { // the key is there anyway
			isKey := slices.ContainsFunc(t.Key, func(k table.KeyColumn) bool { return k.Name == name })
			if !isKey && !slices.Contains(s.Columns, name) {
				s.Columns = append(s.Columns, name)
			}
		}
		holds.Columns = s.Columns
	}
	if err := setFilter(c, &s); err != nil {
		return s, holds, err
	}
	holds.Filter = s.FilterText
	if c.IsSet("where") {
		if s.Where, err = keyexpr.CompileWhere(c.String("where")); err != nil {
			return s, holds, usagef("--where: %v", err)
		}
		holds.Where = c.String("where")
	}
	if s.Versions, err = versionsToRead(c); err != nil {
		return s, holds, err
	}
	holds.Versions = s.Versions
	return s, holds, nil
}

// setBounds has a scan return only the rows from --from-key to --to-key.
func setBounds(c *call, s *tablescan.Config, key []table.KeyColumn) (err error) {
	for _, f := range []struct {
		flag string
		to   *[]table.Value
	}{{"from-key", &s.From}, {"to-key", &s.To}} {
		if !c.IsSet(f.flag) {
			continue
		}
		if *f.to, err = scan.ParseKey(c.String(f.flag), key); err != nil {
			return usagef("--%s: %v", f.flag, err)
		}
	}
	if s.From != nil && s.To != nil && scan.CompareBounds(s.From, s.To) >= 0 {
		return usagef("--from-key %s --to-key %s: no key is in that range: it ends before it begins; the first is inclusive and the last exclusive", c.String("from-key"), c.String("to-key"))
	}
	return nil
}

// namedAll refuses a list of columns with an empty name.
func namedAll(columns []string) error {
	if slices.Contains(columns, "") {
		return usagef("--columns: a name is empty; give names with one comma between them")
	}
	return nil
}

// onlyKeys is the note of a command that reads no columns but the key.
const onlyKeys = "--columns is empty: rows come with their keys alone"

// setFilter has a scan return only the rows for which the service finds --filter true.
func setFilter(c *call, s *tablescan.Config) (err error) {
	if !c.IsSet("filter") {
		return nil
	}
	s.FilterText = c.String("filter")
	if s.Filter, s.FilterUses, err = condition.ParseFilter(s.FilterText); err != nil {
		return usagef("--filter %s: %v", s.FilterText, err)
	}
	return nil
}

// versionsToRead is how many versions of each cell --versions asks for, the newest; 0 is all.
func versionsToRead(c *call) (n int, err error) {
	text := c.String("versions")
	if text == "all" {
		return 0, nil
	}
	if n, err = strconv.Atoi(text); err != nil || n < 1 || n > 1<<30 {
		return 0, usagef("--versions %q: want all, or a number of 1 or more", text)
	}
	return n, nil
}
