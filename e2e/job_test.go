package e2e

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tsimport/pipeline/checkpoint"
)

// jobRecord is what a test looks at of a job.json.
type jobRecord struct {
	State    string                         `json:"state"`
	ExitCode int                            `json:"exit_code"`
	Read     int64                          `json:"read"`
	Written  int64                          `json:"written"`
	Rejected int64                          `json:"rejected"`
	Loads    []struct{ Name, State string } `json:"loads"`
}

// jobOf reads the one job in a folder, and returns its own; nil before there is one.
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

// came is how far a job came: the rows that are final.
func came(dir string, rows int64) (final int64) {
	folder, r := jobOf(dir)
	if r == nil {
		return -1
	}
	for _, l := range r.Loads {
		if l.State == "done" {
			final += rows
		} else if s, err := checkpoint.Read(filepath.Join(folder, l.Name)); err == nil {
			final += s.Counters["written"] + s.Counters["rejected"]
		}
	}
	return final
}

func TestAJobThatIsKilledAgainAndAgainIsExact(t *testing.T) {
	t.Parallel()
	tables, rows, kills := 8, 300, 4
	if text := os.Getenv("TSIMPORT_JOB_TABLES"); text != "" { // make jobs
		n, err := strconv.Atoi(text)
		must(t, err)
		tables, kills = n, 20
	}
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "dump"), 0o755))
	for i := range tables {
		var b strings.Builder
		b.WriteString("id,n\n")
		for r := range rows {
			if r == i {
				b.WriteString("bad,0\n")
				continue
			}
			fmt.Fprintf(&b, "%d,%d\n", r/2, r) // each counter gets two records
		}
		must(t, os.WriteFile(filepath.Join(dir, "dump", fmt.Sprintf("shop.t%03d.csv", i)), []byte(b.String()), 0o644))
	}
	// Counters show a row that is written twice, and one that is not.
	must(t, os.WriteFile(filepath.Join(dir, "job.yaml"), fmt.Appendf(nil, `version: 1
parallel: 4
target: {store: s}
defaults: {create: true, memory: 256MiB, max-errors: 1%%, max-rows-per-second: %d}
loads:
  "{table}":
    from: ["dump/shop.{table}.csv"]
    mode: increment
    pk: [id:integer]
`, tables*rows/2), 0o644))
	rnd := rand.New(rand.NewPCG(1, uint64(tables)))
	total := int64(tables * rows)
	step := total / int64(kills+1)
	killed := 0
	for at := rnd.Int64N(step); ; at += 1 + rnd.Int64N(step) {
		args := []string{"run", "job.yaml", "-q"}
		if killed%3 == 2 {
			args = []string{"resume"}
		}
		if ended, code := killedJob(t, dir, at, int64(rows), args...); ended {
			if code != 3 {
				t.Fatalf("exit code %d, want 3", code)
			}
			break
		}
		killed++
	}
	t.Logf("killed %d times", killed)
	if killed == 0 {
		t.Error("it was never killed")
	}
	_, r := jobOf(dir)
	if r.State != "done" || r.Read != total || r.Rejected != int64(tables) || r.Written != total-int64(tables) {
		t.Errorf("%+v of %d records", r, total)
	}
	for i := range tables {
		stdout, stderr, code := runIn(t, dir, "export", "--table", fmt.Sprintf("t%03d", i), "--store", "s", "--columns", "n", "-q")
		if code != 0 {
			t.Fatalf("export: %d, %s", code, stderr)
		}
		lines, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
		must(t, err)
		for _, l := range lines[1:] {
			id, err := strconv.Atoi(l[0])
			must(t, err)
			want := 0
			for _, n := range []int{2 * id, 2*id + 1} {
				if n != i {
					want += n
				}
			}
			if l[1] != strconv.Itoa(want) {
				t.Errorf("table %d: counter %d is %s, want %d", i, id, l[1], want)
			}
		}
		if len(lines) != rows/2+1 {
			t.Errorf("table %d has %d rows, want %d", i, len(lines)-1, rows/2)
		}
	}
}

// killedJob runs tsimport, and kills it once so many rows are final. It reports whether it ended before, and how.
func killedJob(t *testing.T, dir string, final, rows int64, args ...string) (ended bool, code int) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TSIMPORT_CHECKPOINT_EVERY=20ms")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	must(t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-done:
			if code := cmd.ProcessState.ExitCode(); code > 0 && code != 3 {
				t.Logf("%s", stderr.String())
			}
			if code := cmd.ProcessState.ExitCode(); code >= 0 {
				return true, code
			}
			_, r := jobOf(dir)
			return r != nil && r.State == "done", 3
		case <-look.C:
		}
		if came(dir, rows) > final {
			_ = cmd.Process.Signal(syscall.SIGKILL) // unless it has ended meanwhile
			final = 1 << 62
		}
	}
}

// runIn runs tsimport in a folder.
func runIn(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatalf("run tsimport %q: %v", args, err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

func TestTwoProcessesDoNotRunOneJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte("id\n"+strings.Repeat("1\n2\n3\n4\n", 5000)), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "job.yaml"), []byte("version: 1\ntarget: {store: s}\ndefaults: {create: true, max-rows-per-second: 10, order: none}\nloads:\n  t: {from: in.csv, pk: [id]}\n"), 0o644))
	cmd := exec.Command(binary, "run", "job.yaml", "-q")
	cmd.Dir = dir
	must(t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var folder string
	for folder == "" {
		if f, r := jobOf(dir); r != nil && r.State == "running" {
			folder = f
		}
		select {
		case err := <-done:
			t.Fatalf("the job ended: %v", err)
		case <-time.After(2 * time.Millisecond):
		}
	}
	rel, err := filepath.Rel(dir, folder)
	must(t, err)
	for _, args := range [][]string{{"run", "job.yaml"}, {"run", "job.yaml", "--fresh"}, {"resume", rel}} {
		if _, stderr, code := runIn(t, dir, args...); code == 0 || !strings.Contains(stderr, "process") {
			t.Errorf("%v: exit code %d, %s", args, code, stderr)
		}
	}
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	<-done
	if code := cmd.ProcessState.ExitCode(); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
	if _, r := jobOf(dir); r.State != "stopped" || r.Loads[0].State != "stopped" {
		t.Errorf("%+v", r)
	}
}
