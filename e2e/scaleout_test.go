//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// jobStatus is what tsimport status prints.
type jobStatus struct {
	ExitCode                            *int `json:"exit_code"`
	Read, Written, Rejected, Superseded int
}

func (p *place) status(job string) (s jobStatus) {
	p.t.Helper()
	must(p.t, json.Unmarshal([]byte(p.output("status", job, "--json")), &s))
	return s
}

// TestOneLoadIsDoneByProcessesThatShareADirectory, of which one is killed while it writes. That any order of tasks,
// deaths, stops, faults and clocks do no harm is shown in scaleout.
func TestOneLoadIsDoneByProcessesThatShareADirectory(t *testing.T) {
	t.Parallel()
	const records, keys = 12_000, 700
	rejects := "id,n,what\n"
	text := fileOf("id,n,what", records, func(i int) string {
		if i%500 == 7 {
			rejects += fmt.Sprintf("bad-%d\n", i)
			return fmt.Sprint("bad-", i)
		}
		return fmt.Sprintf("k%d,%d,\"record\n%d\"", i*199%keys, i, i)
	})
	for _, kind := range []string{"folder", "oss", "s3"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, job := newPlace(t, startServe(t).env()...), "job"
			if kind != "folder" {
				p.bucket(t, "jobs")
				job = kind + "://jobs/of"
			}
			p.write("in.csv", text)
			for range 2 { // the second plan changes nothing
				p.run(0, "load", "in.csv", "--table", "t", "--create", "--pk", "id", "--max-errors", "-1", "--job-dir", job, "--workers", "2",
					"--max-rows-per-second", "500", "-q")
			}
			// An engine runs a task twice, and another too early.
			pod := &place{t, p.dir, append(p.env, "JOB_COMPLETION_INDEX=0")}
			for range 2 {
				pod.ends(0, []string{"work", "--job-dir", job, "--stage", "read"})
			}
			p.ends(1, []string{"work", "--job-dir", job, "--stage", "write", "--index", "0"}, "is not read yet")
			p.ends(1, []string{"work", "--job-dir", job, "--stage", "finish"}, "the job is not done")
			work := []string{"work", "--job-dir", job, "--quiet"}
			if kind == "folder" {
				killed := p.start(work...)
				killed.must(func() bool { return len(p.glob("job/shards/*/lease*")) > 0 })
				killed.kill()
				if code := killed.wait(); code != -1 {
					t.Errorf("it ended with %d before it was killed", code)
				}
			}
			for _, r := range []*process{p.start(work...), p.start(work...), p.start(work...)} {
				if code := r.wait(); code != 3 {
					t.Errorf("work: exit code %d\n%s", code, &r.said)
				}
			}
			bad := strings.Count(rejects, "bad")
			if s := p.status(job); s.ExitCode == nil || *s.ExitCode != 3 || s.Read != records || s.Rejected != bad || s.Written != keys || s.Superseded != records-bad-keys {
				t.Errorf("%+v", s)
			}
			p.ends(0, []string{"verify", "in.csv", "--table", "t", "--extra", "fail"})
			if kind == "folder" && p.read("job/rejects.csv") != rejects {
				t.Errorf("rejects:\n%s\nwant\n%s", p.read("job/rejects.csv"), rejects)
			}
		})
	}
}

// TestTablesDatabasesAndArchivesAreLoadedByProcesses plans a load of a database, a copy of the table that it makes, and a load of an archive of
// that.
func TestTablesDatabasesAndArchivesAreLoadedByProcesses(t *testing.T) {
	t.Parallel()
	const rows = 1000
	s := startServe(t)
	d := newDatabase(t, rows, "orders")
	d.env = s.env()
	const database, archive = "sqlite:shop.db?table=orders", "archive/"
	for _, c := range [][3]string{
		{"load " + database + " --table orders", database, "orders"}, {"copy orders copied", "ots://" + s.Instance + "/orders", "copied"},
		{"load " + archive + " --table restored", archive, "restored"},
	} {
		if c[1] == archive {
			d.run(0, "export", "--table", "copied", "-o", archive)
		}
		d.run(0, append(strings.Fields(c[0]), "--create", "--job-dir", c[2], "--workers", "2", "--verify", "--quiet")...)
		d.run(0, "work", "--job-dir", c[2], "--quiet")
		if got := d.status(c[2]); got.Read != rows || got.Written != rows || got.ExitCode == nil || *got.ExitCode != 0 {
			t.Errorf("%s: %+v", c[2], got)
		}
		d.run(0, "verify", c[1], "--table", c[2], "--extra", "fail")
	}
	// A table whose rows are to be read at a rate is left to one process.
	d.ends(2, []string{"copy", "orders", "again", "--create", "--max-rcu", "10", "--job-dir", "job-rate"}, "--max-rcu")
	if there(d.path("job-rate"))() {
		t.Error("a job was planned all the same")
	}
}

var (
	podsRounds = flag.Int("k8s-rounds", 1, "loads that are run as Kubernetes would run their manifests")
	podsSeed   = flag.Uint64("k8s-seed", 1, "seed of the first one")
	podsKills  = flag.Int("k8s-kills", 0, "pods of each that are killed; after each its lease must end")
)

// indexedJob is what the runner takes from a Job.
type indexedJob struct {
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		Completions, Parallelism int
		BackoffLimitPerIndex     int    `yaml:"backoffLimitPerIndex"`
		PodReplacementPolicy     string `yaml:"podReplacementPolicy"`
		PodFailurePolicy         struct {
			Rules []struct {
				Action          string
				OnPodConditions []struct{ Type, Status string } `yaml:"onPodConditions"`
				OnExitCodes     *struct{ Values []int }         `yaml:"onExitCodes"`
			}
		} `yaml:"podFailurePolicy"`
		Template struct {
			Spec struct {
				Containers []struct {
					Args []string
					Env  []struct{ Name, Value string }
				}
			}
		}
	}
}

// podRunner runs Indexed Jobs with processes for pods, by the rules of their specs: an index is tried again until its limit, a code that another
// attempt would not change fails the Job, and a pod that its node loses is not an attempt.
type podRunner struct {
	t     *testing.T
	env   []string
	mu    sync.Mutex
	rnd   *rand.Rand
	kills int // that are left
	lost  int // pods that were killed
	again int // attempts after one that failed
}

// strike says when a pod is to be killed, and whether its node goes with it. Zero is never.
func (r *podRunner) strike() (after time.Duration, node bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kills == 0 || r.rnd.IntN(3) > 0 {
		return 0, false
	}
	r.kills--
	return time.Duration(1+r.rnd.IntN(700)) * time.Millisecond, r.rnd.IntN(2) == 0
}

// run runs a Job; an error is why it failed.
func (r *podRunner) run(j *indexedJob) error {
	ctx, fail := context.WithCancelCause(context.Background())
	defer fail(nil)
	indexes := make(chan int)
	var pods sync.WaitGroup
	for range j.Spec.Parallelism {
		pods.Go(func() {
			for i := range indexes {
				if err := r.index(ctx, j, i); err != nil {
					fail(err)
				}
			}
		})
	}
	for i := range j.Spec.Completions {
		indexes <- i
	}
	close(indexes)
	pods.Wait()
	return context.Cause(ctx)
}

// index runs pods until one has succeeded.
func (r *podRunner) index(ctx context.Context, j *indexedJob, i int) error {
	for failures := 0; ctx.Err() == nil; {
		code, nodeLost, out := r.pod(ctx, j, i)
		if code == 0 {
			return nil
		}
		r.mu.Lock()
		r.again++
		r.mu.Unlock()
		for _, rule := range j.Spec.PodFailurePolicy.Rules {
			switch {
			case rule.Action == "Ignore" && nodeLost && len(rule.OnPodConditions) == 1 && rule.OnPodConditions[0].Type == "DisruptionTarget":
				failures--
			case rule.Action == "FailJob" && rule.OnExitCodes != nil && slices.Contains(rule.OnExitCodes.Values, code):
				return fmt.Errorf("%s index %d: exit code %d\n%s", j.Metadata.Name, i, code, out)
			}
		}
		if failures++; failures > j.Spec.BackoffLimitPerIndex {
			return fmt.Errorf("%s index %d failed %d times, at last with %d\n%s", j.Metadata.Name, i, failures, code, out)
		}
	}
	return nil
}

// pod runs the container of an index once.
func (r *podRunner) pod(ctx context.Context, j *indexedJob, i int) (code int, nodeLost bool, out []byte) {
	dir := r.t.TempDir()
	c := j.Spec.Template.Spec.Containers[0]
	args := slices.Clone(c.Args)
	for k := range args {
		if args[k] == "/data" { // the volume that ends with the pod
			args[k] = dir
		}
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = dir
	cmd.Env = append(slices.Clone(r.env), fmt.Sprintf("JOB_COMPLETION_INDEX=%d", i))
	for _, e := range c.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+strings.ReplaceAll(e.Value, "/data", dir))
	}
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		return 1, false, []byte(err.Error())
	}
	if after, node := r.strike(); after > 0 {
		timer := time.AfterFunc(after, func() {
			if cmd.Process.Kill() == nil {
				r.mu.Lock()
				r.lost++
				r.mu.Unlock()
			}
		})
		defer timer.Stop()
		nodeLost = node
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, false, nil
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode(), false, text.Bytes()
	}
	return 137, nodeLost, text.Bytes()
}

// The manifests that are printed are run as Kubernetes would run them, while pods and nodes are lost. What the table holds is compared
// afterwards.
func TestAPlannedLoadRunsAsIndexedJobs(t *testing.T) {
	t.Parallel()
	for n := range *podsRounds {
		seed := *podsSeed + uint64(n)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p := newPlace(t, startServe(t, "--sync", "none").env()...)
			r := &podRunner{t: t, rnd: rand.New(rand.NewPCG(seed, 22)), kills: *podsKills, env: append(os.Environ(), p.env...)}
			inputs := writeCards(p, 4, 3000)
			key := []string{"--table", "cards", "--pk", "CardID", "--pk", "DeviceID", "--pk", "OrderNumber"}
			p.run(0, slices.Concat([]string{"load", "--create", "--settle", "1s", "--job-dir", p.path("jobs"), "--workers", "3", "--verify"}, key, inputs)...)
			manifests := []byte(p.output("manifests", p.path("jobs"), "--image", "tsimport", "--volume", "shared:"+p.dir, "--memory", "256MiB"))
			var stages []string
			for dec := yaml.NewDecoder(bytes.NewReader(manifests)); ; {
				var j indexedJob
				if err := dec.Decode(&j); err != nil {
					break
				}
				stages = append(stages, j.Metadata.Labels["tsimport/stage"])
				if j.Spec.PodReplacementPolicy != "Failed" || j.Spec.BackoffLimitPerIndex < 1 {
					t.Errorf("%s: %+v", j.Metadata.Name, j.Spec)
				}
				if err := r.run(&j); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
			if want := []string{"read", "write", "verify", "finish"}; !slices.Equal(stages, want) {
				t.Errorf("stages %q, want %q\n%s", stages, want, manifests)
			}
			p.ends(0, slices.Concat([]string{"verify"}, key, inputs), "12,000 equal, 0 missing, 0 different, 0 surplus")
			if r.kills > 0 {
				t.Errorf("seed %d: %d pods fewer were killed than wanted", seed, r.kills)
			}
			t.Logf("seed %d: %d pods killed, %d attempts again", seed, r.lost, r.again)
		})
	}
}

// writeCards writes files of student cards whose keys are all different.
func writeCards(p *place, files, rows int) (names []string) {
	for f := range files {
		names = append(names, p.write(fmt.Sprintf("cards-%d.csv", f), fileOf("CardID,DeviceID,OrderNumber,Item", rows, func(i int) string {
			return fmt.Sprintf("%d,%d,%d,item %d of %d", 2000000000+i, f, i*7, i, f)
		})))
	}
	return names
}
