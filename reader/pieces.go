package reader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"syscall"

	"example.com/tsimport/reader/arrow"
	"example.com/tsimport/reader/compress"
	"example.com/tsimport/reader/csv"
	"example.com/tsimport/reader/input"
	"example.com/tsimport/reader/jsonl"
	"example.com/tsimport/reader/record"
	"example.com/tsimport/reader/source"
)

type piece struct {
	source *File
	first  bool
	offset int64 // where the range to read begins
	length int
	packed *compress.Piece
	taken  int64 // input bytes up to the end of the piece, if the text is not the input itself
	data   []byte
	scan   csv.Scan
	rows   *record.Rows
	batch  *arrow.Batch
}

// longOf returns a split's overlong record, or nil if the split has other records.
func longOf(sp source.Split) *longRecord {
	long, _ := sp.Part.(*longRecord)
	return long
}

// textReader reads a text piece by piece and joins the pieces into splits. Its many fields are the state of cutting.
type textReader struct {
	s       *File
	stream  io.ReadCloser         // for pieces read in order
	cutter  *compress.BlockCutter // for blocks inflated in parallel
	cutFrom io.Closer
	packed  *metered // what stream and cutter read; nil if the text is the file itself
	taken   int64    // input bytes up to the end of the pieces added so far
	counted int64    // input bytes attributed to splits so far
	next    int64    // offset of the next range
	back    *piece   // put back after sampling
	skip    int64    // bytes of stream still to skip
	drop    int64    // bytes of inflated pieces still to drop
	begun   bool
	ended   bool

	stitcher csv.Stitcher
	long     *longRecord  // record being skipped; nil if there is none
	pending  []byte       // text to cut in order
	values   recordCutter // cuts records in order
	cut      int          // number of bytes of pending that values has processed
	offset   int64        // offset in the text of the next split
	number   int
	blank    int64 // length of the empty lines at the end of the last piece
}

// recordCutter finds the ends of records in text that is read in order.
type recordCutter interface {
	Cut(data []byte) (end int, err error) // end of the last complete record in data, or -1
	End() (record bool, err error)        // err says what is missing; record means that the rest is a record
}

func (s *File) Next() (source.Piece, error) {
	p, err := s.nextPiece()
	if err != nil {
		return nil, lasting(err)
	}
	return p, nil
}

// Damaged reports whether a read error is due to the content of the input, so that another attempt would fail as well.
func Damaged(err error) bool {
	return errors.As(err, new(*source.Lasting)) || lasting(err) != err && !errors.Is(err, source.ErrMemory) &&
		!input.OfTransport(err)
}

func lasting(err error) error {
	passes := err == nil || errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, input.ErrChanged) ||
		errors.Is(err, fs.ErrClosed) || errors.As(err, new(syscall.Errno)) || errors.As(err, new(interface{ Exit() int })) ||
		input.Passing(err)
	if passes {
		return err
	}
	return &source.Lasting{Err: err}
}

func (s *File) nextPiece() (*piece, error) {
	if s.at == nil && s.item.Seekable() {
		at, err := s.item.OpenAt(s.ctx)
		if err != nil {
			return nil, err
		}
		s.at = at
	}
	switch {
	case s.inOrder != nil:
		return s.nextBatch()
	case s.file != nil:
		return s.nextRows()
	}
	if s.reader == nil {
		r, err := s.openText()
		if err != nil {
			return nil, err
		}
		r.seekText()
		s.reader = r
	}
	return s.reader.nextPiece()
}

// end returns io.EOF, or an error if the input is truncated or, unless it is a stream, changed while it was read.
func (s *File) end() error {
	if s.Stream() {
		return io.EOF
	}
	if err := s.item.Check(); err != nil {
		return err
	}
	if s.text.truncated != nil {
		return fmt.Errorf("read %s: %w", s.Name, s.text.truncated)
	}
	return io.EOF
}

// openText decides how to read the text: as ranges of the file, as independent blocks, or as one stream.
func (s *File) openText() (*textReader, error) {
	r := &textReader{s: s, next: s.text.offset, offset: s.text.offset}
	if s.item.Seekable() && s.Compression == compress.None && !s.text.transcode {
		return r, nil
	}
	independent, err := s.independent()
	if err != nil {
		return nil, err
	}
	if independent {
		file, err := s.item.Open(s.ctx)
		if err != nil {
			return nil, err
		}
		r.packed, r.cutFrom = &metered{r: file}, file
		r.cutter = compress.NewBlockCutter(s.Compression, r.packed, s.Name)
		r.cutter.Limit(s.o.Memory.BlockBytes, s.o.Memory.WindowBytes)
		return r, nil
	}
	unpacked, err := s.unpacked()
	if err != nil {
		return nil, err
	}
	r.packed, r.stream = unpacked.packed, s.transcoded(s.upToEnd(unpacked))
	return r, nil
}

// unpacked is a decompressed input, read from its beginning. Close also closes the input.
type unpacked struct {
	io.ReadCloser
	packed *metered // counts the bytes read from the compressed input
	under  io.Closer
}

func (u *unpacked) Close() error { return errors.Join(u.ReadCloser.Close(), u.under.Close()) }

func (s *File) unpacked() (*unpacked, error) {
	raw, closer := s.text.headStream, s.text.closer
	if s.item.Seekable() {
		file, err := s.item.Open(s.ctx)
		if err != nil {
			return nil, err
		}
		raw, closer = file, file
	}
	packed := &metered{r: raw}
	r, err := compress.NewLimitedReader(s.Compression, packed, s.Name, s.o.Memory.WindowBytes)
	if err != nil {
		return nil, errors.Join(err, closer.Close())
	}
	return &unpacked{r, packed, closer}, nil
}

func (s *File) independent() (bool, error) {
	if !s.item.Seekable() || s.Compression == compress.None || s.text.transcode || s.text.part {
		return false, nil
	}
	head := make([]byte, min(4*headBytes, s.Size))
	if n, err := s.at.ReadAt(head, 0); err != nil && n < len(head) {
		return false, err
	}
	return compress.Independent(s.Compression, head), nil
}

// transcoded returns the text of a stream, converted to UTF-8 or unfolded if necessary, without its byte order mark.
func (s *File) transcoded(r io.ReadCloser) io.ReadCloser {
	if !s.text.transcode {
		return r
	}
	return &closing{s.lines(&skipping{r: r, n: s.text.bom}), r}
}

func (s *File) lines(r io.Reader) io.Reader {
	if s.text.unfold != nil {
		return s.text.unfold(r)
	}
	return s.Encoding.NewReader(r)
}

type skipping struct {
	r io.Reader
	n int
}

func (s *skipping) Read(p []byte) (int, error) {
	for s.n > 0 {
		n, err := s.r.Read(make([]byte, s.n))
		if s.n -= n; err != nil {
			return 0, err
		}
	}
	return s.r.Read(p)
}

type closing struct {
	io.Reader
	io.Closer
}

func (r *textReader) close() (err error) {
	if r.stream != nil {
		err = r.stream.Close()
	}
	if r.cutFrom != nil {
		err = errors.Join(err, r.cutFrom.Close())
	}
	return err
}

// slack is the room after a chunk for the beginning of the next one.
const slack = 64 << 10

// room returns a buffer for n bytes of text, a used one if possible.
func room(n int) []byte {
	if used, _ := usedTexts.Get().(*[]byte); used != nil && cap(*used) >= n+slack/2 {
		// Half the slack suffices, because a used buffer may lack the start of its split's first piece.
		return (*used)[:n]
	}
	return make([]byte, n, n+min(n, slack)) // a small file has no next piece
}

var usedTexts sync.Pool

// reuse makes a buffer available to room. Nothing may refer to its text.
func reuse(data []byte) { usedTexts.Put(&data) }

// giveBack makes the memory of a split's text available to later pieces. The first split may share a sample's text.
func (s *File) giveBack(sp source.Split) {
	if n := cap(sp.Data); sp.Number > 0 && n >= s.o.SplitBytes && n <= 2*(s.o.SplitBytes+slack) {
		reuse(sp.Data)
	}
}

func (r *textReader) nextPiece() (*piece, error) {
	if p := r.back; p != nil {
		r.back = nil
		return p, nil
	}
	p := &piece{source: r.s, first: !r.begun}
	r.begun = true
	switch {
	case r.ended:
		return nil, r.s.end()
	case r.cutter != nil:
		return r.nextBlocks(p)
	case r.stream != nil:
		return r.nextChunk(p)
	}
	p.offset, p.length = r.next, int(min(int64(r.s.o.SplitBytes), r.s.textEnd()-r.next))
	if p.length <= 0 {
		return nil, r.s.end()
	}
	r.next += int64(p.length)
	return p, nil
}

func (r *textReader) nextBlocks(p *piece) (*piece, error) {
	packed, err := r.cutter.Next()
	if errors.Is(err, compress.ErrDependent) {
		r.stream, r.cutter = r.cutter.Rest(), nil
		return r.nextChunk(p)
	}
	if err == io.EOF {
		return nil, r.s.end()
	}
	if err != nil {
		return nil, err
	}
	p.packed, p.taken = &packed, r.packed.n
	return p, nil
}

// nextChunk reads the next chunk of a stream. An error is returned after the bytes that precede it.
func (r *textReader) nextChunk(p *piece) (*piece, error) {
	if r.skip > 0 || p.first && r.s.text.part {
		if err := r.pass(p); err != nil {
			return nil, err
		}
	}
	size := r.s.o.SplitBytes
	if p.first {
		size += int(r.s.text.offset) // for the header, which is dropped from the first piece
	}
	p.data = room(size)
	least := size
	if r.s.o.Changes != nil { // so that records do not wait for later ones
		least = size - r.s.o.SplitBytes + 1
	}
	n, err := io.ReadAtLeast(r.stream, p.data, least)
	p.data, p.taken = p.data[:n], r.packed.n
	if r.s.chain != nil {
		if _, err := r.s.chain.Write(p.data); err != nil {
			return nil, err
		}
	}
	switch {
	case err == io.EOF:
		r.ended = true
		return nil, r.s.end()
	case err == io.ErrUnexpectedEOF:
		r.ended = true
	case err != nil && n == 0:
		return nil, err
	case err != nil:
		r.stream = &closing{failing{err}, r.stream}
	}
	return p, nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// inflaters are kept for the next pieces because of their buffers.
var inflaters = sync.Pool{New: func() any { return new(compress.Inflater) }}

// Prepare reads and inflates a piece and finds the record ends. If it fails, Add returns the records before the error.
func (p *piece) Prepare() (err error) {
	s := p.source
	switch {
	case p.rows != nil, p.batch != nil:
		return nil
	case p.packed != nil:
		inflater := inflaters.Get().(*compress.Inflater)
		p.data, err = inflater.Inflate(room(p.packed.Bound)[:0], *p.packed)
		inflaters.Put(inflater)
		p.packed = nil
	case p.data == nil:
		p.data = room(p.length)
		n, readErr := s.at.ReadAt(p.data, p.offset)
		if p.data = p.data[:n]; n < p.length {
			err = fmt.Errorf("read %s at byte %d: %w", s.Name, p.offset+int64(n), readErr)
		}
	}
	if p.first && p.length == 0 {
		if s.text.offset > int64(len(p.data)) {
			return errors.Join(err, fmt.Errorf("read %s: the header does not end within the first block", s.Name))
		}
		p.data = p.data[s.text.offset:]
	}
	if s.parallel() {
		p.scan = s.Dialect.Scan(p.data)
	}
	return err
}

// parallel reports whether pieces can be scanned for record ends in any order.
func (s *File) parallel() bool { return s.inLines() && s.Dialect.Parallel() }

// inLines reports whether the dialect defines record ends. If not, a cutter does.
func (s *File) inLines() bool { return s.form.cutter == nil }

// Add returns the splits that the next piece completes.
func (s *File) Add(next source.Piece) (splits []source.Split, err error) {
	defer func() { err = lasting(err) }()
	p := next.(*piece)
	switch {
	case p.rows != nil:
		return []source.Split{splitOf(p.rows, p.rows)}, nil
	case p.batch != nil:
		return s.inOrder.splits(p), nil
	}
	r := s.reader
	r.taken = p.taken
	if err := r.checkBlank(p.data); err != nil {
		return nil, err
	}
	if r.dropped(p) {
		r.counted = r.taken
		return nil, nil
	}
	if s.parallel() {
		return r.addScanned(p)
	}
	r.pending = append(r.pending, p.data...)
	n, err := r.lastEnd()
	data := r.pending[:n:n]
	r.pending = append([]byte(nil), r.pending[n:]...)
	if err != nil {
		return r.split(data), err
	}
	if limit := s.o.Memory.record(); len(r.pending) > limit {
		splits := append(r.split(data), s.Whole()...)
		if s.text.part {
			return splits, fmt.Errorf("read %s: the row at byte %d is longer than %d MiB%s", s.Name, r.offset, limit>>20,
				moreMemory(";", limit))
		}
		return splits, fmt.Errorf("read %s: the record at byte %d has no end within %d MiB; look for a quote that never "+
			"closes, or use --quote none%s", s.Name, r.offset, limit>>20, moreMemory(", or, if records are that long,", limit))
	}
	return r.split(data), nil
}

// maxBlank is the largest length of consecutive empty lines. A small compressed file may hold gigabytes of them.
const maxBlank = 64 << 20

// checkBlank counts the bytes of empty lines, unless these are records or part of one.
func (r *textReader) checkBlank(data []byte) error {
	if r.s.Dialect.Blank || r.long != nil || len(bytes.TrimLeft(data, "\r\n")) > 0 {
		r.blank = 0
		return nil
	}
	if r.blank += int64(len(data)); r.blank > maxBlank {
		return fmt.Errorf("read %s: %d MiB of empty lines; remove them if the file is complete", r.s.Name, r.blank>>20)
	}
	return nil
}

// Whole returns the complete records that Add has not returned. It is for a source whose rest cannot be read.
func (s *File) Whole() []source.Split {
	r := s.reader
	if s.rowwise() || r == nil || r.long != nil {
		return nil
	}
	rest := append(r.stitcher.Rest(), r.pending...)
	r.pending = nil
	if r.values != nil {
		return nil // Add has returned all complete records
	}
	return r.split(rest[:s.Dialect.LastEnd(rest)])
}

// Finish returns the splits after the last piece, or an error that says what is missing at the end.
func (s *File) Finish() (splits []source.Split, err error) {
	defer func() { err = lasting(err) }()
	r := s.reader
	if s.rowwise() || r == nil {
		return nil, nil
	}
	if r.long != nil {
		if r.stitcher.Quoted() {
			return nil, r.endlessError()
		}
		return r.endLong(), nil
	}
	if r.packed != nil {
		r.taken = r.packed.n
	}
	rest := append(r.stitcher.Rest(), r.pending...)
	r.pending = nil
	if r.values != nil {
		record, err := r.values.End()
		if err != nil {
			return nil, fmt.Errorf("read %s: it ends at byte %d: %w", s.Name, r.offset+int64(len(rest)), err)
		}
		if !record {
			return nil, nil
		}
	}
	return r.split(rest), nil
}

// lastEnd returns the end of the last complete record in pending.
func (r *textReader) lastEnd() (int, error) {
	s := r.s
	if s.inLines() {
		return s.Dialect.LastEnd(r.pending), nil
	}
	if r.values == nil {
		r.values = s.form.cutter(r.offset > s.text.offset)
	}
	end, err := r.values.Cut(r.pending[r.cut:])
	if wrong, ok := errors.AsType[*jsonl.SyntaxError](err); ok {
		err = fmt.Errorf("read %s at byte %d: %w", s.Name, r.offset+int64(r.cut+wrong.Pos)+1, err)
	}
	if end >= 0 {
		end += r.cut
	}
	end = max(end, 0)
	r.cut = len(r.pending) - end
	return end, err
}

func (r *textReader) split(data []byte) []source.Split {
	if len(data) == 0 {
		return nil
	}
	sp := source.Split{Number: r.number, Data: data, Offset: r.offset, Bytes: r.inputBytes(int64(len(data)))}
	r.number++
	r.offset += int64(len(data))
	return []source.Split{sp}
}

// inputBytes returns the number of input bytes to attribute to the next split. The sum never exceeds the input.
func (r *textReader) inputBytes(text int64) int64 {
	if r.packed == nil {
		return text
	}
	n := r.taken - r.counted
	r.counted = r.taken
	if r.number == 0 {
		n -= r.offset // the header is counted separately, as text
	}
	return n
}

func (s *File) pieceBytes() int64 {
	if s.rowwise() {
		return 0
	}
	return int64(s.o.SplitBytes)
}

func (p *piece) Bytes() int64 {
	n := int64(max(len(p.data), p.length))
	if p.batch != nil {
		n = p.batch.Bytes()
	}
	if p.packed != nil {
		n = int64(len(p.packed.Data) + p.packed.Bound)
	}
	return n
}
