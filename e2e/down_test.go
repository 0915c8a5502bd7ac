//go:build e2e && unix

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// A load waits for an endpoint that is down when it begins, and asks again whether its table was made when the answer to
// CreateTable is lost.
func TestALoadWaitsForAnEndpointAndForItsTable(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--sync", "none")
	server, err := url.Parse(s.URL)
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(server)
	var created atomic.Int64
	cut := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/CreateTable" && created.Add(1) == 1 {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	})

	// A port that is taken, on which nobody listens yet.
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	must(t, err)
	socket := os.NewFile(uintptr(fd), "socket")
	defer socket.Close()
	must(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	at, err := syscall.Getsockname(fd)
	must(t, err)

	p := newPlace(t, s.credentials()...)
	p.write("in.csv", "id,n\na,1\nb,2\n")
	r := p.start("load", "in.csv", "--table", "t", "--create", "--pk", "id", "--endpoint", fmt.Sprintf("http://127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port), "--instance", s.Instance)
	r.says("^tsimport: waiting: ", 1)
	must(t, syscall.Listen(fd, 100))
	l, err := net.FileListener(socket)
	must(t, err)
	web := &httptest.Server{Listener: l, Config: &http.Server{Handler: cut}}
	web.Start()
	defer web.Close()
	if code := r.wait(); code != 0 || !strings.Contains(r.said.String(), "2 read, 2 written") || created.Load() < 1 {
		t.Errorf("exit code %d, %d times CreateTable:\n%s", code, created.Load(), &r.said)
	}
}
