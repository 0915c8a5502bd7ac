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
	diff(t, res.StatusCode, http.StatusOK)
	stdout, stderr, code = runBinary(t, "verify", csv, "--endpoint", s.URL, "--instance", "another", "--table", "orders", "--pk", "id")
	if code == 0 || !strings.Contains(stdout+stderr, "orders") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// Indexes follow later by the clock that tests move, and at once when the delay is taken away.
func TestServeDelaysIndexes(t *testing.T) {
	t.Parallel()
	p, err := launch("--memory", "--index-delay", "1h")
	must(t, err)
	defer p.stop(t)
	s := &service{TableStoreClient: newClient(p.URL, p.Instance, p.AccessKeyID, p.AccessKeySecret)}
	tell := func(what, body string, status int) {
		t.Helper()
		res, err := http.Post(p.URL+"/_engine/"+what, "", strings.NewReader(body))
		must(t, err)
		res.Body.Close()
		diff(t, res.StatusCode, status)
	}
	name := newTableName()
	tb := s.withIndexes(t, indexOn(name, []string{"a"}))
	shows := func(want ...[]any) {
		t.Helper()
		keys, _ := tb.indexRows(t, name, 3)
		diff(t, keys, want)
	}
	must(t, s.do(tb.put(tb.key("x", 1), c("a", 7))))
	tell("clock", `{"advance": "59m"}`, http.StatusOK)
	must(t, s.do(tb.update(tb.key("x", 1), set("a", 8))))
	shows()
	tell("clock", `{"advance": "1m"}`, http.StatusOK)
	shows([]any{int64(7), "x", int64(1)})
	tell("clock", `{"advance": "1h"}`, http.StatusOK)
	shows([]any{int64(8), "x", int64(1)})
	must(t, s.do(tb.delete(tb.key("x", 1))))
	shows([]any{int64(8), "x", int64(1)})
	tell("tables/"+tb.name+"/simulate", `{"index_delay_ms": 5}`, http.StatusBadRequest)
	tell("simulate", `{"index_delay_ms": -5}`, http.StatusBadRequest)
	tell("simulate", `{}`, http.StatusOK)
	shows()
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
