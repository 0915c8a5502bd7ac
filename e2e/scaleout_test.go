//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
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
