package compress

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// MaxWindow bounds what a decoder keeps of the bytes already delivered: the zstd window and the xz
// dictionary, in bytes. It is what `zstd --long=27` and twice what `xz -9` need; zstd(1) has the same limit.
const MaxWindow = 128 << 20

// windowError says that a file needs a larger window than it may take.
type windowError struct{ limit int }

func (e *windowError) Error() string {
	if e.limit < MaxWindow {
		return fmt.Sprintf("decompressing it takes a window of more than %d MiB, which is more than memory allows; give more with --memory", e.limit>>20)
	}
	return fmt.Sprintf("a window of more than %d MiB is not supported", MaxWindow>>20)
}

// ErrTrailing is data after the last member that is not a member itself.
var ErrTrailing = errors.New("data after the end of the compressed stream")

const bufferBytes = 128 << 10

// source reads the compressed bytes and counts them. Decoders take bytes one by one or exactly as many as they need,
// so that the position is right and what follows a member can be looked at.
type source struct {
	*bufio.Reader
	in     *counter
	window int // bytes that a decoder may keep of its output
}

type counter struct {
	r   io.Reader
	n   int64
	err error // of the input itself, not of what it holds
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

// limit sets the window, MaxWindow at most; 0 is that.
func (s *source) limit(window int) {
	if window > 0 {
		s.window = min(window, MaxWindow)
	}
}

// offset is the position of the next byte.
func (s *source) offset() int64 { return s.in.n - int64(s.Buffered()) }

// atEnd says whether no byte is left.
func (s *source) atEnd() (bool, error) {
	_, err := s.Peek(1)
	if err == io.EOF {
		return true, nil
	}
	return false, err
}

// NewLimitedReader decompresses r, which holds a file of kind k; name is for errors. None is passed through. An empty r is an error for every other
// kind. A file that needs a window of more than so many bytes is refused; 0 is MaxWindow. Close releases memory; it does not close r.
func NewLimitedReader(k Kind, r io.Reader, name string, window int) (io.ReadCloser, error) {
	if k == None {
		return io.NopCloser(r), nil
	}
	if !k.Supported() {
		return nil, fmt.Errorf("decompress %s: %s is not supported", name, k)
	}
	src := newSource(r, 0)
	src.limit(window)
	return newReader(k, src, name, false), nil
}

// Taken returns how many compressed bytes a reader of NewReader has taken for what it has given, -1 for any other.
func Taken(r io.Reader) int64 {
	if r, ok := r.(*reader); ok {
		return r.src.offset()
	}
	return -1
}

// newReader begins at a member, or, when continued, at what follows one.
func newReader(k Kind, src *source, name string, continued bool) *reader {
	return &reader{kind: k, name: name, src: src, continued: continued}
}

// reader guards a decoder: it gives errors their place and keeps a decoder's panic from ending the run.
type reader struct {
	kind      Kind
	name      string
	src       *source
	decoder   io.Reader
	close     func()
	continued bool
	err       error
}

// Read gives bytes and the error that follows them in separate calls or in one.
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
			n, err = 0, fmt.Errorf("decoder gave up: %v", cause)
		}
	}()
	if r.decoder == nil {
		if err := r.open(); err != nil {
			return 0, err
		}
	}
	// A decoder may return nothing without an error a few times, but not indefinitely.
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

// newZstd makes a decoder that works in the goroutine of its caller. With a source it streams; without, DecodeAll is
// meant.
func newZstd(src io.Reader, window int) (*zstd.Decoder, error) {
	return zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(uint64(window)))
}

// locate adds the file and the position to an error. The position is the decoder's, a little past the damage.
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

// Close releases the decoder's memory.
func (r *reader) Close() error {
	r.release()
	if r.err == nil {
		r.err = fmt.Errorf("decompress %s: read after close", r.name)
	}
	return nil
}
