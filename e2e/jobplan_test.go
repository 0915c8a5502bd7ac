//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

var updatePlan = flag.Bool("update-plan", false, "rewrite testdata/jobplan.golden")

// tree is every file and folder below a folder, with mode and content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		if d.Type().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += string(content)
			if filepath.Base(path) != "LOCK" { // which an embedded store locks also to read
				text += info.ModTime().String()
			}
		}
		all[path] = text
		return nil
	}))
	return all
}

// unchanged fails if a tree is not as it was.
func unchanged(t *testing.T, dir string, before map[string]string) {
	t.Helper()
	after := tree(t, dir)
	for path, text := range after {
		if was, ok := before[path]; !ok {
			t.Errorf("%s was made", path)
		} else if was != text {
			t.Errorf("%s was changed", path)
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			t.Errorf("%s was removed", path)
		}
	}
}

func csvOf(rows int) string {
	var b strings.Builder
	b.WriteString("id,customer,amount\n")
	for i := range rows {
		customer := 7
		if i%2 == 1 {
			customer = i
		}
		fmt.Fprintf(&b, "%d,%d,%d.5\n", i, customer, i)
	}
	return b.String()
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

func TestAPlanOfAJobSaysWhatItWouldDoAndWritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte("id,n\n1,10\n2,20\nthree,30\n"))
	must(t, err)
	must(t, z.Close())
	write(t, dir, map[string]string{
		"in/orders.csv": csvOf(3000), "in/shop.x.1.csv.gz": packed.String(), "in/shop.y.1.csv.gz": packed.String(),
		"in/new.jsonl": `{"id":1,"note":"a"}` + "\n" + `{"id":2}` + "\n", "in/old.csv": "id,customer,amount\n1,2,3\n",
		// of a run that has measured how fast the table takes rows
		"tsimport-runs/20200101T000000.000Z-old/summary.json": `{"state":"finished","target":"embedded store ./store","table":"old","attempts":1,"written":20000,"seconds":10}`,
		"job.yaml": `version: 1
target: {store: ./store}
defaults: {create: true}
parallel: 2
loads:
  orders: {from: [in/orders.csv], pk: [customer, id], max-rows-per-second: 100}
  again: {table: orders, create: false, from: [in/old.csv], partition-wcu: 50}
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
	})
	for _, args := range [][]string{
		{"load", "in/orders.csv", "--store", "store", "-t", "old", "--pk", "id", "-q"},
		{"export", "--store", "store", "-t", "old", "-o", "in/old.parquet", "--format", "parquet", "-q"},
		{"export", "--store", "store", "-t", "old", "-o", "in/archive", "--format", "archive", "-q"},
		{"load", "in/new.jsonl", "--store", "./store", "-t", "known", "--pk", "id", "--only-new", "-q"},
	} {
		if _, stderr, code := runIn(t, dir, args...); code != 0 {
			t.Fatalf("%v: exit code %d, %s", args, code, stderr)
		}
	}
	write(t, dir, map[string]string{"in/newer.jsonl": `{"id":3,"note":"c"}` + "\n"})
	before := tree(t, dir)

	stdout, stderr, code := runIn(t, dir, "run", "job.yaml", "--plan")
	if code != 2 || stderr != "" { // a load is refused
		t.Errorf("exit code %d, %s", code, stderr)
	}
	unchanged(t, dir, before)
	golden := filepath.Join("testdata", "jobplan.golden")
	if *updatePlan {
		must(t, os.WriteFile(golden, []byte(stdout), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if stdout != string(want) {
		t.Errorf("the plan is not that of %s (go test -tags e2e ./e2e -run APlan -update-plan rewrites it):\n%s", golden, stdout)
	}

	text, _, code := runIn(t, dir, "run", "job.yaml", "--plan", "--json", "old", "x", "onlynew")
	unchanged(t, dir, before)
	var plan struct {
		Version  int `json:"version"`
		ExitCode int `json:"exit_code"`
		Loads    []struct {
			Name, State, Rate    string
			Rows, Bytes, Sampled int64
			RowsAre              string  `json:"rows_are"`
			WriteUnits           int64   `json:"write_units"`
			Seconds              float64 `json:"seconds"`
			Rejected             int64   `json:"sampled_rejected"`
			Files                struct{ Found, Chosen, Opened int }
			Columns              []struct{ Name, Type string }
		}
	}
	must(t, json.Unmarshal([]byte(text), &plan))
	if code != 0 || plan.Version != 1 || plan.ExitCode != 0 || len(plan.Loads) != 3 {
		t.Fatalf("exit code %d, %+v", code, plan)
	}
	for _, l := range plan.Loads {
		switch l.Name {
		case "old":
			if l.Rows != 3000 || l.RowsAre != "exact" || l.WriteUnits != 3000 || l.Seconds != 3000 || l.Rate != "--max-wcu" || len(l.Columns) != 3 {
				t.Errorf("%+v", l)
			}
		case "x":
			if l.Rows != 3 || l.RowsAre != "exact" || l.Rejected != 1 || l.Bytes != int64(packed.Len()) || l.Seconds != -1 {
				t.Errorf("%+v", l)
			}
		case "onlynew":
			if l.Files.Found != 2 || l.Files.Chosen != 1 || l.Rows != 1 {
				t.Errorf("%+v", l)
			}
		}
	}
}

func TestAPlanOfAnEmptyWildcardEndsAsTheJobWould(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{"job.yaml": "version: 1\nloads:\n  \"{t}\": {from: [\"in.{t}.csv\"], pk: [id]}\n",
		"one.yaml":     "version: 1\nloads:\n  a: {from: [\"none*.csv\"], pk: [id]}\n",
		"nothing.yaml": "version: 1\nloads:\n  a: {from: [in.csv], pk: [id], only-new: true, fail-if-nothing-new: true}\n", "in.csv": "id\n1\n"})
	if _, stderr, code := runIn(t, dir, "load", "in.csv", "-t", "a", "--pk", "id", "--only-new", "-q"); code != 0 {
		t.Fatal(stderr)
	}
	before := tree(t, dir)
	for _, file := range []string{"job.yaml", "one.yaml", "nothing.yaml"} {
		if _, stderr, code := runIn(t, dir, "run", file, "--plan"); code != 7 {
			t.Errorf("%s: exit code %d, want 7: %s", file, code, stderr)
		}
	}
	if _, _, code := runIn(t, dir, "run", "absent.yaml", "--plan"); code != 2 {
		t.Errorf("a file that is missing: exit code %d", code)
	}
	if _, stderr, code := runIn(t, dir, "run", "job.yaml", "--plan", "--metrics-file", "m.prom"); code != 7 {
		t.Errorf("metrics: exit code %d, %s", code, stderr)
	}
	unchanged(t, dir, before)
}

func TestAPlanOfTwoHundredTablesIsMade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{"job.yaml": "version: 1\ndefaults: {create: true, max-wcu: 1000}\nparallel: 4\nloads:\n  \"{table}\": {from: [\"dump/shop.{table}.csv\"], pk: [id]}\n"}
	for i := range 200 {
		files[fmt.Sprintf("dump/shop.t%03d.csv", i)] = csvOf(100)
	}
	write(t, dir, files)
	before := tree(t, dir)
	stdout, stderr, code := runIn(t, dir, "run", "job.yaml", "--plan")
	if code != 0 || !strings.Contains(stdout, "job: 200 of 200 loads planned, 4 at a time\n  rows      20,000\n") || !strings.Contains(stdout, "about 20s, without exports") {
		t.Errorf("exit code %d, %s%s", code, stdout[max(0, len(stdout)-400):], stderr)
	}
	unchanged(t, dir, before)
}

func TestAPlanBesideARunningJobSaysThatItRuns(t *testing.T) {
	t.Parallel()
	s := startServe(t)
	dir := t.TempDir()
	write(t, dir, map[string]string{"in.csv": csvOf(20_000), "job.yaml": fmt.Sprintf(
		"version: 1\ntarget: {endpoint: %q, instance: %s}\ndefaults: {create: true, max-rows-per-second: 20, state: st}\nloads:\n  a: {from: [in.csv], pk: [id]}\n  b: {from: [in.csv], pk: [id]}\n", s.URL, s.Instance)})
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(binary, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), s.credentials()...)
		return cmd
	}
	plan := func() string {
		t.Helper()
		out, err := command("run", "job.yaml", "--plan").Output()
		must(t, err)
		return string(out)
	}
	if text := plan(); strings.Contains(text, "running") || !strings.Contains(text, "it would be made") {
		t.Errorf("before: %s", text)
	}
	if _, err := os.Stat(filepath.Join(dir, "tsimport-runs")); err == nil {
		t.Error("a plan made a folder of runs")
	}
	job := command("run", "job.yaml", "-q")
	must(t, job.Start())
	ended := make(chan error, 1)
	go func() { ended <- job.Wait() }()
	for came(dir, 0) < 20 {
		select {
		case err := <-ended:
			t.Fatalf("the job ended: %v", err)
		case <-time.After(2 * time.Millisecond):
		}
	}
	if text := plan(); !strings.Contains(text, fmt.Sprintf("the job is running now, as process %d", job.Process.Pid)) || !strings.Contains(text, "exists, key id:integer") || !strings.Contains(text, "rows read are final") ||
		!strings.Contains(text, "by its lease in st, ") {
		t.Errorf("while it runs: %s", text)
	}
	must(t, job.Process.Signal(syscall.SIGKILL))
	<-ended
	before := tree(t, dir)
	if text := plan(); strings.Contains(text, "running") || !strings.Contains(text, "it would resume "+filepath.Join("tsimport-runs", "")) {
		t.Errorf("after it was killed: %s", text)
	}
	unchanged(t, dir, before)
}

func TestAPlanSaysWhichServiceOrStoreCannotBeAsked(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "held")
	s := startServe(t, "--store", store)
	dir := t.TempDir()
	write(t, dir, map[string]string{"in.csv": csvOf(10), "job.yaml": fmt.Sprintf(`version: 1
defaults: {create: true}
loads:
  down: {endpoint: "http://127.0.0.1:9", instance: i, from: [in.csv], pk: [id]}
  downtoo: {endpoint: "http://127.0.0.1:9", instance: i, from: [in.csv], pk: [id]}
  denied: {endpoint: %q, instance: %s, from: [in.csv], pk: [id]}
  held: {store: %q, from: [in.csv], pk: [id]}
  fine: {store: ./own, from: [in.csv], pk: [id]}
`, s.URL, s.Instance, store)})
	before := tree(t, dir)
	cmd := exec.Command(binary, "run", "job.yaml", "--plan")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TABLESTORE_ACCESS_KEY_ID="+s.AccessKeyID, "TABLESTORE_ACCESS_KEY_SECRET=wrong")
	text, _ := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code != 1 { // which comes before 5
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"down: load into table down of instance i at http://127.0.0.1:9\n  failed    describe table down: cannot connect",
		"\n  failed    the service did not answer for another load: describe table down: ", "(exit code 5)", "it is in use by another process", "job: 1 of 5 loads planned",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	unchanged(t, dir, before)
}

func TestAPlanSaysWhereAFileCannotBeReadFurther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(csvOf(5000)))
	must(t, errors.Join(err, z.Close()))
	write(t, dir, map[string]string{"whole.csv.gz": b.String(), "cut.csv.gz": b.String()[:b.Len()*3/4], "job.yaml": `version: 1
target: {store: st}
defaults: {create: true, pk: id}
loads:
  whole: {from: whole.csv.gz}
  cut: {from: cut.csv.gz}
`})
	cmd := exec.Command(binary, "run", "job.yaml", "--plan")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if want := "warning   decompress cut.csv.gz: gzip data is cut short"; err != nil || strings.Count(string(out), "warning ") != 1 || !strings.Contains(string(out), want) {
		t.Errorf("%v, want %q and no other warning: %s", err, want, out)
	}
}
