package copytable

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/tablescan"
	"example.com/tsimport/transfer/verify"
)

// Origin is a table to copy. Its Divide, which is called once before the first row, refuses inexact copies.
type Origin struct {
	*tablescan.Origin
	scan tablescan.Config
	o    Options
}

// Options holds the properties of the target and of the copy that an Origin checks.
type Options struct {
	To          *table.Definition        // options of the target
	DropExpired bool                     // omit and count cells that the target no longer accepts
	Takes       func(column string) bool // reports whether a column is copied; nil means all
	Say         words.Say                // reports slow steps to the user
}

func New(c tablescan.Config, o Options) *Origin { return &Origin{tablescan.New(c), c, o} }

// Divide refuses inexact copies, and divides the table.
func (o *Origin) Divide(ctx context.Context) ([]byte, error) {
	if err := o.Refuse(ctx); err != nil {
		return nil, err
	}
	return o.Origin.Divide(ctx)
}

// Refuse returns an error if the source has cells that the target would not accept. It scans for their timestamps, so
// that the service returns little more than keys. It rereads rows with such cells if the copy may leave the cells out.
func (o *Origin) Refuse(ctx context.Context) error {
	now := time.Now()
	until := Oldest(o.o.To, now)
	if o.o.DropExpired || until.UnixMilli() <= max(o.scan.Since, 0) {
		return nil
	}
	o.o.Say.Line("looking for cells that are too old for the target")
	name := o.scan.Table.Name
	found, err := o.find(ctx, o.scan.Since, until.UnixMilli())
	if err != nil {
		return err
	}
	if found != nil {
		return fmt.Errorf("table %s has cells that the target does not accept: column %s of row %s is %v old, and the "+
			"target's time to live and maximum deviation reach back %v; copy into a table with a larger %s, or give "+
			"--drop-expired, which leaves such cells out and counts them",
			name, found.column, found.row, now.Sub(time.UnixMilli(found.at)).Round(time.Second),
			now.Sub(until).Round(time.Second), o.o.To.AgeFlags())
	}
	deviation := cmp.Or(o.o.To.MaxDeviation, client.DefaultDeviation)
	if cmp.Or(o.scan.Table.MaxDeviation, client.DefaultDeviation) <= deviation {
		return nil // the source accepts no cell newer than the target does
	}
	ahead := time.Duration(deviation) * time.Second
	if found, err = o.find(ctx, max(o.scan.Since, now.Add(ahead).UnixMilli()+1), 0); err != nil || found == nil {
		return err
	}
	return fmt.Errorf("table %s has cells that the target does not accept: the timestamp of column %s of row %s is %v "+
		"ahead, and the target's maximum deviation is %v; copy into a table with a larger --max-deviation",
		name, found.column, found.row, time.UnixMilli(found.at).Sub(now).Round(time.Second), ahead)
}

// find returns a cell that the copy would include with a timestamp in a range, or nil if there is none.
func (o *Origin) find(ctx context.Context, since, until int64) (*stamped, error) {
	cuts, err := scan.Cuts(&client.Admin{Client: o.scan.Client, Context: ctx, Proven: true}, o.scan.Client,
		o.scan.Table.Name, tablescan.DefaultRanges)
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(verify.DefaultWorkers)
	var found atomic.Pointer[stamped]
	from := o.scan.From
	for _, to := range append(between(cuts, from, o.scan.To), o.scan.To) {
		s := scan.Options{From: from, To: to, Versions: 1, RetryFor: o.scan.RetryFor, Since: since, Until: until,
			Manner: o.scan.Manner, Columns: o.scan.Columns}
		group.Go(func() error { return o.findIn(ctx, s, &found) })
		from = to
	}
	if err := group.Wait(); err != nil && !errors.Is(err, errFound) {
		return nil, err
	}
	return found.Load(), nil
}

// between returns the cuts inside a range of keys. nil means no bound.
func between(cuts [][]table.Value, from, to []table.Value) [][]table.Value {
	return slices.DeleteFunc(cuts, func(cut []table.Value) bool {
		return bytes.Compare(table.OrderingKey(cut), table.OrderingKey(from)) <= 0 || to != nil &&
			bytes.Compare(table.OrderingKey(cut), table.OrderingKey(to)) >= 0
	})
}

// stamped is a cell with a timestamp that the target does not accept.
type stamped struct {
	row, column string
	at          int64
}

var errFound = errors.New("enough was read")

// findIn scans once for a cell to copy with a timestamp in the scan's range. If it finds one, it returns errFound.
func (o *Origin) findIn(ctx context.Context, s scan.Options, found *atomic.Pointer[stamped]) error {
	p := scan.NewPager(o.scan.Client, o.scan.Table.Name, o.scan.Table.Key, s)
	for {
		rows, err := p.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var first, last *scan.Row
		var cell *stamped
		for _, r := range rows {
			if c := o.stampedIn(r, s); c != nil {
				first, last, cell = cmp.Or(first, r), r, cmp.Or(cell, c)
			}
		}
		if first != nil && o.leavesOut() {
			if cell, err = o.copied(ctx, first, last, s); err != nil {
				return err
			}
		}
		if cell != nil {
			found.CompareAndSwap(nil, cell)
			return errFound
		}
	}
}

// leavesOut reports whether the copy may omit a cell that a scan finds, because of a condition or as an older version.
func (o *Origin) leavesOut() bool {
	versions := o.scan.Versions
	return o.scan.Where != nil || o.scan.Filter != nil || versions > 0 && versions < o.scan.Table.MaxVersions
}

// stampedIn returns a copied column of a row with a timestamp in the range of a scan.
func (o *Origin) stampedIn(r *scan.Row, s scan.Options) *stamped {
	for _, c := range r.Columns {
		if c.Timestamp >= s.Since && (s.Until == 0 || c.Timestamp < s.Until) &&
			(o.o.Takes == nil || o.o.Takes(c.ColumnName)) {
			return &stamped{tablescan.ShowKey(r), c.ColumnName, c.Timestamp}
		}
	}
	return nil
}

// copied reads a range of rows as the copy would, and returns a cell with a timestamp in a scan's range, or nil.
func (o *Origin) copied(ctx context.Context, from, to *scan.Row, s scan.Options) (found *stamped, err error) {
	again := o.Options(tablescan.KeyOf(from), s.To, nil)
	passes := func(*scan.Row) (bool, error) { return true, nil }
	if o.scan.Where != nil {
		test, names := o.scan.Where.NewTest(), plainbuffer.Names{}
		passes = func(r *scan.Row) (bool, error) {
			row, err := client.PackRow(names, r)
			if err != nil {
				return false, err
			}
			ok, why := test.Passes(func(name string) table.Value { return plainbuffer.Newest(row, name) })
			return ok && why == nil, nil
		}
	}
	last := table.OrderingKey(tablescan.KeyOf(to))
	err = scan.Table(ctx, o.scan.Client, o.scan.Table.Name, o.scan.Table.Key, again, func(r *scan.Row) error {
		if bytes.Compare(table.OrderingKey(tablescan.KeyOf(r)), last) > 0 {
			return errFound
		}
		cell := o.stampedIn(r, s)
		if cell == nil {
			return nil
		}
		ok, err := passes(r)
		if ok {
			found, err = cell, errFound
		}
		return err
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return found, err
}

// CheckKeys reads a load's keys and returns an error if expressions give several rows the same key. It changes r.
func CheckKeys(ctx context.Context, r *plan.Request, complete func(*verify.CheckConfig)) error {
	r.Divided, r.Division = false, nil
	r.Target.Create, r.Target.Absent, r.Mode = true, true, table.Put
	r.Columns.Only, r.Columns.Set, r.Columns.Exclude = []string{}, nil, nil
	cfg := verify.CheckConfig{Request: r, Unique: true, Examples: 3}
	complete(&cfg)
	found, err := verify.Check(ctx, cfg)
	if err != nil {
		return err
	}
	n := found.Colliding + found.Repeated
	if n == 0 {
		return nil
	}
	var keys []string
	for _, e := range found.Examples {
		keys = append(keys, e.Key.String())
	}
	for _, e := range found.Repeats {
		keys = append(keys, e.Key.String())
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	return plan.SameKeys(r, n, found.Read, keys[:min(len(keys), cfg.Examples)]...)
}
