package export

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"example.com/tsimport/internal/atomicfile"
	"example.com/tsimport/internal/keyexpr"
	"example.com/tsimport/internal/progress"
	"example.com/tsimport/internal/table"
	"example.com/tsimport/internal/tablestore/client"
	"example.com/tsimport/internal/tablestore/plainbuffer"
	"example.com/tsimport/internal/tablestore/scan"
	"example.com/tsimport/reader/archivefile"
	"example.com/tsimport/reader/tablescan"
)

const (
	CSV     = "csv"
	JSONL   = "jsonl"
	Typed   = "jsonl, typed" // lines that keep the type, timestamp and versions of each cell
	Parquet = "parquet"
	// Text formats that SQL servers read with default settings.
	MySQL    = "mysql"
	Postgres = "postgres"
	// CSV of lakes, with each file compressed.
	CSVGzip = "csv.gz"
	CSVZstd = "csv.zst"
)

type Config struct {
	Scan    tablescan.Config  // the rows to export
	Holds   archive.Selection // the same selection, as the state of the export records it
	Target  string            // place of the table; identifies an interrupted export
	Format  string
	Limit   int64         // maximum number of rows; 0 means all
	Keys    Keys          // keys of the rows to read; nil means the ranges of Scan
	Readers int           // ranges read concurrently; 0 means DefaultReaders
	Path    string        // path of the output file
	Fresh   bool          // do not continue an interrupted export
	TempDir string        // folder in which To keeps rows while their columns are unknown; "" means the system's
	Marks   time.Duration // interval at which progress is recorded; 0 means a second
}

type Result struct {
	Rows    int64 // rows in the output
	Resumed int64 // rows written by earlier attempts
	Kept    int64 // after an error: rows that the next attempt need not write
	LeftOut int64 // rows that Scan.Where left out in this process
	Missing int64 // keys without a row in this process
	Units   int64 // read capacity units charged to this process

	Columns []Column // attributes of the rows in the output, sorted
	Lost    Lost
}

type exporter struct {
	*Config
	ctx    context.Context
	admin  *client.Admin
	keys   []string
	result Result
	last   []byte            // ordering key of the last row written
	after  []table.Value     // key of the last row of an earlier attempt; nil if there is none
	fields scan.Fields       // decodes each row
	cells  int64             // number of cells in the output
	older  int64             // number of versions left out
	names  plainbuffer.Names // names of columns, for rows read by key
	where  *keyexpr.Test     // nil means that all rows pass
	units  atomic.Int64
	grown  *scan.Growing                       // nil unless columns are found while rows are written
	wrap   func(scan.Formatter) scan.Formatter // hook for tests
}

func newExporter(ctx context.Context, c *Config) *exporter {
	e := &exporter{fields: scan.Fields{Wanted: wantedOf(c.Scan.Columns), AllVersions: c.Format == Typed},
		names: plainbuffer.Names{}, Config: c, ctx: ctx, admin: &client.Admin{Client: c.Scan.Client, Context: ctx,
			Proven: true}}
	for _, k := range c.Scan.Table.Key {
		e.keys = append(e.keys, k.Name)
	}
	if c.Scan.Where != nil {
		e.where = c.Scan.Where.NewTest()
	}
	c.Marks, c.Readers = cmp.Or(c.Marks, time.Second), cmp.Or(c.Readers, DefaultReaders)
	return e
}

func (e *exporter) ended() Result {
	r := e.result
	r.Columns, r.Units = e.columns(), e.units.Load()
	if e.Format == Typed {
		return r
	}
	r.Lost = Lost{Timestamps: e.cells, OlderVersions: e.older}
	for i := range r.Columns {
		r.Lost.Types += r.Columns[i].Others()
	}
	return r
}

// grows reports whether the header has columns that are found while rows are written.
func (c *Config) grows() bool { return c.Format == CSV && c.Scan.Columns == nil }

// spools reports whether rows may have to be kept until their columns are known.
func (c *Config) spools() bool { return c.Format == Parquet || c.ServerText() || c.grows() }

// ServerText reports whether the format is a text format of an SQL server, which has no header.
func (c *Config) ServerText() bool { return c.Format == MySQL || c.Format == Postgres }

// lines returns a formatter that writes rows immediately.
func (e *exporter) lines(w io.Writer, continued bool) (scan.Formatter, error) {
	switch {
	case e.Format == JSONL:
		return scan.NewJSONL(w, e.keys), nil
	case e.Format == Typed:
		return &typed{w: bufio.NewWriterSize(w, 1<<16), keys: e.keys, records: tablescan.NewRecords(len(e.keys))}, nil
	case continued:
		return scan.ContinueCSV(w, e.keys, e.Scan.Columns), nil
	}
	return scan.NewCSV(w, e.keys, e.Scan.Columns)
}

// To writes the rows to w. An interrupted To cannot be continued.
func To(ctx context.Context, c Config, w io.Writer) (Result, error) {
	e := newExporter(ctx, &c)
	if !c.spools() {
		f, err := e.lines(w, false)
		if err == nil {
			err = e.all(f)
		}
		return e.ended(), err
	}
	kept, err := os.CreateTemp(c.TempDir, "tsimport-export-*")
	if err != nil {
		return e.ended(), fmt.Errorf("create export spool: %w", err)
	}
	err = e.spooled(w, kept)
	return e.ended(), errors.Join(err, kept.Close(), os.Remove(kept.Name()))
}

// spooled keeps the rows in a file until their columns are known, and then writes them to w.
func (e *exporter) spooled(w io.Writer, kept *os.File) error {
	f, err := e.spool(kept, nil)
	if err == nil {
		err = e.all(f)
	}
	if err != nil {
		return err
	}
	return e.replay(w, kept)
}

// spool returns a formatter that spools rows to a file. If at is not nil, it continues the file in that state.
func (e *exporter) spool(kept io.Writer, at *state) (scan.Formatter, error) {
	if !e.grows() {
		return scan.NewSpool(kept)
	}
	var g scan.Growth
	var size int64
	if at != nil {
		g, size = at.Growth, at.Bytes
	}
	e.grown = scan.NewGrowing(kept, e.keys, g, size)
	return e.grown, nil
}

func (e *exporter) replay(w io.Writer, kept io.ReadSeeker) error {
	if _, err := kept.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read export spool: %w", err)
	}
	from := stoppable{e.ctx, kept}
	switch {
	case e.grown != nil && e.grown.Whole():
		if _, err := io.Copy(w, from); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
		return nil
	case e.grown != nil:
		return e.grown.Rewrite(w, from, e.keys, slices.Sorted(slices.Values(e.grown.Order)), e.result.Rows)
	}
	var f scan.Formatter
	if e.ServerText() {
		f = newServerText(w, e.Format, e.Columns(e.columns()))
	} else {
		var err error
		if f, err = newParquet(w, e.Scan.Table.Key, e.Scan.Columns, e.columns()); err != nil {
			return err
		}
	}
	fields := scan.Fields{Wanted: e.fields.Wanted}
	if err := scan.Replay(from, e.result.Rows, func(row []byte) error {
		fields.Read(row)
		return f.Write(&fields)
	}); err != nil {
		return err
	}
	return f.Flush()
}

// stoppable is a reader that fails when the export is stopped.
type stoppable struct {
	ctx context.Context
	io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.Reader.Read(p)
}

func (e *exporter) all(f scan.Formatter) error {
	if err := e.scan(f, nil); err != nil {
		return err
	}
	return f.Flush()
}

// scan writes the remaining rows in key order. If before is not nil, it is called before each row.
func (e *exporter) scan(f scan.Formatter, before func() error) error {
	if e.Limit > 0 && e.result.Rows >= e.Limit {
		return nil
	}
	s := &e.Scan
	o := scan.Options{From: s.From, To: s.To, Columns: s.ToRead(nil), Filter: s.Filter, Manner: s.Manner,
		RetryFor: s.RetryFor, Units: &e.units}
	if s.Table.MaxVersions > 1 || e.Format == Typed {
		o.Versions = cmp.Or(s.Versions, tablescan.AllVersions) // for other formats, to count the omitted versions
	}
	if left := e.Limit - e.result.Rows; e.Limit > 0 && s.Filter == nil && s.Where == nil {
		o.Limit = left + 1
	}
	if e.after != nil {
		o.From = e.after
	}
	w := newRowWriter(e, f, before)
	var parts iter.Seq2[stretch, error]
	if e.Keys != nil {
		parts = e.keyed(o)
	} else {
		parts = ranges(s.Client, s.Table, o, sortedBounds(e.admin, s.Table.Name))
	}
	return e.ofOneTable(deliver(e.ctx, e.Readers, parts, w.row))
}

// suspectFor limits the time that a failed export spends on checking whether its table was replaced.
const suspectFor = 2 * time.Second

// ofOneTable returns the error of reading the table, or a ReplacedError if the table was replaced while it was read.
func (e *exporter) ofOneTable(read error) error {
	if e.ctx.Err() != nil {
		return read
	}
	if read == nil {
		return e.admin.Same(e.Scan.Table)
	}
	replaced := new(client.ReplacedError)
	if errors.As((&client.Admin{Client: e.Scan.Client, Context: e.ctx, RetryFor: suspectFor, Proven: true}).Same(
		e.Scan.Table), &replaced) {
		return replaced
	}
	return read
}

// ToFile writes the rows to the file at Path, or continues an interrupted export to it.
func ToFile(ctx context.Context, c Config) (Result, error) {
	e := newExporter(ctx, &c)
	err := e.toFile()
	return e.ended(), err
}

func (e *exporter) toFile() (err error) {
	spooled := e.spools()
	suffix := partSuffix
	if spooled {
		suffix = rowsSuffix
	}
	lock, err := lockOutput(e.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	out, resumed, err := openOutput(e.Path, suffix, e.state(), e.Fresh)
	if err != nil {
		return err
	}
	defer func() {
		switch {
		case err == nil || out.at.Replaced:
		case errors.As(err, new(*CannotHold)): // no export could continue the output
			err = errors.Join(err, out.remove())
		default:
			e.result.Kept = out.at.Rows
		}
	}()
	if resumed {
		if err := e.resume(&out.at); err != nil {
			return errors.Join(err, out.file.Close())
		}
	}
	var f scan.Formatter
	if spooled {
		f, err = e.spool(out.file, &out.at)
	} else {
		f, err = e.lines(out.file, resumed)
	}
	if err == nil && e.wrap != nil {
		f = e.wrap(f)
	}
	if err == nil {
		err = e.marked(f, out)
	}
	if err != nil {
		return errors.Join(err, e.give(out))
	}
	if !spooled || e.grown != nil && e.grown.Whole() {
		return out.finish()
	}
	file, err := atomicfile.New(atomicfile.Beside(e.Path, partSuffix), 0o666)
	if err != nil {
		return errors.Join(fmt.Errorf("create output: %w", err), out.file.Close())
	}
	if err := errors.Join(e.replay(file, out.file), out.file.Close()); err != nil {
		return errors.Join(err, file.Close())
	}
	out.file = file
	return out.finish()
}

func (e *exporter) state() state {
	t := e.Scan.Table
	s := state{Target: e.Target, Table: t.Name, Created: t.Created, Format: e.Format, Holds: e.Holds, Limit: e.Limit}
	for _, k := range t.Key {
		s.Key += k.Name + ":" + k.Type.String() + " "
	}
	return s
}

func (e *exporter) resume(s *state) error {
	e.result.Rows, e.result.Resumed = s.Rows, s.Rows
	e.cells, e.older = s.Cells, s.Older
	for _, c := range s.Columns {
		types := &e.fields.Named(c.Name).Types
		for t := range types {
			types[t] = c.Types[table.Type(t).String()]
		}
	}
	if s.Rows == 0 {
		return nil
	}
	e.last = s.Last
	rest := s.Last
	for _, k := range e.Scan.Table.Key {
		v, n, err := table.DecodeKey(k.Type, rest)
		if err != nil {
			return fmt.Errorf("continue output: %w; "+progress.StartOver, err)
		}
		e.after = append(e.after, v)
		rest = rest[n:]
	}
	return nil
}

// lookedEach is the number of rows after which the clock is read again.
const lookedEach = 16

// marked writes all rows. It records progress periodically and at the end, even after an error.
func (e *exporter) marked(f scan.Formatter, out *output) error {
	mark := func(replaced bool) error {
		if err := f.Flush(); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
		at := out.at
		at.Replaced = replaced
		at.Rows, at.Last, at.Columns, at.Cells, at.Older = e.result.Rows, slices.Clone(e.last), e.columns(), e.cells, e.older
		if e.grown != nil {
			at.Growth = scan.Growth{Order: slices.Clone(e.grown.Order), Sections: slices.Clone(e.grown.Sections)}
		}
		return out.mark(at)
	}
	marked := time.Now()
	err := e.scan(f, func() error {
		// Progress is recorded before a row, because a row is counted only after it has been written.
		if e.result.Rows%lookedEach != 0 {
			return nil
		}
		if now := time.Now(); now.Sub(marked) >= e.Marks {
			if err := mark(false); err != nil {
				return err
			}
			marked = time.Now()
		}
		return nil
	})
	replaced := new(client.ReplacedError)
	return errors.Join(err, mark(errors.As(err, &replaced)))
}

// give closes an incomplete output. It removes the output if there is nothing to continue.
func (e *exporter) give(out *output) error {
	err := out.file.Close()
	if out.at.Rows == 0 {
		err = errors.Join(err, out.remove())
	}
	return err
}
