package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

// patience ends a hanging test; no test passes or fails by duration.
const patience = 5 * time.Minute

func onPort(t testing.TB, s *Server, limits Limits) (addr string) {
	t.Helper()
	listener := conformance.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.ServeListener(ctx, listener, limits) }()
	t.Cleanup(func() {
		stop()
		conformance.Equal(t, <-ended, nil, "error")
	})
	return listener.Addr().String()
}

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c := conformance.Try(net.Dial("tcp", addr)).Must(t)
	c.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { c.Close() })
	return c
}

// exchange sends text over a new connection and returns a function that waits for the response until the server closes.
func exchange(t testing.TB, addr, text string) (answer func() string) {
	t.Helper()
	c := dial(t, addr)
	io.WriteString(c, text) // the server may have refused it before its end
	return func() string {
		back, err := io.ReadAll(c)
		slow, ok := err.(net.Error)
		conformance.MustTrue(t, !ok || !slow.Timeout(), "%.60q: the server neither answers nor closes", text)
		return string(back)
	}
}

func onWire(t testing.TB, s *Server, op string, body []byte) string {
	t.Helper()
	var b bytes.Buffer
	must(t, signed(s, op, body).Write(&b))
	return b.String()
}

// TestHeadersOfAnswersAreSpelledInLowerCase: released SDKs for PHP look them up literally.
func TestHeadersOfAnswersAreSpelledInLowerCase(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	addr := onPort(t, s, Limits{IdleTimeout: 300 * time.Millisecond})
	for _, op := range []string{"ListTable", "PutRow"} { // the second is refused
		answer := exchange(t, addr, onWire(t, s, op, nil))()
		for _, name := range []string{"contentmd5", "contenttype", "date", "requestid"} {
			conformance.Contains(t, answer, "\r\nx-ots-"+name+": ", "%s", op)
		}
	}
}

func TestNoRequestStopsTheServer(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	// A complete request gets its answer however late it comes; limits apply only to what never comes.
	addr := onPort(t, s, Limits{HeaderTimeout: patience, ReadTimeout: 300 * time.Millisecond,
		IdleTimeout: 300 * time.Millisecond})
	short := onPort(t, s, Limits{HeaderTimeout: 300 * time.Millisecond})
	list := onWire(t, s, "ListTable", nil)
	const post = "POST /ListTable HTTP/1.1\r\nHost: localhost\r\n"
	cases := map[string]struct{ text, want string }{
		"a request in order":  {list, "HTTP/1.1 200 "},
		"HTTP/1.0":            {strings.Replace(list, "HTTP/1.1", "HTTP/1.0", 1), "HTTP/1.0 200 "},
		"HTTP/9.9":            {strings.Replace(list, "HTTP/1.1", "HTTP/9.9", 1), "HTTP/1.1 505 "},
		"two in one packet":   {list + list, "HTTP/1.1 200 "},
		"HEAD":                {"HEAD /ListTable HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 405 "},
		"OPTIONS of *":        {"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 405 "},
		"CONNECT":             {"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 405 "},
		"a path up":           {"POST /../../etc HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 400 "},
		"a binary path":       {"POST /%00%ff%fe HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 400 "},
		"NUL in a header":     {post + "X-Ots-Date: \x00\r\n\r\n", "HTTP/1.1 400 "},
		"NUL in the path":     {"POST /List\x00Table HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 400 "},
		"no HTTP at all":      {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "HTTP/1.1 400 "},
		"a length of letters": {post + "Content-Length: many\r\n\r\n", "HTTP/1.1 400 "},
		"a negative length":   {post + "Content-Length: -1\r\n\r\n", "HTTP/1.1 400 "},
		"a huge length":       {post + "Content-Length: 99999999999999999999\r\n\r\n", "HTTP/1.1 400 "},
		"two lengths":         {post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "HTTP/1.1 400 "},
		"a chunked body": {strings.Replace(list, "Content-Length: 0\r\n\r\n",
			"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 1), "HTTP/1.1 200 "},
		"broken chunks":       {post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 400 "},
		"an unknown encoding": {post + "Transfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 501 "},
		"half a body":         {post + "Content-Length: 100\r\n\r\nhalf", "HTTP/1.1 400 "},
		"half a long body":    {post + "Content-Length: 5242880\r\n\r\n" + strings.Repeat("x", 300<<10), "HTTP/1.1 400 "},
		"a terabyte, asked":   {post + "Expect: 100-continue\r\nContent-Length: 1099511627776\r\n\r\n", "HTTP/1.1 413 "},
		"a terabyte":          {post + "Content-Length: 1099511627776\r\n\r\nabc", "HTTP/1.1 413 "},
		"headers too long":    {post + "X-Ots-Tag: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", "HTTP/1.1 431 "},
		"a long line": {"POST /" + strings.Repeat("x", 80<<10) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
			"HTTP/1.1 431 "},
		"nothing but a line": {"POST /ListTable HTTP/1.1\r\n", ""},
		"half a header":      {"POST /ListTable HTTP/1.1\r\nHost: ", ""},
		"nothing":            {"", ""},
		"a long admin path": {"POST /_engine/" + strings.Repeat("tables/", 1000) +
			" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 404 "},
	}
	answers := map[string]func() string{}
	for name, v := range cases { // all of them wait at the same time until their connections are idle for too long
		answers[name] = exchange(t, map[bool]string{true: short, false: addr}[v.want == ""], v.text)
	}
	for name, v := range cases {
		t.Run(name, func(t *testing.T) {
			back := answers[name]()
			conformance.Equal(t, strings.HasPrefix(back, v.want), true, "answer %.200q, want %q", back, v.want)
			conformance.True(t, name != "two in one packet" || strings.Count(back, "HTTP/1.1 200 ") == 2, "answers: %q", back)
		})
	}
	back := exchange(t, addr, list)()
	conformance.True(t, strings.HasPrefix(back, "HTTP/1.1 200 "), "after all that: %q", back)
}

func TestOversizedBodyIsReadSoThatClientGetsAnswer(t *testing.T) {
	s := open(t, Options{})
	addr := onPort(t, s, Limits{})
	body := make([]byte, wire.MaxBodyBytes+1)
	for name, r := range map[string]func() *http.Request{
		"with a length": func() *http.Request { return signed(s, "PutRow", body) },
		"in chunks": func() *http.Request {
			r := signed(s, "PutRow", body)
			r.ContentLength, r.TransferEncoding = -1, []string{"chunked"}
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, addr)
			q := r()
			must(t, q.Write(c))
			resp := conformance.Try(http.ReadResponse(bufio.NewReader(c), q)).Must(t)
			text, err := io.ReadAll(resp.Body)
			conformance.True(t, resp.StatusCode == http.StatusRequestEntityTooLarge && err == nil &&
				bytes.Contains(text, []byte(wire.CodeBodyTooLarge)), "%d %q %v", resp.StatusCode, text, err)
		})
	}
}

func TestAnnouncedBodiesTakeLittleMemory(t *testing.T) {
	s := open(t, Options{Log: log.New(io.Discard, "", 0)})
	addr := onPort(t, s, Limits{Connections: 100, Grace: time.Millisecond})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	head := strings.Replace(onWire(t, s, "PutRow", nil), "Content-Length: 0",
		fmt.Sprintf("Content-Length: %d", wire.MaxBodyBytes), 1)
	// With Expect the server asks for the body when it begins to read it: then its memory is taken.
	head = strings.Replace(head, "\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n", 1)
	for range 100 {
		c := dial(t, addr)
		conformance.Must(t, conformance.ErrorOf(io.WriteString(c, head)))
		line, err := bufio.NewReader(c).ReadString('\n')
		conformance.MustTrue(t, err == nil && strings.HasPrefix(line, "HTTP/1.1 100 "), "%q %v", line, err)
	}
	runtime.ReadMemStats(&after)
	got := int64(after.TotalAlloc - before.TotalAlloc)
	conformance.True(t, got <= 60<<20, "100 requests that announce 5 MB and send nothing: %d bytes", got)
}

func isClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := conn.Read(make([]byte, 1))
	conformance.True(t, err != nil && !os.IsTimeout(err), "the connection is open: %v", err)
}

type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) { return <-p, nil }
func (pipes) Close() error                { return nil }
func (pipes) Addr() net.Addr              { return nil }

func TestANewConnectionReplacesAnIdleOneWhenAllAreOpen(t *testing.T) {
	const idle, proven, none = 1, 2, 0
	for name, tt := range map[string]struct {
		states [3]int // of connections in the order in which they came
		closed int
	}{
		"the one idle longest":                  {[3]int{proven, idle, idle}, 1},
		"before one that may yet show a key":    {[3]int{none, proven, idle}, 2},
		"the oldest without a key":              {[3]int{proven, none, none}, 1},
		"that of a key that works is left open": {[3]int{proven, proven, none}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			from := make(pipes, 1)
			c := newConnectionLimit(from, 3, log.New(&said, "", 0))
			var clients []net.Conn
			come := func() net.Conn {
				server, client := net.Pipe()
				client.SetDeadline(time.Now().Add(patience))
				t.Cleanup(func() { client.Close() })
				from <- server
				accepted := conformance.Try(c.Accept()).Must(t)
				clients = append(clients, client)
				return accepted
			}
			for _, state := range tt.states {
				conn := come()
				switch state {
				case idle:
					c.state(conn, http.StateIdle)
				case proven:
					prove(c.context(t.Context(), conn))
				}
			}
			come()
			isClosed(t, clients[tt.closed])
			conformance.Equal(t, len(c.places), 3, "places")
			conformance.Equal(t, strings.Count(said.String(), "connections are open"), 1, "times")
		})
	}
}

func TestConnectionsBeyondLimitWait(t *testing.T) {
	s := open(t, Options{})
	addr := onPort(t, s, Limits{Connections: 1})
	list := onWire(t, s, "ListTable", nil)
	create := onWire(t, s, "CreateTable", []byte("not a request"))
	busy := dial(t, addr)
	create = strings.Replace(create, "\r\n", "\r\nExpect: 100-continue\r\n", 1)
	io.WriteString(busy, create[:len(create)-1])
	answers := bufio.NewReader(busy)
	if line, err := answers.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") { // its key was seen
		t.Fatalf("%q %v", line, err)
	}
	answers.ReadString('\n')
	waiting := dial(t, addr)
	io.WriteString(waiting, list)
	io.WriteString(busy, create[len(create)-1:])
	line, err := answers.ReadString('\n')
	conformance.MustTrue(t, err == nil && strings.HasPrefix(line, "HTTP/1.1 400"), "%q %v", line, err)
	line, err = bufio.NewReader(waiting).ReadString('\n')
	conformance.True(t, err == nil && strings.HasPrefix(line, "HTTP/1.1 200"), "when there is space: %q %v", line, err)
}
