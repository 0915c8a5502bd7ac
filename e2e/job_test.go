package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tsimport/pipeline/checkpoint"
)

var (
	jobTables = flag.Int("job-tables", 3, "tables of the job that TestAJobThatIsKilledAgainAndAgainIsExact kills")
	jobKills  = flag.Int64("job-kills", 1, "how often it kills it, about")
)

// jobRecord is what a test looks at of a job.json.
type jobRecord struct {
	State                   string
	Read, Written, Rejected int64
	Loads                   []struct{ Name, State string }
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
	const rows = 200
	p := newPlace(t, "TSIMPORT_CHECKPOINT_EVERY=20ms")
	for i := range *jobTables {
		p.write(fmt.Sprintf("dump/shop.t%03d.csv", i), fileOf("id,n", rows, func(r int) string {
			if r == i {
				return "bad,0"
			}
			return fmt.Sprintf("%d,%d", r/2, r) // each counter gets two records
		}))
	}
	total := int64(*jobTables * rows)
	// Counters show a row that is written twice, and one that is not.
	p.write("job.yaml", fmt.Sprintf(`version: 1
parallel: 4
target: {store: s}
defaults: {create: true, memory: 256MiB, max-errors: 1%%, max-rows-per-second: %d}
loads:
  "{table}":
    from: ["dump/shop.{table}.csv"]
    mode: increment
    pk: [id:integer]
`, total/2))
	rnd := rand.New(rand.NewPCG(1, uint64(*jobTables)))
	step, killed := total/(*jobKills+1), 0
	for at, done := rnd.Int64N(step), false; !done; at += 1 + rnd.Int64N(step) {
		args := []string{"run", "job.yaml", "-q"}
		if killed%3 == 2 {
			args = []string{"resume"}
		}
		r := p.start(args...)
		if r.until(func() bool { return came(p.dir, rows) > at }) {
			r.kill()
		}
		code := r.wait()
		if code > 0 && code != 3 {
			t.Fatalf("exit code %d, want 3:\n%s", code, &r.said)
		}
		_, record := jobOf(p.dir)
		if done = code == 3 || record != nil && record.State == "done"; !done {
			killed++
		}
	}
	t.Logf("killed %d times", killed)
	if killed == 0 {
		t.Error("it was never killed")
	}
	if _, r := jobOf(p.dir); r.State != "done" || r.Read != total || r.Rejected != int64(*jobTables) || r.Written != total-int64(*jobTables) {
		t.Errorf("%+v of %d records", r, total)
	}
	for i := range *jobTables {
		var want []string
		for id := range rows / 2 {
			sum := 4*id + 1
			if i/2 == id {
				sum -= i // its record was bad
			}
			want = append(want, fmt.Sprintf("id=%d|n=%d", id, sum))
		}
		slices.Sort(want)
		if got := csvRecords(t, []byte(p.output("export", "--table", fmt.Sprintf("t%03d", i), "--store", "s", "--columns", "n", "-q"))); !slices.Equal(got, want) {
			t.Errorf("table %d: %s", i, differs(want, got))
		}
	}
}

func TestTwoProcessesDoNotRunOneJob(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("in.csv", "id\n"+strings.Repeat("1\n2\n3\n4\n", 500))
	p.write("job.yaml", "version: 1\ntarget: {store: s}\ndefaults: {create: true, max-rows-per-second: 10, order: none}\nloads:\n  t: {from: in.csv, pk: [id]}\n")
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
	if code := first.wait(); code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
	if _, r := jobOf(p.dir); r.State != "stopped" || r.Loads[0].State != "stopped" {
		t.Errorf("%+v", r)
	}
}
