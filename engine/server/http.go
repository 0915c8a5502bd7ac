package server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"

	"tsimport/engine/wire"
)

// ServeHTTP answers one request of a real connection.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r)
	if err != nil {
		panic(http.ErrAbortHandler) // the client is gone: there is nobody to answer
	}
	a := s.serve(r.Context(), &request{r.Method, r.URL.Path, r.Header, body})
	if a.cut {
		panic(http.ErrAbortHandler)
	}
	for k, v := range a.header {
		w.Header()[k] = v
	}
	w.WriteHeader(a.status)
	if !a.truncate {
		w.Write(a.body)
		return
	}
	w.Write(a.body[:len(a.body)/2])
	control := http.NewResponseController(w)
	control.Flush()
	if a.reset {
		resetConnection(control)
	}
	panic(http.ErrAbortHandler)
}

// resetConnection ends a connection as a network does that loses it: what is under way is thrown away.
func resetConnection(control *http.ResponseController) {
	conn, _, err := control.Hijack()
	if err != nil {
		return // the protocol has no connection of its own to reset: the caller cuts it
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	conn.Close()
}

// readBody reads at most one byte more than is allowed, which serve then refuses.
func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	var buf bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= wire.MaxBodyBytes {
		buf.Grow(int(n) + bytes.MinRead) // else ReadFrom doubles it to find the end
	}
	limit := int64(wire.MaxBodyBytes)
	if strings.HasPrefix(r.URL.Path, adminPrefix) {
		limit = maxAdminBytes
	}
	_, err := buf.ReadFrom(io.LimitReader(r.Body, limit+1))
	return buf.Bytes(), err
}

// Transport carries requests to the server without a port, in the caller's goroutine.
func (s *Server) Transport() http.RoundTripper { return &transport{s} }

type transport struct{ server *Server }

// RoundTrip serves r. A cancelled context is honoured before and after, not during: by then the body is borrowed.
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
	body, err := borrowBody(r)
	if err != nil {
		return nil, err
	}
	a := t.server.serve(ctx, &request{r.Method, r.URL.Path, r.Header, body})
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
		resp.Body = io.NopCloser(bytes.NewReader(a.body))
	}
	return resp, nil
}

// errCut is what a client sees of a connection that is cut before the answer.
var errCut = &net.OpError{Op: "read", Net: "tcp", Err: io.ErrUnexpectedEOF}

type failingReader struct{ reset bool }

func (r failingReader) Read([]byte) (int, error) {
	if r.reset {
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return 0, io.ErrUnexpectedEOF
}

// borrowBody is the request's body, without a copy when it lies in memory: GetBody is set by net/http for readers over
// a byte slice alone, and those hand the whole slice to WriteTo at once.
func borrowBody(r *http.Request) ([]byte, error) {
	if wt, ok := r.Body.(io.WriterTo); ok && r.GetBody != nil && r.ContentLength > 0 && r.ContentLength <= wire.MaxBodyBytes {
		var b borrower
		if _, err := wt.WriteTo(&b); err != nil {
			return nil, err
		}
		if int64(len(b.view)) == r.ContentLength {
			return b.view, nil
		}
		return nil, errors.New("the request's body is not as long as its ContentLength")
	}
	return readBody(r)
}

// borrower keeps the first slice it is given, and copies when there are more.
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
