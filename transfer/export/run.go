package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"tsimport/internal/atomicfile"
	"tsimport/internal/table"
	"tsimport/internal/tablestore/client"
	"tsimport/internal/tablestore/scan"
)

// Formats.
const (
	CSV   = "csv"
	JSONL = "jsonl"
)

// Config is an export.
type Config struct {
	Client  *tablestore.TableStoreClient
	Table   *client.Table
	Target  string        // its name, by which an interrupted export is known again
	Format  string        // CSV or JSONL
	Columns []string      // attribute columns, in this order; nil is all
	Limit   int64         // rows; 0 is all
	Path    string        // of the file
	Fresh   bool          // do not continue an interrupted export
	TempDir string        // of what is written to no file, while its columns are not known; "" is the system's
	Marks   time.Duration // between notes of how far it has come; 0 takes a second
}

// Result is what an export has written.
type Result struct {
	Rows    int64 // in the output
	Resumed int64 // of those, written before
	Kept    int64 // after an error: rows with which the same export can continue

	Binary     []string // columns with binary values, sorted: a load takes them for text unless it is told
	OlderCells int64    // cells with older versions, which are not in the output
}

// exporter is one export.
type exporter struct {
	*Config
	ctx    context.Context
	admin  *client.Admin
	keys   []string
	result Result
	last   []byte // ordering key of the last row that was taken
	after  []table.Value
	binary map[string]bool
	wrap   func(scan.Formatter) scan.Formatter // of tests
}

func newExporter(ctx context.Context, c *Config) *exporter {
	e := &exporter{Config: c, ctx: ctx, admin: &client.Admin{Client: c.Client, Context: ctx, Proven: true}}
	for _, k := range c.Table.Key {
		e.keys = append(e.keys, k.Name)
	}
	e.binary = map[string]bool{}
	for _, k := range c.Table.Key {
		if k.Type == table.Binary {
			e.noteBinary(k.Name)
		}
	}
	if c.Marks == 0 {
		c.Marks = time.Second
	}
	return e
}

// To writes to w; it cannot be continued.
func To(ctx context.Context, c Config, w io.Writer) (Result, error) {
	e := newExporter(ctx, &c)
	if c.Format == JSONL {
		return e.result, e.all(scan.NewJSONL(w))
	}
	if c.Columns != nil {
		f, err := scan.NewCSV(w, e.keys, c.Columns)
		if err == nil {
			err = e.all(f)
		}
		return e.result, err
	}
	kept, err := os.CreateTemp(c.TempDir, "tsimport-export-*")
	if err != nil {
		return e.result, fmt.Errorf("create export spool: %w", err)
	}
	err = e.spooled(w, kept)
	return e.result, errors.Join(err, kept.Close(), os.Remove(kept.Name()))
}

// spooled keeps the rows until their columns are known.
func (e *exporter) spooled(w io.Writer, kept *os.File) error {
	spool, err := scan.NewSpool(kept, nil)
	if err != nil {
		return err
	}
	if err := e.all(spool); err != nil {
		return err
	}
	return e.replay(w, kept, spool.Columns())
}

// replay writes the rows that were kept as CSV.
func (e *exporter) replay(w io.Writer, kept io.ReadSeeker, columns []string) error {
	if _, err := kept.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read export spool: %w", err)
	}
	f, err := scan.NewCSV(w, e.keys, columns)
	if err != nil {
		return err
	}
	if err := scan.Replay(kept, e.result.Rows, func(r *scan.Row) error {
		if e.ctx.Err() != nil {
			return context.Cause(e.ctx)
		}
		return f.Write(r)
	}); err != nil {
		return err
	}
	return f.Flush()
}

// all writes every row.
func (e *exporter) all(f scan.Formatter) error {
	if err := e.scan(f.Write); err != nil {
		return err
	}
	return f.Flush()
}

// scan calls each with every row that was not written yet, in key order.
func (e *exporter) scan(each func(*scan.Row) error) error {
	if e.Limit > 0 && e.result.Rows >= e.Limit {
		return nil
	}
	done := e.last // the range begins with the last row that was written
	var key []byte
	o := scan.Options{Columns: e.Columns}
	if e.Table.MaxVersions > 1 {
		o.Versions = 2 // whether there are older ones is to be said
	}
	if left := e.Limit - e.result.Rows; e.Limit > 0 {
		o.Limit = left + 1
	}
	ordered := newOrdered(e.Client, e.Table, o, e.after, sortedBounds(e.admin, e.Table.Name))
	return e.ofOneTable(ordered.run(e.ctx, func(r *scan.Row) error {
		key = key[:0]
		for _, k := range r.PrimaryKey.PrimaryKeys {
			key = table.AppendKey(key, client.ValueOf(k.Value))
		}
		if done != nil && bytes.Equal(key, done) {
			return nil
		}
		older := e.newest(r)
		if err := each(r); err != nil {
			return err
		}
		e.result.Rows++
		e.result.OlderCells += older
		e.last = append(e.last[:0:0], key...)
		if e.Limit > 0 && e.result.Rows >= e.Limit {
			return errEnough
		}
		return nil
	}))
}

// suspectFor bounds how long an export that has failed asks whether its table was replaced.
const suspectFor = 2 * time.Second

// ofOneTable looks, when the reading has ended with an error or without, whether all of it was of one table. Pages say
// nothing of the table that they are of: one that is dropped and made again continues where the other has ended.
func (e *exporter) ofOneTable(read error) error {
	if e.ctx.Err() != nil {
		return read
	}
	if read == nil {
		return e.admin.Same(e.Table)
	}
	replaced := new(client.ReplacedError)
	if errors.As((&client.Admin{Client: e.Client, Context: e.ctx, RetryFor: suspectFor, Proven: true}).Same(e.Table), &replaced) {
		return replaced
	}
	return read
}

// newest leaves each cell's newest version in a row and returns how many cells had more.
func (e *exporter) newest(r *scan.Row) (older int64) {
	kept, last := r.Columns[:0], "" // versions of a cell follow each other, and cells come by name
	for _, c := range r.Columns {
		if _, ok := c.Value.([]byte); ok {
			e.noteBinary(c.ColumnName)
		}
		if len(kept) == 0 || c.ColumnName != kept[len(kept)-1].ColumnName {
			kept = append(kept, c)
			continue
		}
		if last != c.ColumnName {
			older++
			last = c.ColumnName
		}
		if c.Timestamp > kept[len(kept)-1].Timestamp {
			kept[len(kept)-1] = c
		}
	}
	r.Columns = kept
	return older
}

func (e *exporter) noteBinary(column string) {
	if e.binary[column] {
		return
	}
	e.binary[column] = true
	i, _ := slices.BinarySearch(e.result.Binary, column)
	e.result.Binary = slices.Insert(slices.Clone(e.result.Binary), i, column)
}

// ToFile writes to the file at Path, or continues what an interrupted export to it has left.
func ToFile(ctx context.Context, c Config) (Result, error) {
	e := newExporter(ctx, &c)
	err := e.toFile()
	return e.result, err
}

func (e *exporter) toFile() (err error) {
	spooled := e.Format == CSV && e.Columns == nil
	suffix := partSuffix
	if spooled {
		suffix = rowsSuffix
	}
	out, resumed, err := openOutput(e.Path, suffix, e.state(), e.Fresh)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && !out.at.Replaced {
			e.result.Kept = out.at.Rows
		}
	}()
	if resumed {
		if err := e.resume(&out.at); err != nil {
			return errors.Join(err, out.file.Close())
		}
	}
	f, err := e.formatter(out, spooled, resumed)
	if err == nil && e.wrap != nil {
		f = e.wrap(f)
	}
	if err == nil {
		err = e.marked(f, out)
	}
	if err != nil {
		return errors.Join(err, e.give(out))
	}
	if !spooled {
		return out.finish()
	}
	file, err := atomicfile.New(e.Path+partSuffix, 0o666)
	if err != nil {
		return errors.Join(fmt.Errorf("create output: %w", err), out.file.Close())
	}
	if err := errors.Join(e.replay(file, out.file, out.at.Seen), out.file.Close()); err != nil {
		return errors.Join(err, file.Close())
	}
	out.file = file
	return out.finish()
}

func (e *exporter) state() state {
	s := state{Target: e.Target, Table: e.Table.Name, Created: e.Table.Created, Format: e.Format, Columns: e.Columns, Limit: e.Limit}
	for _, k := range e.Table.Key {
		s.Key += k.Name + ":" + k.Type.String() + " "
	}
	return s
}

// resume continues after the last row of a state.
func (e *exporter) resume(s *state) error {
	e.result.Rows, e.result.Resumed, e.result.OlderCells = s.Rows, s.Rows, s.OlderCells
	for _, c := range s.Binary {
		e.noteBinary(c)
	}
	if s.Rows == 0 {
		return nil
	}
	e.last = s.Last
	rest := s.Last
	for _, k := range e.Table.Key {
		v, n, err := table.DecodeKey(k.Type, rest)
		if err != nil {
			return fmt.Errorf("continue output: %w; start over with --fresh", err)
		}
		e.after = append(e.after, v)
		rest = rest[n:]
	}
	return nil
}

func (e *exporter) formatter(out *output, spooled, resumed bool) (scan.Formatter, error) {
	switch {
	case spooled:
		return scan.NewSpool(out.file, out.at.Seen)
	case e.Format == JSONL:
		return scan.NewJSONL(out.file), nil
	case resumed:
		return scan.ContinueCSV(out.file, e.keys, e.Columns), nil
	}
	return scan.NewCSV(out.file, e.keys, e.Columns)
}

// marked writes every row and notes how far it has come, now and then and at the end, however that comes about.
func (e *exporter) marked(f scan.Formatter, out *output) error {
	mark := func(replaced bool) error {
		if err := f.Flush(); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
		at := out.at
		at.Replaced = replaced
		at.Rows, at.Last, at.Binary, at.OlderCells = e.result.Rows, e.last, e.result.Binary, e.result.OlderCells
		if s, ok := f.(*scan.Spool); ok {
			at.Seen = s.Columns()
		}
		return out.mark(at)
	}
	marked := time.Now()
	err := e.scan(func(r *scan.Row) error {
		// Before the row, because only now is the last one counted.
		if now := time.Now(); now.Sub(marked) >= e.Marks {
			if err := mark(false); err != nil {
				return err
			}
			marked = time.Now()
		}
		return f.Write(r)
	})
	replaced := new(client.ReplacedError)
	return errors.Join(err, mark(errors.As(err, &replaced)))
}

// give closes an output that is not whole. What it holds stays, to be continued, if there is any.
func (e *exporter) give(out *output) error {
	err := out.file.Close()
	if out.at.Rows == 0 {
		err = errors.Join(err, out.remove())
	}
	return err
}
