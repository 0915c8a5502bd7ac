package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

// patience is the time after which a hanging test fails. No other result depends on it.
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

// exchange sends text over a new connection, and returns a function that reads the response until the server closes.
func exchange(t testing.TB, addr, text string) (answer func() string) {
	t.Helper()
	c := dial(t, addr)
	io.WriteString(c, text) // the server may refuse it before the end
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

// TestAnswerHeadersAreLowerCase matters because released SDKs for PHP look up headers by their exact case.
func TestAnswerHeadersAreLowerCase(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	addr := onPort(t, s, Limits{IdleTimeout: 300 * time.Millisecond})
	for _, op := range []string{"ListTable", "PutRow"} { // the second one is refused
		answer := exchange(t, addr, onWire(t, s, op, nil))()
		for _, name := range []string{"contentmd5", "contenttype", "date", "requestid"} {
			conformance.Contains(t, answer, "\r\nx-ots-"+name+": ", "%s", op)
		}
	}
}

func TestHostileRequestsDoNotStopServer(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	// A complete request is answered, however late it arrives. Limits apply only to requests that never arrive.
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
	for name, v := range cases { // all wait at the same time until their connections have been idle for too long
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

func TestOversizedBodyIsAnswered(t *testing.T) {
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
	// With Expect, the server requests the body when it starts to read it and has reserved the memory.
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

type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) { return <-p, nil }
func (pipes) Close() error                { return nil }
func (pipes) Addr() net.Addr              { return nil }

func TestNewConnectionReplacesIdleOne(t *testing.T) {
	const idle, proven, none = 1, 2, 0
	for name, tt := range map[string]struct {
		states [3]int // of connections in order of arrival
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
			_, err := clients[tt.closed].Read(make([]byte, 1))
			conformance.True(t, err != nil && !os.IsTimeout(err), "the connection is open: %v", err)
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
	if line, err := answers.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") { // key known
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

func status(t *testing.T, c io.Reader) string {
	t.Helper()
	line := conformance.Try(bufio.NewReader(c).ReadString('\n')).Must(t)
	return strings.TrimSpace(line)
}

// oneBody is the length of a body for which all memory is reserved before its first byte is read.
const oneBody = firstBytes - 1

// begin sends a request without its last byte. It waits for 100 Continue, when the memory for the body is reserved.
func begin(t *testing.T, addr, request string) net.Conn {
	t.Helper()
	c := dial(t, addr)
	line, rest, _ := strings.Cut(request, "\r\n")
	head, body, _ := strings.Cut(rest, "\r\n\r\n")
	fmt.Fprintf(c, "%s\r\nExpect: 100-continue\r\n%s\r\n\r\n", line, head)
	const want = "HTTP/1.1 100 Continue\r\n\r\n"
	got := make([]byte, len(want))
	_, err := io.ReadFull(c, got)
	conformance.MustTrue(t, err == nil && string(got) == want, "%q, %v, want %q", got, err, want)
	io.WriteString(c, body[:len(body)-1])
	return c
}

// Bodies of requests to /_engine/ also use the budget. Bodies of unsigned requests are not read.
func TestUnsignedRequestsDoNotUseBodyBudget(t *testing.T) {
	s := open(t, Options{})
	limits := Limits{BodyBytes: 2*oneBody - 1, BodyWait: 20 * time.Millisecond}
	var addr string
	body := bytes.Repeat([]byte(" "), oneBody)
	request := func(line string) string {
		return fmt.Sprintf("%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", line, len(body), body)
	}
	full, admin := onWire(t, s, "BatchWriteRow", body), request("PUT /_engine/simulation")
	expect := func(what, text, want string) {
		t.Helper()
		c := dial(t, addr)
		io.WriteString(c, text)
		conformance.Contains(t, status(t, c), want, "%s", what)
	}
	for _, text := range []string{full, admin} {
		addr = onPort(t, s, limits)   // with its own budget
		first := begin(t, addr, text) // it takes nearly all, and its body never ends
		expect("a second body", full, "503")
		expect("a second body below /_engine", admin, "503")
		expect("an unsigned request", request("POST /ListTable"), "400")
		io.WriteString(first, text[len(text)-1:])
		got := status(t, first)
		conformance.True(t, !strings.Contains(got, "503"), "the first request: %s", got)
		eventually(t, "there is room after the first request", func() bool {
			c := dial(t, addr)
			defer c.Close()
			io.WriteString(c, full)
			return !strings.Contains(status(t, c), "503")
		})
	}
	// There is room for the start of a long body, but not for the rest.
	addr = onPort(t, s, limits)
	begin(t, addr, onWire(t, s, "BatchWriteRow", body[:oneBody/2]))
	expect("the rest of a body", onWire(t, s, "BatchWriteRow", make([]byte, 2*oneBody)), "503")
}

func eventually(t *testing.T, what string, is func() bool) {
	for end := time.Now().Add(patience); !is(); {
		conformance.MustEqual(t, time.Now().After(end), false, "never: %s", what)
	}
}

func TestClientThatReadsNoAnswersIsDisconnected(t *testing.T) {
	s := open(t, Options{})
	addr := onPort(t, s, Limits{WriteTimeout: 100 * time.Millisecond})
	c := dial(t, addr)
	request := strings.Repeat("GET /_engine/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000)
	for {
		_, err := io.WriteString(c, request)
		slow, ok := err.(net.Error)
		conformance.MustTrue(t, !ok || !slow.Timeout(), "the server keeps the connection")
		if err != nil {
			return
		}
	}
}

func TestForeignHostNamesAreRefusedWithPublicKey(t *testing.T) {
	for _, v := range []struct {
		host, secret string
		want         int
	}{
		{"localhost:8087", "", 200}, {"LOCALHOST", "", 200}, {"me.localhost:1", "", 200}, {"127.0.0.1:8087", "", 200},
		{"[::1]:8087", "", 200}, {"192.0.2.1", "", 200},
		{"listen.example:8087", "", 200}, {"evil.example", "", 403}, {"evil.example:8087", "", 403},
		{"localhost.evil.example", "", 403},
		{"evil.example", "another-secret", 200}, // web pages do not know the secret
	} {
		s := open(t, Options{AccessKeySecret: v.secret, Hosts: []string{"listen.example"}})
		for _, path := range []string{"/ListTable", "/_engine/stats"} {
			if v.secret != "" && path == "/ListTable" {
				continue
			}
			r := signed(s, "ListTable", nil)
			if path != "/ListTable" {
				r = httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
				r.SetBasicAuth(DefaultAccessKeyID, v.secret)
			}
			r.Host, r.RemoteAddr = v.host, "127.0.0.1:5000"
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			conformance.Equal(t, w.Code, v.want, "%s to %s with secret %q: %q", path, v.host, v.secret, w.Body.String())
			conformance.True(t, v.want != 403 || path != "/ListTable" || strings.Contains(w.Body.String(), wire.CodeAuthFailed),
				"%s: %q is no answer of the protocol", v.host, w.Body.String())
		}
	}
}

var testContext = context.Background()

func scan(t testing.TB, c *tablestore.TableStoreClient, table string, dir tablestore.Direction,
	limit int32) (rows []string) {
	t.Helper()
	from, to := bounds()
	if dir == tablestore.BACKWARD {
		from, to = to, from
	}
	for from != nil {
		r := conformance.Try(c.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
			TableName: table, StartPrimaryKey: from, EndPrimaryKey: to, Direction: dir, MaxVersion: 100, Limit: limit,
		}})).Must(t)
		for _, row := range r.Rows {
			s := ""
			for _, k := range row.PrimaryKey.PrimaryKeys {
				s += fmt.Sprint(k.Value, " ")
			}
			for _, col := range row.Columns {
				s += fmt.Sprintf("%s=%v ", col.ColumnName, col.Value)
			}
			rows = append(rows, s)
		}
		from = r.NextStartPrimaryKey
	}
	return rows
}

func TestTransportSetsStatusAndLength(t *testing.T) {
	s := open(t, Options{})
	resp := conformance.Try(s.Transport().RoundTrip(signed(s, "ListTable", nil))).Must(t)
	body, err := io.ReadAll(resp.Body)
	conformance.True(t, err == nil && resp.Status == "200 OK" && len(body) == 0 && resp.ContentLength == 0,
		"%v %v %v", resp.Status, body, err)
}

// engine/contract tests the other refusals, but cannot stop the clock.
func TestDateMustBeWithinFifteenMinutes(t *testing.T) {
	at := &clock{time.Date(2024, 12, 31, 23, 59, 59, 0, time.UTC)}
	s := open(t, Options{Now: at.now})
	const outside, invalid = "Mismatch between system time and x-ots-date: ", "Invalid date format: "
	for date, want := range map[string]string{
		"2025-01-01T00:14:59.000Z": "", "2025-01-01T00:15:00.000Z": outside, "2024-12-31T23:44:59.000Z": "",
		"2024-12-31T23:44:58.999Z": outside, "2024-12-31T23:59:59Z": "", "2024-12-31T23:59:59.123456789Z": "",
		"2024-12-31T23:59:59.1234567890Z": invalid, "2024-12-31T23:59:59.Z": invalid, "2024-12-31T23:59:59,123Z": invalid,
		"2024-12-31T23:59:59.+12Z": invalid, "2024-12-31T23:59:59+00:00": invalid, "2024-12-32T23:59:59.000Z": invalid,
		"Z": invalid,
	} {
		a := raw(s, "ListTable", nil, func(h http.Header) { h.Set(wire.HeaderDate, date) })
		if want != "" {
			want += date + "."
		}
		conformance.True(t, (a.status == 200) == (want == "") && strings.Contains(string(a.body), want),
			"%s: %d %q", date, a.status, a.body)
	}
}

// Decompression stops at the declared size.
func TestBodyWithWrongInflatedSizeIsRefused(t *testing.T) {
	s := open(t, Options{})
	createTable(t, inProcess(s), "t1", 1)
	whole := deflate([]byte("\n\x02t1"))
	bomb := deflate(make([]byte, 64<<20))
	changed := slices.Clone(whole)
	changed[len(changed)-1] ^= 1
	for name, tt := range map[string]struct {
		body       []byte
		size, want int
	}{
		"whole":                         {whole, 4, 200},
		"cut off":                       {whole[:len(whole)-5], 4, 400},
		"without its checksum":          {whole[:len(whole)-4], 4, 400},
		"another checksum":              {changed, 4, 400},
		"empty":                         {nil, 4, 400},
		"shorter than it says":          {whole, 5, 400},
		"longer than it says":           {whole, 3, 400},
		"a length below 0":              {whole, -1, 400},
		"not compressed":                {[]byte("\n\x02t1"), 4, 400},
		"a bomb that says a little":     {bomb, 100, 400},
		"a bomb that says the most":     {bomb, wire.MaxBodyBytes, 400},
		"a bomb that says what it is":   {bomb, 64 << 20, 413},
		"five megabytes that inflate":   {deflate(make([]byte, wire.MaxBodyBytes)), wire.MaxBodyBytes, 400}, // not a message
		"a byte more than five of them": {deflate(make([]byte, wire.MaxBodyBytes+1)), wire.MaxBodyBytes + 1, 413},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a := raw(s, "DescribeTable", tt.body, func(h http.Header) {
			h.Set(wire.HeaderRequestCompress, "deflate")
			h.Set(wire.HeaderRequestSize, strconv.Itoa(tt.size))
		})
		runtime.ReadMemStats(&after)
		conformance.Equal(t, a.status, tt.want, "%s", name)
		got := after.TotalAlloc - before.TotalAlloc
		conformance.True(t, got <= 40<<20, "%s: %d MiB were allocated", name, got>>20)
	}
}

func TestAdminAPIRequiresCustomSecret(t *testing.T) {
	const secret = "another-secret"
	for _, v := range []struct {
		secret, addr, password string
		tls                    bool
		want                   int
	}{
		{"", "192.0.2.1:5000", "", false, 200}, {secret, "192.0.2.1:5000", secret, false, 403},
		{secret, "[2001:db8::1]:5000", secret, false, 403},
		{secret, "", secret, false, 403}, {secret, "192.0.2.1:5000", secret, true, 200},
		{secret, "192.0.2.1:5000", "", true, 401},
		{secret, "127.0.0.1:5000", "", false, 401}, {secret, "127.0.0.1:5000", "wrong", false, 401},
		{secret, "127.0.0.1:5000", secret, false, 200},
		{secret, "[::1]:5000", secret, false, 200}, {secret, "[::ffff:127.0.0.1]:5000", secret, false, 200},
	} {
		s := open(t, Options{AccessKeySecret: v.secret})
		r := httptest.NewRequest(http.MethodGet, "http://localhost/_engine/stats", nil)
		r.RemoteAddr = v.addr
		if v.password != "" {
			r.SetBasicAuth(DefaultAccessKeyID, v.password)
		}
		if v.tls {
			r.TLS = new(tls.ConnectionState)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		conformance.Equal(t, w.Code, v.want, "%+v: %q", v, w.Body)
	}
}

func TestInvalidAccountsAreRefused(t *testing.T) {
	for name, v := range map[string]struct {
		o  Options
		ok bool
	}{
		"the defaults":           {Options{}, true},
		"3 bytes":                {Options{Instance: "abc"}, true},
		"16 bytes":               {Options{Instance: "a234567890123-56"}, true},
		"2 bytes":                {Options{Instance: "ab"}, false},
		"17 bytes":               {Options{Instance: "a2345678901234567"}, false},
		"a digit first":          {Options{Instance: "1abc"}, false},
		"a hyphen first":         {Options{Instance: "-abc"}, false},
		"a hyphen last":          {Options{Instance: "abc-"}, false},
		"an underscore":          {Options{Instance: "a_b_c"}, false},
		"not ASCII":              {Options{Instance: "实例"}, false},
		"every sign of a key id": {Options{AccessKeyID: "STS.aZ09+/_-"}, true},
		"a key id with a space":  {Options{AccessKeyID: "a b"}, false},
		"a key id with a line":   {Options{AccessKeyID: "a\nb"}, false},
		"a secret":               {Options{AccessKeySecret: "aZ09+/=!~"}, true},
		"a secret with a space":  {Options{AccessKeySecret: "hidden words"}, false},
		"a secret not in ASCII":  {Options{AccessKeySecret: "hidden密"}, false},
	} {
		err := v.o.Check()
		conformance.True(t, (err == nil) == v.ok && (err == nil || !strings.Contains(err.Error(), "hidden")),
			"%s: %v", name, err)
	}
}

func TestRequestIDsAreUniqueAcrossRestarts(t *testing.T) {
	seen := map[string]bool{}
	synctest.Test(t, func(t *testing.T) {
		for range 2 {
			s := open(t, Options{})
			var mu sync.Mutex
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range 100 {
						id := raw(s, "ListTable", nil, nil).header.Get(wire.HeaderRequestID)
						mu.Lock()
						conformance.True(t, id != "" && !seen[id], "request id %q again", id)
						seen[id] = true
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			time.Sleep(time.Millisecond) // in the bubble's time: a restart takes longer than a microsecond
		}
	})
	conformance.Equal(t, len(seen), 800, "ids")
}
