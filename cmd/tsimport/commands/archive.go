package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/suggest"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/options"
	"example.com/tsimport/pipeline/plan"
	archiveReader "example.com/tsimport/reader/archive"
	"example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/transfer/copytable"
	"example.com/tsimport/transfer/verify"
)

// archiveOf returns the manifest of the archive that the arguments are, nil if they are files.
func archiveOf(ctx context.Context, args []string, find input.Options) (*archive.Manifest, error) {
	for _, arg := range args {
		m, err := archiveAt(ctx, arg, find)
		if err == nil && m == nil {
			continue
		}
		if len(args) > 1 {
			return nil, usagef("%s is an archive of a table; load or compare it alone", suggest.Arg(arg))
		}
		return m, err
	}
	return nil, nil
}

// archiveAt returns the manifest of the archive at a path or an address, nil if there is none.
func archiveAt(ctx context.Context, arg string, find input.Options) (m *archive.Manifest, err error) {
	switch {
	case archive.Is(arg):
		m, err = archive.Read(arg)
	case mayBeArchive(arg):
		var files archive.Files
		if files, err = archiveReader.Find(ctx, arg, find); err != nil && ctx.Err() == nil {
			return nil, &plan.UsageError{Message: err.Error(), Input: true} // as of any input
		}
		if files != nil && err == nil {
			m, err = archive.ReadFrom(ctx, files)
		}
	}
	return m, inputError(err)
}

// mayBeArchive reports whether an address may be that of an archive in a store of objects. It is not asked of files, which would cost requests.
func mayBeArchive(arg string) bool {
	base := path.Base(arg)
	return jobdir.IsAddress(arg) && !strings.ContainsAny(arg, "*?[{") && (!strings.Contains(base, ".") || base == archive.ManifestName || strings.HasSuffix(arg, "/"))
}

// refuseArchives is for commands that read files of rows, and databases. They would take an archive's manifest and parts for such files.
func refuseArchives(c *call) error {
	for _, arg := range c.Args().Slice() {
		if m, err := archiveAt(c.Context, arg, storesOf(c)); m != nil || errors.As(err, new(*plan.UsageError)) {
			return usagef("%s is an archive of a table, which %s does not read; tsimport verify compares it with a table, and tsimport load restores it", suggest.Arg(arg), c.Command.Name)
		}
	}
	return nil
}

// inputError makes bad usage of an archive that is not whole.
func inputError(err error) error {
	if damaged := new(archive.DamagedError); errors.As(err, &damaged) {
		return &plan.UsageError{Message: err.Error(), Input: true}
	}
	return err
}

// originOf returns the sources that the arguments of a command are, nil if they are files.
func originOf(ctx context.Context, c *call, args []string, find input.Options) (source.Origin, error) {
	if origin, err := sqlOrigin(c, args); origin != nil || err != nil {
		return origin, err
	}
	m, err := archiveOf(ctx, args, find)
	if m == nil || err != nil {
		return nil, err
	}
	return archiveReader.New(m), refuseReadFlags(c)
}

// refuseReadFlags refuses flags that say how text is read.
func refuseReadFlags(c *call) error {
	for _, o := range options.Of(options.Looking) {
		if c.IsSet(o.Name) {
			return usagef("--%s: an archive says itself how it is read; leave it out", o.Name)
		}
	}
	return nil
}

// archiveLoad is a load of an archive.
type archiveLoad struct {
	c       *call
	show    *display
	archive *archive.Manifest
	lacking func() []string // nil unless the load has begun
}

func (l *archiveLoad) config(c *call, in *invocation, r *options.Request) (cfg pipeline.Config, err error) {
	if err := refuseReadFlags(c); err != nil {
		return cfg, err
	}
	if cfg, err = loadConfigOf(r, c, in); err != nil {
		return cfg, err
	}
	origin := archiveReader.New(l.archive)
	if c.in.task != nil {
		origin.ByParts()
	}
	cfg.Read.Sources, cfg.Target.Expires, cfg.Target.DropExpired = origin, true, c.Bool("drop-expired")
	return cfg, nil
}

func (l *archiveLoad) open(c *call, a access, show *display) (*target, error) {
	return openTarget(c, a, show)
}

func (l *archiveLoad) begin(interrupts *interrupts, cfg *pipeline.Config, t *target) error {
	if cfg.Target.Table == "" {
		return nil // the load says so
	}
	traffic := new(client.Traffic)
	sdk, err := client.New(interrupts.drain, t.Target, traffic)
	if err != nil {
		return usagef("%v", err)
	}
	m := l.archive
	from := &client.Table{Name: m.Table, Key: m.KeyColumns(), Defined: m.DefinedTypes(), Created: m.Created, Indexes: m.Indexes, IndexesAre: m.IndexesAre, Definition: m.Options.Definition()}
	to := &client.Table{Name: cfg.Target.Table}
	exists := false
	if !t.missing {
		admin := &client.Admin{Client: sdk, Context: interrupts.drain, RetryFor: cfg.Write.RetryFor}
		described, err := admin.Describe(cfg.Target.Table)
		switch {
		case err == nil:
			to, exists = described, true
		case !errors.Is(err, client.ErrNoTable):
			return err
		}
	}
	if !exists {
		notes := copytable.Define(&cfg.Target, &cfg.Columns, from, l.c.IsSet)
		var more []string
		if cfg.Target.Create && !t.missing {
			if more, err = defineIndexes(l.c, cfg, from, &client.Admin{Client: sdk, Context: interrupts.drain, RetryFor: cfg.Write.RetryFor}); err != nil {
				return err
			}
		}
		if notes = append(notes, more...); !cfg.Target.Create {
			notes = nil // the load refuses
		}
		for _, n := range notes {
			say(l.c, l.show, "note: %s", n)
		}
		to.Key, to.Definition = cfg.Target.Key, cfg.Target.Define
	}
	l.lacking = lackingIndexes(l.c, cfg, from, sdk, interrupts.drain)
	if err := l.check(cfg, from, to, traffic.Clock.Now()); err != nil {
		return err
	}
	cfg.Read.Look = lookAtKeys(l.c, l.show, cfg, to.Key, archiveReader.New(l.archive))
	say(l.c, l.show, "loading the archive of table %s: %s rows, scanned from %s to %s", m.Table, grouped(m.Rows), m.Began.Format(time.RFC3339), m.Ended.Format(time.RFC3339))
	return nil
}

// check refuses a target that would not have what the archive has.
func (l *archiveLoad) check(cfg *pipeline.Config, from, to *client.Table, now time.Time) error {
	m, name := l.archive, cfg.Target.Table
	if err := fitsArchive(m, cfg, "table "+name, to.Key); err != nil {
		return err
	}
	if err := freeMark(m, cfg, to.Key); err != nil {
		return err
	}
	if m.Versions > max(to.MaxVersions, 1) {
		return usagef("the archive has cells with %d versions, and table %s keeps %d; load it into a table with --max-versions %d", m.Versions, name, to.MaxVersions, m.Versions)
	}
	if m.Smallest == nil || cfg.Target.DropExpired {
		return nil
	}
	oldest := copytable.Oldest(&to.Definition, now)
	if at := time.UnixMilli(*m.Smallest); at.Before(oldest) {
		flags := "--max-deviation"
		if to.TimeToLive > 0 {
			flags = "--ttl and --max-deviation"
		}
		return usagef("table %s does not take cells of before %s, and the archive has some from %s on; load it into a table with a larger %s, or give --drop-expired, which leaves such cells out and counts them",
			name, oldest.UTC().Format(time.RFC3339), at.UTC().Format(time.RFC3339), flags)
	}
	if newest := now.Add(now.Sub(copytable.Oldest(&table.Definition{TimeToLive: -1, MaxDeviation: to.MaxDeviation}, now))); time.UnixMilli(*m.Largest).After(newest) {
		return usagef("table %s does not take cells of after %s, and the archive has some up to %s; load it into a table with a larger --max-deviation",
			name, newest.UTC().Format(time.RFC3339), time.UnixMilli(*m.Largest).UTC().Format(time.RFC3339))
	}
	return nil
}

// freeMark refuses marks in a column that rows of the archive have: of a table that was loaded by marks, all have.
func freeMark(m *archive.Manifest, cfg *pipeline.Config, key []table.KeyColumn) error {
	mark := markColumn(cfg)
	numbered := slices.ContainsFunc(key, func(k table.KeyColumn) bool { return k.Auto })
	at := slices.IndexFunc(m.Columns, func(name string) bool { return cfg.Columns.Takes(name) && cfg.Columns.To(name) == mark })
	if !numbered || cfg.Write.Marks.AtLeastOnce || at < 0 {
		return nil
	}
	return markTaken("the archive "+m.Dir(), mark, m.Columns[at])
}

func markColumn(cfg *pipeline.Config) string {
	return cmp.Or(cfg.Write.Marks.Column, plan.DefaultMarkColumn)
}

func markTaken(source, mark, column string) error {
	return usagef("rows of %s have cells in column %s, where the marks are to be; give these another column with --mark-column NAME, or leave the cells out with --exclude %s", source, mark, column)
}

// fitsKey refuses a key with a column that rows do not have in theirs, unless flags say how it is made: a value of another type is another key.
func fitsKey(source string, from []table.KeyColumn, cfg *pipeline.Config, target string, key []table.KeyColumn) error {
	columns := &cfg.Columns
	for _, k := range key {
		at := slices.IndexFunc(from, func(f table.KeyColumn) bool { return columns.To(f.Name) == k.Name })
		renamed := slices.Contains(slices.Collect(maps.Values(columns.Rename)), k.Name)
		said := slices.ContainsFunc(cfg.Target.Key, func(s table.KeyColumn) bool { return s.Name == k.Name && s.Type == k.Type })
		computed := slices.ContainsFunc(columns.Keys, func(c plan.Column) bool { return c.Name == k.Name })
		missing, another := at < 0 && !renamed && len(columns.Keys) == 0, at >= 0 && from[at].Type != k.Type
		if !k.Auto && !said && !computed && (missing || another) {
			return usagef("%s has another primary key (%s) than %s (%s); say with --pk how it is made, with types", target, columnsText(key), source, columnsText(from))
		}
	}
	return nil
}

func fitsArchive(m *archive.Manifest, cfg *pipeline.Config, target string, key []table.KeyColumn) error {
	return fitsKey("the archive "+m.Dir(), m.KeyColumns(), cfg, target, key)
}

// lookAtKeys looks at the keys of all rows of a table or an archive before any is written. Look is their origin.
func lookAtKeys(c *call, show *display, cfg *pipeline.Config, key []table.KeyColumn, look source.Origin) func(context.Context) error {
	return func(ctx context.Context) error {
		say(c, show, "the key does not contain that of the source: looking for rows that would become one")
		r := cfg.Request()
		r.Target.Key, r.Read.Sources = slices.Clone(key), look
		return copytable.CheckKeys(ctx, r, func(v *verify.CheckConfig) {
			v.Memory, v.TempDir = cfg.Limits.Memory, cfg.Limits.TempDir
		})
	}
}

func columnsText(key []table.KeyColumn) (text string) {
	for i, k := range key {
		if i > 0 {
			text += ", "
		}
		text += k.Name + " " + k.Type.String()
	}
	return text
}

func (l *archiveLoad) compared(cfg *pipeline.Config) {
	cfg.Read.Sources = archiveReader.New(l.archive)
}

func (l *archiveLoad) ended(r *pipeline.Report) (notes []string) {
	if l.lacking != nil && r.State == pipeline.StateFinished {
		notes = l.lacking()
	}
	if r.ExpiredCells > 0 {
		notes = append(notes, fmt.Sprintf("%s cells are older than the target takes and were left out", grouped(r.ExpiredCells)))
	}
	return notes
}

// isFolder reports whether the output of an export is to be a folder, or what is one in a store of objects: there is one, or the name ends as that
// of one.
func isFolder(name string) bool {
	if jobdir.IsAddress(name) {
		return name[len(name)-1] == '/' || path.Ext(name) == ""
	}
	info, err := os.Stat(name)
	return name != "" && (name[len(name)-1] == '/' || name[len(name)-1] == filepath.Separator || err == nil && info.IsDir())
}
