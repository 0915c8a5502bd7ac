package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits on connecting and on idle time. idleTimeout is the SDK's default, which is below the service's limit.
const (
	dialTimeout = 15 * time.Second
	keepAlive   = 30 * time.Second
	idleTimeout = 25 * time.Second
)

// route connects to an endpoint without a proxy.
type route struct {
	address string
	host    string
	tls     *tls.Config // nil for plain HTTP
}

// newRoute returns the route to the endpoint. It returns nil if net/http must be used, because there is a proxy or the
// host has a non-ASCII character, an IPv6 zone or a colon without a port.
func newRoute(endpoint *url.URL) *route {
	odd := func(r rune) bool { return r >= utf8.RuneSelf || r == '%' }
	if strings.ContainsFunc(endpoint.Host, odd) || strings.HasSuffix(endpoint.Host, ":") {
		return nil
	}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: endpoint})
	if err != nil || proxy != nil {
		return nil
	}
	r := &route{host: endpoint.Host, address: endpoint.Host}
	port := "80"
	if endpoint.Scheme == "https" {
		port = "443"
		r.tls = &tls.Config{ServerName: endpoint.Hostname(), ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	}
	if endpoint.Port() == "" {
		r.address = net.JoinHostPort(endpoint.Hostname(), port)
	}
	return r
}

// link is a connection that is reused for many requests. It writes head and body in one piece and reads with net/http's
// parser. net/http's transport passes requests between three goroutines and writes large bodies in pieces. That took an
// eighth of a load's CPU with 200 rows, and 3 to 5 % with http.ClientConn (docs/internals/performance-tried.md).
type link struct {
	conn   net.Conn
	plain  net.Conn // the connection below TLS
	reader *bufio.Reader
	used   time.Time // when the last response was complete or, before the first, when the link was dialed
	born   time.Time
	until  time.Time // when the link is to be replaced

	answers int

	// The request in flight.
	run     context.Context // ends all waits on the link
	stop    func() bool     // unties the waits from run
	timeout time.Duration   // maximum time without progress
	last    time.Time       // deadline even with progress
}

// slowest is the maximum duration, in time-outs, of a request that makes progress.
const slowest = 10

// LongestRequest returns the maximum duration of a request, each piece of which may take up to timeout.
func LongestRequest(timeout time.Duration) time.Duration { return slowest * timeout }

// linkPiece is the size of the pieces of a request. A network that takes longer than a time-out for one is unusable.
const linkPiece = 64 << 10

func (r *route) dial(run context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(run, dialTimeout)
	defer cancel()
	conn, err := dial(ctx, "tcp", r.address)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	// Links made at the same time must not end at the same time.
	l := &link{conn: conn, plain: conn, used: now, born: now, until: now.Add(linkAge + rand.N(linkAge/5))}
	if r.tls != nil {
		secure := tls.Client(conn, r.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close() // it cannot be used
			// No request was sent, so the error is the same as if nobody were listening.
			return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: conn.RemoteAddr(), Err: fmt.Errorf("TLS handshake: %w", err)}
		}
		l.conn = secure
	}
	l.reader = bufio.NewReaderSize((*arriving)(l), 16<<10)
	l.endsWith(run)
	return l, nil
}

// endsWith ties all waits on the link to run instead of the previous context, or returns false if that has ended them.
func (l *link) endsWith(run context.Context) bool {
	if l.run == run {
		return true
	}
	waits := l.stop == nil || l.stop()
	l.run, l.stop = run, context.AfterFunc(run, func() { _ = l.plain.SetDeadline(time.Unix(1, 0)) })
	return waits
}

// abort makes close discard the bytes of a request that are still in this machine's buffers.
func (l *link) abort() {
	if tcp, ok := l.plain.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // fails only on a closed connection
	}
}

func (l *link) close() {
	l.stop()
	_ = l.conn.Close() // no data in flight is needed
}

// usable reports whether the link can take another request: it was not idle for too long or closed by the service.
func (l *link) usable() bool {
	return time.Since(l.used) < idleTimeout && l.reader.Buffered() == 0 && !pending(l.plain)
}

// progress extends the deadline by another time-out.
func (l *link) progress() error {
	until := time.Now().Add(l.timeout)
	if until.After(l.last) {
		until = l.last
	}
	if err := l.conn.SetDeadline(until); err != nil {
		return err
	}
	if l.run.Err() != nil { // checked after setting the deadline, which the end of the context also sets
		return context.Cause(l.run)
	}
	return nil
}

// arriving is a link as a reader of the service's bytes. Each read counts as progress.
type arriving link

func (a *arriving) Read(p []byte) (int, error) {
	l := (*link)(a)
	if err := l.progress(); err != nil {
		return 0, err
	}
	return l.conn.Read(p)
}

// write writes a request in pieces with a time-out each, so that large requests succeed on slow links.
func (l *link) write(request []byte) (n int, err error) {
	for err == nil && n < len(request) {
		if err = l.progress(); err == nil {
			var more int
			more, err = l.conn.Write(request[n:min(n+linkPiece, len(request))])
			n += more
		}
	}
	return n, err
}

// send sends a request and returns the response's head. It fails after timeout without progress, or LongestRequest.
func (l *link) send(ctx context.Context, request []byte, timeout time.Duration) (*http.Response, error) {
	l.endsWith(ctx)
	l.timeout, l.last = timeout, time.Now().Add(LongestRequest(timeout))
	if err := l.progress(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &notSent{err}
	}
	n, err := l.write(request)
	if err != nil && n == 0 && l.conn == l.plain && !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, &notSent{err}
	}
	if err != nil {
		// A server that refuses a request without reading it responds and then closes the connection.
		if res, readErr := l.answer(); readErr == nil {
			res.Close = true
			return res, nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			err = &cutOff{err}
		}
		return nil, err
	}
	return l.answer()
}

// method is a request with the only field that net/http needs to read the response.
var method = &http.Request{Method: http.MethodPost}

// answer reads a response's head. It skips informational (1xx) responses.
func (l *link) answer() (*http.Response, error) {
	for {
		res, err := http.ReadResponse(l.reader, method)
		if err != nil {
			if err == io.ErrUnexpectedEOF || err == io.EOF {
				err = fmt.Errorf("the connection was closed before a complete response head: %w", err)
			}
			return nil, err
		}
		if res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols {
			return res, nil
		}
	}
}

// headRoom is the number of bytes reserved for a request's head before the body. A longer head costs a copy.
const headRoom = 2 << 10

// join puts a request's head into the reserved space before the body, if it fits, and returns both together.
func join(buf, head []byte, room int) []byte {
	if len(head) <= room {
		from := room - len(head)
		copy(buf[from:], head)
		return buf[from:]
	}
	return append(slices.Clip(head), buf[room:]...)
}

// appendHead appends a request's head. Headers are sorted by name, as in net/http.
func appendHead(dst []byte, path, host string, header http.Header, length int) ([]byte, error) {
	dst = append(dst, "POST "...)
	dst = append(dst, path...)
	dst = append(dst, " HTTP/1.1\r\nHost: "...)
	dst = append(dst, host...)
	dst = append(dst, "\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(length), 10)
	dst = append(dst, "\r\n"...)
	var names [16]string
	sorted := names[:0]
	for name := range header {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	for _, name := range sorted {
		for _, value := range header[name] {
			if i := bytes.IndexFunc([]byte(value), func(r rune) bool { return r < ' ' || r == 0x7f }); i >= 0 {
				return nil, fmt.Errorf("build request: header %s: byte %d is not allowed; check access key and instance", name, i+1)
			}
			dst = append(dst, name...)
			dst = append(dst, ": "...)
			dst = append(dst, value...)
			dst = append(dst, "\r\n"...)
		}
	}
	return append(dst, "\r\n"...), nil
}
