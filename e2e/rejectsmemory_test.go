//go:build e2e && linux

package e2e

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	dir := t.TempDir()
	input, job := filepath.Join(dir, "in.csv"), filepath.Join(dir, "job")
	what := strings.Repeat("a record that is rejected ", 10)
	writeFile(t, input, func(w io.Writer) {
		fmt.Fprint(w, "id,n,what\n")
		for n := range records {
			fmt.Fprintf(w, "%d,x,%s\n", n, what)
		}
	})
	if _, stderr, code := runBinary(t, "load", input, "--endpoint", s.URL, "--instance", s.Instance, "--table", "t", "--create", "--pk", "id:integer", "--type", "n=integer",
		"--max-errors", "-1", "--job-dir", job, "--split-size", "2MiB", "--memory", "64MiB", "--quiet"); code != 0 {
		t.Fatal(stderr)
	}
	idle, _, _ := runMeasured(t, "work", "--help")
	peak, code, out := runMeasured(t, "work", "--job-dir", job, "--memory", "64MiB", "--quiet")
	if code != 3 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	t.Logf("%d rejected records: peak %d MiB", records, peak>>20)
	if most := 64<<20 + besideMemory(idle); peak > most {
		t.Errorf("peak of %d MiB with --memory 64MiB, want at most %d; --help takes %d", peak>>20, most>>20, idle>>20)
	}
	kept, err := os.ReadFile(filepath.Join(job, "rejects.csv"))
	must(t, err)
	want, err := os.ReadFile(input)
	must(t, err)
	if string(kept) != string(want) {
		t.Error("rejects.csv is not what was rejected")
	}
}
