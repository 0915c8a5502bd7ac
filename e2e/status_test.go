package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tsimport/bench"
)

// watched is a load that a test looks at while it runs, and that waits for more input.
type watched struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	dir    string
	status string // address, with a slash at its end

	mu      sync.Mutex
	stderr  bytes.Buffer
	changed chan struct{} // closed by the next write
}

// Write takes what the load says on stderr.
func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stderr.Write(b)
	close(w.changed)
	w.changed = make(chan struct{})
	return len(b), nil
}

// says waits until stderr has matched the pattern n times, and returns the groups of the last match.
func (w *watched) says(pattern string, n int) []string {
	w.t.Helper()
	re := regexp.MustCompile("(?m)" + pattern)
	deadline := time.After(processTimeout)
	for {
		w.mu.Lock()
		text, changed := w.stderr.String(), w.changed
		w.mu.Unlock()
		if m := re.FindAllStringSubmatch(text, -1); len(m) >= n {
			return m[n-1]
		}
		select {
		case <-changed:
		case <-deadline:
			w.t.Fatalf("stderr has not matched %s %d times:\n%s", pattern, n, text)
		}
	}
}

// get asks the load over HTTP.
func (w *watched) get(path string) (code int, body string) {
	w.t.Helper()
	client := http.Client{Timeout: processTimeout}
	resp, err := client.Get(w.status + path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (w *watched) signal(s syscall.Signal) {
	w.t.Helper()
	if err := w.cmd.Process.Signal(s); err != nil {
		w.t.Fatal(err)
	}
}

// end waits for the load, which must end with the exit code.
func (w *watched) end(code int) {
	w.t.Helper()
	w.cmd.Wait() // its error is the exit code below
	if got := w.cmd.ProcessState.ExitCode(); got != code {
		w.t.Errorf("exit code %d, want %d; stderr:\n%s", got, code, &w.stderr)
	}
}

func watch(t *testing.T, args ...string) *watched {
	t.Helper()
	w := &watched{t: t, dir: t.TempDir(), changed: make(chan struct{})}
	if !slices.Contains(args, "--endpoint") {
		args = append(args, "--store", w.dir+"/store")
	}
	args = append([]string{"load", "-", "--table", "t", "--pk", "CardID", "--pk", "DeviceID", "--pk", "OrderNumber",
		"--run-dir", w.dir + "/run", "--status", "127.0.0.1:0"}, args...)
	w.cmd = exec.Command(binary, args...)
	var err error
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	w.cmd.Stderr = w
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killer := time.AfterFunc(processTimeout, func() { w.cmd.Process.Kill() })
	t.Cleanup(func() {
		killer.Stop()
		w.cmd.Process.Kill() // it has ended unless the test has failed
		w.cmd.Wait()
	})
	w.status = w.says(`^tsimport: status: (http://127\.0\.0\.1:\d+/)$`, 1)[1]
	return w
}

// feed gives the load rows, more than it samples, so that it begins to write while the pipe stays open. What it returns is
// closed when the load has taken all of them: one that has enough to write lets them wait, and the end of the load breaks
// the pipe.
func (w *watched) feed() (fed chan struct{}) {
	fed = make(chan struct{})
	var text strings.Builder
	text.WriteString(bench.CSVHeader)
	for i := range 100_000 {
		fmt.Fprintf(&text, "%d,A001,2,%d,1.5,2024-01-01T00:00:00Z,tea\n", i%100, i)
	}
	go func() {
		defer close(fed)
		_, _ = io.WriteString(w.in, text.String())
	}()
	return fed
}

// state is the part of /status that tests look at.
type state struct {
	Table                               string
	Read, Written, Rejected, Superseded int64
	Queued                              int64 `json:"rows_queued"`
	Memory                              struct{ Limit int64 }
	Lanes                               []struct {
		Final int64 `json:"rows_final"`
	}
}

// running waits until the load has written rows, and returns what it says then.
func (w *watched) running() (s state) {
	w.t.Helper()
	deadline := time.Now().Add(processTimeout)
	for {
		code, body := w.get("status")
		if code == http.StatusOK {
			s = state{}
			if err := json.Unmarshal([]byte(body), &s); err != nil {
				w.t.Fatalf("%v in %s", err, body)
			}
			if s.Written > 0 {
				return s
			}
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("the load does not write: %d %s", code, body)
		}
	}
}
