//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Rows may be sent by BulkImport, with the same result as by BatchWriteRow.
func TestALoadMaySendBulkImports(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := func(file string) string { return filepath.Join(dir, file) }
	var text strings.Builder
	text.WriteString("id,n,v\n")
	for i := range 3000 {
		fmt.Fprintf(&text, "k%d,%d,%s\n", i%2500, i, strings.Repeat("x", i%50))
	}
	must(t, os.WriteFile(name("a.csv"), []byte(text.String()), 0o644))
	s, err := launch("--memory", "--any-credentials", "--fault-rate", "0.2", "--fault-kinds", "drop-before,drop-after,refuse-rows,error-after,refuse:OTSServerBusy", "--random-seed", "4")
	must(t, err)
	defer s.stop(t)
	to := []string{"--endpoint", s.URL, "--instance", s.Instance}
	load := func(run string, args ...string) (string, int) {
		stdout, stderr, code := runBinaryWith(t, []string{"TABLESTORE_ACCESS_KEY_ID=tsimport-local", "TABLESTORE_ACCESS_KEY_SECRET=tsimport-local-secret"}, append(append([]string{"load", name("a.csv"), "--create", "--settle", "100ms", "--run-dir", name(run)}, to...), args...)...)
		return stdout + stderr, code
	}
	if out, code := load("put", "-t", "puts", "--pk", "id", "--request", "bulk", "--verify"); code != 0 || !strings.Contains(out, "2,500 equal, 0 missing, 0 different, 0 surplus") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := load("update", "-t", "puts", "--pk", "id", "--request", "bulk", "--mode", "update", "--columns", "id,n", "--verify"); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if out, code := load("delete", "-t", "puts", "--pk", "id", "--request", "bulk", "--mode", "delete", "--columns", "id"); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if got := dump(t, s, "puts"); len(got) > 0 {
		t.Errorf("%d rows after the delete", len(got))
	}
	for want, args := range map[string][]string{
		"does not go with --condition":          {"-t", "puts", "--pk", "id", "--condition", "not-exist"},
		"does not go with --when":               {"-t", "puts", "--pk", "id", "--when", "stored.n < new.n"},
		"does not go with --mode increment":     {"-t", "puts", "--pk", "id", "--columns", "id,n", "--mode", "increment", "--mark-column", "m"},
		"does not go with a column that the se": {"-t", "numbered", "--pk", "id", "--pk", "seq:auto", "--returned-keys", name("keys.csv")},
	} {
		if out, code := load("refused", append(args, "--request", "bulk")...); code != 2 || !strings.Contains(out, want) {
			t.Errorf("%q: exit code %d: %s", args, code, out)
		}
	}
	if out, code := load("refused", "-t", "puts", "--pk", "id", "--request", "single"); code != 2 || !strings.Contains(out, "want batch or bulk") {
		t.Errorf("exit code %d: %s", code, out)
	}
}
