package client

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
	"github.com/google/go-cmp/cmp"

	"example.com/tsimport/internal/conformance"
)

var must = conformance.Must

func TestMain(m *testing.M) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		os.Unsetenv(name) // before net/http reads it, once, and uses this machine's proxy
	}
	conformance.Main(m)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func sender(t *testing.T, ctx context.Context, target Target) *Sender {
	t.Helper()
	return conformance.Try(Connect(ctx, target, nil)).Must(t).Sender()
}

func text(s string) func([]byte) []byte { return func(dst []byte) []byte { return append(dst, s...) } }

func TestSignaturesEqualSDK(t *testing.T) {
	const alphabet = " \taZ09:/+=\x80é\n-_"
	rnd := rand.New(rand.NewPCG(5, 23))
	random := func() string {
		b := make([]byte, rnd.IntN(12))
		for i := range b {
			b[i] = alphabet[rnd.IntN(len(alphabet))]
		}
		return string(b)
	}
	signed := 0
	for range 400 {
		keys := &common.DefaultCredentials{AccessKeyID: random(), AccessKeySecret: random(), SecurityToken: random()}
		c := &Connection{instance: random()}
		date, path := random(), "/"+random()
		got, err := c.signWith(keys, path, date, [md5.Size]byte{byte(rnd.Uint32())}, rnd.IntN(2)*rnd.IntN(5000))
		unsigned := got.Clone()
		if err == nil {
			signed++
			unsigned.Del(headerSignature)
		} else {
			unsigned = http.Header{headerDate: {date}, headerAccessKeyID: {keys.AccessKeyID}, headerInstance: {c.instance},
				headerMD5: {"sum"}, headerAPIVersion: {tablestore.ApiVersion}}
		}
		want, wantErr := tablestore.GetSignature(path, http.MethodPost, keys, unsigned)
		conformance.MustTrue(t, (err == nil) == (wantErr == nil) && (err != nil || got.Get(headerSignature) == want),
			"ours %q, %v; the SDK's %q, %v; for %q", got.Get(headerSignature), err, want, wantErr, unsigned)
	}
	conformance.True(t, signed >= 100, "%d requests could be signed", signed)
}

func TestRefusalsAreSDKErrors(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		want   tablestore.OtsError
	}{
		{503, "\n\x0dOTSServerBusy\x12\x04busy", tablestore.OtsError{Code: "OTSServerBusy", Message: "busy"}},
		{403, "\n\x0dOTSAuthFailed", tablestore.OtsError{Code: "OTSAuthFailed"}},
		{502, "<html>gateway</html>", tablestore.OtsError{Code: "OTSServerUnavailable", Message: "<html>gateway</html>"}},
		{404, "not here", tablestore.OtsError{Code: tablestore.OTS_CLIENT_UNKNOWN, Message: "not here"}},
		{307, "", tablestore.OtsError{Code: tablestore.OTS_CLIENT_UNKNOWN}},
		{400, "\x12\x04code", tablestore.OtsError{Code: tablestore.OTS_CLIENT_UNKNOWN, Message: "\x12\x04code"}},
	} {
		target := via(roundTrip(func(r *http.Request) (*http.Response, error) {
			r.Body.Close()
			header := http.Header{headerRequestID: {"r1"}}
			return &http.Response{StatusCode: tt.status, Header: header, ContentLength: -1,
				Body: io.NopCloser(strings.NewReader(tt.body))}, nil
		}))
		tt.want.RequestId, tt.want.HttpStatusCode = "r1", tt.status
		_, err := sender(t, t.Context(), target).Post("BatchWriteRow", text("x"))
		var got *tablestore.OtsError
		conformance.True(t, errors.As(err, &got) && *got == tt.want, "HTTP %d with %q: %#v", tt.status, tt.body, err)
		if tt.status == 307 {
			continue // the SDK would follow the redirect
		}
		_, err = sdkOf(t, target).ListTable()
		conformance.Equal(t, cmp.Diff(err, error(got)), "", "HTTP %d with %q: the SDK says %#v", tt.status, tt.body, err)
	}
}

func TestRequestIsRetriedOnAClosedIdleConnection(t *testing.T) {
	closed := make(chan bool)
	web := listen(t, func(c net.Conn) {
		// Each connection serves one request and is then closed without warning.
		if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
		c.Close()
		closed <- true
	})
	s := sender(t, t.Context(), unsignedAt(web))
	for range 20 {
		conformance.MustEqual(t, string(conformance.Try(s.Post("BatchWriteRow", text("x"))).Must(t)), "ok", "answer")
		<-closed
		waitFor(t, func() bool { return pending(s.c.pool.free[0].plain) })
	}
}

// waitFor waits until arrived reports that the actions of the other end are visible here.
func waitFor(t *testing.T, arrived func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !arrived(); runtime.Gosched() {
		conformance.MustEqual(t, time.Now().After(end), false, "nothing arrives")
	}
}

func TestAllFramingsOfResponsesAreRead(t *testing.T) {
	refused := "HTTP/1.1 413 Too Large\r\nContent-Length: 6\r\n\r\n\n\x04Code"
	for name, tt := range map[string]struct {
		answer, want, err string
	}{
		"chunks": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
			"abc", ""},
		"to the end":        {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc", "abc", ""},
		"100 before it":     {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "abc", ""},
		"nothing":           {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", ""},
		"a refusal":         {refused, "", "Code"},
		"the last response": {strings.Replace(refused, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1), "", "Code"},
	} {
		var connections atomic.Int64
		web := listen(t, func(c net.Conn) {
			defer c.Close()
			connections.Add(1)
			in := bufio.NewReader(c)
			for {
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(c, tt.answer)
				if strings.Contains(tt.answer, "close") {
					return
				}
			}
		})
		s := sender(t, t.Context(), unsignedAt(web))
		for range 3 {
			answer, err := s.Post("BatchWriteRow", text("x"))
			conformance.True(t, tt.err != "" || err == nil && string(answer) == tt.want, "%s: %q, %v", name, answer, err)
			var ots *tablestore.OtsError
			conformance.True(t, tt.err == "" || errors.As(err, &ots) && ots.Code == tt.err, "%s: %v", name, err)
		}
		want := int64(1)
		if strings.Contains(tt.answer, "close") {
			want = 3
		}
		conformance.Equal(t, connections.Load(), want, "%s: connections for 3 requests", name)
		s.Close()
	}
}

func TestUnreadRequestIsRefused(t *testing.T) {
	web := listen(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 1000))
		_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 6\r\n\r\n\n\x04Code")
		// Closing with unread bytes would send a reset, which may overtake the response.
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		c.Close()
	})
	_, err := sender(t, t.Context(), unsignedAt(web)).Post("BatchWriteRow", text(strings.Repeat("x", 4<<20)))
	ots, ok := errors.AsType[*tablestore.OtsError](err)
	conformance.True(t, ok && ots.Code == "Code" && ots.HttpStatusCode == 413, "%v", err)
}

func TestLongHeadPrecedesBody(t *testing.T) {
	for _, length := range []int{10, 1000, 2000, 5000} {
		token := strings.Repeat("t", length)
		web := listen(t, func(c net.Conn) {
			defer c.Close()
			r, err := http.ReadRequest(bufio.NewReader(c))
			if err != nil {
				return
			}
			body, _ := io.ReadAll(r.Body)
			answer := fmt.Sprint(r.Header.Get(headerToken) == token, r.Method, r.Host != "", r.URL.Path, string(body))
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
		})
		provider := &common.DefaultCredentialsProvider{AccessKeyID: "id", AccessKeySecret: "s", SecurityToken: token}
		s := sender(t, t.Context(), Target{Endpoint: web, Instance: "i", AcceptUnsigned: true, Credentials: provider})
		answer, err := s.Post("BatchWriteRow", text("body"))
		conformance.True(t, err == nil && string(answer) == "truePOSTtrue/BatchWriteRowbody", "%d: %s", length, answer)
	}
}

func TestHeadersCannotBeInjected(t *testing.T) {
	for _, id := range []string{"id\r\nX-Evil: 1", "\nX-Evil: 1", "Evil\x7f", "Evil\x1f"} {
		target := unsignedAt("http://127.0.0.1:1")
		target.Credentials = &common.DefaultCredentialsProvider{AccessKeyID: id, AccessKeySecret: "secret"}
		_, err := sender(t, t.Context(), target).Post("BatchWriteRow", text("x"))
		conformance.True(t, err != nil && strings.Contains(err.Error(), "Accesskeyid") &&
			!strings.Contains(err.Error(), "Evil"), "%q: %v", id, err)
	}
}

func TestProxyIsUsed(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.URL.String()+" "+string(body))
	}))
	defer proxy.Close()
	c := connect(t, unsignedAt("http://ots.invalid"))
	c.route, c.base = nil, &http.Transport{Proxy: http.ProxyURL(conformance.Try(url.Parse(proxy.URL)).Must(t))}
	s := c.Sender()
	for range 2 {
		answer, err := s.Post("BatchWriteRow", text("x"))
		conformance.True(t, err == nil && string(answer) == "http://ots.invalid/BatchWriteRow x", "%q, %v", answer, err)
	}
}

func TestAllNotationsOfEndpointsWork(t *testing.T) {
	for listenOn, endpoints := range map[string][]string{
		"127.0.0.1:0": {"http://127.0.0.1:PORT", "http://127.0.0.1:PORT/", "HTTP://127.0.0.1:PORT", "http://localhost:PORT"},
		"[::1]:0":     {"http://[::1]:PORT", "http://[::1]:PORT/", "http://[::1%25lo]:PORT", "http://[0:0:0:0:0:0:0:1]:PORT"},
	} {
		l, err := net.Listen("tcp", listenOn)
		if err != nil {
			t.Logf("not tried: %v", err)
			continue
		}
		web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, r.Host)
		})}
		go func() { _ = web.Serve(l) }()
		t.Cleanup(func() { web.Close() })
		_, port, _ := net.SplitHostPort(l.Addr().String())
		for _, endpoint := range endpoints {
			endpoint = strings.Replace(endpoint, "PORT", port, 1)
			s := sender(t, t.Context(), unsignedAt(endpoint))
			got, err := s.Post("BatchWriteRow", text("x"))
			u, _ := url.Parse(endpoint)
			res, httpErr := http.Get(u.String())
			if err != nil || httpErr != nil {
				t.Errorf("%s: %v, net/http: %v", endpoint, err, httpErr)
				continue
			}
			want, _ := io.ReadAll(res.Body)
			res.Body.Close()
			conformance.Equal(t, string(got), string(want), "%s: host", endpoint)
			s.Close()
		}
	}
	for endpoint, direct := range map[string]bool{
		"https://i.cn-hangzhou.ots.aliyuncs.com": true, "http://[::1]": true, "http://h:1": true,
		"http://b\u00fccher.example": false, "http://[fe80::1%25eth0]:80": false, "http://h:": false,
	} {
		conformance.Equal(t, (newRoute(conformance.Try(url.Parse(endpoint)).Must(t)) != nil), direct, "%s", endpoint)
	}
}

func TestRequestEndsWithTimeout(t *testing.T) {
	web := listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c); c.Close() })
	s := sender(t, t.Context(), Target{Endpoint: web, Instance: "i", AcceptUnsigned: true, Credentials: keys("s"),
		RequestTimeout: 30 * time.Millisecond})
	_, err := s.Post("BatchWriteRow", text("x"))
	conformance.True(t, err != nil && Classify(err) == Ambiguous, "%v", err)
}

func TestBodyInUseIsNotOverwritten(t *testing.T) {
	var held []io.ReadCloser
	target := via(roundTrip(func(r *http.Request) (*http.Response, error) {
		held = append(held, r.Body) // responds without reading the body
		return &http.Response{StatusCode: 200, Body: io.NopCloser(new(bytes.Buffer))}, nil
	}))
	s := sender(t, t.Context(), target)
	for _, body := range []string{"first", "other", "third"} {
		must(t, conformance.ErrorOf(s.Post("BatchWriteRow", text(body))))
	}
	for i, want := range []string{"first", "other", "third"} {
		got, _ := io.ReadAll(held[i])
		conformance.Equal(t, string(got), want, "request %d sends %q, want", i, got)
	}
}

// listen serves each connection with serve until the test ends, and returns the endpoint.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l := conformance.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return "http://" + l.Addr().String()
}

// TestGatewayRefusingUnreadBodyIsRecognised imitates nginx, which checks only Content-Length, sends 413 and closes.
func TestGatewayRefusingUnreadBodyIsRecognised(t *testing.T) {
	web := listen(t, func(c net.Conn) {
		defer c.Close()
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		page := "<html>413 Request Entity Too Large</html>"
		_, _ = fmt.Fprintf(c, "HTTP/1.1 413 Too Large\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(page), page)
	})
	body := make([]byte, 7<<20)
	for range 10 {
		s := sender(t, t.Context(), unsignedAt(web))
		_, err := s.Post("BatchWriteRow", func(dst []byte) []byte { return append(dst, body...) })
		conformance.True(t, Classify(err) == Ambiguous && (TooLarge(err) || CutWhileSending(err)), "%v", err)
		s.Close()
	}
}

// echo reads a request and responds with a short text.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, "ok")
})

func TestTLSCertificateIsChecked(t *testing.T) {
	web, made, _ := counting(t, (*httptest.Server).StartTLS, echo)
	c := connect(t, unsignedAt(web.URL))
	conformance.Refused(t, conformance.ErrorOf(c.Sender().Post("BatchWriteRow", text("x"))), "", "its own certificate")
	made.Store(0)
	c.route.tls.RootCAs = web.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	s := c.Sender()
	defer s.Close()
	for range 20 {
		answer, err := s.Post("BatchWriteRow", text(strings.Repeat("x", 100_000)))
		conformance.MustTrue(t, err == nil && string(answer) == "ok", "%q, %v", answer, err)
	}
	conformance.Equal(t, made.Load(), 1, "connections for 20 requests")
}

func TestSendersReuseAndCloseConnections(t *testing.T) {
	for _, senders := range []int{32, 256} {
		web, made, open := counting(t, (*httptest.Server).Start, echo)
		target := unsignedAt(web.URL)
		target.Connections = senders
		failed := atOnce(connect(t, target), senders, 1+640/senders, strings.Repeat("x", 100_000))
		conformance.True(t, len(failed) == 0, "%v", failed)
		n := made.Load()
		conformance.True(t, n <= int64(senders), "%d connections for %d senders", n, senders)
		waitFor(t, func() bool { return open.Load() == 0 })
	}
}

func TestCutConnectionIsAmbiguousUnlessUnsent(t *testing.T) {
	const length = "HTTP/1.1 200 OK\r\nContent-Length: "
	for _, answer := range []string{"", length + "10\r\n\r\nhalf", length + "999999999999\r\n\r\n", "nonsense\r\n\r\n"} {
		web := listen(t, func(c net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_, _ = io.WriteString(c, answer)
			c.Close()
		})
		_, err := sender(t, t.Context(), unsignedAt(web)).Post("BatchWriteRow", text("x"))
		conformance.True(t, err != nil && Classify(err) == Ambiguous, "%q: %v", answer, err)
		_, err = sender(t, t.Context(), unsignedAt(strings.Replace(web, "http", "https", 1))).Post("BatchWriteRow", text("x"))
		conformance.True(t, Classify(err) == Unavailable && strings.Contains(Describe(err), "TLS"), "%v", err)
	}
	_, err := sender(t, t.Context(), unsignedAt("http://127.0.0.1:1")).Post("BatchWriteRow", text("x"))
	conformance.Equal(t, Classify(err), Unavailable, "a refused connection: %v", err)
}

// A response replayed by an intermediary has a valid checksum and signature. Only the request ID reveals the replay.
func TestReplayedResponseHasUnknownOutcome(t *testing.T) {
	traffic := new(Traffic)
	answer := func(id string) error {
		header := http.Header{}
		if id != "" {
			header.Set(headerRequestID, id)
		}
		return traffic.check("/BatchWriteRow", nil, true, &http.Response{StatusCode: 200, Header: header}, nil, false)
	}
	for i := range 1000 {
		conformance.MustEqual(t, answer(fmt.Sprint("request ", i)), nil, "answer %d", i)
	}
	err := answer("request 999")
	conformance.True(t, errors.Is(err, errReplayed) && damaged(err), "the same answer again: %v", err)
	for range 2 {
		conformance.Equal(t, answer(""), nil, "an answer without an id")
	}
}

func TestEndpointWithWrongSchemeIsPermanent(t *testing.T) {
	t.Parallel()
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	plain, secure := httptest.NewServer(nothing), httptest.NewTLSServer(nothing)
	defer plain.Close()
	defer secure.Close()
	rude := conformance.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer rude.Close()
	go func() {
		for {
			c, err := rude.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("<html>bad request</html>"))
			_ = c.Close()
		}
	}()
	for _, endpoint := range []string{"https://" + rude.Addr().String(), "https" + strings.TrimPrefix(plain.URL, "http"),
		"http" + strings.TrimPrefix(secure.URL, "https")} {
		_, err := admin(t, Target{Endpoint: endpoint, Instance: "i", Credentials: keys("b")}).Describe("t")
		conformance.True(t, WrongScheme(err) && strings.Contains(err.Error(), "https://"), "%s: %v", endpoint, err)
	}
}

func TestReadFailsAfterTheRunIsStopped(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	run, stop := context.WithCancelCause(t.Context())
	why := errors.New("the user stopped")
	stop(why)
	l := &link{conn: ours, run: run, timeout: time.Minute, last: time.Now().Add(time.Minute)}
	conformance.Is(t, conformance.ErrorOf((*arriving)(l).Read(make([]byte, 1))), why, "error")
}

// No byte of a request is sent on a link that is closed, so the request can be repeated on another one.
func TestRequestOnClosedLinkIsUnsent(t *testing.T) {
	ours, theirs := net.Pipe()
	theirs.Close()
	_, err := (&link{conn: ours, plain: ours}).send(t.Context(), []byte("x"), time.Minute)
	conformance.Equal(t, Classify(err), Unavailable, "class of %v", err)
}
