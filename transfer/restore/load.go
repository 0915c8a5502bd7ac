package restore

import (
	"context"
	"errors"
	"time"

	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/words"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	archive "example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/transfer/copytable"
)

type Load struct {
	Archive *archive.Manifest
	asked   *options.Request
	say     words.Say
	lacking func() // nil until the load has begun
}

// Of returns the load of the archive that a request names, or nil if it names none. say receives notes for the user.
func Of(ctx context.Context, r *options.Request, find input.Options, say words.Say) (*Load, error) {
	m, err := Find(ctx, r.From, find)
	switch {
	case err != nil:
		return nil, err
	case m != nil:
		return New(m, r, say)
	case r.DropExpired:
		return nil, plan.Usagef("--drop-expired: only table archives are checked for old cells; a file's rejects name them")
	case r.RenameIndex != nil:
		return nil, plan.Usagef("--rename-index: only an archive of a table has indexes; leave it out")
	}
	return nil, nil
}

func New(m *archive.Manifest, r *options.Request, say words.Say) (*Load, error) {
	for _, o := range options.Of(options.Looking) {
		if r.IsSet(o.Name) {
			return nil, plan.Usagef("--%s does not apply to an archive, which records its own format; leave it out", o.Name)
		}
	}
	return &Load{Archive: m, asked: r, say: say}, nil
}

// Config makes the load read the archive (Source).
func (l *Load) Config(cfg *pipeline.Config, byParts bool) {
	origin := archive.New(l.Archive)
	if byParts {
		origin.ByParts()
	}
	cfg.Read.Sources, cfg.Target.Aging.Expires, cfg.Target.Aging.DropExpired = origin, true, l.asked.DropExpired
}

// Begin completes a new table with the archive's properties, and refuses a target that cannot hold the archive's data.
func (l *Load) Begin(ctx context.Context, cfg *pipeline.Config, at *client.Target, missing bool) error {
	if cfg.Target.Table == "" {
		return nil // the load reports the missing name
	}
	traffic := new(client.Traffic)
	sdk, err := client.New(ctx, *at, traffic)
	if err != nil {
		return plan.Usagef("%v", err)
	}
	m := l.Archive
	from := &client.Table{Name: m.Table, Key: m.Key, Defined: m.DefinedTypes(), Created: m.Created, Indexes: m.Indexes,
		IndexesAre: m.IndexesAre, Definition: m.Options}
	to := &client.Table{Name: cfg.Target.Table}
	exists := false
	if !missing {
		admin := &client.Admin{Client: sdk, Context: ctx, RetryFor: cfg.Lanes.RetryFor}
		described, err := admin.Describe(cfg.Target.Table)
		switch {
		case err == nil:
			to, exists = described, true
		case !errors.Is(err, client.ErrNoTable):
			return err
		}
	}
	if !exists {
		notes := copytable.Define(&cfg.Target, &cfg.Columns, from, l.asked.IsSet)
		var more []string
		if cfg.Target.Create && !missing {
			if more, err = DefineIndexes(l.asked.RenameIndex, cfg, from, &client.Admin{Client: sdk, Context: ctx,
				RetryFor: cfg.Lanes.RetryFor}); err != nil {
				return err
			}
		}
		if notes = append(notes, more...); !cfg.Target.Create {
			notes = nil // the load refuses it
		}
		for _, n := range notes {
			l.say.Note("%s", n)
		}
		to.Key, to.Definition = cfg.Target.Key, cfg.Target.Define
	}
	l.lacking = LackingIndexes(l.say, l.asked.RenameIndex, cfg, from, sdk, ctx)
	if err := l.check(cfg, from, to, traffic.Clock.Now()); err != nil {
		return err
	}
	cfg.Read.Look = LookAtKeys(l.say, cfg, to.Key, archive.New(l.Archive))
	l.say.Line("loading the archive of table %s: %s rows, scanned from %s to %s", m.Table, words.Grouped(m.Rows),
		m.Began.Format(time.RFC3339), m.Ended.Format(time.RFC3339))
	return nil
}

// check returns an error if the target cannot hold the archive's data.
func (l *Load) check(cfg *pipeline.Config, from, to *client.Table, now time.Time) error {
	m, name := l.Archive, cfg.Target.Table
	if err := Fits(m, cfg, "table "+name, to.Key); err != nil {
		return err
	}
	if err := FreeMark(m, cfg, to.Key); err != nil {
		return err
	}
	if m.Versions > max(to.MaxVersions, 1) {
		return plan.Usagef("the archive has cells with %d versions, and table %s keeps %d; load it into a table with "+
			"--max-versions %d", m.Versions, name, to.MaxVersions, m.Versions)
	}
	if m.Smallest == nil || cfg.Target.Aging.DropExpired {
		return nil
	}
	oldest := copytable.Oldest(&to.Definition, now)
	if at := time.UnixMilli(*m.Smallest); at.Before(oldest) {
		return plan.Usagef("table %s does not accept cells before %s, and the archive has some from %s on; load it into a "+
			"table with a larger %s, or give --drop-expired, which leaves such cells out and counts them",
			name, oldest.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339), to.AgeFlags())
	}
	if newest := now.Add(now.Sub(copytable.Oldest(&table.Definition{TimeToLive: -1, MaxDeviation: to.MaxDeviation},
		now))); time.UnixMilli(*m.Largest).After(newest) {
		return plan.Usagef("table %s does not accept cells after %s, and the archive has some up to %s; load it into a "+
			"table with a larger --max-deviation",
			name, newest.UTC().Format(time.RFC3339), time.UnixMilli(*m.Largest).UTC().Format(time.RFC3339))
	}
	return nil
}

// Compared makes cfg a configuration for comparing the archive with the table.
func (l *Load) Compared(cfg *pipeline.Config) {
	cfg.Read.Sources = archive.New(l.Archive)
}

// Ended gives the user the final notes of the load.
func (l *Load) Ended(r *pipeline.Report) {
	if l.lacking != nil && r.State == pipeline.StateFinished {
		l.lacking()
	}
	if text := r.Follow(); text != "" {
		l.say.Line("%s", text)
	}
	if r.ExpiredCells > 0 {
		l.say.Line("%s cells are older than the target takes and were left out", words.Grouped(r.ExpiredCells))
	}
}
