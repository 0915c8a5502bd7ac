package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"
)

// version distinguishes the contents that an object has had over time.
type version struct {
	size     int64  // in bytes; -1 if unknown
	etag     string // "" if unknown
	modified string // in the server's format; "" if unknown
}

func (v version) String() string {
	if v.etag != "" {
		return v.etag
	}
	return v.modified
}

// differs returns how w differs from v, or "". If the ETags are equal, it ignores the times.
func (v version) differs(w version) string {
	switch {
	case v.size >= 0 && w.size >= 0 && v.size != w.size:
		return fmt.Sprintf("it had %d bytes and now has %d", v.size, w.size)
	case v.etag != "" && w.etag != "":
		if strings.TrimPrefix(v.etag, "W/") != strings.TrimPrefix(w.etag, "W/") {
			return fmt.Sprintf("its ETag was %s and now is %s", v.etag, w.etag)
		}
	case v.modified != "" && w.modified != "" && v.modified != w.modified:
		return fmt.Sprintf("it was last modified %s and now %s", v.modified, w.modified)
	}
	return ""
}

// matchable returns the ETag for If-Match. It returns "" for a weak ETag, which never matches (RFC 9110, 13.1.1).
func (v version) matchable() string {
	if strings.HasPrefix(v.etag, "W/") {
		return ""
	}
	return v.etag
}

type reply struct {
	body    io.ReadCloser
	version version // of the whole object
	off     int64   // offset in the object of the body's first byte
	partial bool    // whether the server sent the requested range

	unmarked bool // whether the body ends only with the connection, as in HTTP/1.0
}

// fetcher sends a single request for an object: for n bytes from off, for the rest if n < 0, or for the whole object
// without ranges. An error is from the library, a statusError, an unusable, or ErrChanged.
type fetcher interface {
	fetch(ctx context.Context, off, n int64, ranges bool) (*reply, error)
}

// remote is an object on a server.
type remote struct {
	fetcher
	name    string
	version version
	ranges  bool // whether the server sends ranges and the size is known
	retry   Retry
}

func (r *remote) seekable() bool { return r.ranges }

// request sends a single request, under watch, and checks that the reply has the object's bytes from off on.
func (r *remote) request(ctx context.Context, off, n int64) (*reply, error) {
	w := newWatch(ctx, r.retry.Stall)
	w.start()
	rep, err := r.fetch(w.ctx, off, n, r.ranges)
	w.stop()
	if err != nil {
		err = w.explain(err)
		w.end()
		return nil, err
	}
	rep.body = &watchedBody{body: rep.body, watch: w}
	if d := r.version.differs(rep.version); d != "" {
		err = fmt.Errorf("%w: %s; run again when it no longer changes", ErrChanged, d)
	} else if rep.off != off {
		err = unusable{fmt.Errorf("the server sent byte %d instead of byte %d; download the file", rep.off, off)}
	}
	if err != nil {
		rep.body.Close()
		return nil, err
	}
	return rep, nil
}

// watchedBody is a response body that fails if a read stalls.
type watchedBody struct {
	body  io.ReadCloser
	watch *watch

	waited time.Duration // time spent on reading the bytes in came
	came   int
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.start()
	began := time.Now()
	n, err := b.body.Read(p)
	b.watch.stop()
	if err == io.EOF {
		return n, err
	}
	b.waited, b.came = b.waited+time.Since(began), b.came+n
	if err == nil && b.waited >= b.watch.limit {
		if float64(b.came) < leastRate*b.waited.Seconds() {
			return n, errSlow
		}
		b.waited, b.came = 0, 0
	}
	return n, b.watch.explain(err)
}

func (b *watchedBody) Close() error {
	err := b.body.Close()
	b.watch.end()
	return err
}

func (r *remote) openAt(ctx context.Context) (ReaderAtCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	return &partReader{remote: r, ctx: ctx, cancel: cancel}, nil
}

// partReader reads a remote object at any offset. It holds a context because ReadAt has no parameter for one.
type partReader struct {
	*remote
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func (p *partReader) Close() error {
	p.cancel(fs.ErrClosed)
	return nil
}

// ReadAt requests the range and, if the connection is cut, the rest of it.
func (p *partReader) ReadAt(b []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, fmt.Errorf("read %s at byte %d: before its start", p.name, off)
	}
	b, end := clamp(b, off, p.version.size)
	patience := patience{Retry: p.retry}
	for n < len(b) {
		m, err := p.readOnce(b[n:], off+int64(n))
		n += m
		if err == nil {
			break
		}
		if m > 0 {
			patience.progress()
		}
		if err = patience.wait(p.ctx, err); err != nil {
			return n, fmt.Errorf("read %s at byte %d: %w", p.name, off+int64(n), err)
		}
	}
	return n, end
}

func (p *partReader) readOnce(b []byte, off int64) (int, error) {
	rep, err := p.request(p.ctx, off, int64(len(b)))
	if err != nil {
		return 0, err
	}
	defer rep.body.Close()
	return io.ReadFull(rep.body, b)
}

func (r *remote) open(ctx context.Context) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &stream{remote: r, ctx: ctx, cancel: cancel, patience: patience{Retry: r.retry}}
	for {
		err := s.connect()
		if err == nil {
			return s, nil
		}
		if err = s.patience.wait(ctx, err); err != nil {
			cancel(fs.ErrClosed)
			return nil, fmt.Errorf("open input %s: %w", r.name, err)
		}
	}
}

// stream reads a remote object from its start. If the connection is cut, it requests the rest of the object.
type stream struct {
	*remote
	ctx      context.Context
	cancel   context.CancelCauseFunc
	patience patience
	rep      *reply // nil until the next request
	off      int64
	err      error // returned by all further reads; nil while there is more to read
}

// connect requests the rest of the object, if there is any.
func (s *stream) connect() (err error) {
	if s.ranges && s.off == s.version.size {
		s.err = io.EOF // an empty range cannot be requested
		return nil
	}
	s.rep, err = s.request(s.ctx, s.off, -1)
	return err
}

func (s *stream) Close() error {
	s.disconnect()
	s.cancel(fs.ErrClosed)
	return nil
}

func (s *stream) disconnect() {
	if s.rep != nil {
		s.rep.body.Close()
		s.rep = nil
	}
}

func (s *stream) Read(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	for n == 0 && s.err == nil {
		if s.rep == nil {
			err = s.connect()
		} else {
			n, err = s.rep.body.Read(b)
			s.off += int64(n)
			if n > 0 {
				s.patience.progress()
			}
		}
		if err != nil {
			s.failed(err)
		}
	}
	if n > 0 {
		return n, nil // the next read returns s.err
	}
	return 0, s.err
}

// failed decides whether the end of a body, or an error, ends the object, is to be retried, or is final.
func (s *stream) failed(err error) {
	s.disconnect()
	size := s.version.size
	if errors.Is(err, io.EOF) {
		switch {
		case size < 0 || s.off == size:
			s.err = io.EOF
			return
		case s.off > size:
			err = fmt.Errorf("%w: it had %d bytes and now has more", ErrChanged, size)
		}
	}
	if s.off > 0 && !s.ranges && again(err) && s.ctx.Err() == nil {
		err = unusable{fmt.Errorf("%w; the server cannot continue; download the file or try again", plainEOF(err))}
	}
	if err = s.patience.wait(s.ctx, err); err != nil {
		s.err = fmt.Errorf("read %s at byte %d%s: %w", s.name, s.off, ofSize(size), err)
	}
}

func ofSize(size int64) string {
	if size < 0 {
		return ""
	}
	return fmt.Sprintf(" of %d", size)
}

// newReply interprets a response with a body. If there is no error, the reply owns the body.
func newReply(status int, h http.Header, length int64, body io.ReadCloser, off int64) (*reply, error) {
	rep := &reply{body: body, version: version{size: length, etag: h.Get("ETag"), modified: h.Get("Last-Modified")}}
	if status != http.StatusPartialContent {
		// A server may answer a range request with the whole object.
		if off > 0 {
			return nil, unusable{errors.New("the server stopped supporting ranges; download the file")}
		}
		return rep, nil
	}
	rep.partial = true
	var last int64
	header := h.Get("Content-Range")
	if _, err := fmt.Sscanf(header, "bytes %d-%d/%d", &rep.off, &last, &rep.version.size); err != nil {
		rep.version.size = -1
		if _, err := fmt.Sscanf(header, "bytes %d-%d/*", &rep.off, &last); err != nil {
			return nil, unusable{fmt.Errorf("the server's Content-Range %q is not a byte range; download the file", header)}
		}
	}
	return rep, nil
}
