//go:build e2e

package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"example.com/tsimport/internal/conformance"
	"go.yaml.in/yaml/v4"
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

// TestProcessesShareOneLoad kills a process while it writes. jobs/scaleout tests other deaths and faults.
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
			for range 2 { // planning again changes nothing
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
			p.ends(0, work) // another process has ended the load
			p.ends(3, []string{"resume", job, "--quiet"})
			bad := strings.Count(rejects, "bad")
			s := p.status(job)
			conformance.True(t, s.ExitCode != nil && *s.ExitCode == 3 && s.Read == records && s.Rejected == bad &&
				s.Written == keys && s.Superseded == records-bad-keys, "%+v", s)
			p.ends(3, []string{"verify", "in.csv", "--table", "t", "--extra", "fail"})
			if kind == "folder" && p.read("job/rejects.csv") != rejects {
				t.Errorf("rejects:\n%s\nwant\n%s", p.read("job/rejects.csv"), rejects)
			}
		})
	}
}

var troubledRounds = flag.Int("troubled-rounds", 0, "loads whose processes are killed, stopped and starved")

// TestKilledStoppedAndStarvedProcessesLoseNothing uses a folder, or a store that refuses requests and loses answers.
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
			p.ends(3, []string{"verify", "in.csv", "--table", "t", "--extra", "fail"})
		})
	}
}

// troubled runs a command until it ends by itself, while it is killed and restarted, stopped, or starved of CPU.
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
	r.Process.Signal(syscall.SIGSTOP) // the process may have ended
	time.Sleep(d)
	r.Process.Signal(syscall.SIGCONT)
}

var (
	podsRounds = flag.Int("k8s-rounds", 1, "loads that are run as Kubernetes would run their manifests")
	podsSeed   = flag.Uint64("k8s-seed", 1, "seed of the first one")
	podsKills  = flag.Int("k8s-kills", 0, "how many pods of an index are killed at most; after each its lease must end")
)

// indexedJob has the fields of a Job that the test needs. packaging/k8s checks Jobs and their rules for failing pods.
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

// pod runs the container of a Job once. If after is not zero, it kills the container after that time.
func (p *place) pod(j *indexedJob, after time.Duration) *process {
	c, volume := j.Spec.Template.Spec.Containers[0], p.t.TempDir() // the volume ends with the pod
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

// TestPlannedLoadRunsAsIndexedJob runs the printed manifest with processes as pods. With -k8s-kills, it kills some of
// them, and retries each index until a pod succeeds. Other pods must end with 0, even if records are rejected.
func TestPlannedLoadRunsAsIndexedJob(t *testing.T) {
	t.Parallel()
	for n := range *podsRounds {
		seed := *podsSeed + uint64(n)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p, rnd := newPlace(t, startServe(t, "--sync", "none").env()...), rand.New(rand.NewPCG(seed, 22))
			var inputs []string // all keys are different
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
				var times []time.Duration // times after which its first pods are killed
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

var updatePlan = flag.Bool("update-plan", false, "rewrite testdata/jobplan.golden")

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		must(t, err)
		info := conformance.Try(d.Info()).Must(t)
		all[path] = info.Mode().String()
		if d.Type().IsRegular() {
			content := conformance.Try(os.ReadFile(path)).Must(t)
			if all[path] += string(content); d.Name() != "LOCK" { // an embedded store locks it even for reading
				all[path] += info.ModTime().String()
			}
		}
		return nil
	}))
	return all
}

func unchanged(t *testing.T, dir string, before map[string]string) {
	t.Helper()
	conformance.Equal(t, differs(before, tree(t, dir)), "", "what is there was changed (-before +after)")
}

func csvOf(rows int) string {
	return fileOf("id,customer,amount", rows,
		func(i int) string { return fmt.Sprintf("%d,%d,%d.5", i, []int{7, i}[i%2], i) })
}

func TestJobPlanWritesNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	packed := conformance.Try(os.ReadFile(writeGzip(t, p.write("packed", ""), "id,n\n1,10\n2,20\nthree,30\n"))).Must(t)
	must(t, os.Remove(p.path("packed")))
	for name, text := range map[string]string{
		"in/orders.csv": csvOf(3000), "in/shop.x.1.csv.gz": string(packed), "in/shop.y.1.csv.gz": string(packed),
		"in/new.jsonl": `{"id":1,"note":"a"}` + "\n" + `{"id":2}` + "\n", "in/old.csv": "id,customer,amount\n1,2,3\n",
		// a run that measured how fast the table accepts rows
		"tsimport-runs/20200101T000000.000Z-old/summary.json": `{"version":1,"state":"finished","target":"embedded store ./store","table":"old","attempts":1,"written":20000,"seconds":10}`,
		"job.yaml": `version: 1
target: {store: ./store}
defaults: {create: true}
parallel: 2
loads:
  orders: {from: [in/orders.csv], pk: [customer, id], max-rows-per-second: 100}
  again: {table: orders, create: false, from: [in/old.csv], max-wcu: 50}
  "{table}": {from: ["in/shop.{table}.*.csv.gz"], pk: ["id:integer"], max-errors: "-1"}
  old: {from: [in/old.parquet], max-wcu: 1}
  onlynew: {table: known, only-new: true, from: ["in/*.jsonl"], pk: [id]}
  h: {from: [in/old.csv], pk: ["k=md5(id,4)", id], set: ["twice=customer*2"], exclude: [amount], max-wcu: 10}
  missing: {create: false, from: [in/old.csv]}
  otherkey: {table: orders, from: [in/old.csv], after: [orders], mode: update}
  wrongkey: {command: copy, table: h, from: old, after: [h]}
  since: {command: copy, from: old, since: "2020-01-01T00:00:00Z", timeout: 1h}
  restored: {from: [in/archive]}
  allbad: {from: [in/orders.csv], pk: ["amount:integer"]}
  none: {from: [in/none.csv], pk: [id]}
  copied: {command: copy, from: old}
  ofnew: {command: copy, from: orders, after: [again]}
  tooearly: {command: copy, from: h}
  synced: {command: sync, table: old, from: [in/old.csv], after: [old]}
  out: {command: export, table: old, output: out.csv, after: [old]}
  kept: {command: export, table: old, output: archive, format: archive}
`,
	} {
		p.write(name, text)
	}
	for _, args := range []string{
		"load in/orders.csv --store store -t old --pk id -q",
		"export --store store -t old -o in/old.parquet --format parquet -q",
		"export --store store -t old -o in/archive --format archive -q",
		"load in/new.jsonl --store ./store -t known --pk id --only-new -q",
	} {
		p.run(0, strings.Fields(args)...)
	}
	p.write("in/newer.jsonl", `{"id":3,"note":"c"}`+"\n")
	before := tree(t, p.dir)

	cmd := p.command("run", "job.yaml", "--plan")
	out := new(strings.Builder)
	cmd.Stdout = out
	r := begin(t, cmd)
	if code, stderr := r.wait(), r.said.String(); code != 2 ||
		!strings.Contains(stderr, " would end with exit code 2: ") || strings.Count(stderr, "\n") != 1 {
		// the load is refused
		t.Errorf("exit code %d, %s", code, stderr)
	}
	stdout := out.String()
	unchanged(t, p.dir, before)
	golden := filepath.Join("testdata", "jobplan.golden")
	if *updatePlan {
		must(t, os.WriteFile(golden, []byte(stdout), 0o644))
	}
	want := conformance.Try(os.ReadFile(golden)).Must(t)
	conformance.True(t, stdout == string(want),
		"the plan is not that of %s (go test -tags e2e ./e2e -run JobPlan -update-plan rewrites it):\n%s", golden, stdout)

	text := p.output("run", "job.yaml", "--plan", "--json", "old", "x", "onlynew")
	unchanged(t, p.dir, before)
	var plan struct {
		Version int
		Loads   []struct {
			Name       string
			Rows       int64
			WriteUnits int64   `json:"write_units"`
			Seconds    float64 `json:"seconds"`
			Rejected   int64   `json:"sampled_rejected"`
		}
	}
	must(t, json.Unmarshal([]byte(text), &plan))
	conformance.Equal(t, fmt.Sprint(plan), "{1 [{x 3 2 -1 1} {old 3000 3000 3000 0} {onlynew 1 1 -1 0}]}", "plan")
}

func TestJobPlanOfEmptyWildcardEndsLikeJob(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("job.yaml", "version: 1\nloads:\n  \"{t}\": {from: [\"in.{t}.csv\"], pk: [id]}\n")
	p.write("one.yaml", "version: 1\nloads:\n  a: {from: [\"none*.csv\"], pk: [id]}\n")
	p.write("nothing.yaml", "version: 1\nloads:\n  a: {from: [in.csv], pk: [id], only-new: true, fail-if-nothing-new: "+
		"true}\n")
	p.write("in.csv", "id\n1\n")
	p.run(0, "load", "in.csv", "-t", "a", "--pk", "id", "--only-new", "-q")
	before := tree(t, p.dir)
	for args, code := range map[string]int{"job.yaml": 7, "one.yaml": 7, "nothing.yaml": 7, "absent.yaml": 2,
		"job.yaml --metrics-file m.prom": 7} {
		p.ends(code, append([]string{"run", "--plan"}, strings.Fields(args)...))
	}
	unchanged(t, p.dir, before)
}

func TestJobPlanReportsRunningJob(t *testing.T) {
	t.Parallel()
	s := startServe(t)
	p := newPlace(t, s.credentials()...)
	p.write("in.csv", csvOf(20_000))
	p.write("job.yaml", fmt.Sprintf(
		"version: 1\ntarget: {endpoint: %q, instance: %s}\ndefaults: {create: true, max-rows-per-second: 20, state: "+
			"st}\nloads:\n  a: {from: [in.csv], pk: [id]}\n  b: {from: [in.csv], pk: [id]}\n", s.URL, s.Instance))
	plan := []string{"run", "job.yaml", "--plan"}
	text := p.ends(0, plan, "it would be created")
	conformance.True(t, !strings.Contains(text, "running"), "before: %s", text)
	conformance.Equal(t, there(p.path("tsimport-runs"))(), false, "a plan made a folder of runs")
	job := p.start("run", "job.yaml", "-q")
	job.must(func() bool { return len(p.glob("tsimport-runs/*/a/checkpoint.bin")) > 0 })
	p.ends(0, plan, fmt.Sprintf("the job is running now, as process %d", job.Process.Pid), "exists, key id:integer",
		"rows read are final", "according to its lease in st, ")
	job.kill()
	before := tree(t, p.dir)
	text = p.ends(0, plan, "it would resume tsimport-runs")
	conformance.True(t, !strings.Contains(text, "running"), "after it was killed: %s", text)
	unchanged(t, p.dir, before)
}

func TestJobPlanNamesUnreachableServices(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "held")
	s := startServe(t, "--store", store)
	p := newPlace(t, "TABLESTORE_ACCESS_KEY_ID="+s.AccessKeyID, "TABLESTORE_ACCESS_KEY_SECRET=wrong")
	p.write("in.csv", csvOf(10))
	whole := conformance.Try(os.ReadFile(writeGzip(t, p.path("whole.csv.gz"), csvOf(5000)))).Must(t)
	p.write("cut.csv.gz", string(whole[:len(whole)*3/4]))
	p.write("job.yaml", fmt.Sprintf(`version: 1
defaults: {create: true}
loads:
  down: {endpoint: "http://127.0.0.1:9", instance: i, from: [in.csv], pk: [id]}
  downtoo: {endpoint: "http://127.0.0.1:9", instance: i, from: [in.csv], pk: [id]}
  denied: {endpoint: %q, instance: %s, from: [in.csv], pk: [id]}
  held: {store: %q, from: [in.csv], pk: [id]}
  fine: {store: ./own, from: [whole.csv.gz], pk: [id]}
  cut: {store: ./other, from: [cut.csv.gz], pk: [id]}
`, s.URL, s.Instance, store))
	before := tree(t, p.dir)
	p.ends(1, []string{"run", "job.yaml", "--plan"}, // 1 takes precedence over 5
		"down: load into table down of instance i at http://127.0.0.1:9\n  failed    describe table down: cannot connect",
		"\n  failed    the service did not answer an earlier load: describe table down: ", "(exit code 5)",
		"it is in use by another process",
		"warning   decompress cut.csv.gz: gzip data is cut short", "job: 2 of 6 loads planned")
	unchanged(t, p.dir, before)
}
