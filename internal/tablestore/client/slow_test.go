package client

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// takeSlowly reads a request so that it takes several of the client's time-outs, and answers it.
func takeSlowly(c net.Conn, pause time.Duration) {
	defer c.Close()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(32 << 10)
	}
	r, err := http.ReadRequest(bufio.NewReaderSize(c, 16<<10))
	if err != nil {
		return
	}
	for n := int64(1); n > 0 && err == nil; {
		n, err = io.CopyN(io.Discard, r.Body, 64<<10)
		time.Sleep(pause) // this is the slow link
	}
	_, _ = io.WriteString(c, okAnswer)
}

func TestARequestThatMakesProgressIsNotLost(t *testing.T) {
	t.Parallel()
	const timeout, pause = time.Second, 60 * time.Millisecond
	body := func(dst []byte) []byte { return append(dst, make([]byte, 3<<20)...) }
	web := listen(t, func(c net.Conn) { takeSlowly(c, pause) })
	for name, target := range map[string]Target{
		"own links": {Endpoint: web},
		"net/http":  {Endpoint: web, Transport: network(Target{RequestTimeout: timeout, Connections: 1})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target.Instance, target.Credentials, target.RequestTimeout = "i", keys("s"), timeout
			s := sender(t, t.Context(), target)
			begun := time.Now()
			if _, err := s.Post("BatchWriteRow", body); err != nil {
				t.Errorf("after %v: %v", time.Since(begun), err)
			}
			if took := time.Since(begun); took < timeout {
				t.Errorf("it took %v: that shows nothing", took)
			}
		})
	}
}

// A service that reads a little now and then would otherwise keep a worker until the load ends.
func TestARequestEndsHoweverMuchProgressItMakes(t *testing.T) {
	t.Parallel()
	web := listen(t, func(c net.Conn) { takeSlowly(c, 40*time.Millisecond) })
	s := sender(t, t.Context(), Target{Endpoint: web, Instance: "i", Credentials: keys("s"), RequestTimeout: 100 * time.Millisecond})
	_, err := s.Post("BatchWriteRow", func(dst []byte) []byte { return append(dst, make([]byte, 8<<20)...) })
	if err == nil || Classify(err) != Ambiguous {
		t.Errorf("%v", err)
	}
}

// What is sent on a connection that is closed at once has an unknown outcome, though nobody reads it.
func TestNothingIsSentOnAConnectionThatIsClosedAtOnce(t *testing.T) {
	web := listen(t, func(c net.Conn) { c.Close() })
	c := connect(t, Target{Endpoint: web, Instance: "i", Credentials: keys("s")})
	s := c.Sender()
	defer s.Close()
	if _, err := s.Post("BatchWriteRow", text("x")); Classify(err) != Unavailable {
		t.Errorf("%v", err)
	}
}
