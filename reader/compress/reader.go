package compress

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// MaxWindow is the largest window of a decoder in bytes, as in zstd(1). `zstd --long=27` needs all of it, `xz -9` half.
const MaxWindow = 128 << 20

// windowError says that a file needs a larger window than is allowed.
type windowError struct{ limit int }

func (e *windowError) Error() string {
	if e.limit < MaxWindow {
		return fmt.Sprintf("decompressing it takes a window of more than %d MiB, which is more than memory allows; give "+
			"more with --memory", e.limit>>20)
	}
	return fmt.Sprintf("a window of more than %d MiB is not supported", MaxWindow>>20)
}

// ErrTrailing means that the last member is followed by data that is not a member.
var ErrTrailing = errors.New("data after the end of the compressed stream")

const bufferBytes = 128 << 10

// source reads and counts compressed bytes. Decoders consume no more than they need, so offsets are exact.
type source struct {
	*bufio.Reader
	in     *counter
	window int // largest number of output bytes that a decoder may keep
}

type counter struct {
	r   io.Reader
	n   int64
	err error // from reading the input, not from decoding
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

func newSource(r io.Reader, offset int64) *source {
	in := &counter{r: r, n: offset}
	return &source{Reader: bufio.NewReaderSize(in, bufferBytes), in: in, window: MaxWindow}
}

// limit sets the window, at most MaxWindow. 0 changes nothing.
func (s *source) limit(window int) {
	if window > 0 {
		s.window = min(window, MaxWindow)
	}
}

func (s *source) offset() int64 { return s.in.n - int64(s.Buffered()) }

func (s *source) atEnd() (bool, error) {
	_, err := s.Peek(1)
	if err == io.EOF {
		return true, nil
	}
	return false, err
}

// NewLimitedReader decompresses r, a file of kind k; errors include name. None passes r through; otherwise an empty r
// is an error. Windows larger than window are refused; 0 means MaxWindow. Close frees memory but does not close r.
func NewLimitedReader(k Kind, r io.Reader, name string, window int) (io.ReadCloser, error) {
	if k == None {
		return io.NopCloser(r), nil
	}
	if !k.Supported() {
		return nil, fmt.Errorf("decompress %s: %s is not supported", name, k)
	}
	src := newSource(r, 0)
	src.limit(window)
	return &reader{kind: k, name: name, src: src}, nil
}

// Taken returns the number of compressed bytes that r has consumed, or -1 if r is not a decompressing reader.
func Taken(r io.Reader) int64 {
	if r, ok := r.(*reader); ok {
		return r.src.offset()
	}
	return -1
}

// reader adds the position to a decoder's errors and turns its panics into errors.
type reader struct {
	kind      Kind
	name      string
	src       *source
	decoder   io.Reader
	close     func()
	continued bool // whether src begins after a member
	err       error
}

// Read may return an error together with the bytes before it, or in the next call.
func (r *reader) Read(p []byte) (n int, err error) {
	if r.err != nil {
		return 0, r.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err = r.guarded(p)
	if err != nil && err != io.EOF {
		err = r.locate(err)
	}
	if err != nil {
		r.release()
		r.err = err
	}
	return n, err
}

func (r *reader) guarded(p []byte) (n int, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			n, err = 0, fmt.Errorf("the decoder panicked: %v", cause)
		}
	}()
	if r.decoder == nil {
		if err := r.open(); err != nil {
			return 0, err
		}
	}
	// A decoder may return no bytes and no error a few times, but not forever.
	for range 100 {
		n, err = r.decoder.Read(p)
		if n != 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

func (r *reader) open() error {
	if !r.continued {
		if end, err := r.src.atEnd(); err != nil {
			return err
		} else if end {
			return io.ErrUnexpectedEOF
		}
	}
	var err error
	if r.decoder, err = kinds[r.kind].open(r); err != nil {
		return err
	}
	if held, ok := r.decoder.(interface{ Close() }); ok {
		r.close = held.Close
	}
	return nil
}

// newZstd returns a decoder that runs in its caller's goroutine. If src is nil, only DecodeAll may be used.
func newZstd(src io.Reader, window int) (*zstd.Decoder, error) {
	return zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(uint64(window)))
}

// locate adds the file and the decoder's position, which is at or slightly after the damage, to an error.
func (r *reader) locate(err error) error {
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		err = &windowError{r.src.window}
	}
	if e := (*windowError)(nil); errors.As(err, &e) {
		return fmt.Errorf("decompress %s: %w", r.name, err)
	}
	if r.src.in.err != nil {
		return fmt.Errorf("read %s at byte %d: %w", r.name, r.src.in.n, r.src.in.err)
	}
	return failure(r.kind, r.name, r.src.offset(), err)
}

func failure(k Kind, name string, offset int64, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
		return fmt.Errorf("decompress %s: %s data is cut short at byte %d: %w", name, k, offset, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("decompress %s: bad %s data near byte %d: %w", name, k, offset, err)
}

func (r *reader) release() {
	if r.close != nil {
		r.close()
		r.close = nil
	}
	r.decoder = nil
}

func (r *reader) Close() error {
	r.release()
	if r.err == nil {
		r.err = fmt.Errorf("decompress %s: the reader is closed", r.name)
	}
	return nil
}
