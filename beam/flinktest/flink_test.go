//go:build linux

package flinktest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
)

var (
	made  = flag.String("flink", "", "folder that install.sh has filled; without it the tests of a real Flink are skipped")
	rows  = flag.Int("flink-rows", 100_000, "rows of each load")
	logs  = flag.String("flink-logs", "", "folder that keeps the logs of Flink; without it they are gone with the test")
	files = flag.Int("flink-files", 50, "files of each load")
)

// binary is tsimport-beam; TestMain builds it.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	if *made == "" {
		os.Exit(m.Run())
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "flinktest-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "tsimport-beam")
		if out, err := exec.Command("go", "build", "-o", binary, "example.com/tsimport/beam/cmd/tsimport-beam").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// TestLoadsOnFlink runs one load after the other on one cluster. Each must have an exact ledger and a table that is equal to the inputs.
func TestLoadsOnFlink(t *testing.T) {
	if *made == "" {
		t.Skip("no -flink: make flink")
	}
	folder, err := filepath.Abs(*made)
	conformance.Must(t, err)
	l := &loads{t: t, dir: t.TempDir()}
	l.serve()
	l.generate()
	l.c = startCluster(t, folder, l.env)
	t.Run("one process", l.onOneProcess)
	t.Run("undisturbed", func(t *testing.T) { l.run(t, "undisturbed", nil) })
	t.Run("kill worker", func(t *testing.T) {
		l.run(t, "kill worker", func(r *running) {
			r.until("read", 0.2)
			l.killWorker(t)
			r.until("write", 0.3)
			l.killWorker(t)
		})
	})
	t.Run("kill TaskManager", func(t *testing.T) {
		l.run(t, "kill TaskManager", func(r *running) {
			r.until("write", 0.3)
			l.c.kill(l.c.tasks[0])
			l.c.tasks[0] = l.c.startTasks()
		})
	})
	t.Run("kill job server", func(t *testing.T) {
		l.run(t, "kill job server", func(r *running) {
			r.until("write", 0.2)
			l.c.kill(l.c.server)
		})
		l.c.startServer()
		l.c.ready()
	})
	t.Run("kill JobManager", l.killManager)
}

// loads are what all loads of the test have together.
type loads struct {
	t   *testing.T
	dir string
	env []string
	c   *cluster
	n   int
	sum struct{ one, flink float64 }
}

// serve starts an engine of Tablestore in a process of its own.
func (l *loads) serve() {
	cmd := exec.Command(binary, "serve", "--store", filepath.Join(l.dir, "store"), "--listen", "127.0.0.1:0", "--quiet")
	out, err := cmd.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		l.t.Fatal(err)
	}
	names := map[string]string{"url": "TABLESTORE_ENDPOINT", "instance": "TABLESTORE_INSTANCE", "access_key_id": "TABLESTORE_ACCESS_KEY_ID", "access_key_secret": "TABLESTORE_ACCESS_KEY_SECRET"}
	for _, field := range strings.Fields(line) {
		name, value, _ := strings.Cut(field, "=")
		if names[name] != "" {
			l.env = append(l.env, names[name]+"="+value)
		}
	}
	if len(l.env) != len(names) {
		l.t.Fatalf("serve says %q", line)
	}
}

// generate writes the inputs: rows of about 120 bytes whose keys are spread and come once.
func (l *loads) generate() {
	per := *rows / *files
	for f := range *files {
		out, err := os.Create(filepath.Join(l.dir, fmt.Sprintf("in-%03d.csv", f)))
		if err != nil {
			l.t.Fatal(err)
		}
		w := bufio.NewWriterSize(out, 1<<20)
		fmt.Fprintln(w, "id,n,what")
		for n := f * per; n < (f+1)*per; n++ {
			fmt.Fprintf(w, "k%08x%08d,%d,what this record says: some text that fills it up to its size %d\n", uint32(n)*2654435761, n, n, n%1000)
		}
		if err := w.Flush(); err != nil {
			l.t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			l.t.Fatal(err)
		}
	}
}

// want is how many rows there are.
func want() int { return *rows / *files * *files }

// summary is what counts of summary.json.
type summary struct {
	State                     string
	Read, Written, Superseded int
	Rejected                  int
	Splits, Shards            int
	Seconds                   float64
	CPU                       float64 `json:"all_cpu_seconds"`
	Attempts                  int     `json:"write_attempts"`
	Verify                    *struct{ Compared, Missing, Different, Surplus int }
	Planned                   time.Time
}

// command is a load in a job directory.
func (l *loads) command(job string) *exec.Cmd {
	args := []string{"load"}
	names, _ := filepath.Glob(filepath.Join(l.dir, "in-*.csv"))
	args = append(args, names...)
	args = append(args, "--table", filepath.Base(job), "--create", "--pk", "id", "--job-dir", job, "--workers", "2", "--verify", "--request-timeout", "5s", "--memory", "512MiB",
		"--runner", "flink", "--job-endpoint", fmt.Sprintf("localhost:%d", l.c.job), "--parallelism", "2", "--environment", "process:"+binary)
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), l.env...)
	return cmd
}

// running is a load that runs.
type running struct {
	l    *loads
	t    *testing.T
	job  string
	cmd  *exec.Cmd
	said *bytes.Buffer
	gone chan struct{}
}

func (l *loads) start(t *testing.T, job string) *running {
	r := &running{l: l, t: t, job: job, cmd: l.command(job), said: new(bytes.Buffer), gone: make(chan struct{})}
	r.cmd.Stderr = r.said
	conformance.Must(t, r.cmd.Start())
	go func() {
		_ = r.cmd.Wait() // the code is asked for
		close(r.gone)
	}()
	return r
}

// until waits until a share of the tasks of a stage is done.
func (r *running) until(stage string, share float64) {
	r.t.Helper()
	folder := map[string]string{"read": "splits", "write": "shards"}[stage]
	var p struct{ Splits, Shards []json.RawMessage }
	r.l.c.until(10*time.Minute, fmt.Sprintf("%.0f %% of %s", share*100, stage), func() bool {
		select {
		case <-r.gone:
			r.t.Fatalf("the load has ended before %.0f %% of %s:\n%s", share*100, stage, r.said)
		default:
		}
		if p.Splits == nil {
			if body, err := os.ReadFile(filepath.Join(r.job, "plan.json")); err != nil || json.Unmarshal(body, &p) != nil {
				return false
			}
		}
		done, _ := filepath.Glob(filepath.Join(r.job, folder, "*.json"))
		return float64(len(done)) >= share*float64(map[string]int{"read": len(p.Splits), "write": len(p.Shards)}[stage])
	})
}

// code waits for the load's exit code.
func (r *running) code(within time.Duration) int {
	r.t.Helper()
	select {
	case <-r.gone:
	case <-time.After(within):
		r.l.c.logs()
		_ = r.cmd.Process.Kill()
		r.t.Fatalf("the load has not ended in %v:\n%s", within, r.said)
	}
	return r.cmd.ProcessState.ExitCode()
}

const within = 12 * time.Minute

// run runs a load, which disturb may disturb, and checks it.
func (l *loads) run(t *testing.T, name string, disturb func(*running)) {
	l.n++
	job := filepath.Join(l.dir, fmt.Sprintf("job_%d", l.n))
	begun, before := l.c.begun(), l.c.flinkTime()
	r := l.start(t, job)
	if disturb != nil {
		disturb(r)
	}
	if code := r.code(within); code != 0 {
		l.c.logs()
		t.Fatalf("exit code %d:\n%s", code, r.said)
	}
	l.check(t, name, job, r.said.String(), begun, before)
}

// check compares ledger and table with the inputs, prints the figures, and waits for all workers to end.
func (l *loads) check(t *testing.T, name, job, said string, begun int, before time.Duration) {
	body, err := os.ReadFile(filepath.Join(job, "summary.json"))
	conformance.Must(t, err)
	s := new(summary)
	conformance.Must(t, json.Unmarshal(body, s))
	n := want()
	if s.State != "finished" || s.Read != n || s.Written != n || s.Superseded != 0 || s.Rejected != 0 {
		t.Errorf("the ledger of %d rows: %+v", n, s)
	}
	if v := s.Verify; v == nil || v.Compared != n || v.Missing != 0 || v.Different != 0 || v.Surplus != 0 {
		t.Errorf("the table of %d rows: %+v", n, s.Verify)
	}
	tasks := s.Splits + 2*s.Shards + 1
	again := l.c.begun() - begun - tasks
	used := l.c.flinkTime() - before
	first, read := l.span(t, job, "splits")
	_, write := l.span(t, job, "shards")
	_, compare := l.span(t, job, "verify")
	t.Logf("FIGURES %s: %d rows, %d splits, %d shards: %.1f s from the plan to the end: the first task began after %.1f, reading %.1f, writing %.1f, comparing %.1f; Flink %.3f us a row beside these, and %.3f us of processor (%.1f s); ours %.3f; %d tasks run again",
		name, n, s.Splits, s.Shards, s.Seconds, first.Sub(s.Planned).Seconds(), read.Seconds(), write.Seconds(), compare.Seconds(), (s.Seconds-(read+write+compare).Seconds())*1e6/float64(n),
		used.Seconds()*1e6/float64(n), used.Seconds(), s.CPU*1e6/float64(n), again)
	for line := range strings.Lines(said) {
		if strings.Contains(line, "has taken the load") || strings.Contains(line, "runs the load") || strings.Contains(line, "warning") {
			t.Logf("  %s", strings.TrimSpace(line))
		}
	}
	var left []int
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		if left = l.c.workers(); len(left) == 0 {
			return
		}
	}
	t.Errorf("workers that live on:%s; TaskManagers %d and %d", family(left), l.c.tasks[0].cmd.Process.Pid, l.c.tasks[1].cmd.Process.Pid)
}

// span is when the tasks of a stage began, and how long they took in all.
func (l *loads) span(t *testing.T, job, folder string) (from time.Time, took time.Duration) {
	names, _ := filepath.Glob(filepath.Join(job, folder, "*.json"))
	var to time.Time
	for _, name := range names {
		body, err := os.ReadFile(name)
		conformance.Must(t, err)
		var r struct{ Started, Ended time.Time }
		conformance.Must(t, json.Unmarshal(body, &r))
		if from.IsZero() || r.Started.Before(from) {
			from = r.Started
		}
		if r.Ended.After(to) {
			to = r.Ended
		}
	}
	return from, to.Sub(from)
}

// killWorker kills one of the workers.
func (l *loads) killWorker(t *testing.T) {
	var pids []int
	l.c.until(time.Minute, "there is a worker", func() bool { pids = l.c.workers(); return len(pids) > 0 })
	p, err := os.FindProcess(pids[0])
	if err == nil {
		err = p.Kill()
	}
	conformance.Must(t, err)
}

// killManager kills the JobManager: the job is lost, and the same command continues the load on a new one.
func (l *loads) killManager(t *testing.T) {
	l.n++
	job := filepath.Join(l.dir, fmt.Sprintf("job_%d", l.n))
	begun, before := l.c.begun(), l.c.flinkTime()
	r := l.start(t, job)
	r.until("write", 0.3)
	l.c.kill(l.c.manager)
	if code := r.code(within); code != 1 {
		l.c.logs()
		t.Fatalf("exit code %d:\n%s", code, r.said)
	}
	conformance.Contains(t, r.said.String(), "the same command continues the load", "it says:\n%s", r.said)
	t.Logf("  it ends with: %s", lastLine(r.said.String()))
	l.c.startManager()
	l.c.ready()
	again := l.start(t, job)
	if code := again.code(within); code != 0 {
		l.c.logs()
		t.Fatalf("exit code %d:\n%s", code, again.said)
	}
	l.check(t, "kill JobManager", job, r.said.String()+again.said.String(), begun, before)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// onOneProcess is the same load by one process, for comparison.
func (l *loads) onOneProcess(t *testing.T) {
	names, _ := filepath.Glob(filepath.Join(l.dir, "in-*.csv"))
	cmd := exec.Command(binary, append(append([]string{"load"}, names...), "--table", "one", "--create", "--pk", "id", "--verify", "--quiet", "--json", "--memory", "512MiB", "--run-dir", filepath.Join(l.dir, "one"))...)
	cmd.Env = append(os.Environ(), l.env...)
	began := time.Now()
	out, err := cmd.Output()
	conformance.MustEqual(t, err, nil, "error\n%s", out)
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.Logf("FIGURES one process: %d rows: %.1f s, with the comparison; %.3f us of processor a row", want(), time.Since(began).Seconds(), used.Seconds()*1e6/float64(want()))
}
