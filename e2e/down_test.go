//go:build e2e && unix

package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
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
	defer func(f *os.File) { f.Close() }(socket)
	must(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	at, err := syscall.Getsockname(fd)
	must(t, err)

	in := filepath.Join(t.TempDir(), "in.csv")
	must(t, os.WriteFile(in, []byte("id,n\na,1\nb,2\n"), 0o600))
	cmd := exec.Command(binary, "load", in, "--table", "t", "--create", "--pk", "id", "--run-dir", filepath.Join(t.TempDir(), "run"),
		"--endpoint", fmt.Sprintf("http://127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port), "--instance", s.Instance)
	cmd.Env = append(os.Environ(), s.credentials()...)
	stderr, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	killer := time.AfterFunc(processTimeout, func() { cmd.Process.Kill() })
	defer killer.Stop()
	var said strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		if strings.HasPrefix(lines.Text(), "tsimport: waiting: ") && created.Load() == 0 && socket != nil {
			must(t, syscall.Listen(fd, 100))
			l, err := net.FileListener(socket)
			must(t, err)
			p := &httptest.Server{Listener: l, Config: &http.Server{Handler: cut}}
			p.Start()
			defer p.Close()
			socket = nil
		}
	}
	cmd.Wait() // its error is the exit code below
	if code := cmd.ProcessState.ExitCode(); code != 0 || !strings.Contains(said.String(), "2 read, 2 written") || created.Load() < 1 || socket != nil {
		t.Errorf("exit code %d, %d times CreateTable, stderr:\n%s", code, created.Load(), said.String())
	}
}
