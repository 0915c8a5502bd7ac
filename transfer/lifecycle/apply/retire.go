package apply

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/reader/tablescan"
	"example.com/tsimport/transfer/export"
	"example.com/tsimport/transfer/lifecycle/archive"
)

// lineEvery is how often a long export says how far it is.
const lineEvery = 5 * time.Second

// retire exports an expired table unless that is done, and drops it if that was asked for.
func (r *runner) retire(ctx context.Context, item *Item) error {
	if r.archive == nil {
		f, err := archive.Open(item.Class.Archive)
		if err != nil {
			return err
		}
		r.archive = f
	}
	f := r.archive
	name := item.Have.Name
	s := &archive.Subject{Target: r.Target, Table: name, Created: item.table.Created, Key: item.table.Key, Is: export.ManifestOf(item.table),
		Rows: func(each func(*scan.Row) error) error { return r.read(ctx, item, each) }}
	err := r.compareEarlier(ctx, f, item, s)
	if err != nil {
		return err
	}
	if item.Export == nil {
		r.Say.Line("table %s: exporting", name)
		if item.Export, err = f.Export(ctx, s); err != nil {
			return err
		}
		r.Say.Line("table %s: exported %d rows to %s, read back and compared", name, item.Export.Rows, filepath.Join(f.Dir, item.Export.File))
	}
	if !item.Drop {
		return nil
	}
	return r.drop(item) // its export was made, or compared, in this run
}

// compareEarlier looks for an export of an earlier run that has all that the table has, and makes it the item's. What a
// look has found is not enough: only an export that was compared in this run lets a table be dropped.
func (r *runner) compareEarlier(ctx context.Context, f *archive.Folder, item *Item, s *archive.Subject) error {
	item.Export = nil
	m, err := archive.Latest(f.Dir, r.Target, item.Have.Name)
	if err != nil || m == nil {
		return err
	}
	r.Say.Line("table %s: comparing it with its export %s", item.Have.Name, filepath.Join(f.Dir, m.File))
	err = f.Verify(ctx, m, s)
	changed, damaged := new(archive.ChangedError), new(archive.DamagedError)
	switch {
	case err == nil:
		item.Export = m
	case errors.As(err, &changed), errors.As(err, &damaged):
		r.Say.Line("%v; exporting the table again, beside it", err)
	default:
		return err
	}
	return nil
}

// drop deletes a table whose export was found equal to it just before, unless the name is that of another table by now.
func (r *runner) drop(item *Item) error {
	if err := r.Admin.Same(item.table); err != nil {
		return err
	}
	if err := r.archive.MarkDropped(item.Export); err != nil {
		return err
	}
	if err := r.Admin.Drop(item.Have.Name); err != nil {
		return err
	}
	item.Dropped = true
	r.Say.Line("table %s: dropped", item.Have.Name)
	return nil
}

// read reads a table and says how far it is now and then. What was read of a table that was dropped meanwhile is an error.
func (r *runner) read(ctx context.Context, item *Item, each func(*scan.Row) error) error {
	var rows int64
	said := r.Clock.Now()
	err := scan.Table(ctx, r.Admin.Client, item.Have.Name, item.table.Key, scan.Options{Versions: tablescan.AllVersions, RetryFor: r.RetryFor, Memory: new(client.PageMemory)}, func(row *scan.Row) error {
		if rows++; rows%4096 == 0 {
			if now := r.Clock.Now(); now.Sub(said) >= lineEvery {
				said = now
				r.Say.Line("table %s: %d rows read", item.Have.Name, rows)
			}
		}
		return each(row)
	})
	if err != nil {
		return err
	}
	return r.Admin.Same(item.table)
}
