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
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	flags := []string{"--table", "t", "--pk", "id", "--type", "n=integer", "--max-errors", "-1"}
	write("day.csv", "id,n\na,1\nb,x\n")
	if _, stderr, code := runBinary(t, append([]string{"load", "**/*.csv"}, flags...)...); code != 3 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	rejects, _ := filepath.Glob("tsimport-runs/*/rejects.csv")
	if len(rejects) != 1 {
		t.Fatalf("rejects: %q", rejects)
	}
	write(rejects[0], "id,n\nb,2\n")
	write("day.csv", "id,n\na,1\nb,3\n")
	if err := os.Mkdir("x-moved", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS("x-moved/run", os.DirFS(filepath.Dir(rejects[0]))); err != nil {
		t.Fatal(err)
	}
	for _, input := range []string{"**/*.csv", "."} {
		_, stderr, code := runBinary(t, append([]string{"load", input}, flags...)...)
		if code != 0 || !strings.Contains(stderr, "2 read, 2 written") || strings.Count(stderr, "skipped ") != 1 ||
			!strings.Contains(stderr, "folder of earlier runs tsimport-runs") || !strings.Contains(stderr, "run folder x-moved/run") {
			t.Errorf("%s: exit code %d: %s", input, code, stderr)
		}
		if stdout, _, _ := runBinary(t, "export", "--table", "t", "-o", "-"); !strings.Contains(stdout, "b,3") {
			t.Errorf("%s: the table holds\n%s", input, stdout)
		}
	}
	stdout, _, _ := runBinary(t, "inspect", ".")
	if strings.Contains(stdout, "rejects.csv") || !strings.Contains(stdout, "skipped ") {
		t.Errorf("inspect:\n%s", stdout)
	}
	if _, stderr, code := runBinary(t, append([]string{"load", rejects[0]}, flags...)...); code != 0 || !strings.Contains(stderr, "1 read, 1 written") {
		t.Errorf("a file that is named: exit code %d: %s", code, stderr)
	}
}
