package reader

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
)

// Dialect says how a CSV text is read.
type Dialect struct {
	Delimiter byte     // between fields
	Quote     byte     // around fields that hold delimiters, quotes or line ends; doubled inside; 0 is none
	NoHeader  bool     // the first record is data
	Names     []string // column names when there is no header; default c1, c2, …
}

// DefaultDialect is RFC 4180: commas, double quotes, a header.
var DefaultDialect = Dialect{Delimiter: ',', Quote: '"'}

// Sizes of splits and records in bytes.
const (
	DefaultSplitBytes = 1 << 20  // a split, unless one record is longer
	MaxRecordBytes    = 64 << 20 // a longer record is taken for a quote that never closes
)

// Stdin is the name of the source that reads standard input.
const Stdin = "-"

// Split is a part of a source that can be parsed alone: whole records.
type Split struct {
	Number int    // from 0
	Data   []byte // the receiver's to keep
	Offset int64  // of Data in the source
}

// Source is one input, read split by split. It is not safe for concurrent use.
type Source struct {
	Path      string
	Size      int64    // bytes, -1 when unknown
	Columns   []string // names in the input's order
	Header    []byte   // the header record as it stands, line end included; nil without one
	HeaderEnd int64    // offset of the first data record
	Renamed   []string // what was done to names that were empty or came twice, a sentence each

	o           Options
	headerLines int
	info        fs.FileInfo // of a regular file, when it was first opened
	file        io.Reader
	closer      io.Closer
	carry       []byte // read, but not yet delivered
	offset      int64  // of carry
	number      int
	eof         bool
	peeked      *Split
}

// Options say how a source is read.
type Options struct {
	Dialect    Dialect
	SplitBytes int       // 0 takes DefaultSplitBytes
	Stdin      io.Reader // what the name Stdin means; nil is os.Stdin
	// Stream wraps what is read of standard input, a pipe or a device, which may block for ever; nil leaves it as it is.
	Stream func(io.Reader) io.Reader
}

// Open opens a source and reads its header. A source that cannot hold CSV text (compressed, Parquet, UTF-16) is
// refused by what its first bytes say.
func Open(path string, o Options) (*Source, error) {
	if o.SplitBytes == 0 {
		o.SplitBytes = DefaultSplitBytes
	}
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	if o.Stream == nil {
		o.Stream = func(r io.Reader) io.Reader { return r }
	}
	s := &Source{Path: path, Size: -1, o: o}
	if err := s.open(); err != nil {
		return nil, err
	}
	if err := s.readHeader(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Source) open() error {
	if s.Path == Stdin {
		s.file = s.o.Stream(s.o.Stdin)
		return nil
	}
	info, err := os.Stat(s.Path)
	if err != nil {
		return fmt.Errorf("open input: %w", err)
	}
	if info.IsDir() {
		return fmt.Errorf("open input %s: is a directory; name the files in it", s.Path)
	}
	if !info.Mode().IsRegular() {
		p := &pipe{path: s.Path}
		s.file, s.closer = s.o.Stream(p), p
		return nil
	}
	f, err := os.Open(s.Path)
	if err != nil {
		return fmt.Errorf("open input: %w", err)
	}
	s.file, s.closer = f, f
	if s.info == nil {
		s.info, s.Size = info, info.Size()
	}
	return s.unchanged(f)
}

// unchanged returns an error when the file is not as it was when it was first opened.
func (s *Source) unchanged(f *os.File) error {
	now, err := f.Stat()
	if err != nil {
		return fmt.Errorf("read %s: %w", s.Path, err)
	}
	if !os.SameFile(now, s.info) || now.Size() != s.info.Size() || !now.ModTime().Equal(s.info.ModTime()) {
		return fmt.Errorf("read %s: the file was changed while it was loaded (%d bytes then, %d now)", s.Path, s.info.Size(), now.Size())
	}
	return nil
}

// pipe opens a pipe or a device when it is first read: opening blocks until there is a writer.
type pipe struct {
	path string
	mu   sync.Mutex // Close comes from another goroutine when a read is left behind
	f    *os.File
}

func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	f := p.f
	p.mu.Unlock()
	if f == nil {
		var err error
		if f, err = os.Open(p.path); err != nil {
			return 0, err
		}
		p.mu.Lock()
		p.f = f
		p.mu.Unlock()
	}
	return f.Read(b)
}

func (p *pipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.f == nil {
		return nil
	}
	return p.f.Close()
}

// Close releases the source.
func (s *Source) Close() error {
	if s.closer == nil {
		return nil
	}
	c := s.closer
	s.closer, s.file = nil, nil
	return c.Close()
}

// SetSplitBytes changes the size of splits not read yet.
func (s *Source) SetSplitBytes(n int) { s.o.SplitBytes = n }

// Suspend releases what an idle source need not hold: a regular file is closed and opened again by Next. What was
// peeked from a stream is kept, as it cannot be read twice.
func (s *Source) Suspend() error {
	if s.Size < 0 {
		return nil
	}
	s.peeked, s.carry, s.eof, s.number = nil, nil, false, 0
	s.offset = s.HeaderEnd
	return s.Close()
}

func (s *Source) resume() error {
	if s.file != nil || s.Size < 0 {
		return nil
	}
	if err := s.open(); err != nil {
		return err
	}
	f := s.file.(*os.File)
	if _, err := f.Seek(s.offset, io.SeekStart); err != nil {
		return fmt.Errorf("read %s at byte %d: %w", s.Path, s.offset, err)
	}
	return nil
}

// Peek returns the next split without consuming it. Its data stays the source's.
func (s *Source) Peek() (Split, error) {
	if s.peeked == nil {
		sp, err := s.Next()
		if err != nil {
			return Split{}, err
		}
		s.peeked = &sp
	}
	return *s.peeked, nil
}

// Next returns the next split, or io.EOF after the last. Any other error means that the source was not read to its
// end.
func (s *Source) Next() (Split, error) {
	if sp := s.peeked; sp != nil {
		s.peeked = nil
		return *sp, nil
	}
	if err := s.resume(); err != nil {
		return Split{}, err
	}
	buf := make([]byte, 0, max(s.o.SplitBytes, len(s.carry)))
	buf = append(buf, s.carry...)
	for {
		var err error
		if buf, err = s.fill(buf); err != nil {
			return Split{}, err
		}
		if len(buf) == 0 {
			return Split{}, io.EOF
		}
		cut := len(buf)
		if !s.eof {
			cut = s.o.Dialect.lastBoundary(s.text(buf))
			if cut > 0 {
				cut += len(buf) - len(s.text(buf))
			}
		}
		if cut > 0 {
			return s.deliver(buf, cut), nil
		}
		if len(buf) >= MaxRecordBytes {
			return Split{}, fmt.Errorf("read %s: the record at byte %d has no end within %d MiB; look for a quote that never closes, or use --quote none",
				s.Path, s.offset, MaxRecordBytes>>20)
		}
		buf = append(make([]byte, 0, min(2*cap(buf), MaxRecordBytes)), buf...)
	}
}

// text returns the text in buf: without the byte order mark with which the source may begin.
func (s *Source) text(buf []byte) []byte {
	if s.offset == 0 {
		return bytes.TrimPrefix(buf, byteOrderMark)
	}
	return buf
}

func (s *Source) deliver(buf []byte, cut int) Split {
	sp := Split{Number: s.number, Data: buf[:cut:cut], Offset: s.offset}
	s.carry = append([]byte(nil), buf[cut:]...)
	s.offset += int64(cut)
	s.number++
	return sp
}

// fill reads until buf is full or the source ends.
func (s *Source) fill(buf []byte) ([]byte, error) {
	for !s.eof && len(buf) < cap(buf) {
		n, err := s.file.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			s.eof = true
			if f, ok := s.file.(*os.File); ok && s.info != nil {
				if err := s.unchanged(f); err != nil {
					return buf, err
				}
			}
		} else if err != nil {
			return buf, fmt.Errorf("read %s at byte %d: %w", s.Path, s.offset+int64(len(buf)), err)
		}
	}
	return buf, nil
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// readHeader takes the byte order mark, empty lines and the header off the front of the source and leaves the rest of
// the split peeked.
func (s *Source) readHeader() error {
	p := NewParser(s.o.Dialect)
	for {
		sp, err := s.Next()
		if errors.Is(err, io.EOF) {
			return s.nameWithoutRecords()
		}
		if err != nil {
			return err
		}
		skip := 0
		if sp.Offset == 0 {
			if err := refuseFormat(s.Path, sp.Data); err != nil {
				return err
			}
			if bytes.HasPrefix(sp.Data, byteOrderMark) {
				skip = len(byteOrderMark)
			}
		}
		p.Reset(sp.Data[skip:])
		first, ok := p.Next()
		if !ok {
			s.HeaderEnd = sp.Offset + int64(len(sp.Data))
			s.headerLines += p.Lines()
			continue // empty lines only
		}
		if s.o.Dialect.NoHeader {
			return s.numberColumns(sp, skip, p, len(first.Fields), first.Bad != nil)
		}
		return s.nameColumns(sp, skip, first)
	}
}

// numberColumns finds how many columns there are without a header. A bad first record will be rejected when it is
// loaded; if it can, a later one tells the number of fields.
func (s *Source) numberColumns(sp Split, skip int, p *Parser, width int, bad bool) (err error) {
	for bad {
		rec, ok := p.Next()
		if !ok {
			break
		}
		if bad = rec.Bad != nil; !bad {
			width = len(rec.Fields)
		}
	}
	s.Columns, err = numberedNames(s.Path, width, s.o.Dialect.Names)
	s.begin(sp, skip)
	return err
}

// nameColumns takes the names from the header, which is in sp behind skip bytes.
func (s *Source) nameColumns(sp Split, skip int, header Record) (err error) {
	if header.Bad != nil {
		return fmt.Errorf("read header of %s: %s", s.Path, header.Bad.Message)
	}
	if s.Columns, s.Renamed, err = headerNames(s.Path, header.Fields); err != nil {
		return err
	}
	start, end := skip+int(header.Mark.Start), skip+int(header.Mark.End)
	s.Header = append([]byte(nil), sp.Data[start:end]...)
	s.headerLines += bytes.Count(sp.Data[:end], []byte{'\n'})
	s.begin(sp, end)
	return nil
}

// begin makes sp, from skip on, the first split of data.
func (s *Source) begin(sp Split, skip int) {
	s.HeaderEnd = sp.Offset + int64(skip)
	s.number = 0
	if rest := sp.Data[skip:]; len(rest) > 0 {
		s.peeked = &Split{Data: rest, Offset: s.HeaderEnd}
		s.number = 1
	}
}

func (s *Source) nameWithoutRecords() error {
	if !s.o.Dialect.NoHeader {
		return fmt.Errorf("read %s: the file is empty, not even a header; use --no-header if that is meant", s.Path)
	}
	if s.o.Dialect.Names == nil {
		return fmt.Errorf("read %s: the file is empty; give its columns with --names if that is meant", s.Path)
	}
	s.Columns = s.o.Dialect.Names
	return nil
}

// HeaderLines returns the number of lines before the first data record's split.
func (s *Source) HeaderLines() int { return s.headerLines }

func numberedNames(path string, n int, given []string) ([]string, error) {
	if given != nil {
		if len(given) != n {
			return nil, fmt.Errorf("read %s: --names gives %d names, the first record has %d fields", path, len(given), n)
		}
		return given, nil
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("c%d", i+1)
	}
	return names, nil
}

// headerNames takes the names from the header. A cell without a name is named for its place, a name that comes again
// gets a number, so that no column hides another; both are reported.
func headerNames(path string, fields []Field) (names, renamed []string, err error) {
	seen := make(map[string]bool, len(fields))
	for _, f := range fields {
		seen[string(f.Text)] = true
	}
	taken := make(map[string]bool, len(fields))
	for i, f := range fields {
		given := string(f.Text)
		name := given
		if given == "" {
			name = fmt.Sprintf("c%d", i+1)
		}
		for n := 2; taken[name] || name != given && seen[name]; n++ {
			name = fmt.Sprintf("%s_%d", given, n)
			if given == "" {
				name = fmt.Sprintf("c%d_%d", i+1, n)
			}
		}
		if name != given {
			renamed = append(renamed, fmt.Sprintf("%s: column %d, %q in the header, is called %q", path, i+1, given, name))
		}
		taken[name] = true
		names = append(names, name)
	}
	return names, renamed, nil
}
