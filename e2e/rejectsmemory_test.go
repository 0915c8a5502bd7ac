//go:build e2e && linux

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// A job directory collects the rejected records of all its processes.
func TestAJobOfRejectedRecordsStaysWithinItsMemory(t *testing.T) {
	records := 10_000 // make memory says how much memory they take; these are all there afterwards
	if *everyMemoryFile {
		records = 1_000_000
	}
	s := startServe(t, "--sync", "none")
	t.Setenv("TABLESTORE_ACCESS_KEY_ID", s.AccessKeyID)
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", s.AccessKeySecret)
	p := newPlace(t)
	what := strings.Repeat("a record that is rejected ", 10)
	want, job := fileOf("id,n,what", records, func(n int) string { return fmt.Sprintf("%d,x,%s", n, what) }), p.path("job")
	p.run(0, "load", p.write("in.csv", want), "--endpoint", s.URL, "--instance", s.Instance, "--table", "t", "--create", "--pk", "id:integer", "--type", "n=integer",
		"--max-errors", "-1", "--job-dir", job, "--split-size", "2MiB", "--memory", "64MiB", "--quiet")
	idle, _, _ := runMeasured(t, "work", "--help")
	peak, code, out := runMeasured(t, "work", "--job-dir", job, "--memory", "64MiB", "--quiet")
	if code != 3 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	t.Logf("%d rejected records: peak %d MiB", records, peak>>20)
	if most := 64<<20 + besideMemory(idle); peak > most {
		t.Errorf("peak of %d MiB with --memory 64MiB, want at most %d; --help takes %d", peak>>20, most>>20, idle>>20)
	}
	if p.read("job/rejects.csv") != want {
		t.Error("rejects.csv is not what was rejected")
	}
}
