package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/tsimport/engine/store"
	"example.com/tsimport/engine/wire"
)

// ServeHTTP answers a request on a network connection.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := head(r)
	if a := s.judge(r, q); a != nil {
		drain(r)
		a.write(w)
		return
	}
	limits, _ := r.Context().Value(limitsKey{}).(*serving)
	share := &bodyShare{}
	if limits != nil { // nil if another HTTP server calls the handler
		share.of = limits.bodies
	}
	defer share.release()
	if err := q.read(r, share); err != nil {
		s.refuseUnread(w, q, err)
		return
	}
	control := http.NewResponseController(w)
	if isAdmin(q.path) { // it may scan a whole table
		control.SetWriteDeadline(time.Time{})
	}
	a := s.serve(r.Context(), q)
	if isAdmin(q.path) && limits != nil {
		control.SetWriteDeadline(time.Now().Add(limits.WriteTimeout))
	}
	if r.ProtoMajor == 1 { // an HTTP/2 stream that was cut may still read the page
		defer a.page.Release()
	}
	if a.cut {
		panic(http.ErrAbortHandler)
	}
	if !a.truncate {
		a.write(w)
		return
	}
	a.head(w)
	w.Write(a.body[:len(a.body)/2])
	control.Flush()
	if a.reset {
		resetConnection(control)
	}
	panic(http.ErrAbortHandler)
}

// resetConnection resets a connection like a failing network: data in flight is lost.
func resetConnection(control *http.ResponseController) {
	conn, _, err := control.Hijack()
	if err != nil {
		return // there is no TCP connection to reset; the caller aborts the request
	}
	under := conn
	if secure, ok := under.(*tls.Conn); ok {
		under = secure.NetConn()
	}
	if p, ok := under.(*placed); ok {
		under = p.Conn
	}
	if tcp, ok := under.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}

// head writes the answer's status and headers. Protocol headers remain in lower case, as the SDK for PHP requires.
func (a *answer) head(w http.ResponseWriter) {
	for k, v := range a.header {
		if strings.HasPrefix(k, "X-Ots-") {
			k = strings.ToLower(k)
		}
		w.Header()[k] = v
	}
	w.WriteHeader(a.status)
}

func (a *answer) write(w http.ResponseWriter) {
	a.head(w)
	w.Write(a.body) // a disconnected client needs no answer
}

// refuseUnread answers a request whose body was too slow, had invalid chunks or found no room in memory. If the
// connection is broken, it aborts the request.
func (s *Server) refuseUnread(w http.ResponseWriter, r *request, err error) {
	refusal := wire.Invalid("Cannot deserialize the request data.")
	switch {
	case errors.Is(err, errNoRoom):
		refusal = wire.Fail(wire.CodeServerBusy)
	case errors.Is(err, os.ErrDeadlineExceeded):
		refusal = wire.Fail(wire.CodeRequestTimeout)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Connection", "close") // the start of the next request is unknown
	s.finish(r, s.identify(r.header), nil, refusal).write(w)
}

const (
	// firstBytes limits the memory reserved for an announced body, so that idle clients cannot exhaust the budget.
	firstBytes = 256 << 10
	// drainedBytes limits how much of an unwanted body is read.
	drainedBytes = 3 * wire.MaxBodyBytes
)

// bodyLimit returns the maximum length of a request's body.
func bodyLimit(path string) int64 {
	if isAdmin(path) {
		return maxAdminBytes
	}
	return wire.MaxBodyBytes
}

func head(r *http.Request) *request {
	q := &request{method: r.Method, path: r.URL.Path, header: r.Header}
	q.tooLong = r.ContentLength > bodyLimit(q.path)
	return q
}

// drain discards an unwanted body, up to a limit, so that the client gets the answer, not a write error.
func drain(r *http.Request) {
	if r.Body != nil && r.Header.Get("Expect") == "" { // otherwise the client waits for 100 Continue
		io.CopyN(io.Discard, r.Body, drainedBytes) // errors do not change the answer
	}
}

// read reads the body, within its limit and its share of memory.
func (q *request) read(r *http.Request, share *bodyShare) error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	limit := bodyLimit(q.path)
	var buf bytes.Buffer
	if n := r.ContentLength; n > limit {
		q.tooLong = true
	} else {
		body := io.LimitReader(r.Body, limit+1)
		if err := share.take(r.Context(), firstMemory(r)); err != nil {
			return err
		}
		buf.Grow(int(min(max(n, 0), firstBytes)) + bytes.MinRead) // otherwise ReadFrom doubles the buffer to find the end
		if n > firstBytes {
			if _, err := io.CopyN(&buf, body, firstBytes); err != nil {
				return shortBody(err)
			}
			if err := share.take(r.Context(), n-firstBytes); err != nil {
				return err
			}
			buf.Grow(int(n) - firstBytes + bytes.MinRead)
		}
		if _, err := buf.ReadFrom(body); err != nil {
			return err
		}
		q.tooLong = int64(buf.Len()) > limit
	}
	if !q.tooLong {
		q.body = buf.Bytes()
		return nil
	}
	drain(r)
	return nil
}

// shortBody returns io.ErrUnexpectedEOF for io.EOF, which means that a body is incomplete.
func shortBody(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Transport returns a transport that passes requests to the server without a port, in the caller's goroutine.
func (s *Server) Transport() http.RoundTripper { return &transport{server: s} }

// SameMemory is like Transport, for a client that trusts this process's memory: requests and answers have no MD5.
func (s *Server) SameMemory() http.RoundTripper { return &transport{server: s, same: true} }

type transport struct {
	server *Server
	same   bool
}

func (t *transport) SameMemory() bool { return t.same }

// RoundTrip serves r. If the context ends meanwhile, it still waits for the server, which borrows the body.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	defer func() {
		if r.Body != nil {
			r.Body.Close()
		}
	}()
	ctx := r.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q, err := borrowRequest(r)
	if err != nil {
		return nil, err
	}
	q.sameMemory = t.same
	a := t.server.serve(ctx, q)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if a.cut {
		return nil, errCut
	}
	resp := &http.Response{
		Status: strconv.Itoa(a.status) + " " + http.StatusText(a.status), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, ContentLength: int64(len(a.body)), Request: r,
	}
	if a.truncate {
		half := bytes.NewReader(a.body[:len(a.body)/2])
		resp.Body = io.NopCloser(io.MultiReader(half, failingReader{a.reset}))
	} else {
		resp.Body = &body{reader: bytes.NewReader(a.body), page: a.page}
	}
	return resp, nil
}

// body is the body of an answer in process. Close releases the memory of its page.
type body struct {
	mu     sync.Mutex
	reader *bytes.Reader
	page   *store.Page
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reader.Read(p)
}

func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reader.Reset(nil)
	b.page.Release()
	return nil
}

// errCut is the client's error if the connection is cut before the answer.
var errCut = &net.OpError{Op: "read", Net: "tcp", Err: io.ErrUnexpectedEOF}

type failingReader struct{ reset bool }

func (r failingReader) Read([]byte) (int, error) {
	if r.reset {
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return 0, io.ErrUnexpectedEOF
}

// borrowRequest reads the request's body, without a copy if it is in memory. net/http sets GetBody only for readers of
// a byte slice or string, whose WriteTo writes all at once.
func borrowRequest(r *http.Request) (*request, error) {
	if wt, ok := r.Body.(io.WriterTo); ok && r.GetBody != nil && r.ContentLength > 0 &&
		r.ContentLength <= wire.MaxBodyBytes {
		var b borrower
		if _, err := wt.WriteTo(&b); err != nil {
			return nil, err
		}
		if int64(len(b.view)) == r.ContentLength {
			return &request{method: r.Method, path: r.URL.Path, header: r.Header, body: b.view}, nil
		}
		return nil, errors.New("the length of the request body differs from ContentLength")
	}
	q := head(r)
	return q, q.read(r, nil)
}

// borrower keeps the first slice written to it, and copies only if there are more.
type borrower struct {
	view   []byte
	writes int
}

func (b *borrower) Write(p []byte) (int, error) {
	if b.writes++; b.writes == 1 {
		b.view = p[:len(p):len(p)]
	} else {
		b.view = append(b.view, p...)
	}
	return len(p), nil
}
