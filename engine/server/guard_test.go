package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

// status is the status line of the next answer on a connection.
func status(t *testing.T, c io.Reader) string {
	t.Helper()
	line, err := bufio.NewReader(c).ReadString('\n')
	must(t, err)
	return strings.TrimSpace(line)
}

// oneBody is as long as a body may be that has its memory before the first byte of it is read.
const oneBody = firstBytes - 1

// begin sends a request but for its last byte, once it has the memory for its body: then the server asks for the body.
func begin(t *testing.T, addr, request string) net.Conn {
	t.Helper()
	c := dial(t, addr)
	line, rest, _ := strings.Cut(request, "\r\n")
	head, body, _ := strings.Cut(rest, "\r\n\r\n")
	fmt.Fprintf(c, "%s\r\nExpect: 100-continue\r\n%s\r\n\r\n", line, head)
	const want = "HTTP/1.1 100 Continue\r\n\r\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("%q, %v, want %q", got, err, want)
	}
	io.WriteString(c, body[:len(body)-1])
	return c
}

// Bodies below /_engine come out of the budget of all bodies too; those of unsigned requests are not read.
func TestBodiesShareABudgetThatUnsignedRequestsDoNotTouch(t *testing.T) {
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
		addr = onPort(t, s, limits)   // with a budget of its own
		first := begin(t, addr, text) // it takes nearly all, and its body does not come to an end
		expect("a second body", full, "503")
		expect("a second body below /_engine", admin, "503")
		expect("an unsigned request", request("POST /ListTable"), "400")
		io.WriteString(first, text[len(text)-1:])
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
	// There is room for the beginning of a long body, and not for the rest of it.
	addr = onPort(t, s, limits)
	begin(t, addr, onWire(t, s, "BatchWriteRow", body[:oneBody/2]))
	expect("the rest of a body", onWire(t, s, "BatchWriteRow", make([]byte, 2*oneBody)), "503")
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
				r = httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
				r.SetBasicAuth(DefaultAccessKeyID, v.secret)
			}
			r.Host, r.RemoteAddr = v.host, "127.0.0.1:5000"
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			conformance.Equal(t, w.Code, v.want, "%s to %s with secret %q: %q", path, v.host, v.secret, w.Body.String())
			if v.want == 403 && path == "/ListTable" && !strings.Contains(w.Body.String(), wire.CodeAuthFailed) {
				t.Errorf("%s: %q is no answer of the protocol", v.host, w.Body.String())
			}
		}
	}
}

var testContext = context.Background()

// scan reads a whole table, page by page, as texts.
func scan(t testing.TB, c *tablestore.TableStoreClient, table string, dir tablestore.Direction, limit int32) (rows []string) {
	t.Helper()
	from, to := bounds()
	if dir == tablestore.BACKWARD {
		from, to = to, from
	}
	for from != nil {
		r, err := c.GetRange(&tablestore.GetRangeRequest{RangeRowQueryCriteria: &tablestore.RangeRowQueryCriteria{
			TableName: table, StartPrimaryKey: from, EndPrimaryKey: to, Direction: dir, MaxVersion: 100, Limit: limit,
		}})
		must(t, err)
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

func TestATransportAnswersWithAStatusLineAndALength(t *testing.T) {
	s := open(t, Options{})
	resp, err := s.Transport().RoundTrip(signed(s, "ListTable", nil))
	must(t, err)
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.Status != "200 OK" || len(body) != 0 || resp.ContentLength != 0 {
		t.Error(resp.Status, body, err)
	}
}
