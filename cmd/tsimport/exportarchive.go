package main

import (
	"strconv"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/urfave/cli/v2"

	"tsimport/internal/jobdir"
	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
	"tsimport/internal/tablestore/condition"
	"tsimport/internal/tablestore/scan"
	"tsimport/keyexpr"
	"tsimport/pipeline/options"
	"tsimport/reader/tablescan"
	"tsimport/transfer/archive"
	exporting "tsimport/transfer/export"
)

const formatArchive = "archive"

// checkExportFlags refuses flags that do not fit a format.
func checkExportFlags(c *cli.Context, format string) error {
	toArchive := format == formatArchive
	output := c.String("output")
	switch address := isAddress(output); {
	case address && !toArchive:
		return usagef("-o %s: want a path on this machine; only archives are written to oss:// and s3:// addresses", redacted(output))
	case address && !jobdir.IsAddress(output):
		return usagef("-o %s: want a path on this machine, oss://bucket/prefix or s3://bucket/prefix", redacted(output))
	}
	switch n := c.Int("concurrency"); {
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
func exportOf(c *cli.Context, t *client.Table) (s tablescan.Config, holds archive.Selection, err error) {
	s.Table, s.Gate = t, gateOf(c)
	for _, f := range []struct {
		flag string
		text *string
		key  *[]table.Value
	}{{"from-key", &holds.From, &s.From}, {"to-key", &holds.To, &s.To}} {
		if !c.IsSet(f.flag) {
			continue
		}
		*f.text = c.String(f.flag)
		if *f.key, err = scan.ParseKey(*f.text, t.Key); err != nil {
			return s, holds, usagef("--%s: %v", f.flag, err)
		}
	}
	if c.IsSet("columns") {
		if s.Columns, err = options.List(c.String("columns")); err != nil {
			return s, holds, usagef("--columns: %v", err)
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

// setFilter has a scan return only the rows for which the service finds --filter true.
func setFilter(c *cli.Context, s *tablescan.Config) (err error) {
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
func versionsToRead(c *cli.Context) (n int, err error) {
	text := c.String("versions")
	if text == "all" {
		return 0, nil
	}
	if n, err = strconv.Atoi(text); err != nil || n < 1 || n > 1<<30 {
		return 0, usagef("--versions %q: want all, or a number of 1 or more", text)
	}
	return n, nil
}

// exportArchive writes an archive of a table.
func exportArchive(c *cli.Context, sdk *tablestore.TableStoreClient, described *client.Table, t *target) error {
	cfg := exporting.ArchiveConfig{Target: t.name, Dir: c.String("output"), Fresh: c.Bool("fresh"), Readers: c.Int("concurrency")}
	var err error
	if cfg.Scan, cfg.Holds, err = exportOf(c, described); err != nil {
		return err
	}
	if jobdir.IsAddress(cfg.Dir) {
		stores := storeOptions(c)
		if cfg.Store, err = jobdir.Open(c.Context, cfg.Dir, jobdir.Options{OSS: stores.OSS, S3: stores.S3}); err != nil {
			return usagef("-o %v", err)
		}
		cfg.OnWait = func(who string) {
			say(c, c.App.ErrWriter, "waiting: %s may write to %s; if it does not say so for %v, the export is taken over", who, cfg.Store, jobdir.Term)
		}
	}
	cfg.Scan.Client = sdk
	say(c, c.App.ErrWriter, "archiving table %s: each row as it is when its page is read, with all that its cells are", described.Name)
	r, err := exporting.ToArchive(c.Context, cfg)
	if err != nil {
		return stoppedExport(c, err, r.Kept)
	}
	if r.Resumed > 0 {
		say(c, c.App.ErrWriter, "continued after the %s rows already in the archive", grouped(r.Resumed))
	}
	if r.LeftOut > 0 {
		say(c, c.App.ErrWriter, "%s rows were left out by --where", grouped(r.LeftOut))
	}
	m := r.Manifest
	endingOf(c).table = m.Table
	endingOf(c).count("exported", m.Rows)
	say(c, c.App.ErrWriter, "archived %s rows with %s cells of table %s in %s parts, %s bytes; %s read capacity units",
		grouped(m.Rows), grouped(m.Cells), m.Table, grouped(int64(len(m.Parts))), grouped(m.Bytes), grouped(r.Units))
	for _, k := range described.Key {
		if k.Auto {
			say(c, c.App.ErrWriter, "note: the values of auto-increment column %s are in the archive; a load can give them to a plain integer column only", k.Name)
		}
	}
	return nil
}
