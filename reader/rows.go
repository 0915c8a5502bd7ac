package reader

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"example.com/tsimport/reader/arrow"
	"example.com/tsimport/reader/compress"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/parquet"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// rowFile is a file of typed rows that can be read anywhere: Parquet or Arrow.
type rowFile interface {
	Columns() []string
	Measures() []record.Measures
	Rows() int64
	Splits() []record.Rows
	Forget() // what is kept between splits and can be read again
}

// typedParser reads the rows of a rowFile.
type typedParser interface {
	Parse(record.Rows, func(*record.Record) error) error
	LimitMemory(int64)
	Release()
	Close() error
}

// batches is Arrow that is read in order.
type batches struct {
	stream  *arrow.Stream
	from    *unpacked
	back    *piece // put back after sampling
	open    bool
	counted int64 // of the input's bytes, up to the end of the last batch
}

// batchRows is what a split of Arrow that is read in order stands for.
type batchRows struct {
	batch *arrow.Batch
	rows  record.Rows
}

// rowwise reports whether records are rows of a file that has types, and never were text.
func (s *File) rowwise() bool { return s.Format == Parquet || s.Format == Arrow }

func splitOf(rows *record.Rows, part any) source.Split {
	return source.Split{Number: rows.Number, Bytes: rows.Bytes, Rows: rows.Rows, First: rows.FirstRow, Group: rows.Group + 1, Part: part}
}

// splits returns the splits of a batch, which share the bytes of the input that it has taken.
func (b *batches) splits(p *piece) (all []source.Split) {
	taken := float64(p.taken-b.counted) / float64(max(p.batch.Rows(), 1))
	b.counted = p.taken
	for _, rows := range p.batch.Splits() {
		rows.Number, rows.Bytes = int(min(rows.FirstRow, 1)), int64(taken*float64(rows.Rows)) // number 0 is the beginning
		all = append(all, splitOf(&rows, &batchRows{p.batch, rows}))
	}
	return all
}

func (s *File) openParquet() error {
	s.Format = Parquet
	if !s.item.Seekable() || s.Compression != compress.None {
		return fmt.Errorf("read %s: Parquet is read at many places, which a stream or a compressed file does not allow; save it as a file first", s.Name)
	}
	if err := s.openRows(); err != nil {
		return err
	}
	s.nameColumns(s.file.Columns())
	return nil
}

// openArrow opens a file to be read anywhere, all else to be read in order.
func (s *File) openArrow() error {
	s.Format = Arrow
	if s.item.Seekable() && s.Compression == compress.None {
		err := s.openRows()
		if err == nil {
			s.nameColumns(s.file.Columns())
			return nil
		}
		if !errors.Is(err, arrow.ErrReplaced) {
			return err
		}
	}
	if err := s.openBatches(); err != nil {
		return err
	}
	s.nameColumns(s.inOrder.stream.Columns())
	return nil
}

// largePage is from how many bytes on a page of Parquet is too large to be read again for a few hundred rows of it.
const largePage = 8 << 20

// openRows opens the file for a reading of its rows.
func (s *File) openRows() error {
	if s.Format == Parquet {
		f, err := parquet.Open(s.at, s.Size, s.Name, parquet.Options{Flatten: s.o.Flatten, MaxFooter: s.o.Memory.PageBytes / 8})
		if err == nil {
			s.file, s.largePages = f, f.LargePages(largePage)
		}
		return err
	}
	f, err := arrow.Open(s.at, s.Size, s.Name, s.arrowOptions())
	if err == nil {
		s.file = f
	}
	return err
}

// CheckMemory returns why the columns cannot be read with so many bytes for pages, if that is known before they are read: an ErrMemory. Of a file
// that is not read to its end the first rows count.
func (s *File) CheckMemory(columns []string, pages int64, whole bool) (err error) {
	f, ok := s.file.(*parquet.File)
	if !ok {
		return nil
	}
	var own []int
	for i, name := range f.Columns() {
		if slices.Contains(columns, s.Columns[i]) || slices.Contains(columns, name) {
			own = append(own, i)
		}
	}
	var at input.ReaderAtCloser
	err = f.CheckMemory(own, pages, whole, func() (io.ReaderAt, error) {
		var err error
		at, err = s.item.OpenAt(s.ctx)
		return at, err
	})
	if at != nil {
		err = errors.Join(err, at.Close())
	}
	return err
}

func (s *File) arrowOptions() arrow.Options {
	most := s.o.Memory.PageBytes
	return arrow.Options{Flatten: s.o.Flatten, MaxMetadata: most / 8, MaxDictionary: most / 4, MaxBody: most}
}

// measures are what columns of a file with types count.
func (s *File) measures() []record.Measures {
	switch {
	case s.measured != nil:
	case s.file != nil:
		s.measured = s.file.Measures()
		if f, ok := s.file.(*parquet.File); ok {
			s.addDurations(s.measured, f)
		}
	case s.inOrder != nil:
		s.measured = s.inOrder.stream.Measures()
	}
	return s.measured
}

// addDurations adds the units of durations, which Parquet has no type for: the schema of Arrow that a file keeps has them.
func (s *File) addDurations(all []record.Measures, f *parquet.File) {
	schema, err := base64.StdEncoding.DecodeString(f.ArrowSchema())
	if err != nil || len(schema) == 0 {
		return
	}
	from, err := arrow.NewStream(bytes.NewReader(schema), s.Name, s.arrowOptions())
	if err != nil {
		return // of a version that is not known; the file's own types hold
	}
	for i, of := range from.Measures() {
		k := slices.Index(f.Columns(), from.Columns()[i])
		for path, d := range of {
			if k >= 0 && d.Kind == record.Integer && all[k][path].Kind == record.Integer {
				all[k][path] = record.Datum{Kind: record.Integer, Unit: d.Unit}
			}
		}
	}
}

// openBatches opens the input to be read in order.
func (s *File) openBatches() error {
	from, err := s.unpacked()
	if err != nil {
		return err
	}
	var r io.Reader = from
	if s.chain != nil {
		r = io.TeeReader(from, s.chain)
	}
	stream, err := arrow.NewStream(r, s.Name, s.arrowOptions())
	if err != nil {
		return errors.Join(err, from.Close())
	}
	s.inOrder = &batches{stream: stream, from: from, open: true}
	return nil
}

func (b *batches) close() error {
	if !b.open {
		return nil
	}
	b.open, b.back = false, nil
	b.stream.Release()
	return b.from.Close()
}

// nextBatch returns the next record batch, from the place on that is sought.
func (s *File) nextBatch() (*piece, error) {
	if !s.inOrder.open {
		if err := s.openBatches(); err != nil {
			return nil, err
		}
	}
	for {
		p := s.inOrder.back
		if s.inOrder.back = nil; p == nil {
			b, err := s.inOrder.stream.Next()
			if err == io.EOF {
				return nil, s.endOfBatches()
			}
			if err != nil {
				return nil, err
			}
			p = &piece{source: s, batch: b, taken: s.inOrder.from.packed.n.Load()}
		}
		first := p.batch.First()
		if s.begin == nil || first+p.batch.Rows() > s.begin.Record {
			if s.begin != nil && s.begin.Record > first {
				s.begin = &source.Place{Record: first}
			}
			return p, nil
		}
		s.inOrder.counted = p.taken
	}
}

func (s *File) endOfBatches() error {
	if s.begin != nil && s.begin.Record > s.inOrder.stream.Rows() {
		return s.endsBefore()
	}
	if s.Stream() {
		return io.EOF
	}
	return s.end()
}

func (s *File) nextRows() (*piece, error) {
	if s.file == nil {
		return nil, io.EOF
	}
	if s.next == 0 {
		if err := s.openRows(); err != nil {
			return nil, err
		}
		s.seekRows()
	}
	if s.next >= len(s.file.Splits()) {
		return nil, s.end()
	}
	s.next++
	return &piece{source: s, rows: &s.file.Splits()[s.next-1]}, nil
}

// seekRows finds the split that holds the record that is sought.
func (s *File) seekRows() {
	if s.begin == nil {
		return
	}
	splits := s.file.Splits()
	s.next = sort.Search(len(splits), func(i int) bool { return splits[i].FirstRow+splits[i].Rows > s.begin.Record })
	s.begin = &source.Place{Record: s.file.Rows()}
	if s.next < len(splits) {
		s.begin.Record = splits[s.next].FirstRow
	}
}

// typedParser makes a parser of the file's own columns.
func (s *File) typedParser(columns []int) typedParser {
	switch f := s.file.(type) {
	case *parquet.File:
		return f.NewParser(columns)
	case *arrow.File:
		return f.NewParser(columns)
	}
	return s.inOrder.stream.NewParser(columns)
}

// parseRows calls each with every row of a split and returns how many there were.
func (p *parser) parseRows(sp source.Split, each func(*record.Record)) (n int, err error) {
	one := func(rec *record.Record) error {
		n++
		each(p.complete(rec))
		return nil
	}
	if part, ok := sp.Part.(*batchRows); ok {
		err = p.rows.(*arrow.Parser).ParseBatch(part.batch, part.rows, one)
		return n, err
	}
	rows := sp.Part.(*record.Rows)
	err = p.rows.Parse(*rows, one)
	if err == nil && int64(n) != rows.Rows {
		err = fmt.Errorf("read %s: group %d gave %d rows where the file says %d", p.s.Name, rows.Group, n, rows.Rows)
	}
	return n, err
}
