package client

import (
	"cmp"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// Connection sends requests encoded elsewhere. The SDK's client would build them from several objects per cell and copy
// them twice. Requests have the same bytes, headers and signature as the SDK's, and errors have the SDK's types.
type Connection struct {
	run         context.Context
	endpoint    *url.URL
	instance    string
	credentials common.CredentialsProvider
	route       *route            // nil if base is used
	pool        *pool             // links on the route
	base        http.RoundTripper // transport for proxies and for stores in this process
	timeout     time.Duration
	compression *compression
	traffic     *Traffic
	access      access
	accept      bool // accepts responses without a signature
	sameMemory  bool
	senders     atomic.Int64 // number of open senders
}

// Now returns the service's time according to its responses.
func (c *Connection) Now() time.Time { return c.traffic.Clock.Now() }

// Connect makes a connection. Requests in flight end with ctx. A request is repeated only if no byte of it was sent, or
// if it was refused while compressed and, according to the refusal, not applied.
func Connect(ctx context.Context, t Target, traffic *Traffic) (*Connection, error) {
	most := cmp.Or(t.Connections, math.MaxInt)
	if err := t.complete(); err != nil {
		return nil, err
	}
	endpoint, err := url.Parse(t.Endpoint)
	if err != nil {
		return nil, CheckEndpoint(t.Endpoint)
	}
	traffic = cmp.Or(traffic, new(Traffic))
	c := &Connection{run: ctx, endpoint: endpoint, instance: t.Instance, credentials: t.Credentials, base: t.Transport,
		timeout: t.RequestTimeout, compression: newCompression(t.Compress), traffic: traffic,
		access: access{credentials: t.Credentials, patience: t.KeyPatience}, accept: t.AcceptUnsigned,
		sameMemory: sameMemory(t.Transport)}
	if c.base == nil {
		if c.route = newRoute(endpoint); c.route == nil {
			c.base = &renewed{make: func() *http.Transport {
				n := network(t)
				n.MaxConnsPerHost = most
				if most == math.MaxInt {
					n.MaxConnsPerHost = 0
				}
				return n
			}}
		} else {
			c.pool = newPool(c.route, most)
		}
	}
	return c, nil
}

// Affordable returns how many of the wanted connections this process may open under its limit of open files.
func Affordable(wanted int) int {
	files := openFiles()
	if files == 0 {
		return wanted
	}
	return max(1, min(wanted, files-min(files/2, otherFiles)))
}

// otherFiles is the number of open files reserved for inputs, spilled rows, an embedded store and single reads.
const otherFiles = 256

// Room returns the limit of requests in flight: Target.Connections, or the lower limit of the service or a gateway.
func (c *Connection) Room() int {
	if c.pool == nil {
		return math.MaxInt
	}
	return c.pool.room()
}

// Sender sends one request after another on shared network connections. It owns and reuses the memory of requests and
// responses. It is not safe for concurrent use.
type Sender struct {
	c      *Connection
	closed bool
	sent   time.Time
	buf    []byte // a request: room for the head, then the body
	plain  []byte // the uncompressed body, or memory for the next one
	head   []byte
	answer []byte
	keys   common.Credentials  // keys that signed the request
	urls   map[string]*url.URL // URLs by operation
}

func (c *Connection) Sender() *Sender {
	if c.senders.Add(1) == 1 && c.pool != nil {
		c.pool.use()
	}
	return &Sender{c: c, urls: map[string]*url.URL{}}
}

// Close closes the sender. When the last open sender is closed, the idle connections are closed, too.
func (s *Sender) Close() {
	if !s.closed && s.c.senders.Add(-1) == 0 && s.c.pool != nil {
		s.c.pool.close()
	}
	s.closed = true
}

var room [headRoom]byte

// keptBytes is the size of the largest buffer that a sender keeps between requests. Larger buffers are shared.
const keptBytes = 64 << 10

var largeBuffers sync.Pool

// giveLargeBack returns the buffer, or nil if it is so large that it was returned to the shared ones.
func giveLargeBack(b []byte) []byte {
	if cap(b) <= keptBytes {
		return b
	}
	largeBuffers.Put(&b)
	return nil
}

// Post sends a request for the operation, with the body that appendBody appends to dst, and returns the response's
// body, which is valid until the next call. If the service refuses the request, the error is a *tablestore.OtsError.
func (s *Sender) Post(operation string, appendBody func(dst []byte) []byte) ([]byte, error) {
	if large, _ := largeBuffers.Get().(*[]byte); large != nil {
		s.buf = *large
	}
	defer func() { s.buf = giveLargeBack(s.buf) }()
	s.buf = appendBody(append(s.buf[:0], room[:]...))
	was := s.compress()
	err := s.post(operation, was)
	if was > 0 {
		if s.c.compression.answered(err) {
			s.buf, s.plain = s.plain, s.buf
			if err = s.post(operation, 0); err == nil {
				s.c.compression.refused()
			}
		}
		s.plain = giveLargeBack(s.plain)
	}
	if err == nil {
		return s.answer, nil
	}
	if !isAnswer(err) && s.c.run.Err() != nil {
		// The run was stopped, so the connection's error does not matter.
		return nil, &stopped{context.Cause(s.c.run)}
	}
	return nil, err
}

// post sends the body in buf. was is its size before compression, or 0 if it is not compressed.
func (s *Sender) post(operation string, was int) error {
	body := s.buf[headRoom:]
	var sum [md5.Size]byte
	if !s.c.sameMemory {
		sum = md5.Sum(body)
	}
	s.sent = time.Now()
	s.keys = s.c.credentials.GetCredentials()
	header, err := s.c.signWith(s.keys, "/"+operation, s.sent.UTC().Format(dateLayout), sum, was)
	if err != nil {
		return &notSent{fmt.Errorf("sign request: %w", err)}
	}
	s.c.traffic.BytesSent.Add(int64(len(body)))
	if s.c.route != nil {
		return s.send(operation, header, len(body))
	}
	return s.roundTrip(operation, header, body)
}

func (s *Sender) send(operation string, header http.Header, length int) (err error) {
	if s.head, err = appendHead(s.head[:0], "/"+operation, s.c.route.host, header, length); err != nil {
		return &notSent{err}
	}
	l, res, err := s.c.exchange(s.c.run, join(s.buf, s.head, headRoom))
	if err != nil {
		return err
	}
	err = s.read(operation, res)
	s.c.pool.put(l, !res.Close && (err == nil || isAnswer(err)))
	return err
}

// exchange sends a request on a link of the pool and returns the response's head. The caller reads the rest and then
// puts the link back. No sender keeps a link between requests, because another sender may be waiting for it.
func (c *Connection) exchange(ctx context.Context, request []byte) (l *link, res *http.Response, err error) {
	for again := true; ; again = false {
		if l, err = c.pool.take(ctx, c.timeout); err != nil {
			return nil, nil, err
		}
		if res, err = l.send(ctx, request, c.timeout); err == nil {
			c.pool.note(l, time.Now())
			return l, res, nil
		}
		answers := l.answers
		l.abort()
		c.pool.gone(l)
		if unsent := new(notSent); !again || !errors.As(err, &unsent) || answers == 0 {
			return nil, nil, err
		}
		// The service has just closed the idle connection. Try another one.
	}
}

// roundTrip sends the request through base, which replaces the network or talks to a proxy.
func (s *Sender) roundTrip(operation string, header http.Header, sent []byte) error {
	body := &requestBody{rest: sent}
	defer func() {
		if !body.isReleased() {
			s.buf = nil // the transport may still be reading it
		}
	}()
	ctx, cancel := context.WithTimeout(s.c.run, LongestRequest(s.c.timeout))
	defer cancel()
	stalled := time.AfterFunc(s.c.timeout, cancel)
	defer stalled.Stop()
	body.progress = func() { stalled.Reset(s.c.timeout) } // the transport sends what it reads, except for its buffer
	res, err := s.c.base.RoundTrip(s.request(operation, header, body).WithContext(ctx))
	if err == nil {
		err = s.read(operation, res)
	}
	if err != nil && ctx.Err() != nil && !isAnswer(err) {
		return context.DeadlineExceeded // if the run has ended, the caller reports that
	}
	return err
}

func (s *Sender) request(operation string, header http.Header, body *requestBody) *http.Request {
	u := s.urls[operation]
	if u == nil {
		u = &url.URL{Scheme: s.c.endpoint.Scheme, Host: s.c.endpoint.Host, Path: "/" + operation}
		s.urls[operation] = u
	}
	sent := body.rest
	return &http.Request{
		Method: http.MethodPost, URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: int64(len(sent)), Body: body,
		// The transport calls GetBody if it finds an idle connection closed before any byte is sent.
		GetBody: func() (io.ReadCloser, error) { return body.again(sent), nil },
	}
}

func (s *Sender) read(operation string, res *http.Response) (err error) {
	received := time.Now()
	if s.answer, err = s.c.traffic.receive(s.answer[:0], "/"+operation, s.keys, s.c.accept, res,
		s.c.sameMemory); err != nil {
		s.c.access.unsigned(err)
		if res.StatusCode == http.StatusRequestEntityTooLarge && s.answer != nil && !Unsettled(err) {
			// A proxy that refuses a body without reading it closes the connection, so its page may be cut off.
			return refusal(res.StatusCode, nil, "")
		}
		return err
	}
	s.c.traffic.Clock.Answered(res.Header, s.sent, received)
	if res.StatusCode < 200 || res.StatusCode >= 300 {
		err = refusal(res.StatusCode, s.answer, res.Header.Get(headerRequestID))
	}
	return s.c.access.seen("/"+operation, err)
}

// isAnswer reports whether the error is a response of the service or a proxy.
func isAnswer(err error) bool {
	return errors.As(err, new(*tablestore.OtsError))
}

// The largest responses, by kind. Every request in flight may have one in memory.
const (
	maxRefusal = 64 << 10 // an error code and message
	maxWritten = 2 << 20  // for 200 rows, keys of 1 KB or errors
	maxAnswer  = 64 << 20 // rows, or the description of a table
)

var errLongAnswer = errors.New("the response is longer than any valid one")

// mostOf returns the size of the largest response to a request, given the response's status.
func mostOf(path string, status int) int {
	switch {
	case status < 200 || status >= 300:
		return maxRefusal
	case path == "/BatchWriteRow" || path == "/BulkImport":
		return maxWritten
	}
	return maxAnswer
}

// readAll appends the content of r to dst. More than most bytes are an error. size is the length, negative if unknown.
func readAll(dst []byte, r io.Reader, size int64, most int) ([]byte, error) {
	if size > int64(most) {
		return dst, errLongAnswer
	}
	if need := int(max(size, 511)) + 1; cap(dst) < need { // one more byte, so that the end is found without growing
		dst = make([]byte, 0, need)
	}
	for {
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst, err
		}
		if len(dst) > most {
			return dst, errLongAnswer
		}
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, min(len(dst)/2, most+1-len(dst)))
		}
	}
}

// refusal makes the SDK's error from an unsuccessful response.
func refusal(status int, body []byte, requestID string) error {
	e := &tablestore.OtsError{RequestId: requestID, HttpStatusCode: status}
	var ok bool
	if e.Code, e.Message, ok = decodeError(body); ok {
		return e
	}
	// The body is a proxy's page or empty.
	e.Code, e.Message = tablestore.OTS_CLIENT_UNKNOWN, string(body)
	if status >= 500 && status < 600 {
		e.Code = tablestore.SERVER_UNAVAILABLE
	}
	return e
}
