package tablesync

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/ledger"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/transfer/verify"
)

// Config configures a sync. Its many fields are the user's options and the callbacks for progress.
type Config struct {
	// Load says how the inputs are read and how rows are written. Its mode is put or update.
	Load pipeline.Config

	Delete    bool             // delete surplus rows
	MaxDelete ledger.MaxErrors // maximum number or share of compared rows to delete
	Range     string           // range of keys to compare; "" means all
	Examples  int              // maximum number of examples of each kind: missing, different and surplus rows
	// IfUnchanged writes a row only if the table's row has not changed since the comparison. Other rows are skipped.
	IfUnchanged bool
	// SettleFor is how long differing rows, which may become equal, are reread before they are written; 0 means never.
	SettleFor time.Duration
	Fresh     bool // do not resume an unfinished run

	// Held is the range of keys that the source holds; nil means that it holds all keys.
	Held *Held

	// Manner says how the comparison reads the table.
	scan.Manner

	// SourceUnits, if not nil, returns the read capacity units that Load.Read.Sources has used.
	SourceUnits func() int64

	// Say, if not nil, receives lines about the progress.
	Say words.Say
	// Progress, if not nil, is kept up to date during the comparison.
	Progress *verify.Progress
	// OnCompared, if not nil, is called after the comparison.
	OnCompared func(*Summary)
	// OnLoad, if not nil, is called before each load of changes. The function that it returns is called after the load.
	OnLoad func(*pipeline.Config) (ended func(*pipeline.Report))
}

// Held is the range of keys of a source that holds only rows in this range.
type Held struct {
	Name     string // name of the source
	Key      []table.KeyColumn
	From, To string // in the syntax of scan.ParseKey; "" means no bound
}

func (c *Config) check() error {
	l := &c.Load
	switch {
	case l.Write.Mode != table.Put && l.Write.Mode != table.Update:
		return plan.Usagef("--mode: sync supports put (whole rows) and update (only the columns of the input)")
	case l.Write.Condition != table.Ignore:
		return plan.Usagef("--condition: sync compares rows before it writes them; leave it out")
	case l.Write.When != nil && c.Delete:
		return plan.Usagef("--when with --delete: a surplus row has no record to compare it with; leave one out")
	case c.IfUnchanged && c.Delete:
		return plan.Usagef("--if-unchanged with --delete: deletes do not check whether the row has changed; " +
			"give only one of them")
	case c.IfUnchanged && l.Write.When != nil:
		return plan.Usagef("--if-unchanged with --when: the service does not say which of them failed; leave one out")
	case plan.IsTemplate(l.Target.Table), l.Target.Policy != nil:
		return plan.Usagef("--table %s: sync works on one table; sync each with its own inputs", l.Target.Table)
	case c.Delete && l.Limits.Records > 0:
		return plan.Usagef("--limit with --delete: rows of records that are not read would be deleted; leave one of them out")
	case c.Delete && len(l.Inputs) > 1 && l.Read.Sources == nil && isStream(l.Inputs):
		return plan.Usagef("--delete: a stream among several inputs cannot be reread, so changes of the other inputs could " +
			"not be detected before rows are deleted; write the stream to a file first")
	case l.Target.Absent:
		return &plan.UsageError{Message: fmt.Sprintf("%s has no table %s; create it with tsimport load --create",
			l.Target.Name, l.Target.Table), NoTable: true}
	case c.MaxDelete.Rows < 0:
		return plan.Usagef("--max-delete: want a number of rows, or a percentage such as 1%%")
	}
	return nil
}

// longAgo is the age above which a resumed run reports that its comparison is old.
const longAgo = 10 * time.Minute

// drain returns the context whose end requests a graceful stop of the run.
func (c *Config) drain(ctx context.Context) context.Context {
	if c.Load.Drain != nil {
		return c.Load.Drain
	}
	return ctx
}

// window is the range of timestamps that a table accepts, in milliseconds.
type window struct{ from, to int64 }

func windowOf(t *table.Definition, now time.Time) window {
	after := cmp.Or(t.MaxDeviation, client.DefaultDeviation)
	before := after
	if t.TimeToLive > 0 {
		before = min(before, int64(t.TimeToLive))
	}
	at := now.Unix()
	return window{1000 * max(at-before, 0), 1000 * (at + min(after, math.MaxInt64/1000-at))}
}

// checkWindow refuses a source with cells that the table would not accept. For files, the load rejects such rows.
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
	return plan.Usagef("table %s does not accept cells %s, and %d of the rows that are missing or different have some, "+
		"%s: give the table a larger %s with tsimport table update, or write only columns that differ with --mode update; "+
		"nothing was written",
		r.table.Name, takes, n, has, r.table.AgeFlags())
}
