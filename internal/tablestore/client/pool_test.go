package client

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aliyun/aliyun-tablestore-go-sdk/common"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"

	"example.com/tsimport/internal/conformance"
)

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// serveAll answers every request on a connection until it ends.
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

// atOnce posts n requests from each of the senders and returns the errors by what they say.
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
	c, err := Connect(t.Context(), target, nil)
	must(t, err)
	return c
}

func TestSendersShareTheConnectionsThatAServiceAllows(t *testing.T) {
	const allowed, senders, requests = 4, 32, 20
	var open atomic.Int64
	web := listen(t, func(c net.Conn) {
		defer c.Close()
		if open.Add(1) <= allowed {
			serveAll(c)
		}
		open.Add(-1)
	})
	c := connect(t, Target{Endpoint: web, Instance: "i", AcceptUnsigned: true, Credentials: keys("s"), Connections: senders})
	keep := c.Sender() // the connections of those that end are closed
	defer keep.Close()
	_, err := keep.Post("BatchWriteRow", text("x"))
	must(t, err)
	if failed := atOnce(c, senders, requests, "x"); len(failed) > 0 {
		n := 0
		for _, k := range failed {
			n += k
		}
		// Each sender may find out once that its connection is one too many.
		if n > 2*senders {
			t.Errorf("%d of %d requests failed: %v", n, senders*requests, failed)
		}
	}
	if room := c.Room(); room > 2*allowed {
		t.Errorf("room for %d requests where %d connections are allowed", room, allowed)
	}
}

func TestSendersShareConnectionsWhenNoMoreCanBeMade(t *testing.T) {
	const allowed, senders, requests = 4, 32, 20
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
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
		l.Close() // whoever comes now is refused
		close(accepted)
	}()
	c := connect(t, Target{Endpoint: "http://" + l.Addr().String(), Instance: "i", AcceptUnsigned: true, Credentials: keys("s"), Connections: senders})
	var links []*link
	for range allowed {
		l, err := c.pool.take(t.Context(), time.Minute)
		must(t, err)
		c.pool.note(l, time.Now())
		links = append(links, l)
	}
	<-accepted
	for _, l := range links {
		c.pool.put(l, true)
	}
	defer c.Sender().Close() // with the last sender the links would end
	if failed := atOnce(c, senders, requests, "x"); len(failed) > 0 {
		t.Errorf("%v", failed)
	}
	if room := c.Room(); room > 2*allowed {
		t.Errorf("room for %d requests where %d connections can be made", room, allowed)
	}
}

func TestSendersOneAfterTheOtherShareAConnection(t *testing.T) {
	var connections atomic.Int64
	web := listen(t, func(c net.Conn) { connections.Add(1); serveAll(c); c.Close() })
	c := connect(t, unsignedAt(web))
	for range 50 {
		s := c.Sender()
		_, err := s.Post("BatchWriteRow", text("x"))
		must(t, err)
	}
	conformance.Equal(t, connections.Load(), 1, "connections for 50 senders that send one after the other")
}

// A link that a request of the SDK has made ends with the run when another sends on it, and not with that request.
func TestALinkEndsWithTheRunAfterARequestOfTheSDK(t *testing.T) {
	c := connect(t, unsignedAt(listen(t, serveAll)))
	for range 2 { // on a link that is made, and on that of the first
		_, err := c.Transport().RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/ListTable", nil))
		if l := c.pool.free[0]; err != nil || l.run != c.run || !l.stop() {
			t.Errorf("%v, or the link ends with the request", err)
		}
	}
}

func TestABusyConnectionIsRenewedWhenItIsOld(t *testing.T) {
	var connections atomic.Int64
	web := listen(t, func(c net.Conn) { connections.Add(1); serveAll(c); c.Close() })
	s := sender(t, t.Context(), unsignedAt(web))
	defer s.Close()
	for i := range 6 {
		_, err := s.Post("BatchWriteRow", text("x"))
		must(t, err)
		if i%2 == 0 {
			s.c.pool.free[0].until = time.Now()
		}
	}
	conformance.Equal(t, connections.Load(), 3, "connections")
}

func TestADownServiceIsNotOneThatAllowsFewConnections(t *testing.T) {
	c := connect(t, Target{Endpoint: "http://127.0.0.1:1", Instance: "i", AcceptUnsigned: true, Credentials: keys("s"), Connections: 16})
	for what := range atOnce(c, 16, 3, "x") {
		conformance.Equal(t, strings.HasPrefix(what, fmt.Sprintf("class %d:", Unavailable)), true, "%s", what)
	}
	conformance.Equal(t, c.Room(), 16, "room for requests")
}

func TestALimitOnConnectionsIsTriedAgain(t *testing.T) {
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

// refusingKeys answers a request as it is told.
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

func TestARefusalOfKeysPassesForAWhileIfTheyWereAcceptedBefore(t *testing.T) {
	const vpc = "Request denied because this instance can only be accessed from the binded VPC."
	const patience = time.Minute
	synctest.Test(t, func(t *testing.T) {
		var answers []string
		target := Target{Endpoint: "http://made-up", Instance: "i", AcceptUnsigned: true, Credentials: keys("s"), Transport: refusingKeys(&answers), KeyPatience: patience}
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
				if got := classes(tt.answers...); fmt.Sprint(got) != fmt.Sprint(tt.want) {
					t.Errorf("%s, %q: classes %v, want %v", name, tt.answers, got, tt.want)
				}
				time.Sleep(tt.wait)
			}
		}
	})
}

// forgetful has no keys for a moment.
type forgetful struct{}

func (forgetful) GetCredentials() common.Credentials { return &common.DefaultCredentials{} }

func TestARequestThatCannotBeSignedWasNotSent(t *testing.T) {
	sent := 0
	target := Target{Endpoint: "http://made-up", Instance: "i", AcceptUnsigned: true, Credentials: forgetful{}, Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		sent++
		return nil, io.EOF
	})}
	_, err := sender(t, t.Context(), target).Post("BatchWriteRow", text("x"))
	conformance.Equal(t, Classify(err), Unavailable, "class of %v", err)
	conformance.Equal(t, sent, 0, "sent")
}
