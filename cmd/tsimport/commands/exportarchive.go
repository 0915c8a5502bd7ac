package commands

import (
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	exporting "example.com/tsimport/transfer/export"
	"example.com/tsimport/transfer/fromtable"
)

const formatArchive = "archive"

// exportArchive writes an archive of a table.
func exportArchive(c *call, sdk *tablestore.TableStoreClient, described *client.Table, t *target) error {
	cfg := exporting.ArchiveConfig{Target: t.name, Dir: c.of.Output, Fresh: c.of.Fresh, Readers: c.of.Concurrency}
	var err error
	if cfg.Scan, cfg.Holds, err = exportOf(c, described); err != nil {
		return err
	}
	if jobdir.IsAddress(cfg.Dir) {
		stores := storesOf(c)
		if cfg.Store, err = jobdir.Open(c.Context, cfg.Dir, jobdir.Options{OSS: stores.OSS, S3: stores.S3}); err != nil {
			return usagef("-o %v", err)
		}
		cfg.OnWait = func(who string) {
			say(c, c.App.ErrWriter, "waiting: %s may write to %s; if it does not say so for %v, the export is taken over", who, cfg.Store, jobdir.Term)
		}
	}
	cfg.Scan.Client = sdk
	if cfg.Scan.Columns != nil && len(cfg.Scan.Columns) == 0 {
		say(c, c.App.ErrWriter, "note: %s", fromtable.OnlyKeys)
	}
	say(c, c.App.ErrWriter, "archiving table %s: each row as it is when its page is read, with all that its cells are", described.Name)
	r, err := exporting.ToArchive(c.Context, cfg)
	if err != nil {
		return stoppedExport(c, err, r.Kept)
	}
	if r.Resumed > 0 {
		say(c, c.App.ErrWriter, "continued after the %s rows already in the archive", words.Grouped(r.Resumed))
	}
	if r.LeftOut > 0 {
		say(c, c.App.ErrWriter, "%s rows were left out by --where", words.Grouped(r.LeftOut))
	}
	m := r.Manifest
	endingOf(c).table = m.Table
	endingOf(c).count("exported", m.Rows)
	say(c, c.App.ErrWriter, "archived %s with %s of table %s in %s, %s; %s",
		counted(m.Rows, "row"), counted(m.Cells, "cell"), m.Table, counted(int64(len(m.Parts)), "part"), counted(m.Bytes, "byte"), counted(r.Units, "read capacity unit"))
	for _, k := range described.Key {
		if k.Auto {
			say(c, c.App.ErrWriter, "note: the values of auto-increment column %s are in the archive; a load gives them to a plain integer column, or gets new ones in the same order and keeps both in a file (--returned-keys)", k.Name)
		}
	}
	return nil
}
