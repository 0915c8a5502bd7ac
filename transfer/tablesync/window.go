package tablesync

import (
	"cmp"
	"math"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline/plan"
)

// window are the timestamps that a table takes, in milliseconds.
type window struct{ from, to int64 }

// windowOf is that of a table at a time.
func windowOf(t *table.Definition, now time.Time) window {
	after := cmp.Or(t.MaxDeviation, client.DefaultDeviation)
	before := after
	if t.TimeToLive > 0 {
		before = min(before, int64(t.TimeToLive))
	}
	at := now.Unix()
	return window{1000 * max(at-before, 0), 1000 * (at + min(after, math.MaxInt64/1000-at))}
}

// checkWindow refuses rows of a table or an archive with cells that the table would not take, before the first of them is written. Files are
// left to the load of the changes, which rejects such a row with its place.
func (r *run) checkWindow(c *changes) error {
	t, n := &c.total, c.total.outside
	if n == 0 || r.cfg.Load.Read.Sources == nil {
		return nil
	}
	date := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
	takes, has := "before "+date(c.window.from), "from "+date(t.oldest)+" on"
	if t.oldest >= c.window.from {
		takes, has = "after "+date(c.window.to), "up to "+date(t.newest)
	}
	flags := "--max-deviation"
	if r.table.TimeToLive > 0 {
		flags = "--ttl and --max-deviation"
	}
	return plan.Usagef("table %s does not take cells of %s, and %d of the rows that are missing or different have some, %s: give the table a larger %s with tsimport table update, or write only columns that differ with --mode update; nothing was written",
		r.table.Name, takes, n, has, flags)
}
