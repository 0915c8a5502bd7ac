//go:build e2e

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A store in memory leaves nothing in the folder, and its tables are gone with the process.
func TestServeKeepsAStoreInMemory(t *testing.T) {
	dir := t.TempDir()
	s, err := launch("--memory", "--any-credentials")
	must(t, err)
	defer s.stop(t)
	t.Setenv("TABLESTORE_ACCESS_KEY_ID", "anyone")
	t.Setenv("TABLESTORE_ACCESS_KEY_SECRET", s.AccessKeySecret) // that answers are signed with
	csv := filepath.Join(dir, "orders.csv")
	must(t, os.WriteFile(csv, []byte("id,n\na,1\nb,2\n"), 0o644))
	stdout, stderr, code := runBinary(t, "load", csv, "--endpoint", s.URL, "--instance", "another", "--table", "orders", "--create", "--pk", "id", "--run-dir", filepath.Join(dir, "run"), "--verify")
	if code != 0 {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	res, err := http.Post(s.URL+"/_engine/reset", "", nil)
	must(t, err)
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("reset: %s", res.Status)
	}
	stdout, stderr, code = runBinary(t, "verify", csv, "--endpoint", s.URL, "--instance", "another", "--table", "orders", "--pk", "id")
	if code == 0 || !strings.Contains(stdout+stderr, "orders") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

func TestServeRefusesWhatIsNotForATestServer(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--memory keeps nothing on disk":      {"--memory", "--store", t.TempDir()},
		"leave out --store and --sync":        {"--memory", "--sync", "none"},
		"--any-credentials lets everybody in": {"--any-credentials", "--memory", "--listen", "0.0.0.0:0"},
		"the built-in access key is public":   {"--memory", "--listen", "0.0.0.0:0"},
	} {
		stdout, stderr, code := runBinary(t, append([]string{"serve"}, args...)...)
		if code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d: %s%s", args, code, stdout, stderr)
		}
	}
}
