package client

import (
	"bufio"
	"example.com/tsimport/internal/conformance"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// takeSlowly takes several of the client's time-outs to read a request, and responds to it.
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
		time.Sleep(pause) // imitates a slow network
	}
	_, _ = io.WriteString(c, okAnswer)
}

func TestRequestWithProgressIsNotLost(t *testing.T) {
	t.Parallel()
	const timeout, pause = 500 * time.Millisecond, 30 * time.Millisecond
	body := func(dst []byte) []byte { return append(dst, make([]byte, 3<<20)...) }
	web := listen(t, func(c net.Conn) { takeSlowly(c, pause) })
	for name, target := range map[string]Target{
		"own links": {Endpoint: web},
		"net/http":  {Endpoint: web, Transport: network(Target{RequestTimeout: timeout, Connections: 1})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target.Instance, target.Credentials, target.RequestTimeout, target.AcceptUnsigned = "i", keys("s"), timeout, true
			s := sender(t, t.Context(), target)
			for try := 1; ; try++ {
				begun := time.Now()
				_, err := s.Post("BatchWriteRow", body)
				took := time.Since(begun)
				conformance.True(t, err != nil || took >= timeout, "it took %v: that shows nothing", took)
				if err == nil {
					return
				}
				if try == 5 { // a machine that stalls for half a second makes no progress
					t.Fatalf("after %v: %v", took, err)
				}
			}
		})
	}
}

// A service that reads a few bytes now and then must not block a worker until the load ends.
func TestRequestEndsDespiteProgress(t *testing.T) {
	t.Parallel()
	web := listen(t, func(c net.Conn) { takeSlowly(c, 40*time.Millisecond) })
	s := sender(t, t.Context(), Target{Endpoint: web, Instance: "i", AcceptUnsigned: true, Credentials: keys("s"),
		RequestTimeout: 100 * time.Millisecond})
	_, err := s.Post("BatchWriteRow", func(dst []byte) []byte { return append(dst, make([]byte, 8<<20)...) })
	conformance.True(t, Classify(err) == Ambiguous && TimedOut(err) && !CutWhileSending(err), "%v", err)
}

// A gateway on a busy machine may be slow to close an excess connection, and the outcome of requests sent on it would
// be unknown for half a minute.
func TestNewConnectionIsWatchedLongerAfterExcess(t *testing.T) {
	p := newPool(nil, 8)
	before := p.closesWithin()
	p.short(1)
	after := p.closesWithin()
	conformance.True(t, before == closesAtOnce && after == closesLater, "%v, and %v where one was too many", before, after)
}
