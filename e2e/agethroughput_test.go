//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestThroughputIsPacedAsTheServiceWants(t *testing.T) {
	t.Parallel()
	a := newAging(t, "1s")
	a.args = with(a.args, "--throughput-interval", "1s")
	policy := filepath.Join(a.dir, "policy.yaml")
	text, err := os.ReadFile(policy)
	must(t, err)
	for _, units := range []string{"4", "6", "5"} { // at once one after the other
		must(t, os.WriteFile(policy, bytes.ReplaceAll(text, []byte("read: 5"), []byte("read: "+units)), 0o600))
		if out, err := a.command(a.args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	a.check(t, "after three changes")
}

func TestAServiceThatWantsLongerPausesIsReported(t *testing.T) {
	t.Parallel()
	a := newAging(t, "1h")
	policy := filepath.Join(a.dir, "policy.yaml")
	if out, err := a.command(a.args...).CombinedOutput(); err != nil {
		t.Fatalf("the first change: %v\n%s", err, out)
	}
	must(t, os.WriteFile(policy, []byte("period: month\nclasses: [{reserved: {read: 1}}]"), 0o600))
	cmd := a.command("age", "--policy", policy, "--table", "c_{month}", "--apply", "--throughput-interval", "0s")
	out, _ := cmd.CombinedOutput() // its error is the exit code
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), "refused 10 times in a row") ||
		!strings.Contains(string(out), "give a longer --throughput-interval") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	a.check(t, "after the refusal")
}
