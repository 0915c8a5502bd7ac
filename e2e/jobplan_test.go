//go:build e2e

package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/tsimport/internal/conformance"
)

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
			if all[path] += string(content); d.Name() != "LOCK" { // which an embedded store locks also to read
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

func TestAPlanOfAJobSaysWhatItWouldDoAndWritesNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	packed := conformance.Try(os.ReadFile(writeGzip(t, p.write("packed", ""), "id,n\n1,10\n2,20\nthree,30\n"))).Must(t)
	must(t, os.Remove(p.path("packed")))
	for name, text := range map[string]string{
		"in/orders.csv": csvOf(3000), "in/shop.x.1.csv.gz": string(packed), "in/shop.y.1.csv.gz": string(packed),
		"in/new.jsonl": `{"id":1,"note":"a"}` + "\n" + `{"id":2}` + "\n", "in/old.csv": "id,customer,amount\n1,2,3\n",
		// of a run that has measured how fast the table accepts rows
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
		// a load is refused
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
		"the plan is not that of %s (go test -tags e2e ./e2e -run APlan -update-plan rewrites it):\n%s", golden, stdout)

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

func TestAPlanOfAnEmptyWildcardEndsAsTheJobWould(t *testing.T) {
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

func TestAPlanBesideARunningJobSaysThatItRuns(t *testing.T) {
	t.Parallel()
	s := startServe(t)
	p := newPlace(t, s.credentials()...)
	p.write("in.csv", csvOf(20_000))
	p.write("job.yaml", fmt.Sprintf(
		"version: 1\ntarget: {endpoint: %q, instance: %s}\ndefaults: {create: true, max-rows-per-second: 20, state: "+
			"st}\nloads:\n  a: {from: [in.csv], pk: [id]}\n  b: {from: [in.csv], pk: [id]}\n", s.URL, s.Instance))
	plan := []string{"run", "job.yaml", "--plan"}
	text := p.ends(0, plan, "it would be made")
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

func TestAPlanSaysWhichServiceOrStoreCannotBeAsked(t *testing.T) {
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
	p.ends(1, []string{"run", "job.yaml", "--plan"}, // which comes before 5
		"down: load into table down of instance i at http://127.0.0.1:9\n  failed    describe table down: cannot connect",
		"\n  failed    the service did not answer for another load: describe table down: ", "(exit code 5)",
		"it is in use by another process",
		"warning   decompress cut.csv.gz: gzip data is cut short", "job: 2 of 6 loads planned")
	unchanged(t, p.dir, before)
}
