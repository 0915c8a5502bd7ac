//go:build e2e && unix

package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tsimport/internal/objectstore/storetest"
)

var (
	scaleRounds = flag.Int("scale-rounds", 0, "rounds of one load by 2 to 8 processes that are killed and stopped; 0 skips them")
	scaleSeed   = flag.Uint64("scale-seed", 1, "seed of the first round")
)

// scaledLoad is one load by many processes, and what it must make.
type scaledLoad struct {
	t     *testing.T
	s     *served
	env   []string
	place string // of the job directory
	files []string
	table string

	read, rejected, keys int
	rejects              string
}

// newScaledLoad writes inputs in which keys come many times and some records are bad.
func newScaledLoad(t *testing.T, s *served, kind string, rnd *rand.Rand, records int) *scaledLoad {
	l := &scaledLoad{t: t, s: s, env: s.credentials(), table: fmt.Sprintf("scaled_%d", rnd.Uint32())}
	dir := t.TempDir()
	keys := map[string]bool{}
	l.rejects = "id,n,what\n"
	for n := range 3 {
		var text strings.Builder
		text.WriteString("id,n,what\n")
		for i := range records / 3 {
			if rnd.IntN(500) == 0 {
				line := fmt.Sprintf("bad-%d-%d\n", n, i)
				text.WriteString(line)
				l.rejects += line
				l.rejected++
				l.read++
				continue
			}
			key := fmt.Sprintf("k%07d", rnd.IntN(records/2)*199)
			keys[key] = true
			fmt.Fprintf(&text, "%s,%d,\"file %d\nrecord %d\"\n", key, i, n, i)
			l.read++
		}
		name := filepath.Join(dir, fmt.Sprintf("in-%d.csv", n))
		if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		l.files = append(l.files, name)
	}
	l.keys = len(keys)
	l.place = filepath.Join(dir, "job")
	if kind != "folder" {
		around := &surroundings{T: t}
		objects := storetest.New(around, "jobs")
		l.place = kind + "://jobs/of/" + l.table
		l.env = append(append(l.env, around.env...), "OSS_ENDPOINT="+objects.URL(), "OSS_REGION=cn-test")
	}
	return l
}

func (l *scaledLoad) target() []string {
	return []string{"--endpoint", l.s.URL, "--instance", l.s.Instance, "--table", l.table}
}

// plan plans the load.
func (l *scaledLoad) plan(more ...string) {
	l.t.Helper()
	args := append([]string{"load"}, l.files...)
	args = append(append(args, l.target()...), "--create", "--pk", "id", "--max-errors", "-1", "--job-dir", l.place, "--workers", "2", "--request-timeout", "2s", "--quiet")
	if _, stderr, code := runBinaryWith(l.t, l.env, append(args, more...)...); code != 0 {
		l.t.Fatalf("plan: exit code %d\n%s", code, stderr)
	}
}

// worker starts a process that works on the load.
func (l *scaledLoad) worker(args ...string) (*exec.Cmd, *bytes.Buffer) {
	l.t.Helper()
	cmd := exec.Command(binary, append([]string{"work", "--job-dir", l.place, "--quiet"}, args...)...)
	cmd.Env = append(os.Environ(), l.env...)
	said := new(bytes.Buffer)
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	return cmd, said
}

// scaledStatus is what tsimport status prints.
type scaledStatus struct {
	State      string `json:"state"`
	ExitCode   *int   `json:"exit_code"`
	Read       int    `json:"read"`
	Written    int    `json:"written"`
	Rejected   int    `json:"rejected"`
	Superseded int    `json:"superseded"`
	Stages     []struct {
		Stage       string
		Tasks, Done int
	} `json:"stages"`
}

func (l *scaledLoad) status() (s scaledStatus) {
	l.t.Helper()
	out, stderr, code := runBinaryWith(l.t, l.env, "status", l.place, "--json")
	if code != 0 {
		l.t.Fatalf("status: exit code %d\n%s", code, stderr)
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		l.t.Fatal(err)
	}
	return s
}

// check compares the ledger and the table with the inputs.
func (l *scaledLoad) check() {
	l.t.Helper()
	s := l.status()
	if s.ExitCode == nil || *s.ExitCode != 3 || s.Read != l.read || s.Written != l.keys || s.Rejected != l.rejected || s.Superseded != l.read-l.rejected-l.keys {
		l.t.Errorf("%+v; want %d read, %d written, %d rejected", s, l.read, l.keys, l.rejected)
	}
	args := append(append([]string{"verify"}, l.files...), l.target()...)
	if out, stderr, code := runBinaryWith(l.t, l.env, append(args, "--extra", "fail")...); code != 0 {
		l.t.Errorf("verify: exit code %d\n%s%s", code, out, stderr)
	}
	if got, err := os.ReadFile(filepath.Join(l.place, "rejects.csv")); err == nil && string(got) != l.rejects {
		l.t.Errorf("rejects:\n%s\nwant\n%s", got, l.rejects)
	}
}

func TestOneLoadIsDoneByProcessesThatShareADirectory(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"folder", "oss", "s3"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			l := newScaledLoad(t, startServe(t), kind, rand.New(rand.NewPCG(1, 1)), 3000)
			l.plan("--split-size", "20KiB")
			l.plan("--split-size", "20KiB") // which changes nothing
			// An engine runs a task twice, and another too early.
			for range 2 {
				if _, stderr, code := runBinaryWith(t, append(l.env, "JOB_COMPLETION_INDEX=0"), "work", "--job-dir", l.place, "--stage", "read"); code != 0 {
					t.Errorf("read: exit code %d\n%s", code, stderr)
				}
			}
			if _, stderr, code := runBinaryWith(t, l.env, "work", "--job-dir", l.place, "--stage", "write", "--index", "0"); code != 1 || !strings.Contains(stderr, "is not read yet") {
				t.Errorf("write: exit code %d\n%s", code, stderr)
			}
			if _, stderr, code := runBinaryWith(t, l.env, "work", "--job-dir", l.place, "--stage", "finish"); code != 1 || !strings.Contains(stderr, "the job is not done") {
				t.Errorf("finish: exit code %d\n%s", code, stderr)
			}
			l.workers(3)
			l.check()
		})
	}
}

func TestOneLoadOfTwoHundredSplitsIsDoneByProcesses(t *testing.T) {
	t.Parallel()
	l := newScaledLoad(t, startServe(t, "--sync", "none"), "folder", rand.New(rand.NewPCG(2, 1)), 30_000)
	l.plan("--split-size", "4KiB")
	if n := l.status().Stages[0].Tasks; n < 200 {
		t.Fatalf("the job has %d splits", n)
	}
	l.workers(4)
	l.check()
}

// workers lets so many processes do the load.
func (l *scaledLoad) workers(n int) {
	l.t.Helper()
	var all sync.WaitGroup
	for range n {
		cmd, said := l.worker()
		all.Go(func() {
			_ = cmd.Wait() // the exit code says it
			if code := cmd.ProcessState.ExitCode(); code != 3 {
				l.t.Errorf("work: exit code %d\n%s", code, said)
			}
		})
	}
	all.Wait()
}

// A bucket of OSS with versioning ignores that a put must not replace anything, and so do some stores that call themselves compatible with S3.
func TestAPlaceWithoutConditionalPutsIsRefusedForAJob(t *testing.T) {
	t.Parallel()
	s := startServe(t)
	input := filepath.Join(t.TempDir(), "in.csv")
	must(t, os.WriteFile(input, []byte("id,n\n1,1\n"), 0o600))
	for _, kind := range []string{"oss", "s3"} {
		around := &surroundings{T: t}
		objects := storetest.New(around, "jobs")
		objects.Change(func(o *storetest.Server) { o.Unconditional = true })
		env := append(append(s.credentials(), around.env...), "OSS_ENDPOINT="+objects.URL(), "OSS_REGION=cn-test")
		_, stderr, code := runBinaryWith(t, env, "load", input, "--endpoint", s.URL, "--instance", s.Instance, "--table", "t", "--create", "--pk", "id", "--job-dir", kind+"://jobs/of")
		if code != 2 || !strings.Contains(stderr, "it replaces objects that a put must not replace") {
			t.Errorf("%s: exit code %d\n%s", kind, code, stderr)
		}
	}
}

// TestOneLoadByProcessesThatAreKilledAndStopped kills processes, stops others for longer than their leases and lets them continue.
func TestOneLoadByProcessesThatAreKilledAndStopped(t *testing.T) {
	if *scaleRounds == 0 {
		t.Skip("give -scale-rounds")
	}
	slots := make(chan struct{}, 4) // rounds at a time: they wait for leases most of the time
	for i := range *scaleRounds {
		seed := *scaleSeed + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			killedRound(t, seed)
		})
	}
}

func killedRound(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 5))
	s := startServe(t, "--partition-wcu", "3000", "--latency", "20ms", "--fault-rate", "0.01")
	l := newScaledLoad(t, s, []string{"folder", "folder", "oss", "s3"}[rnd.IntN(4)], rnd, 20_000)
	l.plan("--split-size", "60KiB", "--batch-rows", "20")
	kills, stops := 0, 0
	deadline := time.Now().Add(10 * time.Minute)
	for l.status().ExitCode == nil && time.Now().Before(deadline) {
		var wave sync.WaitGroup
		for range 2 + rnd.IntN(7) {
			cmd, said := l.worker()
			after := time.Duration(rnd.IntN(6000)) * time.Millisecond
			what := rnd.IntN(4)
			wave.Go(func() {
				ended := make(chan struct{})
				go func() {
					_ = cmd.Wait() // the exit code says it
					close(ended)
				}()
				select {
				case <-ended:
				case <-time.After(after):
					switch what {
					case 0, 1:
						_ = cmd.Process.Kill() // it may have ended
					case 2: // past the lease, and then it continues
						_ = cmd.Process.Signal(syscall.SIGSTOP)
						time.Sleep(33 * time.Second)
						_ = cmd.Process.Signal(syscall.SIGCONT)
					}
				}
				<-ended
				if code := cmd.ProcessState.ExitCode(); code != 3 && code != 1 && code != -1 {
					t.Errorf("work: exit code %d\n%s", code, said)
				}
			})
			if what < 2 {
				kills++
			} else if what == 2 {
				stops++
			}
		}
		wave.Wait()
	}
	l.check()
	t.Logf("seed %d in %s: %d kills, %d stops", seed, l.place, kills, stops)
}
