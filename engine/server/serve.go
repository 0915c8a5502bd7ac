package server

import (
	"bytes"
	"cmp"
	"compress/zlib"
	"context"
	"io"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/store"
	"example.com/tsimport/engine/wire"
)

// request is a request over a port or in process. Its body is borrowed until serve returns.
type request struct {
	method string
	path   string
	header http.Header
	body   []byte

	tooLong    bool // body is incomplete, because it exceeds the limit
	sameMemory bool // see Server.SameMemory
}

func (r *request) operation() string { return strings.TrimPrefix(r.path, "/") }

// answer is the response. If cut is set, the connection is cut instead; if truncate is set, it is cut after half the
// body.
type answer struct {
	status   int
	header   http.Header
	body     []byte
	cut      bool
	truncate bool
	reset    bool // with truncate: the connection is reset, not closed

	page *store.Page // owner of body's memory, released after sending; may be nil
}

// serve handles every request. A panic, which is a bug of the engine, is logged and answered.
func (s *Server) serve(ctx context.Context, r *request) (a *answer) {
	if of := s.instanceOf(r.header); of != nil && of != s && !isAdmin(r.path) {
		return of.serve(ctx, r)
	}
	if !s.begin() {
		return s.finish(r, s.identify(r.header), nil, wire.Failf(wire.CodePartitionUnavailable,
			"The server is closed: nothing was applied."))
	}
	defer s.serving.Done()
	defer func() {
		if v := recover(); v != nil {
			s.o.Log.Printf("panic in %q: %v\n%s", r.path, v, debug.Stack())
			a = s.finish(r, s.identify(r.header), nil, wire.Fail(wire.CodeInternalServerError))
		}
	}()
	if isAdmin(r.path) {
		return s.admin(ctx, r)
	}
	secret, op, err := s.admit(r)
	if err != nil {
		return s.finish(r, secret, nil, err)
	}
	body, err := inflate(r)
	if err != nil {
		return s.finish(r, secret, nil, err)
	}
	c, err := op(s, body)
	if err != nil {
		return s.finish(r, secret, nil, err)
	}
	defer c.release()
	return s.injectFault(ctx, r, secret, op, c, body)
}

// admit refuses requests that are not authenticated or whose operation is unknown.
func (s *Server) admit(r *request) (secret string, op operation, err *wire.Error) {
	if r.method != http.MethodPost {
		return s.identify(r.header), nil, wire.Fail(wire.CodeMethodNotAllowed)
	}
	if r.tooLong {
		return s.identify(r.header), nil, wire.Fail(wire.CodeBodyTooLarge)
	}
	if secret, err = s.authenticate(r); err != nil {
		return secret, nil, err
	}
	name := r.operation()
	if op = operations[name]; op != nil {
		return secret, op, nil
	}
	if slices.Contains(unimplemented, name) {
		err = wire.Unsupported("operation " + name)
		err.Message += instead(name)
		return secret, nil, err
	}
	return secret, nil, wire.Invalid("Unsupported operation: %s.", name)
}

func (s *Server) injectFault(ctx context.Context, r *request, secret string, op operation, c call,
	body []byte) *answer {
	plan := s.plan.Load()
	plan.Await(time.Now())
	f := plan.Next(r.operation(), c.rows())
	switch f.Action {
	case faults.Refuse:
		return s.finish(r, secret, nil, wire.Fail(f.Code))
	case faults.DropBefore:
		return &answer{cut: true}
	case faults.BadBody:
		return page(f.Code)
	case faults.Redirect:
		return &answer{status: http.StatusTemporaryRedirect,
			header: http.Header{"Location": {"http://tablestore.invalid" + r.path}}}
	case faults.Hang:
		if f.Applied {
			_, _ = s.carry(ctx, c)
		}
		select {
		case <-ctx.Done():
		case <-s.closing:
		}
		return &answer{cut: true}
	case faults.ApplyLate:
		s.later(r.operation(), op, plan, f, body)
		if f.Code != "" {
			return s.finish(r, secret, nil, wire.Fail(f.Code))
		}
		return &answer{cut: true}
	}
	if f.Action == faults.RefuseRows && f.RowCode != nil {
		c.refuse(f.RowCode)
	}
	out, err := s.carry(ctx, c)
	switch f.Action {
	case faults.DropAfter:
		return &answer{cut: true}
	case faults.AnswerErrorAfter:
		return s.finish(r, secret, nil, wire.Fail(cmp.Or(f.Code, wire.CodeTimeout)))
	case faults.PageAfter:
		return page(f.Code)
	}
	r.sameMemory = r.sameMemory && f.Action != faults.FlipBit // the checksum must reveal it
	a := s.finish(r, secret, out, err)
	if p, ok := c.(*plain); ok {
		a.page, p.page = p.page, nil
	}
	if f.Action == faults.FlipBit && len(a.body) > 0 {
		at := f.Bit % uint64(8*len(a.body))
		a.body = bytes.Clone(a.body)
		a.body[at/8] ^= 1 << (at % 8)
	}
	a.reset = f.Action == faults.ResetBody
	a.truncate = a.reset || f.Action == faults.TruncateBody
	return a
}

// page returns a proxy's answer with the HTTP status in code, or 502 if code is empty.
func page(code string) *answer {
	status, err := strconv.Atoi(code)
	if err != nil {
		status = http.StatusBadGateway
	}
	title := strconv.Itoa(status) + " " + http.StatusText(status)
	body := "<html><head><title>" + title + "</title></head><body>" + title + "</body></html>"
	return &answer{status: status, header: http.Header{"Content-Type": {"text/html"}}, body: []byte(body)}
}

// later applies a request late. It decodes a copy of the body, because the caller may reuse the body by then.
func (s *Server) later(name string, op operation, plan *faults.Plan, f faults.Fault, body []byte) {
	body = bytes.Clone(body)
	s.applyLate(plan, f.Delay, func(ctx context.Context) {
		defer func() {
			if v := recover(); v != nil {
				s.o.Log.Printf("panic in a late %s: %v\n%s", name, v, debug.Stack())
			}
		}()
		if c, err := op(s, body); err == nil {
			c.run(ctx)
			c.release()
		}
	})
}

// finish makes the answer for a body or an error, and signs it if the secret is known.
func (s *Server) finish(r *request, secret string, body []byte, err *wire.Error) *answer {
	a := &answer{status: http.StatusOK, body: body, header: make(http.Header, 8)}
	if err != nil {
		a.status, a.body = err.Status, wire.AppendError(nil, err)
	}
	h := a.header
	if r.header.Get(wire.HeaderResponseCompress) == "deflate" && len(a.body) > 0 {
		h[wire.HeaderResponseCompress] = []string{"deflate"}
		h[wire.HeaderResponseSize] = []string{strconv.Itoa(len(a.body))}
		a.body = deflate(a.body)
	}
	if !r.sameMemory {
		h[wire.HeaderMD5] = []string{md5Text(a.body)}
	}
	h[wire.HeaderRequestID] = []string{s.ids.next()}
	h[wire.HeaderDate] = []string{s.o.Now().UTC().Format("2006-01-02T15:04:05.000Z")}
	h[wire.HeaderContentType] = []string{"protocol buffer"}
	if secret != "" {
		h["Authorization"] = []string{"OTS " + r.header.Get(wire.HeaderAccessKeyID) + ":" +
			wire.SignResponse(secret, r.path, h)}
	}
	h["Content-Length"] = []string{strconv.Itoa(len(a.body))}
	return a
}

func deflate(b []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	w.Write(b) // writing to memory cannot fail
	w.Close()
	return out.Bytes()
}

// inflate returns the body, decompressed if necessary. The declared size must be right and within the limit.
func inflate(r *request) ([]byte, *wire.Error) {
	switch typ := r.header.Get(wire.HeaderRequestCompress); typ {
	case "":
		return r.body, nil
	case "deflate":
	default:
		return nil, wire.Invalid("Unsupported compress type: %s.", typ)
	}
	size, err := strconv.Atoi(r.header.Get(wire.HeaderRequestSize))
	if err != nil || size < 0 {
		return nil, wire.Invalid("Invalid %s.", strings.ToLower(wire.HeaderRequestSize))
	}
	if size > wire.MaxBodyBytes {
		return nil, wire.Fail(wire.CodeBodyTooLarge)
	}
	z, err := zlib.NewReader(bytes.NewReader(r.body))
	if err != nil {
		return nil, wire.Invalid("Uncompress the request data failed.")
	}
	body, err := io.ReadAll(io.LimitReader(z, int64(size)+1))
	if err != nil || len(body) != size {
		return nil, wire.Invalid("Uncompress the request data failed.")
	}
	return body, nil
}
