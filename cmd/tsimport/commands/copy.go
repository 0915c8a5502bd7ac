package commands

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/address"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/open"
	"example.com/tsimport/reader/tablescan"
	"example.com/tsimport/transfer/copytable"
	"example.com/tsimport/transfer/restore"
)

func copyCommand(in *invocation) *cli.Command {
	return &cli.Command{
		Name:      "copy",
		Usage:     "copy a table into another one, with all versions and timestamps, under the same key or a new one",
		ArgsUsage: "SOURCE TARGET",
		Description: addressHelp + "\n" +
			"Each row is copied as it is when its page is read: the copy is not of one moment. Rows of the source may change meanwhile, and an\n" +
			"interrupted copy resumes at the keys that it has reached. Run folder, exit codes and signals are those of tsimport load.\n" +
			signalHelp(),
		Flags:  flagsOf(options.Copy),
		Action: in.act(func(c *call) error { return copyTable(c) }),
	}
}

func copyTable(c *call) error {
	return runLoad(c, &copying{show: c.show})
}

// copying is a load whose source is a table.
type copying struct {
	c        *call
	show     *display
	from, to tableArgument
	asked    *options.Request
	since    time.Time
	where    *keyexpr.Where
	source   *target // nil if it is the target's
	origin   *copytable.Origin
	scan     tablescan.Config
	clock    *client.Clock // of the source
	reads    string        // place of the source
	lacking  func() []string
}

func (k *copying) config(c *call, r *options.Request) (cfg pipeline.Config, err error) {
	k.c = c
	if c.NArg() != 2 {
		return cfg, usagef("copy takes two tables, SOURCE and TARGET, not %d; see tsimport copy --help", c.NArg())
	}
	switch from, err := c.Args().Get(0), open.Check(c.Args().Get(0), ""); {
	case address.Is(from):
	case err != nil:
		return cfg, usagef("%v", err)
	case strings.Contains(from, ":"):
		return cfg, usagef("copy reads a table of Tablestore; load this instead: tsimport load %s --table TABLE", redacted(from))
	}
	if k.from, err = parseTableArgument(c.Args().Get(0)); err != nil {
		return cfg, err
	}
	if k.to, err = parseTableArgument(c.Args().Get(1)); err != nil {
		return cfg, err
	}
	if err := setFilter(c, &k.scan); err != nil {
		return cfg, err
	}
	if k.scan.Versions, err = versionsToRead(c); err != nil {
		return cfg, err
	}
	if rcu := c.Float64("max-rcu"); !(rcu >= 0) {
		return cfg, usagef("--max-rcu %v: want a number above 0, or 0 for no limit", rcu)
	}
	k.asked = r
	r.From, r.Table, r.Order = r.From[:1], k.to.name, plan.OrderNone.String()
	if c.IsSet("job-dir") || c.in.task != nil {
		r.Order = plan.LastWins.String() // each row is sent as one process has read it
	}
	if c.IsSet("since") {
		if k.since, err = parseSince(c.String("since")); err != nil {
			return cfg, err
		}
		if len(r.Exclude) > 0 {
			return cfg, usagef("--exclude with --since: a row whose new cells are all excluded could not be written; name the columns to copy with --columns")
		}
		r.Mode = "update"
	}
	if text := c.String("where"); c.IsSet("where") {
		if k.where, err = keyexpr.CompileWhere(text); err != nil {
			return cfg, usagef("--where: %v", err)
		}
	}
	if cfg, err = loadConfigOf(r, c); err != nil {
		return cfg, err
	}
	cfg.Target.Expires, cfg.Target.DropExpired, cfg.Read.Merges = true, c.Bool("drop-expired"), !k.since.IsZero()
	return cfg, nil
}

// parseSince reads a time.
func parseSince(text string) (time.Time, error) {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms > 0 && ms < table.MaxTimestamp {
		return time.UnixMilli(ms).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.UnixMilli() <= 0 {
		return t, usagef("--since %q: want a time as in RFC 3339, such as 2026-01-31T08:00:00Z, or milliseconds since 1970", text)
	}
	return t.UTC(), nil
}

func (k *copying) open(c *call, a access) (*target, error) {
	if k.from.address == nil && k.to.address == nil {
		a.create = false // the source must be there
	}
	t, err := openSide(c, k.to, a)
	if err != nil {
		return nil, err
	}
	k.reads = t.place(k.from.name)
	if k.from.address != nil || k.to.address != nil {
		if k.source, err = openSide(c, k.from, access{readOnly: true, role: "source"}); err != nil {
			return nil, errors.Join(err, t.close())
		}
		k.reads = k.source.place(k.from.name)
		if err := k.source.mustExist(); err != nil {
			return nil, errors.Join(err, t.close())
		}
		return t, nil
	}
	if err := t.mustExist(); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (k *copying) begin(c *call, cfg *pipeline.Config, t *target) error {
	from, to, err := k.sides(c.interrupts, cfg, t)
	if err != nil {
		return err
	}
	if err := copytable.Distinct(from, to); err != nil {
		return err
	}
	if err := setBounds(k.c, &k.scan, from.Table.Key); err != nil {
		return err
	}
	if err := namedAll(cfg.Columns.Only); err != nil {
		return err
	}
	var notes []string
	if cfg.Columns.Only != nil && len(cfg.Columns.Only) == 0 {
		notes = append(notes, onlyKeys)
	}
	key, define, more, err := k.fit(cfg, from, to, t)
	if err != nil {
		return err
	}
	notes = append(notes, more...)
	instead := fmt.Sprintf("for new numbers in the same order, archive it and load that: tsimport export --table %s --format archive -o FOLDER, then tsimport load FOLDER --table %s --returned-keys FILE",
		k.from.name, k.to.name)
	if err := copytable.CheckKey(k.to.name, key, k.name(), instead); err != nil {
		return err
	}
	if err := copytable.KeepsVersions(k.to.name, define, k.name(), from.Table, k.scan.Versions); err != nil {
		return err
	}
	k.scan.Client, k.scan.Table, k.scan.Name, k.scan.Where = from.Client, from.Table, k.name(), k.where
	k.scan.Gate, k.scan.Waits, k.scan.RetryFor, k.scan.Columns = gateOf(k.c), waitsOf(k.c, k.show), cfg.Write.RetryFor, cfg.Columns.Only
	if !k.since.IsZero() {
		k.scan.Since = k.since.UnixMilli()
		notes = append(notes, fmt.Sprintf("only cells from %s on are copied: rows and cells that were deleted since, and cells that a put has replaced by none, stay in the target", k.since.Format(time.RFC3339Nano)))
	}
	check := copytable.Options{
		To: define, DropExpired: cfg.Target.DropExpired, Takes: cfg.Columns.Takes,
		Say: func(format string, a ...any) { say(k.c, k.show, format, a...) },
	}
	keys := k.scan
	keys.Columns = []string{} // those that the key is made of are asked for by name
	cfg.Read.Look = restore.LookAtKeys(sayer(k.c, k.show), cfg, key, tablescan.New(keys))
	cfg.Target.DropExpired = cfg.Target.DropExpired || copytable.Expires(from.Table, define)
	k.origin = copytable.New(k.scan, check)
	cfg.Read.Sources = k.origin
	say(k.c, k.show, "copying %s: each row as it is when its page is read; one that changes meanwhile is copied as it was before or after", k.name())
	for _, n := range notes {
		say(k.c, k.show, "note: %s", n)
	}
	k.lacking = restore.LackingIndexes(k.asked.RenameIndex, cfg, from.Table, to.Client, c.interrupts.drain)
	return nil
}

// fit returns the key and the options of the target: as it is, if the source fits it, or as it is to be made, with notes.
func (k *copying) fit(cfg *pipeline.Config, from, to copytable.Side, t *target) (key []table.KeyColumn, define *table.Definition, notes []string, err error) {
	if to.Table != nil {
		return to.Table.Key, &to.Table.Definition, nil, restore.FitsKey(k.name(), from.Table.Key, cfg, "table "+k.to.name, to.Table.Key)
	}
	notes = copytable.Define(&cfg.Target, &cfg.Columns, from.Table, k.c.IsSet)
	more, err := restore.DefineIndexes(k.asked.RenameIndex, cfg, from.Table, &client.Admin{Client: to.Client, Context: k.c.interrupts.drain, RetryFor: cfg.Write.RetryFor})
	if err != nil {
		return nil, nil, nil, err
	}
	return cfg.Target.Key, &cfg.Target.Define, append(notes, more...), k.preSplit(k.c.interrupts, cfg, from, t)
}

// name is the source as it is shown.
func (k *copying) name() string { return k.from.shown() }

// sides describes both tables.
func (k *copying) sides(interrupts *interrupts, cfg *pipeline.Config, t *target) (from, to copytable.Side, err error) {
	source := t
	if k.source != nil {
		source = k.source
	}
	if from, err = sideOf(interrupts, cfg, source, k.from.name); err != nil {
		return from, to, sideError(err, true, source)
	}
	if from.Table == nil {
		return from, to, &plan.UsageError{Message: fmt.Sprintf("the source, table %s, does not exist in %s", k.from.name, source.name), NoTable: true}
	}
	k.clock = from.Clock
	to, err = sideOf(interrupts, cfg, t, k.to.name)
	return from, to, sideError(err, false, t)
}

// preSplit makes a new table begin with as many ranges as the source has partitions.
func (k *copying) preSplit(interrupts *interrupts, cfg *pipeline.Config, from copytable.Side, t *target) error {
	cfg.Target.PreSplit = plan.PreSplitOff
	if t.embedded {
		return nil
	}
	bounds, err := (&client.Admin{Client: from.Client, Context: interrupts.drain}).Splits(k.from.name)
	if err != nil {
		return err
	}
	if n := len(bounds) + 1; n > 1 {
		cfg.Target.PreSplit = plan.PreSplit(min(n, client.MaxRanges))
	}
	return nil
}

func (k *copying) compared(cfg *pipeline.Config) {
	cfg.Read.Sources = tablescan.New(k.scan)
}

func (k *copying) ended(r *pipeline.Report) (notes []string) {
	if r.State == pipeline.StateFinished {
		notes = k.lacking()
	}
	notes = append(notes, fmt.Sprintf("read capacity units of the source: %s", words.Grouped(k.origin.Units())))
	if n := k.origin.LeftOut(); n > 0 {
		notes = append(notes, fmt.Sprintf("%s rows were left out by --where", words.Grouped(n)))
	}
	if r.ExpiredCells > 0 {
		notes = append(notes, fmt.Sprintf("%s cells are older than the target takes and were left out", words.Grouped(r.ExpiredCells)))
	}
	if !k.since.IsZero() && r.State == pipeline.StateFinished {
		notes = append(notes, "to copy what is new from now on: --since "+k.next(r).Format(time.RFC3339Nano))
	}
	return notes
}

// next is the time for the next copy of new cells: when this one began, by the service's clock, less what a timestamp may differ from it.
func (k *copying) next(r *pipeline.Report) time.Time {
	began := k.clock.Now().Add(-time.Since(r.FirstStarted))
	deviation := k.scan.Table.MaxDeviation
	deviation = cmp.Or(deviation, client.DefaultDeviation)
	seconds := min(deviation, began.Unix()-1)
	return began.Add(-time.Duration(seconds) * time.Second).UTC().Truncate(time.Millisecond)
}
