package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// localFile is a regular file.
type localFile struct {
	name     string
	size     int64
	modified time.Time
}

func (l *localFile) seekable() bool { return true }

// openSame opens the file. It refuses a file that has changed, because sizes and splits rely on what Expand found.
func (l *localFile) openSame(ctx context.Context) (*os.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := os.Open(l.name)
	if err != nil {
		return nil, fmt.Errorf("open input %s: %w", l.name, bare(err))
	}
	if err := l.same(f.Stat()); err != nil {
		f.Close()
		return nil, fmt.Errorf("open input %s: %w", l.name, bare(err))
	}
	return f, nil
}

// check returns an error if the file has changed since Expand. Reads of ranges alone would not notice appended bytes.
func (l *localFile) check() error {
	if err := l.same(os.Stat(l.name)); err != nil {
		return fmt.Errorf("read %s: %w", l.name, bare(err))
	}
	return nil
}

func (l *localFile) same(info os.FileInfo, err error) error {
	if err == nil && (info.Size() != l.size || !info.ModTime().Equal(l.modified)) {
		err = fmt.Errorf("%w; run again when nothing writes to it", ErrChanged)
	}
	return err
}

func (l *localFile) openAt(ctx context.Context) (ReaderAtCloser, error) {
	f, err := l.openSame(ctx)
	if err != nil {
		return nil, err
	}
	return &partFile{ctx: ctx, localFile: l, file: f}, nil
}

func (l *localFile) open(ctx context.Context) (io.ReadCloser, error) {
	f, err := l.openSame(ctx)
	if err != nil {
		return nil, err
	}
	return &wholeFile{ctx: ctx, localFile: l, file: f}, nil
}

// partFile reads a file at any offset, up to the size that Expand found.
type partFile struct {
	*localFile
	ctx  context.Context
	file *os.File
}

func (p *partFile) Close() error { return p.file.Close() }

func (p *partFile) ReadAt(b []byte, off int64) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	b, end := clamp(b, off, p.size)
	if len(b) == 0 {
		return 0, end
	}
	n, err := p.file.ReadAt(b, off)
	switch {
	case n == len(b):
		return n, end
	case errors.Is(err, io.EOF):
		return n, fmt.Errorf("read %s: %w: it had %d bytes and now ends at byte %d", p.name, ErrChanged, p.size, off+int64(n))
	default:
		return n, fmt.Errorf("read %s at byte %d: %w", p.name, off+int64(n), bare(err))
	}
}

// clamp shortens ReadAt's buffer to the end of an input. ReadAt must return the error once the buffer is full.
func clamp(b []byte, off, size int64) ([]byte, error) {
	if rest := max(size-off, 0); int64(len(b)) > rest {
		return b[:rest], io.EOF
	}
	return b, nil
}

// wholeFile reads a file from its start. At the end it checks the size.
type wholeFile struct {
	*localFile
	ctx  context.Context
	file *os.File
	off  int64
}

func (w *wholeFile) Close() error { return w.file.Close() }

func (w *wholeFile) Read(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.file.Read(b)
	w.off += int64(n)
	switch {
	case w.off > w.size:
		return n, fmt.Errorf("read %s: %w: it had %d bytes and now has more; pipe it in with -", w.name, ErrChanged, w.size)
	case errors.Is(err, io.EOF) && w.off < w.size:
		return n, fmt.Errorf("read %s: %w: it had %d bytes and now ends at byte %d", w.name, ErrChanged, w.size, w.off)
	case err != nil && !errors.Is(err, io.EOF):
		return n, fmt.Errorf("read %s at byte %d: %w", w.name, w.off, bare(err))
	}
	return n, err
}

// inOrder is embedded by sources that can be read only from their start.
type inOrder struct{}

func (inOrder) seekable() bool { return false }

func (inOrder) openAt(context.Context) (ReaderAtCloser, error) { return nil, errors.ErrUnsupported }

// streamFile is a named pipe or a device.
type streamFile struct {
	inOrder
	name string
}

func (s *streamFile) open(ctx context.Context) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := os.Open(s.name)
	if err != nil {
		return nil, fmt.Errorf("open input %s: %w", s.name, bare(err))
	}
	return f, nil
}

type standardInput struct {
	inOrder
	reader io.Reader
	taken  atomic.Bool
}

// open returns the reader only once, because a second reader would get only what the first one left.
func (s *standardInput) open(context.Context) (io.ReadCloser, error) {
	if s.taken.Swap(true) {
		return nil, errors.New("open standard input: it was read before and cannot be read twice")
	}
	return io.NopCloser(s.reader), nil
}
