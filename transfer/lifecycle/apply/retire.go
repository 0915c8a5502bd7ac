package apply

import (
	"context"
	"sync"
	"time"

	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/reader/tablescan"
	"example.com/tsimport/transfer/lifecycle/archive"
)

// lineEvery is the interval at which a long export reports progress.
const lineEvery = 5 * time.Second

// retire exports an expired table, unless its export is complete or its class only drops, and drops it if requested.
func (r *runner) retire(ctx context.Context, item *Item) error {
	name := item.Have.Name
	if item.Class.Archives() {
		if err := r.lock(); err != nil {
			return err
		}
		s := &archive.Subject{Target: r.Target, Scan: tablescan.Config{
			Client: r.Admin.Client, Table: item.table, RetryFor: r.RetryFor, Manner: scan.Manner{OnRows: r.counting(name)},
		}}
		err := r.compareEarlier(ctx, item, s)
		if err != nil {
			return err
		}
		if item.Export == nil {
			r.Say.Line("table %s: exporting", name)
			if item.Export, err = r.Archive.Export(ctx, s); err != nil {
				return err
			}
			r.Say.Line("table %s: exported %d rows to %s, read back and compared", name, item.Export.Rows, r.File(item))
		}
	}
	if !item.Drop {
		return nil
	}
	return r.drop(ctx, item) // the export was made or compared in this run
}

// compareEarlier sets item.Export to an earlier export if that equals the table now. Only this run's comparison counts.
func (r *runner) compareEarlier(ctx context.Context, item *Item, s *archive.Subject) error {
	item.Export = nil
	m, err := r.Archive.Latest(ctx, r.Target, item.Have.Name)
	if err != nil || m == nil {
		return err
	}
	r.Say.Line("table %s: comparing it with its export %s", item.Have.Name, r.Archive.Path(m))
	err = r.Archive.Verify(ctx, m, s)
	switch {
	case err == nil:
		item.Export = m
	case archive.AnotherHelps(err):
		r.Say.Line("%v; exporting the table again, beside it", err)
	default:
		return err
	}
	return nil
}

// drop drops a table, unless another one now has its name. If its class archives, its export has just been compared.
func (r *runner) drop(ctx context.Context, item *Item) error {
	if err := r.Admin.Same(item.table); err != nil {
		return err
	}
	said := "dropped without an archive"
	if item.Export != nil {
		said = "dropped"
		if err := r.Archive.MarkDropped(ctx, item.Export); err != nil {
			return err
		}
	}
	if err := r.Admin.Drop(item.Have.Name); err != nil {
		return err
	}
	item.Dropped = true
	r.Say.Line("table %s: %s", item.Have.Name, said)
	return nil
}

// counting returns a function that reports the number of rows read from a table every lineEvery.
func (r *runner) counting(name string) func(rows int) {
	var mu sync.Mutex
	rows, said := 0, r.Clock.Now()
	return func(n int) {
		mu.Lock()
		defer mu.Unlock()
		rows += n
		if now := r.Clock.Now(); now.Sub(said) >= lineEvery {
			said = now
			r.Say.Line("table %s: %d rows read so far, to export and to compare it", name, rows)
		}
	}
}
