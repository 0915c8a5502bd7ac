//go:build e2e

package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stuck starts a load into a service that is always busy, and returns when the run folder has a checkpoint.
func stuck(t *testing.T) (p *place, r *process) {
	t.Helper()
	s := startServe(t, "--sync", "none", "--fault-rate", "1", "--fault-kinds", "refuse:OTSServerBusy")
	p = newPlace(t, s.env()...)
	p.write("in.csv", "id,n\na,1\nb,2\nc,x\n")
	r = p.start("load", "in.csv", "--table", "t", "--create", "--pk", "id", "--type", "n=integer", "--run-dir", "run")
	r.must(there(p.path("run/checkpoint.bin")))
	return p, r
}

func TestALoadWhoseRunFolderIsDeletedSaysThatNothingIsSaved(t *testing.T) {
	t.Parallel()
	p, r := stuck(t)
	for os.RemoveAll(p.path("run")) != nil { // a checkpoint may be written meanwhile
	}
	r.signal(os.Interrupt)
	code, text := r.wait(), r.said.String()
	if code != 1 || !strings.Contains(text, "run/summary.json is missing") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
	for _, said := range []string{"to resume: ", "summary: ", "report: ", "rejected rows: "} {
		if strings.Contains(text, "tsimport: "+said) {
			t.Errorf("%q is said:\n%s", said, text)
		}
	}
}

func TestOnlyItsOwnerReadsWhatALoadKeeps(t *testing.T) {
	t.Parallel()
	p, r := stuck(t)
	r.signal(os.Interrupt)
	if code := r.wait(); code != 130 {
		t.Errorf("exit code %d:\n%s", code, &r.said)
	}
	want := map[string]bool{"checkpoint.bin": true, "run.json": true, "summary.json": true, "report.html": true, "rejects.csv": true, "rejects.jsonl": true}
	must(t, filepath.WalkDir(p.path("run"), func(path string, e fs.DirEntry, err error) error {
		must(t, err)
		info, err := e.Info()
		must(t, err)
		mode := fs.FileMode(0o600)
		if info.IsDir() {
			mode = 0o700
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		delete(want, e.Name())
		return nil
	}))
	if len(want) > 0 {
		t.Errorf("the run folder lacks %v", want)
	}
}
