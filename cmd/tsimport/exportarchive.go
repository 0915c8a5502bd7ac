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
	exporting "tsimport/transfer/export"
)

const formatArchive = "archive"

// checkArchiveFlags refuses flags that an export to an archive does not have, or that only it has.
func checkArchiveFlags(c *cli.Context, toArchive bool) error {
	only := []string{"versions", "from-key", "to-key", "filter", "where", "max-rcu", "concurrency"}
	output := c.String("output")
	switch address := isAddress(output); {
	case address && !toArchive:
		return usagef("-o %s: want a path on this machine; only archives are written to oss:// and s3:// addresses", redacted(output))
	case address && !jobdir.IsAddress(output):
		return usagef("-o %s: want a path on this machine, oss://bucket/prefix or s3://bucket/prefix", redacted(output))
	}
	if !toArchive {
		for _, name := range only {
			if c.IsSet(name) {
				return usagef("--%s: only an export to an archive takes it; give --format archive", name)
			}
		}
		return nil
	}
	switch n := c.Int("concurrency"); {
	case c.IsSet("limit"):
		return usagef("--limit: an archive has all rows of a range of keys; give --from-key and --to-key")
	case output == "" || output == "-":
		return usagef("--format archive: an archive is a folder; name it with -o")
	case n < 1 || n > 4096:
		return usagef("--concurrency: want 1 to 4096")
	case !(c.Float64("max-rcu") >= 0):
		return usagef("--max-rcu %v: want a number above 0, or 0 for no limit", c.Float64("max-rcu"))
	}
	return nil
}

// archiveConfig reads the flags of an export to an archive.
func archiveConfig(c *cli.Context, t *client.Table) (cfg exporting.ArchiveConfig, err error) {
	cfg = exporting.ArchiveConfig{Dir: c.String("output"), Fresh: c.Bool("fresh"), Readers: c.Int("concurrency")}
	if jobdir.IsAddress(cfg.Dir) {
		stores := storeOptions(c)
		if cfg.Store, err = jobdir.Open(c.Context, cfg.Dir, jobdir.Options{OSS: stores.OSS, S3: stores.S3}); err != nil {
			return cfg, usagef("-o %v", err)
		}
		cfg.OnWait = func(who string) {
			say(c, c.App.ErrWriter, "waiting: %s may write to %s; if it does not say so for %v, the export is taken over", who, cfg.Store, jobdir.Term)
		}
	}
	s, holds := &cfg.Scan, &cfg.Holds
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
			return cfg, usagef("--%s: %v", f.flag, err)
		}
	}
	if c.IsSet("columns") {
		if s.Columns, err = options.List(c.String("columns")); err != nil {
			return cfg, usagef("--columns: %v", err)
		}
		holds.Columns = s.Columns
	}
	if err := setFilter(c, s); err != nil {
		return cfg, err
	}
	holds.Filter = s.FilterText
	if c.IsSet("where") {
		if s.Where, err = keyexpr.CompileWhere(c.String("where")); err != nil {
			return cfg, usagef("--where: %v", err)
		}
		holds.Where = c.String("where")
	}
	if s.Versions, err = versionsToRead(c); err != nil {
		return cfg, err
	}
	holds.Versions = s.Versions
	return cfg, nil
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
	cfg, err := archiveConfig(c, described)
	if err != nil {
		return err
	}
	cfg.Scan.Client, cfg.Target = sdk, t.name
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
