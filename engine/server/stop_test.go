package server

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/tsimport/engine/faults"
	"example.com/tsimport/engine/wire"
	"example.com/tsimport/internal/conformance"
)

// panics registers an operation that panics as long as the test runs.
func panics(t *testing.T) (op string) {
	operations["Panic"] = func(*Server, []byte) (call, *wire.Error) { panic("on purpose") }
	t.Cleanup(func() { delete(operations, "Panic") })
	return "Panic"
}

// syncBuffer is written by the server and read by the test.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestAPanicIsAnsweredAndLoggedAndTheServerContinues(t *testing.T) {
	var out syncBuffer
	s := open(t, Options{Log: log.New(&out, "", 0)})
	op := panics(t)
	a := raw(s, op, nil, nil)
	if a.status != 500 || !strings.Contains(string(a.body), wire.CodeInternalServerError) || a.header.Get("Authorization") == "" {
		t.Errorf("%d %q %v", a.status, a.body, a.header)
	}
	if !strings.Contains(out.String(), "on purpose") || !strings.Contains(out.String(), "server.panics") {
		t.Errorf("log: %q", out.String())
	}
	if a := raw(s, "ListTable", nil, nil); a.status != 200 {
		t.Errorf("afterwards: %d %q", a.status, a.body)
	}
}

func TestAPanicOfARequestAppliedLateIsLogged(t *testing.T) {
	var out syncBuffer
	s := open(t, Options{Log: log.New(&out, "", 0)})
	decoded := 0
	operations["Late"] = func(*Server, []byte) (call, *wire.Error) {
		if decoded++; decoded > 1 {
			panic("on purpose")
		}
		return &plain{}, nil
	}
	defer delete(operations, "Late")
	s.SetFaults(&faults.Plan{
		Only:   func(op string) bool { return op == "Late" },
		Decide: func(faults.Request) faults.Fault { return faults.Fault{Action: faults.ApplyLate, Delay: time.Hour} },
	})
	if a := raw(s, "Late", nil, nil); !a.cut {
		t.Errorf("%d %q", a.status, a.body)
	}
	if err := s.Close(); err != nil { // applies it at once
		t.Error(err)
	}
	if got := out.String(); decoded != 2 || !strings.Contains(got, "panic in a late Late: on purpose") {
		t.Errorf("log: %q", got)
	}
}

// gate is an operation that waits until the test lets it continue.
type gate struct{ entered, open chan struct{} }

func newGate(t *testing.T) *gate {
	g := &gate{make(chan struct{}), make(chan struct{})}
	operations["Gate"] = func(*Server, []byte) (call, *wire.Error) {
		return &plain{f: func(context.Context) ([]byte, *wire.Error) {
			close(g.entered)
			<-g.open
			return nil, nil
		}}, nil
	}
	t.Cleanup(func() { delete(operations, "Gate") })
	return g
}

// inGate serves s until stop is called, when a request has entered the gate.
func inGate(t *testing.T, s *Server, limits Limits) (g *gate, c net.Conn, stop func(), ended chan error) {
	t.Helper()
	g = newGate(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended = make(chan error, 1)
	go func() { ended <- s.ServeListener(ctx, listener, limits) }()
	c = dial(t, listener.Addr().String())
	io.WriteString(c, onWire(t, s, "Gate", nil))
	<-g.entered
	return g, c, stop, ended
}

func TestAStopLetsRequestsInFlightFinish(t *testing.T) {
	g, c, stop, ended := inGate(t, open(t, Options{}), Limits{})
	stop()
	for { // a port that refuses is a server that has begun to stop
		probe, err := net.Dial("tcp", c.RemoteAddr().String())
		if err != nil {
			break
		}
		probe.Close()
		runtime.Gosched()
	}
	select {
	case err := <-ended:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	close(g.open)
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 200 ") {
		t.Errorf("%q %v", line, err)
	}
	must(t, <-ended)
}

func TestAStopWaitsNoLongerThanTheGrace(t *testing.T) {
	var out syncBuffer
	g, c, stop, ended := inGate(t, open(t, Options{Log: log.New(&out, "", 0)}), Limits{Grace: time.Millisecond})
	defer close(g.open) // or the store would never close
	stop()
	must(t, <-ended)
	if text, _ := io.ReadAll(c); len(text) > 0 {
		t.Errorf("the connection is not cut: %q", text)
	}
	conformance.Contains(t, out.String(), "still in flight", "log")
}

func TestAListenerThatFailsEndsTheServer(t *testing.T) {
	s := open(t, Options{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	listener.Close()
	if err := s.ServeListener(context.Background(), listener, Limits{}); err == nil || !strings.Contains(err.Error(), "serve on 127.0.0.1:") {
		t.Error(err)
	}
}
