package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tsimport"
	"tsimport/internal/exitcode"
	"tsimport/internal/jobdir"
	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
	"tsimport/internal/tablestore/scan"
	"tsimport/pipeline"
	"tsimport/pipeline/checkpoint"
	"tsimport/pipeline/plan"
	"tsimport/pipeline/rundir"
	archiveReader "tsimport/reader/archive"
	"tsimport/reader/tablescan"
	"tsimport/transfer/archive"
	"tsimport/transfer/copytable"
	exporting "tsimport/transfer/export"
)

// through is the archive that the rows of a copy go through where the service makes a part of their keys. A row that was sent is recognized by
// the record that it was made of, which stays what it is in an archive, and not in a table that others write to.
type through struct {
	archiveLoad
	units int64 // read capacity units of the source
	left  int64 // rows that --where left out
	stays bool  // the user has named its place
	where string
}

// throughSuffix is what the name of the folder has after that of the file of returned keys.
const throughSuffix = ".rows"

// checkNumbers refuses flags that do not fit a target of which the service makes keys, and those that fit no other.
func (k *copying) checkNumbers(cfg *pipeline.Config, key []table.KeyColumn, numbered bool) error {
	if !numbered {
		if k.c.IsSet("through") {
			return usagef("--through: it is for a target with an auto-increment key column, and table %s has none; leave it out", k.to.name)
		}
		return nil
	}
	if text := k.c.String("pre-split"); text != "auto" && cfg.Target.PreSplit > 0 {
		return usagef("--pre-split %s: the rows go through an archive, of which no sample is taken; leave it out", text)
	}
	at := key[slices.IndexFunc(key, func(k table.KeyColumn) bool { return k.Auto })].Name
	switch {
	case k.c.String("returned-keys") == "":
		return copytable.CheckKey(k.to.name, key, k.name(), "give --returned-keys FILE for new numbers in the same order, and the old key of each row beside the new one")
	case !k.since.IsZero():
		return usagef("--since: table %s has the auto-increment key column %s, so a row that is copied again would be another row; leave it out", k.to.name, at)
	case k.c.IsSet("when"):
		return usagef("--when: a row whose %s the service assigns is always new; leave it out", at)
	}
	return nil
}

// beginThrough archives the source and makes the archive what is loaded. An archive that an earlier attempt has completed is loaded as it is.
func (k *copying) beginThrough(interrupts *interrupts, cfg *pipeline.Config, o *tsimport.LoadOptions, from, to *client.Table) error {
	cfg.Target.PreSplit = plan.PreSplitOff
	cfg.Write.Order, o.Order = plan.LastWins, plan.LastWins.String()
	if cfg.DryRun {
		cfg.Read.Archived = true // the source is read as it is
		return nil
	}
	keys := cfg.Write.Marks.ReturnedKeys
	k.through = &through{archiveLoad: archiveLoad{c: k.c, show: k.show}, where: k.c.String("through"), stays: k.c.IsSet("through")}
	if !k.through.stays {
		k.through.where = keys + throughSuffix
	}
	m, err := k.throughOf(interrupts, cfg, from)
	if err != nil {
		return err
	}
	if info, err := os.Stat(keys); err == nil && info.Size() > 0 && (m == nil || k.c.Bool("fresh")) { // before anything is removed that resuming needs
		return usagef("--returned-keys: %s exists, and may be the only place that has the keys of an earlier load; give another file, or delete it", keys)
	}
	if m != nil && k.exists && !k.through.stays && !k.c.Bool("fresh") {
		if code, run := loadedBy(m, keys, cfg.RunDir); run != "" {
			say(k.c, k.show, "the run in %s has loaded the rows of %s; only the archive was left, and is removed", run, m.Dir())
			if err := m.Remove(); err != nil {
				return fmt.Errorf("remove an archive that is not needed any more: %w", err)
			}
			return &exitError{code: code}
		}
	}
	if m != nil && k.c.Bool("fresh") {
		if k.through.stays {
			return usagef("--through %s: there is an archive already, and --fresh reads the source again; give another place", redacted(k.through.where))
		}
		if err := m.Remove(); err != nil {
			return err
		}
		m = nil
	}
	if m == nil {
		if m, err = k.archiveSource(interrupts, cfg, from); err != nil {
			return err
		}
	} else {
		say(k.c, k.show, "the rows are in %s already, as they were from %s to %s", m.Dir(), m.Began.Format(time.RFC3339), m.Ended.Format(time.RFC3339))
	}
	k.through.archive = m
	if err := k.through.check(cfg, from, to, k.clock.Now()); err != nil {
		return err
	}
	cfg.Read.Sources = archiveReader.New(m)
	return nil
}

// loadedBy returns the run that has loaded an archive, and its exit code; its process was killed before it had removed the archive. The run
// began when the archive was whole, has read all of it, and counts on nothing any more.
func loadedBy(m *archive.Manifest, keys, runDir string) (code int, folder string) {
	folders := []string{runDir}
	if runDir == "" {
		folders, _ = filepath.Glob(filepath.Join(rundir.Root, "*"))
	}
	for _, folder := range folders {
		r, err := readSummary(folder)
		if err == nil && rundir.CheckOwner(folder) == nil && !checkpoint.Exists(folder) && r.State == pipeline.StateFinished &&
			r.ReturnedKeys == keys && r.Read == m.Rows && r.Started.After(m.Ended) {
			return r.ExitCode, folder
		}
	}
	return 0, ""
}

// throughOf returns the manifest of an archive that an earlier attempt has completed, nil if there is none.
func (k *copying) throughOf(interrupts *interrupts, cfg *pipeline.Config, from *client.Table) (*archive.Manifest, error) {
	m, err := k.readThrough(interrupts.drain, cfg)
	if m == nil || err != nil {
		return nil, err
	}
	if k.c.Bool("fresh") {
		return m, nil
	}
	holds := k.holds()
	var differs []string
	if m.Table != from.Name || m.Created != 0 && from.Created != 0 && m.Created != from.Created {
		differs = append(differs, "the table")
	}
	if !slices.Equal(m.Key, archive.Columns(from.Key)) {
		differs = append(differs, "the table's primary key")
	}
	if differs = append(differs, m.Holds.Differences(&holds)...); len(differs) > 0 {
		return nil, usagef("%s holds rows of another copy: it differs in %s; give another --returned-keys or --through, or remove it", m.Dir(), strings.Join(differs, " and "))
	}
	return m, nil
}

// holds is what of the source is archived, in words.
func (k *copying) holds() archive.Selection {
	return archive.Selection{From: k.c.String("from-key"), To: k.c.String("to-key"), Columns: k.throughColumns(), Filter: k.scan.FilterText, Where: k.c.String("where"), Versions: k.scan.Versions}
}

// throughColumns are the columns that are archived, nil for all: expressions may need columns that are not copied.
func (k *copying) throughColumns() []string {
	if len(textsOf(k.c, "set")) > 0 || slices.ContainsFunc(textsOf(k.c, "pk"), func(text string) bool { return strings.Contains(text, "=") }) {
		return nil
	}
	return k.scan.Columns
}

// archiveSource archives the source, or continues what an earlier attempt has left.
func (k *copying) archiveSource(interrupts *interrupts, cfg *pipeline.Config, from *client.Table) (*archive.Manifest, error) {
	if err := k.origin.Refuse(interrupts.drain); err != nil {
		return nil, err
	}
	if err := seeMark(interrupts.drain, cfg, &k.scan); err != nil {
		return nil, err
	}
	target, _, _ := strings.Cut(k.reads, "\x00")
	to := exporting.ArchiveConfig{Scan: k.scan, Holds: k.holds(), Target: target, Dir: k.through.where, Fresh: k.c.Bool("fresh"), Readers: min(cfg.Write.Concurrency, 2*exporting.DefaultReaders)}
	to.Scan.Columns = k.throughColumns()
	if jobdir.IsAddress(to.Dir) {
		var err error
		if to.Store, err = jobdir.Open(interrupts.drain, to.Dir, jobdir.Options{OSS: cfg.Read.Find.OSS, S3: cfg.Read.Find.S3}); err != nil {
			return nil, usagef("--through %v", err)
		}
		to.OnWait = func(who string) {
			say(k.c, k.show, "waiting: %s may write to %s; if it does not say so for %v, the copy takes it over", who, to.Store, jobdir.Term)
		}
	}
	shown := "the rows go through an archive at %s, which takes about as much room as their compressed text, and is removed at the end; --through puts it elsewhere"
	if k.through.stays {
		shown = "the rows go through an archive at %s"
	}
	say(k.c, k.show, shown, redacted(to.Dir))
	r, err := exporting.ToArchive(interrupts.drain, to)
	k.through.units, k.through.left = r.Units, r.LeftOut
	if err != nil {
		return nil, stoppedExport(k.c, err, r.Kept)
	}
	if r.Resumed > 0 {
		say(k.c, k.show, "continued after the %s rows already in the archive", grouped(r.Resumed))
	}
	say(k.c, k.show, "archived %s rows of %s; now they are loaded in the order of their keys", grouped(r.Manifest.Rows), k.name())
	return k.readThrough(interrupts.drain, cfg)
}

// readThrough reads the manifest of the archive; nil if there is none, and what is there is not whole.
func (k *copying) readThrough(ctx context.Context, cfg *pipeline.Config) (*archive.Manifest, error) {
	place := k.through.where
	if !jobdir.IsAddress(place) {
		if _, err := os.Stat(filepath.Join(place, archive.ManifestName)); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		m, err := archive.Read(place)
		return m, inputError(err)
	}
	files, err := archiveReader.Find(ctx, place, cfg.Read.Find)
	if files == nil || err != nil {
		return nil, err
	}
	if _, err := files.Size(archive.ManifestName); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	m, err := archive.ReadFrom(ctx, files)
	return m, inputError(err)
}

// seeMark refuses marks in a column that one of the source's first rows has. Most tables that have it have it in all rows, and to say so when
// all is archived would be late.
func seeMark(ctx context.Context, cfg *pipeline.Config, from *tablescan.Config) error {
	mark := markColumn(cfg)
	name := mark
	for from, to := range cfg.Columns.Rename {
		if to == mark {
			name = from
		}
	}
	if !cfg.Columns.Takes(name) || cfg.Columns.To(name) != mark {
		return nil
	}
	s := scan.Options{From: from.From, To: from.To, Versions: 1, RetryFor: from.RetryFor, Manner: from.Manner, Columns: []string{name}}
	rows, err := scan.NewPager(from.Client, from.Table.Name, from.Table.Key, s).Next(ctx)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if slices.ContainsFunc(rows, func(r *scan.Row) bool { return len(r.Columns) > 0 }) {
		return markTaken("table "+from.Name, mark, name)
	}
	return nil
}

// ended removes the archive of a copy that has finished.
func (t *through) ended(r *pipeline.Report) []string {
	notes := []string{fmt.Sprintf("each row is as it was at some moment from %s to %s", t.archive.Began.Format(time.RFC3339), t.archive.Ended.Format(time.RFC3339))}
	if t.units > 0 {
		notes = append(notes, fmt.Sprintf("read capacity units of the source: %s", grouped(t.units)))
	}
	if t.left > 0 {
		notes = append(notes, fmt.Sprintf("%s rows were left out by --where", grouped(t.left)))
	}
	notes = append(notes, t.archiveLoad.ended(r)...)
	whole := r.State == pipeline.StateFinished && (r.ExitCode == exitcode.OK || r.ExitCode == exitcode.Rejects)
	if !whole || t.stays {
		return notes
	}
	if err := t.archive.Remove(); err != nil {
		return append(notes, fmt.Sprintf("warning: the archive %s is not needed any more and could not be removed: %v", t.where, err))
	}
	return notes
}
