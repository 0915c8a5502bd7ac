package e2e

import (
	"os"
	"testing"
)

func TestAnInterruptedBenchEndsWhatItStarted(t *testing.T) {
	t.Parallel()
	p, temp := newPlace(t), t.TempDir()
	p.env = []string{"TMPDIR=" + temp}
	r := p.start("bench", "spread", "--rows", "50000", "--partitions", "2", "--only", "tsimport", "--keep", "kept")
	r.says("^tsimport: tsimport: loading$", 1)
	r.must(there(p.path("kept/tsimport/run"))) // the loader's: the engine serves
	r.signal(os.Interrupt)
	if code := r.wait(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	r.says("interrupt", 1)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	p.ends(0, []string{"table", "list", "--store", "kept/tsimport/store"}) // an engine that still ran would hold it
}
