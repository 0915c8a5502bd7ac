package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/internal/table"
)

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// serveAll responds to every request on a connection until the connection ends.
func serveAll(c net.Conn) {
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		if _, err := io.WriteString(c, okAnswer); err != nil {
			return
		}
	}
}

// atOnce posts n requests from each of several concurrent senders and counts the errors by message.
func atOnce(c *Connection, senders, n int, body string) map[string]int {
	errs := make(chan error, senders*n)
	for range senders {
		go func() {
			s := c.Sender()
			defer s.Close()
			for range n {
				_, err := s.Post("BatchWriteRow", text(body))
				errs <- err
			}
		}()
	}
	failed := map[string]int{}
	for range senders * n {
		if err := <-errs; err != nil {
			failed[fmt.Sprintf("class %d: %v", Classify(err), err)]++
		}
	}
	return failed
}

func connect(t *testing.T, target Target) *Connection {
	t.Helper()
	return conformance.Try(Connect(t.Context(), target, nil)).Must(t)
}

func TestSendersShareAllowedConnections(t *testing.T) {
	const allowed, senders, requests = 4, 32, 20
	var open atomic.Int64
	web := listen(t, func(c net.Conn) {
		defer c.Close()
		if open.Add(1) <= allowed {
			serveAll(c)
		}
		open.Add(-1)
	})
	c := connect(t, Target{Endpoint: web, Instance: "i", AcceptUnsigned: true, Credentials: keys("s"),
		Connections: senders})
	keep := c.Sender() // keeps connections open when other senders end
	defer keep.Close()
	must(t, conformance.ErrorOf(keep.Post("BatchWriteRow", text("x"))))
	if failed := atOnce(c, senders, requests, "x"); len(failed) > 0 {
		n := 0
		for _, k := range failed {
			n += k
		}
		// Each sender may once get a connection that exceeds the limit.
		conformance.True(t, n <= 2*senders, "%d of %d requests failed: %v", n, senders*requests, failed)
	}
	room := c.Room()
	conformance.True(t, room <= 2*allowed, "room for %d requests where %d connections are allowed", room, allowed)
}

func TestSendersShareConnectionsIfDialFails(t *testing.T) {
	const allowed, senders, requests = 4, 32, 20
	l := conformance.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	accepted := make(chan struct{})
	go func() {
		for n := 0; n < allowed; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serveAll(c)
			}()
		}
		l.Close() // refuses further connections
		close(accepted)
	}()
	c := connect(t, Target{Endpoint: "http://" + l.Addr().String(), Instance: "i", AcceptUnsigned: true,
		Credentials: keys("s"), Connections: senders})
	var links []*link
	for range allowed {
		l := conformance.Try(c.pool.take(t.Context(), time.Minute)).Must(t)
		c.pool.note(l, time.Now())
		links = append(links, l)
	}
	<-accepted
	for _, l := range links {
		c.pool.put(l, true)
	}
	defer c.Sender().Close() // keeps the links open when the last other sender ends
	failed := atOnce(c, senders, requests, "x")
	conformance.True(t, len(failed) == 0, "%v", failed)
	room := c.Room()
	conformance.True(t, room <= 2*allowed, "room for %d requests where %d connections can be made", room, allowed)
}

// A link opened by a request of the SDK ends with the run, not with that request, so that other senders can use it.
func TestLinkEndsWithRunAfterSDKRequest(t *testing.T) {
	c := connect(t, unsignedAt(listen(t, serveAll)))
	for range 2 { // the first request uses a new link, the second one the same link
		_, err := c.Transport().RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/ListTable", nil))
		l := c.pool.free[0]
		conformance.True(t, err == nil && l.run == c.run && l.stop(), "%v, or the link ends with the request", err)
	}
}

func TestOldBusyConnectionIsRenewed(t *testing.T) {
	var connections atomic.Int64
	web := listen(t, func(c net.Conn) { connections.Add(1); serveAll(c); c.Close() })
	s := sender(t, t.Context(), unsignedAt(web))
	defer s.Close()
	for i := range 6 {
		must(t, conformance.ErrorOf(s.Post("BatchWriteRow", text("x"))))
		if i%2 == 0 {
			s.c.pool.free[0].until = time.Now()
		}
	}
	conformance.Equal(t, connections.Load(), 3, "connections")
}

func TestDownServiceDoesNotLowerLimit(t *testing.T) {
	c := connect(t, Target{Endpoint: "http://127.0.0.1:1", Instance: "i", AcceptUnsigned: true, Credentials: keys("s"),
		Connections: 16})
	for what := range atOnce(c, 16, 3, "x") {
		conformance.Equal(t, strings.HasPrefix(what, fmt.Sprintf("class %d:", Unavailable)), true, "%s", what)
	}
	conformance.Equal(t, c.Room(), 16, "room for requests")
}

func TestConnectionLimitIsRaisedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(nil, 100)
		p.short(10)
		for _, want := range []int{10, 11, 13, 17} {
			conformance.Equal(t, p.room(), want, "room")
			time.Sleep(firstRaise)
		}
		p.short(10)
		time.Sleep(firstRaise)
		conformance.Equal(t, p.room(), 10, "room right after it was too early")
		time.Sleep(time.Hour)
		for range 10 {
			p.room()
			time.Sleep(lastRaise)
		}
		conformance.Equal(t, p.room(), 100, "room at last")
	})
}

// A link that ends without a response is one too many only while other links work.
func TestUnansweredLinkLowersLimitIfOthersWork(t *testing.T) {
	for _, c := range []struct {
		answers, proven int
		silent          time.Duration // time since the last response when the link was made
		want            int
	}{{0, 1, 0, 1}, {0, 3, 0, 3}, {0, 0, 0, 8}, {1, 2, 0, 8}, {0, 1, alive, 8}, {0, 1, alive - 1, 1}} {
		ours, _ := net.Pipe()
		p, now := newPool(nil, 8), time.Now()
		p.open, p.proven, p.answered = 5, c.proven, now.Add(-c.silent)
		p.gone(&link{conn: ours, stop: func() bool { return true }, answers: c.answers, born: now})
		conformance.True(t, p.limit == c.want && p.open == 4, "%+v: limit %d, open %d", c, p.limit, p.open)
	}
}

func TestIdleLinksAreClosed(t *testing.T) {
	p, now := newPool(nil, 8), time.Now()
	for _, idle := range []time.Duration{idleTimeout + time.Second, idleTimeout, time.Second, 0} {
		ours, _ := net.Pipe()
		p.free = append(p.free, &link{conn: ours, plain: ours, reader: bufio.NewReader(ours), used: now.Add(-idle),
			stop: func() bool { return true }, answers: 1})
	}
	p.open, p.proven = 4, 4
	newest, other := p.free[3], p.free[2]
	conformance.True(t, p.pop() == newest && p.open == 2 && p.proven == 2, "%+v", p)
	conformance.Same(t, p.free, []*link{other}, "links left")
}

func TestWaitForLinkEndsWithRun(t *testing.T) {
	p, why := newPool(nil, 1), errors.New("the user stopped")
	p.open = 1
	run, stop := context.WithCancelCause(t.Context())
	stop(why)
	conformance.Is(t, conformance.ErrorOf(p.take(run, time.Minute)), why, "error")
	conformance.Equal(t, p.waiting, 0, "waiting senders")
}

// refusingKeys is a transport that responds to requests as told.
func refusingKeys(answers *[]string) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			r.Body.Close()
		}
		a := (*answers)[0]
		*answers = (*answers)[1:]
		if a == "" {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
		}
		body := "\n\x0dOTSAuthFailed\x12" + string(rune(len(a))) + a
		return &http.Response{StatusCode: 403, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func TestRefusalOfAcceptedKeysIsTemporary(t *testing.T) {
	const vpc = "Request denied because this instance can only be accessed from the binded VPC."
	const patience = time.Minute
	synctest.Test(t, func(t *testing.T) {
		var answers []string
		target := Target{Endpoint: "http://made-up", Instance: "i", AcceptUnsigned: true, Credentials: keys("s"),
			Transport: refusingKeys(&answers), KeyPatience: patience}
		s := sender(t, t.Context(), target)
		sdk := sdkOf(t, target)
		for name, ask := range map[string]func() error{
			"our connection": func() error { _, err := s.Post("ListTable", text("")); return err },
			"the SDK's":      func() error { _, err := sdk.ListTable(); return err },
		} {
			classes := func(of ...string) (got []Class) {
				answers = of
				for range of {
					if err := ask(); err != nil {
						got = append(got, Classify(err))
						conformance.Contains(t, Describe(err), "OTSAuthFailed", "%s", name)
					}
				}
				return got
			}
			for _, tt := range []struct {
				answers []string
				wait    time.Duration
				want    []Class
			}{
				{[]string{"no"}, 0, []Class{Fatal}},
				{[]string{"", "no", "no", ""}, 0, []Class{Unavailable, Unavailable}},
				{[]string{vpc}, 0, []Class{Fatal}},
				{[]string{"no"}, patience, []Class{Unavailable}},
				{[]string{"no"}, 0, []Class{Fatal}},
				{[]string{"", "no"}, 0, []Class{Unavailable}},
			} {
				conformance.Same(t, classes(tt.answers...), tt.want, "%s, %q: classes", name, tt.answers)
				time.Sleep(tt.wait)
			}
		}
	})
}

type forgetful struct{}

func (forgetful) GetCredentials() common.Credentials { return &common.DefaultCredentials{} }

func TestUnsignableRequestIsNotSent(t *testing.T) {
	sent := 0
	target := Target{Endpoint: "http://made-up", Instance: "i", AcceptUnsigned: true, Credentials: forgetful{},
		Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			sent++
			return nil, io.EOF
		})}
	_, err := sender(t, t.Context(), target).Post("BatchWriteRow", text("x"))
	conformance.Equal(t, Classify(err), Unavailable, "class of %v", err)
	conformance.Equal(t, sent, 0, "sent")
}

// broken is a network that fails requests before or after the service receives them.
type broken struct {
	http.RoundTripper
	fail  error
	times int // number of requests that fail, beginning with the first
	after bool
	page  int // if not 0, requests fail with an HTML page of this status instead of fail
	sent  int
}

func (b *broken) RoundTrip(r *http.Request) (*http.Response, error) {
	b.sent++
	if b.sent > b.times {
		return b.RoundTripper.RoundTrip(r)
	}
	if b.after {
		res, err := b.RoundTripper.RoundTrip(r)
		if err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
	}
	if b.page > 0 {
		return &http.Response{StatusCode: b.page, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader("<html><body>not now</body></html>")), Request: r}, nil
	}
	return nil, b.fail
}

type timedOut struct{}

func (timedOut) Error() string   { return "timed out" }
func (timedOut) Timeout() bool   { return true }
func (timedOut) Temporary() bool { return true }

var (
	refusedDial = &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 80},
		Err: syscall.ECONNREFUSED}
	noSuchHost = &net.DNSError{Err: "no such host", Name: "nowhere", IsNotFound: true}
	noResolver = &net.DNSError{Err: "server misbehaving", Name: "somewhere", IsTemporary: true}
)

// unreachable returns an Admin of a service that cannot be reached at first.
func unreachable(t *testing.T, fail error, times int, after bool) (*Admin, *broken) {
	t.Helper()
	target := embedded(t, new(faults.Plan))
	b := &broken{RoundTripper: target.Transport, fail: fail, times: times, after: after}
	target.Transport = b
	return &Admin{Client: sdkOf(t, target), Context: t.Context(), ReachFor: time.Minute}, b
}

var (
	stringKey = []table.KeyColumn{{Name: "s", Type: table.String}}
	defaults  = table.Definition{TimeToLive: -1, MaxVersions: 1}
)

func TestAdminWaitsForEndpoint(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fail  error
		after bool
		page  int
	}{
		"nothing comes in": {fail: fmt.Errorf("no data arrived for 30s: %w", context.DeadlineExceeded)},
		"a page of 503":    {page: 503}, "a page of 502": {page: 502}, "a page of 504, applied": {page: 504, after: true},
		"refused": {fail: refusedDial}, "the resolver is down": {fail: noResolver}, "cut off": {fail: io.ErrUnexpectedEOF},
		"timed out": {fail: timedOut{}}, "timed out, applied": {fail: timedOut{}, after: true},
		"reset, applied": {fail: syscall.ECONNRESET, after: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := unreachable(t, tt.fail, 2, tt.after)
			b.page = tt.page
			told := 0
			a.OnWait = func(why string, most time.Duration) {
				told++
				conformance.True(t, why != "" && most == time.Minute, "%q for %v", why, most)
			}
			err := a.Create("t", stringKey, defaults)
			conformance.True(t, err == nil && b.sent >= 3 && told == 1, "%v after %d requests, told %d times", err, b.sent, told)
		})
	}
}

func TestAdminDoesNotWaitForWrongEndpoint(t *testing.T) {
	for name, tt := range map[string]struct {
		fail error
		want string
	}{
		"no such host":        {noSuchHost, "cannot find host nowhere; check --endpoint"},
		"another certificate": {errors.New("tls: failed to verify certificate"), "certificate"},
	} {
		a, b := unreachable(t, tt.fail, 1000, false)
		a.OnWait = func(string, time.Duration) { t.Errorf("%s: it waits", name) }
		conformance.Refused(t, conformance.ErrorOf(a.Describe("t")), tt.want, "%s", name)
		conformance.Equal(t, b.sent, 1, "requests")
	}
	a, b := unreachable(t, refusedDial, 1000, false)
	a.ReachFor = 0 // as if a user were waiting at a terminal
	_, err := a.Describe("t")
	conformance.True(t, err != nil && strings.Contains(err.Error(), "cannot connect to 10.0.0.1:80") && b.sent == 1,
		"%v after %d requests", err, b.sent)
}

func TestWaitForEndpointEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		a := &Admin{Context: context.Background(), ReachFor: time.Minute}
		begun := time.Now()
		err := a.try(func() error { requests++; return refusedDial })
		took := time.Since(begun)
		conformance.True(t, errors.Is(err, syscall.ECONNREFUSED) && took >= time.Minute && took <= 2*time.Minute &&
			requests <= 100, "%v after %d requests in %v", err, requests, took)
		ctx, stop := context.WithCancelCause(context.Background())
		a.Context = ctx
		time.AfterFunc(time.Second, func() { stop(errors.New("the user stopped")) })
		err = a.try(func() error { return refusedDial })
		conformance.True(t, err != nil && err.Error() == "the user stopped", "%v", err)
	})
}

// A table created by another process must not be mistaken for the table whose creation was not confirmed.
func TestCreateAcceptsOnlyItsOwnTableAfterALostResponse(t *testing.T) {
	for name, tt := range map[string]struct {
		key  []table.KeyColumn
		d    table.Definition
		ours bool
	}{
		"as asked for":    {stringKey, defaults, true},
		"another key":     {[]table.KeyColumn{{Name: "n", Type: table.Integer}}, defaults, false},
		"another ttl":     {stringKey, table.Definition{TimeToLive: 86400, MaxVersions: 1}, false},
		"more versions":   {stringKey, table.Definition{TimeToLive: -1, MaxVersions: 3}, false},
		"other deviation": {stringKey, table.Definition{TimeToLive: -1, MaxVersions: 1, MaxDeviation: 1000}, false},
	} {
		a, b := unreachable(t, nil, 0, false)
		must(t, a.Create("t", tt.key, tt.d))
		b.fail, b.times, b.sent = timedOut{}, 1, 0 // the first request is lost before it arrives
		err := a.Create("t", stringKey, defaults)
		conformance.True(t, tt.ours == (err == nil) && (err == nil || errors.Is(err, ErrTableExists)), "%s: %v", name, err)
		b.fail, b.sent = refusedDial, 0 // no request can have created it
		conformance.Is(t, a.Create("t", stringKey, defaults), ErrTableExists, "%s, after a refused connection", name)
	}
}

// silentAtFirst does not respond to requests until a given time, and then responds with an error page.
type silentAtFirst struct {
	serves   time.Time
	requests atomic.Int64
}

func (s *silentAtFirst) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests.Add(1)
	if time.Now().Before(s.serves) {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}
	return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Request: r}, nil
}

func TestUnansweredDescribeIsRepeated(t *testing.T) {
	for _, c := range []struct {
		name     string
		lasts    time.Duration
		stop     time.Duration // 0 means never
		took     time.Duration
		requests int64
	}{
		{"a service that answers", 0, 0, 0, 1},
		{"silence of some seconds", 5 * time.Second, 0, 6 * time.Second, 4},
		{"silence that is longer than the time-out", time.Hour, 0, 29 * time.Second, 15},
		{"a load that is stopped", time.Hour, 3 * time.Second, 3 * time.Second, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.stop > 0 {
					time.AfterFunc(c.stop, cancel)
				}
				base := &silentAtFirst{serves: time.Now().Add(c.lasts)}
				sdk, err := New(run, Target{Endpoint: "http://tablestore.test", Instance: "i", AcceptUnsigned: true,
					Credentials: keys("s"), Transport: base, RequestTimeout: 29 * time.Second}, nil)
				must(t, err)
				begun := time.Now()
				_, _, err = (&Admin{Client: sdk}).describe("t")
				conformance.True(t, err != nil, "there is no table to describe")
				took := time.Since(begun).Round(time.Second)
				conformance.True(t, took == c.took && base.requests.Load() == c.requests, "%v, %d", took, base.requests.Load())
			})
		})
	}
}

// pieces is a response whose bytes arrive one by one, each after a pause.
type pieces struct {
	ctx   context.Context
	text  string
	pause time.Duration
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	select {
	case <-time.After(p.pause):
	case <-p.ctx.Done():
		return 0, p.ctx.Err()
	}
	n := copy(b[:1], p.text)
	p.text = p.text[n:]
	return n, nil
}

func (p *pieces) Close() error { return nil }

// slowly is a transport that responds in pieces, with this pause.
type slowly time.Duration

func (pause slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: -1,
		Body: &pieces{r.Context(), "answer", time.Duration(pause)}}, nil
}

func TestSlowResponseIsReadCompletely(t *testing.T) {
	for name, c := range map[string]struct {
		pause  time.Duration
		stalls bool
	}{"slow": {900 * time.Millisecond, false}, "stalled": {1100 * time.Millisecond, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &transport{base: slowly(c.pause), run: t.Context(), timeout: time.Second,
					keys: &signedWith{CredentialsProvider: keys("s")}, accept: true, traffic: new(Traffic)}
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://service/ListTable", nil)
				began := time.Now()
				res, err := to.RoundTrip(r)
				took := time.Since(began)
				if c.stalls {
					conformance.True(t, errors.Is(err, context.DeadlineExceeded) &&
						strings.Contains(err.Error(), "no data arrived for 1s") && took == time.Second,
						"%v after %v", err, took)
					return
				}
				conformance.MustTrue(t, err == nil && took == 6*c.pause, "%v after %v", err, took)
				body, err := io.ReadAll(res.Body)
				conformance.True(t, string(body) == "answer" && err == nil, "%q, %v", body, err)
			})
		})
	}
}

// whole receives the body of a request like an engine in the same process.
type whole struct{ pieces [][]byte }

func (w *whole) Write(p []byte) (int, error) {
	w.pieces = append(w.pieces, p)
	return len(p), nil
}

func TestBodyIsPassedWithoutCopy(t *testing.T) {
	sent := []byte("rows of a request")
	told := 0
	b := &requestBody{rest: sent, progress: func() { told++ }}
	n, err := io.ReadFull(b, make([]byte, 4))
	conformance.MustTrue(t, n == 4 && err == nil, "%v %v", n, err)
	var to whole
	for range 2 {
		must(t, conformance.ErrorOf(b.WriteTo(&to)))
	}
	conformance.True(t, len(to.pieces) == 1 && &to.pieces[0][0] == &sent[4] && len(to.pieces[0]) == len(sent)-4 &&
		told == 2, "%q, progress %d times", to.pieces, told)
	n, err = b.Read(make([]byte, 4))
	conformance.True(t, n == 0 && err == io.EOF, "%d bytes more, %v", n, err)
}
