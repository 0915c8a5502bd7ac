package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/bench"
)

// watched is a load that a test looks at while it runs, and that waits for more input.
type watched struct {
	*process
	in     io.WriteCloser
	dir    string
	status string // address, with a slash at its end
}

// get asks the load over HTTP.
func (w *watched) get(path string) (code int, body string) {
	w.t.Helper()
	client := http.Client{Timeout: processTimeout}
	resp, err := client.Get(w.status + path)
	must(w.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(w.t, err)
	return resp.StatusCode, string(text)
}

// end waits for the load, which must end with the exit code.
func (w *watched) end(code int) {
	w.t.Helper()
	if got := w.wait(); got != code {
		w.t.Errorf("exit code %d, want %d:\n%s", got, code, &w.said)
	}
}

func watch(t *testing.T, args ...string) *watched {
	t.Helper()
	p := newPlace(t)
	if !slices.Contains(args, "--endpoint") {
		args = append(args, "--store", "store")
	}
	w := &watched{dir: p.dir}
	w.process, w.in = p.piped(p.command(append([]string{"load", "-", "--table", "t", "--pk", "CardID", "--pk", "DeviceID", "--pk", "OrderNumber",
		"--run-dir", "run", "--status", "127.0.0.1:0"}, args...)...))
	w.status = w.says(`^tsimport: status: (http://127\.0\.0\.1:\d+/)$`, 1)[1]
	return w
}

// fedRows are more rows than a load samples.
const fedRows = 60_000

// feed gives the load rows, so that it begins to write while the pipe stays open. What it returns is
// closed when the load has taken all of them: one that has enough to write lets them wait, and the end of the load breaks
// the pipe.
func (w *watched) feed() (fed chan struct{}) {
	fed = make(chan struct{})
	text := fileOf(strings.TrimSpace(bench.CSVHeader), fedRows, func(i int) string { return fmt.Sprintf("%d,A001,2,%d,1.5,2024-01-01T00:00:00Z,tea", i%100, i) })
	go func() {
		defer close(fed)
		_, _ = io.WriteString(w.in, text)
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
