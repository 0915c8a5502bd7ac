package fromtable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	"example.com/tsimport/reader/tablescan"
	"example.com/tsimport/transfer/copytable"
	"example.com/tsimport/transfer/restore"
)

type Load struct {
	Read    tablescan.Config // how the source is read; Begin completes it
	table   string           // name of the source
	asked   *options.Command
	say     words.Say
	since   time.Time
	origin  *copytable.Origin
	lacking func()
}

// New returns the load from a table that a command requests, and completes its request. shown is the table's name for
// messages. Notes for the user are passed to say. Read.Manner may be changed before Begin.
func New(of *options.Command, name, shown string, say words.Say) (*Load, error) {
	read, err := Scan(of)
	if err != nil {
		return nil, err
	}
	read.Name, read.Gate = shown, scan.NewGate(of.MaxRCU)
	l := &Load{Read: read, table: name, asked: of, say: say}
	of.From, of.Order = of.From[:1], plan.OrderNone.String()
	if of.Since == "" {
		return l, nil
	}
	if l.since, err = parseSince(of.Since); err != nil {
		return nil, err
	}
	if len(of.Exclude) > 0 {
		return nil, plan.Usagef("--exclude with --since: a row whose new cells are all excluded could not be written; name " +
			"the columns to copy with --columns")
	}
	of.Mode = "update"
	return l, nil
}

func (l *Load) Config(cfg *pipeline.Config) {
	cfg.Target.Aging.Expires, cfg.Target.Aging.DropExpired, cfg.Read.Merges = true, l.asked.DropExpired, !l.since.IsZero()
}

// Begin completes a new table with the source's properties, and refuses a target that cannot hold the source's data.
// name is the name of the source's instance. embedded means that the target has no partitions.
func (l *Load) Begin(ctx context.Context, cfg *pipeline.Config, source client.Target, name string,
	embedded bool) error {
	from, to, err := l.sides(ctx, cfg, source, name)
	if err != nil {
		return err
	}
	if err := copytable.Distinct(from, to); err != nil {
		return err
	}
	if err := SetBounds(&l.asked.Scan, &l.Read, from.Table.Key); err != nil {
		return err
	}
	var notes []string
	if cfg.Columns.Only != nil && len(cfg.Columns.Only) == 0 {
		notes = append(notes, OnlyKeys)
	}
	key, define, more, err := l.fit(ctx, cfg, from, to, embedded)
	if err != nil {
		return err
	}
	notes = append(notes, more...)
	name = l.Read.Name
	instead := fmt.Sprintf("for new numbers in the same order, load an archive of it: tsimport export --table %s "+
		"--format archive -o FOLDER, then tsimport load FOLDER --table %s --returned-keys FILE",
		l.table, to.Name)
	if err := copytable.CheckKey(to.Name, key, name, instead); err != nil {
		return err
	}
	if err := copytable.KeepsVersions(to.Name, define, name, from.Table, l.Read.Versions); err != nil {
		return err
	}
	l.Read.Client, l.Read.Table, l.Read.RetryFor, l.Read.Columns = from.Client, from.Table, cfg.Lanes.RetryFor,
		cfg.Columns.Only
	if !l.since.IsZero() {
		l.Read.Since = l.since.UnixMilli()
		notes = append(notes, fmt.Sprintf("only cells from %s on are copied: rows and cells deleted since then, or left "+
			"out by a later put, remain in the target", l.since.Format(time.RFC3339Nano)))
	}
	check := copytable.Options{To: define, DropExpired: cfg.Target.Aging.DropExpired, Takes: cfg.Columns.Takes, Say: l.say}
	keys := l.Read
	keys.Columns = []string{} // the scan requests the key's columns by name
	cfg.Read.Look = restore.LookAtKeys(l.say, cfg, key, tablescan.New(keys))
	cfg.Target.Aging.DropExpired = cfg.Target.Aging.DropExpired || copytable.Expires(from.Table, define)
	l.origin = copytable.New(l.Read, check)
	l.origin.Clock = from.Clock
	cfg.Read.Sources = l.origin
	l.say.Line("copying %s: each row as of the time its page is read, with or without changes made meanwhile", name)
	for _, n := range notes {
		l.say.Note("%s", n)
	}
	l.lacking = restore.LackingIndexes(l.say, l.asked.RenameIndex, cfg, from.Table, to.Client, ctx)
	return nil
}

// fit returns the key and options of the existing target, which the source must fit, or of a new one, with notes.
func (l *Load) fit(ctx context.Context, cfg *pipeline.Config, from, to copytable.Side,
	embedded bool) (key []table.KeyColumn, define *table.Definition, notes []string, err error) {
	if to.Table != nil {
		return to.Table.Key, &to.Table.Definition, nil, restore.FitsKey(l.Read.Name, from.Table.Key, cfg, "table "+to.Name,
			to.Table.Key)
	}
	notes = copytable.Define(&cfg.Target, &cfg.Columns, from.Table, l.asked.IsSet)
	more, err := restore.DefineIndexes(l.asked.RenameIndex, cfg, from.Table, &client.Admin{Client: to.Client, Context: ctx,
		RetryFor: cfg.Lanes.RetryFor})
	if err != nil {
		return nil, nil, nil, err
	}
	return cfg.Target.Key, &cfg.Target.Define, append(notes, more...), preSplit(ctx, cfg, from, embedded)
}

func (l *Load) sides(ctx context.Context, cfg *pipeline.Config, source client.Target, name string) (from,
	to copytable.Side, err error) {
	if from, err = Describe(ctx, cfg, source, l.table); err != nil {
		return from, to, fmt.Errorf("source, %s: %w", name, err)
	}
	if from.Table == nil {
		return from, to, &plan.UsageError{Message: fmt.Sprintf("the source, table %s, does not exist in %s", l.table, name),
			NoTable: true}
	}
	if to, err = Describe(ctx, cfg, cfg.Target.Client, cfg.Target.Table); err != nil {
		return from, to, fmt.Errorf("target, %s: %w", cfg.Target.Name, err)
	}
	return from, to, nil
}

// Describe describes a table and its service. Side.Table is nil if there is no table.
func Describe(ctx context.Context, cfg *pipeline.Config, at client.Target, name string) (s copytable.Side, err error) {
	at.Connections = cfg.Lanes.Concurrency
	traffic := new(client.Traffic)
	s = copytable.Side{Endpoint: at.Endpoint, Instance: at.Instance, Name: name, Clock: &traffic.Clock}
	if s.Client, err = client.New(ctx, at, traffic); err != nil {
		return s, plan.Usagef("%v", err)
	}
	admin := &client.Admin{Client: s.Client, Context: ctx, RetryFor: cfg.Lanes.RetryFor}
	if s.Table, err = admin.Describe(name); errors.Is(err, client.ErrNoTable) {
		s.Table, err = nil, nil
	}
	return s, err
}

// preSplit requests that a new table have as many partitions as the source.
func preSplit(ctx context.Context, cfg *pipeline.Config, from copytable.Side, embedded bool) error {
	cfg.Target.PreSplit = plan.PreSplitOff
	if embedded {
		return nil
	}
	bounds, err := (&client.Admin{Client: from.Client, Context: ctx}).Splits(from.Name)
	if err != nil {
		return err
	}
	if n := len(bounds) + 1; n > 1 {
		cfg.Target.PreSplit = plan.PreSplit(min(n, client.MaxRanges))
	}
	return nil
}

// Compared makes cfg a configuration for comparing the source with the target.
func (l *Load) Compared(cfg *pipeline.Config) {
	cfg.Read.Sources = tablescan.New(l.Read)
}

// Ended gives the user the final notes of the load.
func (l *Load) Ended(r *pipeline.Report) {
	if r.State == pipeline.StateFinished {
		l.lacking()
	}
	l.say.Line("read capacity units of the source: %s", words.Grouped(l.origin.Units()))
	if n := l.origin.LeftOut(); n > 0 {
		l.say.Line("%s rows were left out by --where", words.Grouped(n))
	}
	if r.ExpiredCells > 0 {
		l.say.Line("%s cells are older than the target takes and were left out", words.Grouped(r.ExpiredCells))
	}
	if next := Next(r); next != "" {
		l.say.Line("to copy what is new from now on: --since %s (if writers set timestamps themselves, give a time "+
			"that is earlier by their longest delay)", next)
	} else if text := r.Follow(); text != "" {
		l.say.Line("%s", text)
	}
}

// Next returns the --since of the next copy, shortly before this one began. It returns "" if the load did not finish.
func Next(r *pipeline.Report) string {
	if r.State != pipeline.StateFinished || r.ResumeFrom == nil || r.ResumeFrom.Time == nil {
		return ""
	}
	return r.ResumeFrom.String()
}
