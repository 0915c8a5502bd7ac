package status

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/pipeline"
	"example.com/tsimport/pipeline/lanes"
)

// fake is a load with a given state. If it is nil, the load does not answer.
type fake struct{ state *pipeline.State }

func (f *fake) State(ctx context.Context) (*pipeline.State, error) {
	if f.state == nil {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return f.state, nil
}

func sample() *pipeline.State {
	return &pipeline.State{
		Table: "cards", Order: "last-wins", Seconds: 12.5,
		StateCounts: pipeline.StateCounts{Read: 1000, Written: 700, Rejected: 3, Superseded: 2, Retried: 50, Throttled: 40,
			Requests: 9, WriteCU: 701},
		StateWork: pipeline.StateWork{Reading: true, InFlight: 4, Workers: 32, RowsOut: 200, Retrying: 10, Queued: 95,
			LimitedBy: "partition"},

		Memory: pipeline.StateMemory{Limit: 1 << 30, Lanes: 1 << 20, Budget: 1 << 28, Full: true},
		Spill:  lanes.Spill{Frames: 2, RawBytes: 4096, DiskBytes: 1024, Rows: 60},
		Map:    pipeline.StateMap{Partitions: 2, Exact: true, Reads: 5, Recuts: 1},
		Marks:  pipeline.StateMarks{BytesRead: 5000, BytesTotal: 10000, Final: 705},
		Lanes: []lanes.State{
			{Partition: 0, Rate: 990.5, Pace: "cruise", Queued: 90, Spilled: true, Retrying: 10, InFlight: 3, Final: 600,
				Throttled: 40},
			{Partition: 1, From: "m", Pace: "start", Queued: 5, InFlight: 1, Final: 105, Unavailable: 7, Down: true,
				Trouble: "OTSPartitionUnavailable"},
		},
	}
}

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestStateIsServedUnchanged(t *testing.T) {
	want := sample()
	w := get(Handler(&fake{want}), "/status")
	conformance.Equal(t, w.Code, http.StatusOK, "code")
	conformance.Equal(t, w.Header().Get("Content-Type"), "application/json", "type of the content")
	conformance.Contains(t, w.Body.String(), "\n  \"table\": \"cards\",\n", "not indented:\n%s", w.Body)
	var got pipeline.State
	conformance.Must(t, json.Unmarshal(w.Body.Bytes(), &got))
	conformance.Equal(t, cmp.Diff(want, &got), "", "(-want +got)")
}

func TestSilentLoadIsReportedAsStartingOrEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load := &fake{}
		h := Handler(load)
		check := func(want string) {
			t.Helper()
			start := time.Now()
			w := get(h, "/status")
			conformance.True(t, w.Code == http.StatusServiceUnavailable && strings.Contains(w.Body.String(), want),
				"answer %d %s, want 503 and %q", w.Code, w.Body, want)
			conformance.Equal(t, time.Since(start), patience, "answered")
		}
		check(`"error": "the load has not started writing yet"`)
		load.state = sample()
		w := get(h, "/status")
		conformance.True(t, w.Code == http.StatusOK, "answer %d %s", w.Code, w.Body)
		load.state = nil
		check(`"error": "the load no longer answers; it is ending"`)
	})
}

func TestUnencodableStateIsAnError(t *testing.T) {
	s := sample()
	s.Lanes[0].Rate = math.Inf(1)
	w := get(Handler(&fake{s}), "/status")
	var answer map[string]string
	err := json.Unmarshal(w.Body.Bytes(), &answer)
	conformance.True(t, err == nil && w.Code == http.StatusInternalServerError && answer["error"] != "",
		"answer %d %s: %v", w.Code, w.Body, err)
}

var update = flag.Bool("update", false, "write the golden file of these tests")

func TestMetricsCoverStateAndProcess(t *testing.T) {
	w := get(Handler(&fake{sample()}), "/metrics")
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("answer %d of type %q", w.Code, w.Header().Get("Content-Type"))
	}
	var own []string // the others depend on the process
	for l := range strings.Lines(w.Body.String()) {
		if strings.Contains(l, "tsimport_") {
			own = append(own, l)
		}
	}
	golden := filepath.Join("testdata", "metrics.txt")
	if *update {
		conformance.Must(t, os.WriteFile(golden, []byte(strings.Join(own, "")), 0o644))
	}
	want := conformance.Try(os.ReadFile(golden)).Must(t)
	conformance.Equal(t, strings.Join(own, ""), string(want), "metrics")
	page := conformance.Try(os.ReadFile("../../docs/fields.md")).Must(t)
	for _, line := range own {
		if name, ok := strings.CutPrefix(line, "# TYPE tsimport_"); ok {
			name, _, _ = strings.Cut(name, " ")
			conformance.Contains(t, string(page), "`tsimport_"+name+"`", "docs/fields.md does not name tsimport_%s", name)
		}
	}
	for _, name := range []string{"go_goroutines ", "process_cpu_seconds_total "} {
		conformance.Contains(t, w.Body.String(), "\n"+name, "metrics")
	}
}

func TestMetricNamesFollowPrometheus(t *testing.T) {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{sample()})
	problems := conformance.Try(testutil.GatherAndLint(r)).Must(t)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestProcessMetricsExistBeforeFirstWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := get(Handler(&fake{}), "/metrics")
		conformance.True(t, w.Code == http.StatusOK && strings.Contains(w.Body.String(), "\ntsimport_writing 0\n") &&
			strings.Contains(w.Body.String(), "go_goroutines") && !strings.Contains(w.Body.String(), "tsimport_rows"),
			"answer %d\n%s", w.Code, w.Body)
	})
}

func TestBinaryKeyMakesValidLabel(t *testing.T) {
	s := sample()
	s.Lanes[1].From = "a\xff\"\n"
	s.Marks.BytesTotal = -1
	w := get(Handler(&fake{s}), "/metrics")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `tsimport_lane_down{from="a�\"\n",partition="1"} 1`) {
		t.Errorf("answer %d\n%s", w.Code, w.Body)
	}
	conformance.Equal(t, strings.Contains(w.Body.String(), "tsimport_input_size_bytes"), false, "a stream's size is shown")
}

func TestFrontPageLinksOtherPages(t *testing.T) {
	h := Handler(&fake{})
	if w := get(h, "/"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "/status ") ||
		!strings.Contains(w.Body.String(), "/metrics ") {
		t.Errorf("answer %d %s", w.Code, w.Body)
	}
	conformance.Equal(t, get(h, "/other").Code, http.StatusNotFound, "/other: answer")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/status", nil))
	conformance.Equal(t, w.Code, http.StatusMethodNotAllowed, "POST: answer")
}

func TestServerAnswersUntilClosed(t *testing.T) {
	s := conformance.Try(Listen("127.0.0.1:0", &fake{sample()})).Must(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	resp := conformance.Try(http.Get(s.URL() + "status")).Must(t)
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	conformance.True(t, err == nil && strings.Contains(string(body), `"table": "cards"`), "%v %s", err, body)
	s.Close()
	conformance.Equal(t, <-served, nil, "error")
	if resp, err := http.Get(s.URL()); err == nil {
		resp.Body.Close()
		t.Error("a closed server answers")
	}
}

// waiting is a load that signals that it was asked, and never answers.
type waiting chan bool

func (w waiting) State(ctx context.Context) (*pipeline.State, error) {
	w <- true
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestCloseEndsWaitingRequest(t *testing.T) {
	load := make(waiting)
	s := conformance.Try(Listen("127.0.0.1:0", load)).Must(t)
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

func TestAddressInUseIsAnError(t *testing.T) {
	l := conformance.Try(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer l.Close()
	if s, err := Listen(l.Addr().String(), &fake{}); err == nil {
		s.Close()
		t.Error("an address was taken twice")
	}
}

func TestUnusedServerReleasesItsAddress(t *testing.T) {
	s := conformance.Try(Listen("127.0.0.1:0", &fake{})).Must(t)
	address := s.listener.Addr().String()
	s.Close()
	conformance.Equal(t, s.Serve(), nil, "serve after close")
	conformance.Try(net.Listen("tcp", address)).Must(t).Close()
}

func TestFailedListenerIsNamed(t *testing.T) {
	s := conformance.Try(Listen("127.0.0.1:0", &fake{})).Must(t)
	defer s.Close()
	s.listener.Close()
	conformance.Refused(t, s.Serve(), s.listener.Addr().String(), "error")
}

func TestURLOfWildcardAddressIsReachable(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "127.0.0.1:0"} {
		s := conformance.Try(Listen(address, &fake{sample()})).Must(t)
		served := make(chan error, 1)
		go func() { served <- s.Serve() }()
		conformance.Equal(t, strings.HasPrefix(s.URL(), "http://127.0.0.1:"), true, "%s: the URL is %s", address, s.URL())
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

func TestLoopbackAddresses(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:0": true, "localhost:0": true, "0.0.0.0:0": false, ":0": false} {
		s := conformance.Try(Listen(address, &fake{})).Must(t)
		conformance.Equal(t, s.Loopback(), want, "%s: loopback", address)
		s.Close()
	}
}

func TestForeignHostNamesAreRefused(t *testing.T) {
	h := onlyKnownHosts("Monitor.example:9000", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{"localhost": 200, "127.0.0.1:9000": 200, "[::1]:9000": 200, "192.0.2.7": 200,
		"monitor.example:9000": 200, "x.localhost": 200, "evil.example": 403, "localhost.evil.example:9000": 403,
		"127.0.0.1.evil.example": 403} {
		r := httptest.NewRequest(http.MethodGet, "/status", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		conformance.Equal(t, w.Code, want, "%s", host)
	}
}
