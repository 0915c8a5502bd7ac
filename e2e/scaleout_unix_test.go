//go:build e2e && unix

package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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
	*place
	job   string // the job directory
	files []string
	table string

	read, rejected, keys int
	rejects              string
}

// newScaledLoad writes inputs in which keys come many times and some records are bad.
func newScaledLoad(t *testing.T, s *served, kind string, rnd *rand.Rand, records int) *scaledLoad {
	l := &scaledLoad{place: newPlace(t, s.env()...), job: "job", table: fmt.Sprintf("scaled_%d", rnd.Uint32()), rejects: "id,n,what\n"}
	keys := map[string]bool{}
	for n := range 3 {
		l.files = append(l.files, l.write(fmt.Sprintf("in-%d.csv", n), fileOf("id,n,what", records/3, func(i int) string {
			l.read++
			if rnd.IntN(500) == 0 {
				line := fmt.Sprintf("bad-%d-%d", n, i)
				l.rejects += line + "\n"
				l.rejected++
				return line
			}
			key := fmt.Sprintf("k%07d", rnd.IntN(records/2)*199)
			keys[key] = true
			return fmt.Sprintf("%s,%d,\"file %d\nrecord %d\"", key, i, n, i)
		})))
	}
	l.keys = len(keys)
	if kind != "folder" {
		around := &surroundings{T: t}
		objects := storetest.New(around, "jobs")
		l.job = kind + "://jobs/of/" + l.table
		l.env = append(append(l.env, around.env...), "OSS_ENDPOINT="+objects.URL(), "OSS_REGION=cn-test")
	}
	return l
}

// plan plans the load.
func (l *scaledLoad) plan(more ...string) {
	l.t.Helper()
	l.run(0, slices.Concat([]string{"load"}, l.files, []string{"--table", l.table, "--create", "--pk", "id", "--max-errors", "-1", "--job-dir", l.job, "--workers", "2", "--request-timeout", "2s", "--quiet"}, more)...)
}

// worker starts a process that works on the load.
func (l *scaledLoad) worker() *process { return l.start("work", "--job-dir", l.job, "--quiet") }

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
	must(l.t, json.Unmarshal([]byte(l.output("status", l.job, "--json")), &s))
	return s
}

// check compares the ledger and the table with the inputs.
func (l *scaledLoad) check() {
	l.t.Helper()
	s := l.status()
	if s.ExitCode == nil || *s.ExitCode != 3 || s.Read != l.read || s.Written != l.keys || s.Rejected != l.rejected || s.Superseded != l.read-l.rejected-l.keys {
		l.t.Errorf("%+v; want %d read, %d written, %d rejected", s, l.read, l.keys, l.rejected)
	}
	l.ends(0, append(append([]string{"verify"}, l.files...), "--table", l.table, "--extra", "fail"))
	if got, err := os.ReadFile(filepath.Join(l.path(l.job), "rejects.csv")); err == nil && string(got) != l.rejects {
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
			pod := &place{t, l.dir, append(l.env, "JOB_COMPLETION_INDEX=0")}
			for range 2 {
				pod.ends(0, []string{"work", "--job-dir", l.job, "--stage", "read"})
			}
			l.ends(1, []string{"work", "--job-dir", l.job, "--stage", "write", "--index", "0"}, "is not read yet")
			l.ends(1, []string{"work", "--job-dir", l.job, "--stage", "finish"}, "the job is not done")
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
	var all []*process
	for range n {
		all = append(all, l.worker())
	}
	for _, r := range all {
		if code := r.wait(); code != 3 {
			l.t.Errorf("work: exit code %d\n%s", code, &r.said)
		}
	}
}

// A bucket of OSS with versioning ignores that a put must not replace anything, and so do some stores that call themselves compatible with S3.
func TestAPlaceWithoutConditionalPutsIsRefusedForAJob(t *testing.T) {
	t.Parallel()
	p := newPlace(t, startServe(t).env()...)
	p.write("in.csv", "id,n\n1,1\n")
	for _, kind := range []string{"oss", "s3"} {
		around := &surroundings{T: t}
		objects := storetest.New(around, "jobs")
		objects.Change(func(o *storetest.Server) { o.Unconditional = true })
		p.env = append(append(p.env, around.env...), "OSS_ENDPOINT="+objects.URL(), "OSS_REGION=cn-test")
		p.ends(2, []string{"load", "in.csv", "--table", "t", "--create", "--pk", "id", "--job-dir", kind + "://jobs/of"}, "it replaces objects that a put must not replace")
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
			r := l.worker()
			at, what := time.Now().Add(time.Duration(rnd.IntN(6000))*time.Millisecond), rnd.IntN(4)
			wave.Go(func() {
				if r.until(func() bool { return time.Now().After(at) }) {
					switch what {
					case 0, 1:
						r.kill()
					case 2: // past the lease, and then it continues
						_ = r.Process.Signal(syscall.SIGSTOP)
						time.Sleep(33 * time.Second)
						_ = r.Process.Signal(syscall.SIGCONT)
					}
				}
				if code := r.wait(); code != 3 && code != 1 && code != -1 {
					t.Errorf("work: exit code %d\n%s", code, &r.said)
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
	t.Logf("seed %d in %s: %d kills, %d stops", seed, l.job, kills, stops)
}
