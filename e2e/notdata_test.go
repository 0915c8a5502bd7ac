//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAGlobTakesNoFilesOfEarlierRuns loads twice what a glob matches: the corrected reject of the first load is older than the
// file that has the row on the second day.
func TestAGlobTakesNoFilesOfEarlierRuns(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	load := func(code int, input string, wants ...string) string {
		t.Helper()
		return p.ends(code, []string{"load", input, "--table", "t", "--pk", "id", "--type", "n=integer", "--max-errors", "-1"}, wants...)
	}
	p.write("day.csv", "id,n\na,1\nb,x\n")
	load(3, "**/*.csv")
	rejects := p.glob("tsimport-runs/*/rejects.csv")
	if len(rejects) != 1 {
		t.Fatalf("rejects: %q", rejects)
	}
	must(t, os.WriteFile(rejects[0], []byte("id,n\nb,2\n"), 0o600))
	p.write("day.csv", "id,n\na,1\nb,3\n")
	must(t, os.CopyFS(p.path("x-moved/run"), os.DirFS(filepath.Dir(rejects[0]))))
	for _, input := range []string{"**/*.csv", "."} {
		if said := load(0, input, "2 read, 2 written", "folder of earlier runs tsimport-runs", "run folder x-moved/run"); strings.Count(said, "skipped ") != 1 {
			t.Errorf("%s: %s", input, said)
		}
		p.ends(0, []string{"export", "--table", "t"}, "b,3")
	}
	if said := p.ends(0, []string{"inspect", "."}, "skipped "); strings.Contains(said, "rejects.csv") {
		t.Errorf("inspect:\n%s", said)
	}
	load(0, rejects[0], "1 read, 1 written") // a file that is named
}
