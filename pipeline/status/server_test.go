package status

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/pipeline"
)

func TestAServerAnswersUntilItIsClosed(t *testing.T) {
	s, err := Listen("127.0.0.1:0", &fake{sample()})
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	resp, err := http.Get(s.URL() + "status")
	must(t, err)
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !strings.Contains(string(body), `"table": "cards"`) {
		t.Errorf("%v %s", err, body)
	}
	s.Close()
	conformance.Equal(t, <-served, nil, "error")
	if resp, err := http.Get(s.URL()); err == nil {
		resp.Body.Close()
		t.Error("a closed server answers")
	}
}

// waiting is a load that tells when it is asked and never answers.
type waiting chan bool

func (w waiting) State(ctx context.Context) (*pipeline.State, error) {
	w <- true
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestClosingEndsARequestThatWaits(t *testing.T) {
	load := make(waiting)
	s, err := Listen("127.0.0.1:0", load)
	must(t, err)
	served, answered := make(chan error, 1), make(chan int, 1)
	go func() { served <- s.Serve() }()
	go func() {
		resp, err := http.Get(s.URL() + "status")
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		resp.Body.Close()
		answered <- resp.StatusCode
	}()
	<-load
	s.Close()
	conformance.Equal(t, <-answered, http.StatusServiceUnavailable, "answer")
	conformance.Equal(t, <-served, nil, "error")
}

func TestAnAddressInUseIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	if s, err := Listen(l.Addr().String(), &fake{}); err == nil {
		s.Close()
		t.Error("an address was taken twice")
	}
}

func TestAServerThatNeverServedGivesItsAddressUp(t *testing.T) {
	s, err := Listen("127.0.0.1:0", &fake{})
	must(t, err)
	address := s.listener.Addr().String()
	s.Close()
	conformance.Equal(t, s.Serve(), nil, "serve after close")
	l, err := net.Listen("tcp", address)
	must(t, err)
	l.Close()
}

func TestAListenerThatFailsIsNamed(t *testing.T) {
	s, err := Listen("127.0.0.1:0", &fake{})
	must(t, err)
	defer s.Close()
	s.listener.Close()
	conformance.Refused(t, s.Serve(), s.listener.Addr().String(), "error")
}

func TestTheURLOfAllAddressesCanBeAsked(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "127.0.0.1:0"} {
		s, err := Listen(address, &fake{sample()})
		must(t, err)
		served := make(chan error, 1)
		go func() { served <- s.Serve() }()
		if !strings.HasPrefix(s.URL(), "http://127.0.0.1:") {
			t.Errorf("%s: the URL is %s", address, s.URL())
		}
		resp, err := http.Get(s.URL())
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: get %s: %v", address, s.URL(), err)
		} else {
			resp.Body.Close()
		}
		s.Close()
		conformance.Equal(t, <-served, nil, "%s", address)
	}
}

func TestOnlyLoopbackAddressesCountAsSuch(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:0": true, "localhost:0": true, "0.0.0.0:0": false, ":0": false} {
		s, err := Listen(address, &fake{})
		must(t, err)
		conformance.Equal(t, s.Loopback(), want, "%s: loopback", address)
		s.Close()
	}
}

func TestNamesOfElsewhereAreRefused(t *testing.T) {
	h := onlyKnownHosts("Monitor.example:9000", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{
		"localhost": 200, "127.0.0.1:9000": 200, "[::1]:9000": 200, "192.0.2.7": 200, "monitor.example:9000": 200, "x.localhost": 200,
		"evil.example": 403, "localhost.evil.example:9000": 403, "127.0.0.1.evil.example": 403,
	} {
		r := httptest.NewRequest(http.MethodGet, "/status", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		conformance.Equal(t, w.Code, want, "%s", host)
	}
}
