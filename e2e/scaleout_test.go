//go:build e2e

package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"example.com/tsimport/internal/conformance"
)

type jobStatus struct {
	ExitCode                            *int `json:"exit_code"`
	Read, Written, Rejected, Superseded int
}

func (p *place) status(job string) (s jobStatus) {
	p.t.Helper()
	must(p.t, json.Unmarshal([]byte(p.output("status", job, "--json")), &s))
	return s
}

// TestProcessesShareOneLoad kills a process while it writes. scaleout tests every order of deaths, faults and clocks.
func TestProcessesShareOneLoad(t *testing.T) {
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
				p.run(0, "load", "in.csv", "--table", "t", "--create", "--pk", "id", "--max-errors", "-1", "--job-dir", job,
					"--workers", "2", "--max-rows-per-second", "500", "-q")
			}
			work := []string{"work", "--job-dir", job, "--quiet"}
			if kind == "folder" {
				killed := p.start(work...)
				killed.must(func() bool { return len(p.glob("job/writing/*/lease*")) > 0 })
				killed.kill()
				conformance.Equal(t, killed.wait(), -1, "exit code before it was killed")
			}
			var codes []int
			for _, r := range []*process{p.start(work...), p.start(work...), p.start(work...)} {
				codes = append(codes, r.wait())
			}
			slices.Sort(codes)
			conformance.Same(t, codes, []int{0, 0, 3}, "exit codes of work")
			p.ends(0, work) // another has ended the load
			p.ends(3, []string{"resume", job, "--quiet"})
			bad := strings.Count(rejects, "bad")
			s := p.status(job)
			conformance.True(t, s.ExitCode != nil && *s.ExitCode == 3 && s.Read == records && s.Rejected == bad &&
				s.Written == keys && s.Superseded == records-bad-keys, "%+v", s)
			p.ends(0, []string{"verify", "in.csv", "--table", "t", "--extra", "fail"})
			if kind == "folder" && p.read("job/rejects.csv") != rejects {
				t.Errorf("rejects:\n%s\nwant\n%s", p.read("job/rejects.csv"), rejects)
			}
		})
	}
}

var troubledRounds = flag.Int("troubled-rounds", 0, "loads whose processes are killed, stopped and starved")

// TestKilledStoppedAndStarvedProcessesLoseNothing in a folder, or in a store that refuses requests and loses answers.
func TestKilledStoppedAndStarvedProcessesLoseNothing(t *testing.T) {
	t.Parallel()
	if *troubledRounds == 0 {
		t.Skip("takes a minute a round; make crash runs a hundred")
	}
	for seed := range *troubledRounds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			const records, keys = 6_000, 5_000
			rnd := rand.New(rand.NewPCG(uint64(seed), 12))
			p, job := newPlace(t, startServe(t, "--sync", "none").env()...), "job"
			if seed%2 == 1 {
				unreliable(p.bucket(t, "jobs"), 8)
				job = "s3://jobs/of"
			}
			p.write("in.csv", fileOf("id,n", records, func(i int) string { return fmt.Sprintf("k%d,%d", i*199%keys, i) }))
			const flags = " --table t --create --pk id --workers 3 --max-rows-per-second 1000 -q --job-dir "
			p.run(0, strings.Fields("load in.csv"+flags+job)...)
			var processes sync.WaitGroup
			for range 3 {
				troubles := rand.New(rand.NewPCG(rnd.Uint64(), 12))
				processes.Go(func() { p.troubled(troubles, "work", "--job-dir", job, "--quiet") })
			}
			processes.Wait()
			p.ends(0, []string{"resume", job, "--quiet"})
			s := p.status(job)
			conformance.True(t, s.Read == records && s.Written == keys && s.Superseded == records-keys, "%+v", s)
			p.ends(0, []string{"verify", "in.csv", "--table", "t", "--extra", "fail"})
		})
	}
}

// troubled runs a command, killed and started again, stopped, or given a tenth of the time, until it ends by itself.
func (p *place) troubled(rnd *rand.Rand, args ...string) {
	r := p.start(args...)
	for range rnd.IntN(4) {
		time.Sleep(time.Duration(rnd.IntN(6000)) * time.Millisecond)
		if r.over() {
			break
		}
		switch rnd.IntN(3) {
		case 0:
			r.kill()
			r = p.start(args...)
		case 1:
			r.stopped(time.Duration(rnd.IntN(60)) * time.Second)
		default:
			for range 20 {
				r.stopped(450 * time.Millisecond)
				time.Sleep(50 * time.Millisecond)
			}
		}
	}
	if code := r.wait(); code != 0 {
		p.t.Errorf("exit code %d\n%s", code, &r.said)
	}
}

func (r *process) stopped(d time.Duration) {
	r.Process.Signal(syscall.SIGSTOP) // it may have ended
	time.Sleep(d)
	r.Process.Signal(syscall.SIGCONT)
}

var (
	podsRounds = flag.Int("k8s-rounds", 1, "loads that are run as Kubernetes would run their manifests")
	podsSeed   = flag.Uint64("k8s-seed", 1, "seed of the first one")
	podsKills  = flag.Int("k8s-kills", 0, "how many pods of an index are killed at most; after each its lease must end")
)

// indexedJob is what the test needs of a Job; packaging/k8s checks Jobs and their rules for failing pods by type.
type indexedJob struct {
	Spec struct {
		Completions int
		Template    podTemplate
	}
}

type podTemplate struct {
	Spec struct {
		Containers []struct {
			WorkingDir string `yaml:"workingDir"`
			Args       []string
			Env        []struct{ Name, Value string }
		}
	}
}

// pod runs the container of a Job once, and kills it after a time, unless that is zero.
func (p *place) pod(j *indexedJob, after time.Duration) *process {
	c, volume := j.Spec.Template.Spec.Containers[0], p.t.TempDir() // which ends with the pod
	pod := &place{p.t, volume, slices.Clone(p.env)}
	for _, e := range c.Env {
		pod.env = append(pod.env, e.Name+"="+strings.ReplaceAll(e.Value, "/data", volume))
	}
	args := slices.Clone(c.Args)
	for k := range args {
		if args[k] == "/data" {
			args[k] = volume
		}
	}
	r := pod.start(args...)
	if after > 0 {
		defer time.AfterFunc(after, r.kill).Stop()
	}
	r.wait()
	return r
}

// The printed manifest is run with processes for pods, some of which are killed: an index is retried until one of its
// pods has succeeded, and none fails by itself, although records were rejected. The table is compared afterwards.
func TestAPlannedLoadRunsAsAnIndexedJob(t *testing.T) {
	t.Parallel()
	for n := range *podsRounds {
		seed := *podsSeed + uint64(n)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p, rnd := newPlace(t, startServe(t, "--sync", "none").env()...), rand.New(rand.NewPCG(seed, 22))
			var inputs []string // whose keys are all different
			for f := range 4 {
				inputs = append(inputs, p.write(fmt.Sprintf("cards-%d.csv", f), fileOf("CardID,DeviceID,OrderNumber,Item", 3000,
					func(i int) string {
						return fmt.Sprintf("%d,%d,%d,item %d of %d", 2000000000+i, f, i*7, i, f)
					})))
			}
			bad := p.write("bad.csv", "CardID,DeviceID,OrderNumber,Item\nno number,1,1,x\n")
			key := []string{"--table", "cards", "--pk", "CardID", "--pk", "DeviceID", "--pk", "OrderNumber"}
			p.run(0, slices.Concat([]string{"load", "--create", "--settle", "1s", "--job-dir", p.path("jobs"), "--workers", "3",
				"--verify", "--max-errors", "1", "--quiet", "--type", "CardID=integer"}, key, inputs, []string{bad})...)
			var j indexedJob
			must(t, yaml.Unmarshal([]byte(p.output("manifests", p.path("jobs"), "--image", "tsimport", "--volume", "shared:"+
				p.dir, "--memory", "256MiB")), &j))
			conformance.Equal(t, j.Spec.Completions, 3, "pods")
			var pods sync.WaitGroup
			var killed, said atomic.Int64
			for i := range j.Spec.Completions {
				var times []time.Duration // when its first pods are killed
				for range rnd.IntN(*podsKills + 1) {
					times = append(times, time.Duration(1+rnd.IntN(700))*time.Millisecond)
				}
				pods.Go(func() {
					for attempt := 0; ; attempt++ {
						after := append(times, make([]time.Duration, attempt+1)...)[attempt]
						r := p.pod(&j, after)
						switch code := r.ProcessState.ExitCode(); {
						case code == 0:
							if strings.Contains(r.said.String(), "the load's exit code is 3") {
								said.Add(1)
							}
							return
						case code > 0 || after == 0:
							t.Errorf("index %d: %v\n%s", i, r.ProcessState, &r.said)
							return
						}
						killed.Add(1)
					}
				})
			}
			pods.Wait()
			conformance.Equal(t, said.Load(), 3, "pods that tell the load's exit code")
			s := p.status("jobs")
			conformance.True(t, s.ExitCode != nil && *s.ExitCode == 3, "%+v", s)
			p.ends(0, slices.Concat([]string{"verify"}, key, inputs), "12,000 equal, 0 missing, 0 different, 0 surplus")
			t.Logf("seed %d: %d pods killed", seed, killed.Load())
			conformance.True(t, *podsKills == 0 || killed.Load() != 0, "no pod was killed")
		})
	}
}
