package reader

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"example.com/tsimport/reader/arrow"
	"example.com/tsimport/reader/compress"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

// RowFormat is a format of typed rows, which are not text.
type RowFormat struct {
	Name   string                 // the name for --format
	Begins func(head []byte) bool // reports whether a file certainly has the format
	Open   func(RowInput) (*RowFile, error)

	// inOrder is for streams, compressed files, and files that Open refuses with arrow.ErrReplaced. Nil refuses them.
	inOrder func(RowInput, io.Reader) (*arrow.Stream, error)
}

type RowInput struct {
	At      io.ReaderAt
	Size    int64
	Name    string // for errors
	Flatten bool   // make columns a.b.c of structs, instead of JSON text
	Memory  int64  // largest memory of a parser in bytes; 0 means no limit
}

// RowFile is a file of rows with random access.
type RowFile struct {
	Columns []string
	Rows    int64
	Splits  []record.Rows // all rows, in order
	// NewParser returns a parser for columns with these indexes in Columns. Other fields may be Null.
	NewParser func(columns []int) RowParser

	// The fields below are optional.

	Large    bool                     // whether reading a few hundred rows costs as much as a whole split
	Measures func() []record.Measures // units of the columns
	Forget   func()                   // frees memory that can be filled again by reading
	// CheckMemory returns an ErrMemory if the columns certainly cannot be read within a memory limit of bytes.
	CheckMemory func(columns []int, bytes int64, whole bool, open func() (io.ReaderAt, error)) error
}

// RowParser parses splits of a RowFile like a source.Parser: it delivers all rows in order, or an error with the file.
type RowParser interface {
	Parse(rows record.Rows, each func(*record.Record) error) error
	LimitMemory(int64)
	Release()
	Close() error
}

func (f *RowFormat) String() string { return f.Name }

// Is reports whether a file certainly has this format.
func (f *RowFormat) Is(_ string, head []byte) bool { return f.Begins(head) }

// open opens a seekable, uncompressed file for random access. Other inputs are read in order.
func (f *RowFormat) open(s *File) error {
	if len(s.text.head) == 0 {
		return fmt.Errorf("read %s: %w; a valid %v file never is", s.Name, ErrEmpty, f)
	}
	s.form.parser = s.newRowParser
	if s.item.Seekable() && s.Compression == compress.None {
		err := s.openRows()
		if err == nil {
			s.nameColumns(s.file.Columns)
			return nil
		}
		if !errors.Is(err, arrow.ErrReplaced) {
			return err
		}
	}
	if f.inOrder == nil {
		return fmt.Errorf("read %s: %v needs random access, which a stream or a compressed file does not allow; save it "+
			"to a file first", s.Name, f)
	}
	if err := s.openBatches(); err != nil {
		return err
	}
	s.nameColumns(s.inOrder.stream.Columns())
	return nil
}

// batches is an Arrow input that is read in order.
type batches struct {
	stream  *arrow.Stream
	from    *unpacked
	back    *piece // put back after sampling
	open    bool
	counted int64 // input bytes up to the end of the last batch
}

type batchRows struct {
	batch *arrow.Batch
	rows  record.Rows
}

func splitOf(rows *record.Rows, part any) source.Split {
	return source.Split{Number: rows.Number, Bytes: rows.Bytes, Rows: rows.Rows, First: rows.FirstRow,
		Group: rows.Group + 1, Part: part}
}

// splits returns the splits of a batch. The batch's input bytes are divided among them by rows.
func (b *batches) splits(p *piece) (all []source.Split) {
	taken := float64(p.taken-b.counted) / float64(max(p.batch.Rows(), 1))
	b.counted = p.taken
	for _, rows := range p.batch.Splits() {
		rows.Number, rows.Bytes = int(min(rows.FirstRow, 1)), int64(taken*float64(rows.Rows)) // only the first is number 0
		all = append(all, splitOf(&rows, &batchRows{p.batch, rows}))
	}
	return all
}

// rowwise reports whether records are rows of a typed file, not text.
func (s *File) rowwise() bool { return s.file != nil || s.inOrder != nil }

func (s *File) rowInput() RowInput {
	return RowInput{At: s.at, Size: s.Size, Name: s.Name, Flatten: s.o.Flatten, Memory: s.o.Memory.PageBytes}
}

func (s *File) openRows() (err error) {
	f, err := s.Format.(*RowFormat).Open(s.rowInput())
	if err == nil {
		s.file = f
	}
	return err
}

// CheckMemory returns an ErrMemory if the columns certainly cannot be read with this many bytes for pages.
func (s *File) CheckMemory(columns []string, pages int64, whole bool) (err error) {
	if s.file == nil || s.file.CheckMemory == nil {
		return nil
	}
	var own []int
	for i, name := range s.file.Columns {
		if slices.Contains(columns, s.Columns[i]) || slices.Contains(columns, name) {
			own = append(own, i)
		}
	}
	var at input.ReaderAtCloser
	err = s.file.CheckMemory(own, pages, whole, func() (io.ReaderAt, error) {
		var err error
		at, err = s.item.OpenAt(s.ctx)
		return at, err
	})
	if at != nil {
		err = errors.Join(err, at.Close())
	}
	return err
}

func (s *File) measures() []record.Measures {
	switch {
	case s.measured != nil:
	case s.file != nil && s.file.Measures != nil:
		s.measured = s.file.Measures()
	case s.inOrder != nil:
		s.measured = s.inOrder.stream.Measures()
	}
	return s.measured
}

func (s *File) openBatches() error {
	from, err := s.unpacked()
	if err != nil {
		return err
	}
	var r io.Reader = from
	if s.chain != nil {
		r = io.TeeReader(from, s.chain)
	}
	stream, err := s.Format.(*RowFormat).inOrder(s.rowInput(), r)
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

// nextBatch returns the next record batch, at first the one with the sought record.
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
			p = &piece{source: s, batch: b, taken: s.inOrder.from.packed.n}
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
	return s.end()
}

func (s *File) nextRows() (*piece, error) {
	if s.next == 0 {
		if err := s.openRows(); err != nil {
			return nil, err
		}
		s.seekRows()
	}
	if s.next >= len(s.file.Splits) {
		return nil, s.end()
	}
	s.next++
	return &piece{source: s, rows: &s.file.Splits[s.next-1]}, nil
}

func (s *File) seekRows() {
	if s.begin == nil {
		return
	}
	splits := s.file.Splits
	s.next = sort.Search(len(splits), func(i int) bool { return splits[i].FirstRow+splits[i].Rows > s.begin.Record })
	s.begin = &source.Place{Record: s.file.Rows}
	if s.next < len(splits) {
		s.begin.Record = splits[s.next].FirstRow
	}
}

type rowParser struct {
	RowParser
	s *File
}

func (s *File) newRowParser(columns []int) source.Parser {
	p := &rowParser{s: s}
	if s.file != nil {
		p.RowParser = s.file.NewParser(columns)
	} else {
		p.RowParser = s.inOrder.stream.NewParser(columns)
	}
	p.LimitMemory(s.o.Memory.PageBytes)
	return p
}

func (p *rowParser) Parse(sp source.Split, each func(*record.Record)) (n, lines int, err error) {
	one := func(rec *record.Record) error {
		rec.Span.Record = uint32(n)
		n++
		each(rec)
		return nil
	}
	if part, ok := sp.Part.(*batchRows); ok {
		err = p.RowParser.(*arrow.Parser).ParseBatch(part.batch, part.rows, one)
		return n, 0, err
	}
	rows := sp.Part.(*record.Rows)
	err = p.RowParser.Parse(*rows, one)
	if err == nil && int64(n) != rows.Rows {
		err = fmt.Errorf("read %s: group %d has %d rows, but the file says %d", p.s.Name, rows.Group, n, rows.Rows)
	}
	return n, 0, err
}
