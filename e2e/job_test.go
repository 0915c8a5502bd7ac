package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/tsimport/internal/conformance"
)

type jobRecord struct {
	State                   string
	Read, Written, Rejected int64
	Loads                   []struct{ Name, State string }
}

// jobOf reads the only job in a folder, and returns its folder; nil before there is one.
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

func TestTwoProcessesDoNotRunOneJob(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("in.csv", "id\n"+strings.Repeat("1\n2\n3\n4\n", 500))
	p.write("job.yaml", "version: 1\ntarget: {store: s}\ndefaults: {create: true, max-rows-per-second: 10, order: "+
		"none}\nloads:\n  t: {from: in.csv, pk: [id]}\n")
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
	conformance.Equal(t, first.wait(), 143, "exit code")
	_, r := jobOf(p.dir)
	conformance.True(t, r.State == "stopped" && r.Loads[0].State == "stopped", "%+v", r)
}
