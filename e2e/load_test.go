package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/tsimport/bench"
	"example.com/tsimport/internal/conformance"
	"example.com/tsimport/reader/source"
	"github.com/aliyun/aliyun-tablestore-go-sdk/tablestore"
)

type summary struct {
	State                                                                                   string
	ExitCode                                                                                int `json:"exit_code"`
	Read, Written, Rejected, Superseded, Unfinished, Read_again, Condition_failed, Replayed int64
	Seconds                                                                                 float64
	CheckpointSeconds                                                                       float64 `json:"checkpoint_seconds"`
	source.Position
}

// summary reads the summary of a run, by default the newest.
func (p *place) summary(run ...string) (s summary) {
	p.t.Helper()
	if len(run) == 0 {
		runs := p.glob("tsimport-runs/2*/summary.json")
		conformance.MustTrue(p.t, len(runs) != 0, "there is no run")
		run = []string{"tsimport-runs/" + filepath.Base(filepath.Dir(slices.Max(runs)))}
	}
	must(p.t, json.Unmarshal([]byte(p.read(run[0]+"/summary.json")), &s))
	conformance.Equal(p.t, s.Read, s.Written+s.Rejected+s.Superseded+s.Unfinished+s.Read_again+s.Condition_failed,
		"the ledger does not balance: %+v", s)
	return s
}

var ofCards = strings.Fields("--table t --pk CardID --pk DeviceID --pk OrderNumber --store store --run-dir run")

func (p *place) piped(cmd *exec.Cmd) (*process, io.WriteCloser) {
	p.t.Helper()
	in := conformance.Try(cmd.StdinPipe()).Must(p.t)
	return begin(p.t, cmd), in
}

// TestSignalsStopLoad feeds a load through a pipe that it keeps open, so that the load cannot end before the signal.
func TestSignalsStopLoad(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}, {syscall.SIGHUP, 129}} {
		t.Run(tt.signal.String(), func(t *testing.T) {
			if signal.Ignored(tt.signal) {
				t.Skip("these tests were started with the signal ignored, as nohup does, and so is what they start")
			}
			p := newPlace(t)
			r, in := p.piped(p.command(append([]string{"load", "-"}, ofCards...)...))
			fmt.Fprint(in, bench.CSVHeader+strings.Repeat("1,A001,2,3,1.5,2024-01-01T00:00:00Z,tea\n", 60_000))
			r.says("[1-9][0-9,]* rows, ", 1) // the load is running
			r.signal(tt.signal)
			if code := r.wait(); code != tt.code || !strings.Contains(r.said.String(), "finishing requests in flight") {
				t.Errorf("exit code %d, want %d and what happens:\n%s", code, tt.code, &r.said)
			}
			s := p.summary("run")
			conformance.True(t, s.State == "interrupted" && s.ExitCode == tt.code && s.Read != 0, "%+v", s)
		})
	}
}

// TestIgnoredSignalsDoNotStopLoad ignores signals as nohup (SIGHUP) and a shell's background jobs (SIGINT) do.
func TestIgnoredSignalsDoNotStopLoad(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	p := newPlace(t)
	cmd := exec.Command(sh, "-c", `trap "" HUP INT; exec "$0" "$@"`, binary, "load", "-", "--table", "t", "--pk", "id",
		"--store", "store", "--run-dir", "run")
	cmd.Dir = p.dir
	r, in := p.piped(cmd)
	fmt.Fprint(in, "id,a\n"+strings.Repeat("k,some text that fills the first block of the stream\n", 30_000))
	r.says(" rows/s", 1)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		r.signal(s)
	}
	fmt.Fprint(in, "last,1\n")
	must(t, in.Close())
	conformance.Equal(t, r.wait(), 0, "exit code:\n%s", &r.said)
	s := p.summary("run")
	conformance.True(t, s.State == "finished" && s.Read == 30_001, "%+v", s)
}

// TestKilledLoadLosesNoAcknowledgedRow kills a load that has reported written rows. Its embedded store must have them.
func TestKilledLoadLosesNoAcknowledgedRow(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	const success = "# TYPE tsimport_last_run_success_timestamp_seconds " +
		"gauge\ntsimport_last_run_success_timestamp_seconds{command=\"load\",load=\"\",table=\"t\"} 7\n"
	p.write("m.prom", success)
	r, in := p.piped(p.command(append([]string{"load", "-", "--metrics-file", "m.prom"}, ofCards...)...))
	go bench.StudentCards{Rows: 40_000}.WriteCSV(t.Context(), in) // the kill may break the pipe
	written := r.says(`([1-9][\d,]*) rows, \d`, 1)[1]
	r.kill()
	atLeast := conformance.Try(strconv.Atoi(strings.ReplaceAll(written, ",", ""))).Must(t)
	n := strings.Count(p.output("export", "--store", "store", "--table", "t"), "\n") - 1
	conformance.True(t, n >= atLeast, "%d rows after the kill, %d were written", n, atLeast)
	text, err := os.ReadFile(p.path("m.prom"))
	conformance.True(t, err == nil && string(text) == success, "metrics after the kill: %v\n%s", err, text)
}

type watched struct {
	*process
	place  *place
	in     io.WriteCloser
	status string // address, with a slash at the end
}

func (w *watched) get(path string) (code int, body string) {
	w.t.Helper()
	client := http.Client{Timeout: processTimeout}
	resp := conformance.Try(client.Get(w.status + path)).Must(w.t)
	defer resp.Body.Close()
	text := conformance.Try(io.ReadAll(resp.Body)).Must(w.t)
	return resp.StatusCode, string(text)
}

func (w *watched) end(code int) {
	w.t.Helper()
	got := w.wait()
	conformance.True(w.t, got == code, "exit code %d, want %d:\n%s", got, code, &w.said)
}

func watch(t *testing.T, args ...string) *watched {
	t.Helper()
	p := newPlace(t)
	if !slices.Contains(args, "--endpoint") {
		args = append(args, "--store", "store")
	}
	w := &watched{place: p}
	w.process, w.in = p.piped(p.command(append([]string{"load", "-", "--table", "t", "--pk", "CardID", "--pk", "DeviceID",
		"--pk", "OrderNumber", "--run-dir", "run", "--status", "127.0.0.1:0"}, args...)...))
	w.status = w.says(`^tsimport: status: (http://127\.0\.0\.1:\d+/)$`, 1)[1]
	return w
}

const fedRows = 60_000

// feed writes rows to the pipe so that the load starts to write, and keeps the pipe open. fed is closed when the load
// has read all rows. A load with enough rows to write stops reading, and its end breaks the pipe.
func (w *watched) feed() (fed chan struct{}) {
	fed = make(chan struct{})
	text := fileOf(strings.TrimSpace(bench.CSVHeader), fedRows,
		func(i int) string { return fmt.Sprintf("%d,A001,2,%d,1.5,2024-01-01T00:00:00Z,tea", i%100, i) })
	go func() {
		defer close(fed)
		_, _ = io.WriteString(w.in, text)
	}()
	return fed
}

func (w *watched) running() {
	w.t.Helper()
	for deadline := time.Now().Add(processTimeout); ; {
		code, body := w.get("status")
		var state struct{ Written int64 }
		if code == http.StatusOK {
			must(w.t, json.Unmarshal([]byte(body), &state))
		}
		switch {
		case state.Written > 0:
			return
		case time.Now().After(deadline):
			w.t.Fatalf("the load does not write: %d %s", code, body)
		}
	}
}

// TestSIGTERMLetsRequestInFlightFinish sends the body of a request after the signal has closed the port.
func TestSIGTERMLetsRequestInFlightFinish(t *testing.T) {
	p := startServe(t)
	config := tablestore.NewDefaultTableStoreConfig()
	config.RetryTimes = 0
	config.Transport = &inParts{between: func() {
		must(t, p.Process.Signal(syscall.SIGTERM))
		for { // until the port refuses, because the server is stopping
			c, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
			if err != nil {
				return
			}
			c.Close()
		}
	}}
	client := tablestore.NewClientWithConfig(p.URL, p.Instance, p.AccessKeyID, p.AccessKeySecret, "", config)
	_, err := client.DescribeTable(&tablestore.DescribeTableRequest{TableName: "no_such_table"})
	conformance.Equal(t, codeOf(err), "OTSObjectNotExist", "%v", err)
	p.stopped = true
	conformance.Equal(t, p.wait(), 0, "exit code; stderr:\n%s", p.said.String())
}

// inParts is a transport that sends the headers, waits for 100 Continue, calls between, and then sends the body.
type inParts struct{ between func() }

func (p *inParts) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Expect", "100-continue")
	r.Body = &lateBody{ReadCloser: r.Body, between: sync.OnceFunc(p.between)}
	return (&http.Transport{ExpectContinueTimeout: processTimeout, DisableKeepAlives: true}).RoundTrip(r)
}

type lateBody struct {
	io.ReadCloser
	between func()
}

func (b *lateBody) Read(into []byte) (int, error) {
	b.between()
	return b.ReadCloser.Read(into)
}

// TestKilledServersLoseNothingAcknowledged checks that after each kill all acknowledged rows exist, and that all other
// rows were in flight.
func TestKilledServersLoseNothingAcknowledged(t *testing.T) {
	t.Parallel()
	const writers, rows = 4, 10
	store := filepath.Join(t.TempDir(), "store")
	s := startServe(t, "--quiet", "--store", store)
	name := s.newTable(t, "t", 1).name
	var acknowledged [writers]int // batches per writer: new rows, and one that is overwritten
	for round := range *kills {
		tb := s.table(name)
		news := make(chan struct{}, 1<<16)
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for ; ; acknowledged[w]++ {
					changes := []tablestore.RowChange{tb.put(tb.key(fmt.Sprint("w", w), -1), c("n", acknowledged[w]))}
					for i := range rows {
						key := tb.key(fmt.Sprint("w", w), acknowledged[w]*rows+i)
						changes = append(changes, tb.put(key, c("b", []byte{0, byte(i)}), c("n", acknowledged[w])))
					}
					r, err := tb.batch(changes...)
					if err != nil {
						return
					}
					for _, row := range r.TableToRowsResult[name] {
						conformance.Equal(t, row.IsSucceed, true, "a row was refused: %+v", row.Error)
					}
					news <- struct{}{}
				}
			})
		}
		for range 1 + round*7%30 {
			<-news
		}
		s.kill()
		all.Wait()
		s = startServe(t, "--quiet", "--store", store)
		found := [writers]int{}
		for r := range rowsOf(t, s.client(), name) {
			var w int
			key, cells := keyValues(r.PrimaryKey), cellsOf(r.Columns)
			fmt.Sscanf(key[0].(string), "w%d", &w)
			at, n := key[1].(int64), cells[len(cells)-1].Value.(int64)
			switch last := int64(acknowledged[w]); {
			case at < 0 && n != last && n != last-1, at >= 0 && (len(cells) != 2 || n != at/rows || n > last):
				t.Errorf("round %d: row %v of %d batches", round, r, last)
			case at >= 0 && n < last:
				found[w]++
			}
		}
		for w, batches := range acknowledged {
			conformance.Equal(t, found[w], batches*rows, "round %d: writer %d: rows of %d batches", round, w, batches)
		}
	}
}

type jobRecord struct {
	State                   string
	Read, Written, Rejected int64
	Loads                   []struct{ Name, State string }
}

// jobOf reads the only job in a folder. It returns the job's folder, and nil before there is a job.
func jobOf(dir string) (folder string, r *jobRecord) {
	found, err := filepath.Glob(filepath.Join(dir, "tsimport-runs", "*", "job.json"))
	if err != nil || len(found) == 0 {
		return "", nil
	}
	text, err := os.ReadFile(found[0])
	r = new(jobRecord)
	if err != nil || json.Unmarshal(text, r) != nil {
		return "", nil
	}
	return filepath.Dir(found[0]), r
}

func TestTwoProcessesDoNotRunOneJob(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("in.csv", "id\n"+strings.Repeat("1\n2\n3\n4\n", 500))
	p.write("job.yaml", "version: 1\ntarget: {store: s}\ndefaults: {create: true, max-rows-per-second: 10, order: "+
		"none}\nloads:\n  t: {from: in.csv, pk: [id]}\n")
	first := p.start("run", "job.yaml", "-q")
	var folder string
	first.must(func() bool {
		f, r := jobOf(p.dir)
		folder = f
		return r != nil && r.State == "running"
	})
	for _, args := range [][]string{{"run", "job.yaml"}, {"run", "job.yaml", "--fresh"}, {"resume", folder}} {
		r := p.start(args...)
		if code := r.wait(); code == 0 || !strings.Contains(r.said.String(), "process") {
			t.Errorf("%v: exit code %d, %s", args, code, &r.said)
		}
	}
	first.signal(syscall.SIGTERM)
	conformance.Equal(t, first.wait(), 143, "exit code")
	_, r := jobOf(p.dir)
	conformance.True(t, r.State == "stopped" && r.Loads[0].State == "stopped", "%+v", r)
}
