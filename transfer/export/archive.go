package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/tsimport/internal/jobdir"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
	"example.com/tsimport/reader/tablescan"
)

type ArchiveConfig struct {
	Scan    tablescan.Config  // the rows to export
	Holds   archive.Selection // the same selection, as the manifest records it
	Target  string            // place of the table; identifies an interrupted export
	Dir     string            // the archive's folder; unused if Store is set
	Store   jobdir.Store      // object store for the archive; may be nil
	OnWait  func(who string)  // called when the export waits for another process that may write to the store
	Fresh   bool              // do not continue an interrupted export
	Readers int               // ranges read concurrently; 0 means DefaultReaders
	// PartBytes is the approximate size of a part's text, held in memory; 0 means 32 MiB, or 64 MiB for a lake.
	PartBytes int64
	Lake      *Layout // if not nil, write files for other programs instead of an archive

	step func(name string) error // hook for tests
}

func (c *ArchiveConfig) open(ctx context.Context) (*archive.Writer, error) {
	kind := archive.Exact
	if c.Lake != nil {
		kind = archive.Lake
		c.PartBytes = cmp.Or(c.PartBytes, 64<<20)
		c.Readers = int(min(int64(c.Readers), max(1, lakeBytes/c.PartBytes)))
		c.Scan.Versions = 1
		for _, f := range c.Lake.folders {
			c.Scan.FilterUses = slices.Concat(c.Scan.FilterUses, f.of.Columns())
		}
	}
	c.PartBytes = cmp.Or(c.PartBytes, 32<<20)
	if c.Store == nil {
		return kind.Open(c.Dir, c.Fresh)
	}
	return kind.OpenIn(ctx, c.Store, c.Fresh, c.OnWait)
}

// lakeBytes limits the memory for rows of a lake, for all ranges being read together.
const lakeBytes = 256 << 20

// DefaultReaders is the default number of ranges read concurrently.
const DefaultReaders = 8

type ArchiveResult struct {
	Manifest *archive.Manifest // nil after an error
	Lake     *archive.LakeManifest
	Unknown  UnknownFolders
	Resumed  int64 // rows written by earlier attempts
	Kept     int64 // after an error: rows that the next attempt need not write
	LeftOut  int64 // rows omitted by --where in this process
	Units    int64 // read capacity units charged to this process
}

// ToArchive writes an exact archive of a table, or a lake, or continues an interrupted one. The manifest comes last.
func ToArchive(ctx context.Context, c ArchiveConfig) (r ArchiveResult, err error) {
	c.Readers = cmp.Or(c.Readers, DefaultReaders)
	var l *lake
	if c.Lake != nil {
		if l, err = newLake(&c); err != nil {
			return r, err
		}
	}
	w, err := c.open(ctx)
	if err != nil {
		return r, err
	}
	if c.step != nil {
		w.Step(c.step)
	}
	r.Resumed = w.Resumed
	defer func() {
		switch {
		case l != nil && errors.As(err, new(*CannotHold)): // no export could continue the output
			err = errors.Join(err, w.Discard())
		case err != nil && !errors.As(err, new(*client.ReplacedError)):
			r.Kept = w.Rows()
		}
		err = errors.Join(err, w.Close())
	}()
	origin := tablescan.New(c.Scan)
	defer func() { r.LeftOut, r.Units = origin.LeftOut(), origin.Units() }()
	if err := c.ranges(ctx, w, origin, l); err != nil {
		return r, err
	}
	t := c.Scan.Table
	if err := (&client.Admin{Client: c.Scan.Client, Context: ctx, Proven: true}).Same(t); err != nil {
		return r, err
	}
	if l != nil {
		r.Lake, err = l.finish(ctx)
		r.Unknown = l.unknown
	} else {
		r.Manifest, err = w.Finish(ManifestOf(t))
	}
	return r, err
}

// ManifestOf returns a manifest with only a table's options, predefined columns and indexes.
func ManifestOf(t *client.Table) archive.Manifest {
	m := archive.Manifest{Options: t.Definition, Indexes: t.Indexes, IndexesAre: t.IndexesAre}
	for _, name := range slices.Sorted(maps.Keys(t.Defined)) {
		m.Defined = append(m.Defined, archive.Column{Name: name, Type: t.Defined[name]})
	}
	return m
}

func (c *ArchiveConfig) ranges(ctx context.Context, w *archive.Writer, origin *tablescan.Origin, l *lake) error {
	t := c.Scan.Table
	s := archive.Subject{
		Table: t.Name, Target: c.Target, Created: t.Created, Key: t.Key, Holds: c.Holds,
		Began: time.Now().UTC().Truncate(time.Millisecond),
	}
	if l != nil {
		s.Layout = c.Lake.Layout
	}
	before, resumed := w.Subject()
	if resumed {
		s.Division = before.Division
	} else {
		var err error
		if s.Division, err = origin.Divide(ctx); err != nil {
			return err
		}
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(c.Readers)
	sources, err := origin.Open(groupCtx, s.Division)
	if err != nil && !resumed {
		return err
	}
	for _, source := range sources {
		s.Ranges = append(s.Ranges, source.About().Name)
	}
	if err := cmp.Or(w.Begin(s), err); err != nil { // a changed request is a better explanation than its consequence
		return err
	}
	if l != nil {
		if err := l.begin(ctx, w, sources); err != nil {
			return err
		}
	}
	for i, source := range sources {
		group.Go(func() error {
			err := c.rangeTo(w, i, source, l)
			return errors.Join(err, source.Close())
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// part takes the rows of a range up to the next point where the export can resume.
type part interface {
	Row(*record.Record) error
	Text() int64
	Commit(next []byte) error
	Abandon() error
}

// rangeTo writes the rest of a range as parts. A part ends with a page, so that an export can resume there.
func (c *ArchiveConfig) rangeTo(w *archive.Writer, i int, from source.Source, l *lake) (err error) {
	at := w.Range(i)
	if at.Ended {
		return nil
	}
	if at.Next != nil {
		from.Seek(source.Place{Record: at.Rows, Key: at.Next}, source.Chain{})
	}
	from.SetSplitBytes(int(min(c.PartBytes, 4<<20)))
	parser := from.NewParser(nil)
	begin := func() (part, error) {
		p, err := w.NewPart(i)
		if p == nil {
			return nil, err
		}
		return p, err
	}
	if l != nil {
		r := l.newRange(i)
		begin = func() (part, error) { return r, nil }
		parser.(source.Packs).LeavePacked()
	}
	var part part
	defer func() {
		if part != nil {
			err = errors.Join(err, part.Abandon())
		}
	}()
	// A scan may read more columns than requested, such as columns of conditions. The archive must not have them.
	wanted := wantedOf(c.Scan.Columns)
	for page, err := range source.Splits(from) {
		if err != nil {
			return err
		}
		if part != nil && part.Text() >= c.PartBytes {
			full := part
			part = nil
			if err := full.Commit(page.Key); err != nil {
				return err
			}
		}
		if part == nil {
			if part, err = begin(); err != nil {
				return err
			}
		}
		if err := writePage(part, parser, page, wanted); err != nil {
			return err
		}
	}
	if part == nil && l == nil && (i > 0 || at.Parts > 0) {
		return w.End(i)
	}
	if part == nil { // even an empty archive has one part
		if part, err = begin(); err != nil {
			return err
		}
	}
	last := part
	part = nil
	return last.Commit(nil)
}

func writePage(part part, parser source.Parser, page source.Split, wanted map[string]bool) error {
	var failed error
	_, _, err := parser.Parse(page, func(rec *record.Record) {
		switch {
		case failed != nil:
		case rec.Bad != nil:
			failed = fmt.Errorf("evaluate a row: %s", rec.Bad.Message)
		default:
			rec.Cells = slices.DeleteFunc(rec.Cells,
				func(cell record.Cell) bool { return wanted != nil && !wanted[string(cell.Name)] })
			failed = part.Row(rec)
		}
	})
	return cmp.Or(err, failed)
}
