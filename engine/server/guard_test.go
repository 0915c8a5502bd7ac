package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tsimport/engine/wire"
)

// status is the status line of the next answer on a connection.
func status(t *testing.T, c io.Reader) string {
	t.Helper()
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// withBudget serves on a port. Taken waits until a request has the memory that it needs, so that no later one comes before it.
func withBudget(t *testing.T, s *Server, bytes int64, wait time.Duration) (addr string, taken func()) {
	t.Helper()
	under := &serving{Limits{BodyBytes: bytes, BodyWait: wait}.filled(), newBodyBudget(bytes, wait)}
	web := httptest.NewUnstartedServer(s)
	web.Config.BaseContext = func(net.Listener) context.Context { return context.WithValue(t.Context(), limitsKey{}, under) }
	web.Start()
	t.Cleanup(web.Close)
	return web.Listener.Addr().String(), func() {
		eventually(t, "the body has its memory", func() bool {
			const room = 200 << 10
			if !under.bodies.free.TryAcquire(room) {
				return true
			}
			under.bodies.free.Release(room)
			return false
		})
	}
}

func TestBodiesShareABudgetThatUnsignedRequestsDoNotTouch(t *testing.T) {
	s := open(t, Options{})
	addr, taken := withBudget(t, s, 1<<20, 100*time.Millisecond)
	body := make([]byte, 900<<10)
	full := onWire(t, s, "BatchWriteRow", body)

	// One request that is signed takes nearly all, and its body does not come to an end.
	first := dial(t, addr)
	io.WriteString(first, full[:len(full)-1])
	taken()
	c := dial(t, addr)
	io.WriteString(c, full)
	if got := status(t, c); !strings.Contains(got, "503") {
		t.Errorf("a second body: %s, want 503", got)
	}
	c = dial(t, addr)
	fmt.Fprintf(c, "POST /ListTable HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if got := status(t, c); !strings.Contains(got, "400") {
		t.Errorf("an unsigned request: %s, want 400", got)
	}
	io.WriteString(first, full[len(full)-1:])
	if got := status(t, first); strings.Contains(got, "503") {
		t.Errorf("the first request: %s", got)
	}
	eventually(t, "there is room after the first request", func() bool {
		c := dial(t, addr)
		defer c.Close()
		io.WriteString(c, full)
		return !strings.Contains(status(t, c), "503")
	})
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestAClientThatReadsNoAnswersCannotHoldAConnection(t *testing.T) {
	s := open(t, Options{})
	addr := onPort(t, s, Limits{WriteTimeout: 100 * time.Millisecond})
	c := dial(t, addr)
	request := strings.Repeat("GET /_engine/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000)
	for {
		_, err := io.WriteString(c, request)
		if err, ok := err.(net.Error); ok && err.Timeout() {
			t.Fatal("the server keeps the connection")
		}
		if err != nil {
			return
		}
	}
}

func TestNamesOfElsewhereAreRefusedWhileTheKeyIsPublic(t *testing.T) {
	for _, v := range []struct {
		host, secret string
		want         int
	}{
		{"localhost:8087", "", 200}, {"LOCALHOST", "", 200}, {"me.localhost:1", "", 200}, {"127.0.0.1:8087", "", 200}, {"[::1]:8087", "", 200}, {"192.0.2.1", "", 200},
		{"listen.example:8087", "", 200}, {"evil.example", "", 403}, {"evil.example:8087", "", 403}, {"localhost.evil.example", "", 403},
		{"evil.example", "another-secret", 200}, // a web page does not know the secret
	} {
		s := open(t, Options{AccessKeySecret: v.secret, Hosts: []string{"listen.example"}})
		for _, path := range []string{"/ListTable", "/_engine/stats"} {
			if v.secret != "" && path == "/ListTable" {
				continue
			}
			r := signed(s, "ListTable", nil)
			if path != "/ListTable" {
				r, _ = http.NewRequest(http.MethodGet, "http://localhost"+path, nil)
				r.SetBasicAuth(DefaultAccessKeyID, v.secret)
			}
			r.Host, r.RemoteAddr = v.host, "127.0.0.1:5000"
			w := &response{header: http.Header{}}
			s.ServeHTTP(w, r)
			if w.status != v.want {
				t.Errorf("%s to %s with secret %q: %d %q, want %d", path, v.host, v.secret, w.status, w.body.String(), v.want)
			}
			if v.want == 403 && path == "/ListTable" && !strings.Contains(w.body.String(), wire.CodeAuthFailed) {
				t.Errorf("%s: %q is no answer of the protocol", v.host, w.body.String())
			}
		}
	}
}
