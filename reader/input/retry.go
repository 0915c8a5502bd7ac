package input

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"example.com/tsimport/internal/objectstore"
	"example.com/tsimport/ratelimit"
)

// Retry controls how failed requests are retried. No request of this package changes anything.
type Retry struct {
	Attempts int               // number of consecutive attempts without data until an error is final; 0 means 5
	Backoff  ratelimit.Backoff // waits between attempts; the zero Backoff means 200 ms to 5 s
	Stall    time.Duration     // time without data after which a request fails; 0 means a minute
}

func (r Retry) withDefaults() Retry {
	r.Attempts = cmp.Or(r.Attempts, 5)
	if r.Backoff.Max == 0 {
		r.Backoff.Base, r.Backoff.Max = 200*time.Millisecond, 5*time.Second
	}
	r.Stall = cmp.Or(r.Stall, time.Minute)
	return r
}

// errStalled is the cause with which watch cancels requests.
var errStalled = errors.New("no data arrived for too long")

// leastRate is a body's lowest rate in bytes per second, measured over Retry.Stall of waiting.
const leastRate = 50

// errSlow ends a body that arrives more slowly than leastRate. A retry would not be faster.
var errSlow = fmt.Errorf("the server sends less than %d bytes a second; try again when it is faster", leastRate)

// statusError is a response with an error status.
type statusError struct {
	code       int
	text       string // "" means the standard text of code
	retryAfter time.Duration
}

func (s *statusError) Error() string {
	return fmt.Sprintf("the server answers %d %s", s.code, cmp.Or(s.text, http.StatusText(s.code))) + s.advice()
}

func (s *statusError) advice() string {
	switch s.code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "; check the access rights, or whether a signed address has expired"
	case http.StatusNotFound, http.StatusGone:
		return "; check the address"
	}
	return ""
}

func (s *statusError) Is(target error) bool {
	switch s.code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return target == fs.ErrPermission
	case http.StatusNotFound, http.StatusGone:
		return target == fs.ErrNotExist
	}
	return false
}

func (s *statusError) passing() bool {
	switch s.code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	}
	return s.code >= 500
}

// unusable is an error that another attempt would only repeat.
type unusable struct{ error }

func (u unusable) Unwrap() error { return u.error }

// otherScheme reports whether http was used for a TLS server or https for a plain one, partly by net/http's messages.
func otherScheme(err error) bool {
	return errors.As(err, new(tls.RecordHeaderError)) ||
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") ||
		strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`)
}

// again reports whether another attempt may succeed. It may after any error not known to be permanent.
func again(err error) bool {
	if status, ok := errors.AsType[*statusError](err); ok {
		return status.passing()
	}
	if errors.As(err, new(unusable)) || errors.Is(err, ErrChanged) || otherScheme(err) ||
		errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.UnknownAuthorityError)) ||
		errors.As(err, new(x509.HostnameError)) || errors.As(err, new(x509.CertificateInvalidError)) {
		return false
	}
	dns, ok := errors.AsType[*net.DNSError](err)
	return !ok || !dns.IsNotFound
}

// patience counts consecutive failures of a task.
type patience struct {
	Retry
	failures int
}

func (p *patience) progress() { p.failures = 0 }

// wait waits until it is time for another attempt and returns nil, or returns the final error.
func (p *patience) wait(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	if errors.Is(err, errSlow) {
		return &exhausted{err}
	}
	if !again(err) {
		return err
	}
	if p.failures++; p.failures >= p.Attempts {
		return &exhausted{fmt.Errorf("%w (%d attempts)", plainEOF(err), p.failures)}
	}
	pause := p.Backoff.After(p.failures)
	if status, ok := errors.AsType[*statusError](err); ok {
		pause = max(pause, status.retryAfter)
	}
	if ratelimit.Wait(ctx, pause) != nil {
		return ended(ctx)
	}
	return nil
}

// exhausted is the last error of a task that has given up, although a later attempt may succeed.
type exhausted struct{ error }

func (e *exhausted) Unwrap() error { return e.error }

// Passing reports whether the same command may succeed later. It also recognises errors of databases.
func Passing(err error) bool {
	var own interface{ Passing() bool }
	if errors.As(err, &own) {
		return own.Passing()
	}
	return errors.As(err, new(*exhausted)) || errors.As(err, new(*net.OpError)) ||
		errors.As(err, new(*net.DNSError)) // a name may be missing only while its server is replaced
}

// OfTransport reports whether an error is about reaching an input, not about its content.
func OfTransport(err error) bool {
	return errors.As(err, new(*statusError)) || errors.As(err, new(unusable)) || errors.As(err, new(*url.Error)) ||
		errors.As(err, new(*objectstore.Error)) || errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrChanged) || Passing(err)
}

// ended returns why a context has ended: because the reader was closed, or with the context's own error.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, fs.ErrClosed) {
		return cause
	}
	return ctx.Err()
}

// errCut replaces the io.EOF of a connection cut before the response, which readers would take for the input's end.
var errCut = fmt.Errorf("the connection was cut: %w", io.ErrUnexpectedEOF)

func plainEOF(err error) error {
	if errors.Is(err, io.EOF) || err == io.ErrUnexpectedEOF {
		return errCut
	}
	return err
}

// attempt calls f until it succeeds or the attempts are used up. It watches each call for stalls.
func (r Retry) attempt(ctx context.Context, f func(context.Context) error) error {
	p := patience{Retry: r}
	for {
		w := newWatch(ctx, r.Stall)
		w.start()
		err := w.explain(f(w.ctx))
		w.end()
		if err == nil {
			return nil
		}
		if err = p.wait(ctx, err); err != nil {
			return err
		}
	}
}

// watch cancels a request that stalls. Only time spent waiting for data counts, so a slow consumer does no harm.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
}

func newWatch(ctx context.Context, limit time.Duration) *watch {
	w := &watch{limit: limit}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(limit, func() { w.cancel(errStalled) })
	w.timer.Stop()
	return w
}

func (w *watch) start() { w.timer.Reset(w.limit) }
func (w *watch) stop()  { w.timer.Stop() }

func (w *watch) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// explain replaces the error of a request that watch has cancelled.
func (w *watch) explain(err error) error {
	if err != nil && context.Cause(w.ctx) == errStalled {
		return errStalled
	}
	return plainEOF(bare(err))
}

// bare unwraps errors of libraries, because callers name the operation and the path, or the address without secrets.
func bare(err error) error {
	for {
		switch e := err.(type) {
		case *fs.PathError:
			err = e.Err
		case *url.Error:
			err = e.Err
		default:
			return err
		}
	}
}

// stoppable reads in a goroutine, into its own buffer, because reads of a terminal or pipe cannot be interrupted.
type stoppable struct {
	ctx     context.Context
	r       io.Reader
	buf     []byte
	rest    []byte // part of buf not yet delivered
	err     error  // returned once rest is empty
	pending chan readResult
	reading bool // whether a result is pending
}

type readResult struct {
	n   int
	err error
}

// Stoppable returns a reader whose reads end with ctx. It may read ahead, so nothing else may then read r.
func Stoppable(ctx context.Context, r io.Reader) io.Reader {
	return &stoppable{ctx: ctx, r: r, buf: make([]byte, 256<<10), pending: make(chan readResult, 1)}
}

// Soon waits until Read would not block, or until late fires. It reports whether Read would not block.
func (s *stoppable) Soon(late <-chan time.Time) bool {
	for len(s.rest) == 0 && s.err == nil {
		if !s.reading {
			s.reading = true
			go func() {
				n, err := s.r.Read(s.buf)
				s.pending <- readResult{n, err}
			}()
		}
		select {
		case res := <-s.pending:
			s.rest, s.err, s.reading = s.buf[:res.n], res.err, false
		case <-s.ctx.Done():
			s.err = context.Cause(s.ctx)
		case <-late:
			return false
		}
	}
	return true
}

func (s *stoppable) Read(p []byte) (int, error) {
	s.Soon(nil)
	if len(s.rest) > 0 {
		n := copy(p, s.rest)
		s.rest = s.rest[n:]
		return n, nil
	}
	return 0, s.err
}
